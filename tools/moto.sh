#!/usr/bin/env bash
# Brings a simulated AWS (moto_server) into bin/moto, unless one is on PATH or there
# already. It needs Python; nothing else of the project does.
set -euo pipefail

readonly version=5.2.1
bin=$(cd "$(dirname "$0")/.." && pwd)/bin/moto
stamp=$bin/.version

if command -v moto_server >/dev/null || [[ -f $stamp && $(<"$stamp") == "$version" ]]; then
	exit 0
fi
command -v python3 >/dev/null || {
	echo "tools: a simulated AWS needs Python 3, which is not here; or: pip install 'moto[server]==$version'" >&2
	exit 1
}
echo "tools: installing moto $version, a simulated AWS, into bin/moto"
rm -rf "$bin"
python3 -m venv "$bin" || {
	echo "tools: python3 has no venv (on Debian: apt install python3-venv); or: pip install 'moto[server]==$version'" >&2
	exit 1
}
"$bin/bin/pip" install --quiet --disable-pip-version-check "moto[server]==$version"
echo "$version" >"$stamp"
