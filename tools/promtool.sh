#!/usr/bin/env bash
# Makes sure that promtool is on PATH: it is in Debian's package prometheus, which this
# installs where it is missing.
set -euo pipefail

command -v promtool >/dev/null && exit 0
command -v apt-get >/dev/null || {
	echo "tools: promtool is not on PATH, and this is no Debian: install Prometheus" >&2
	exit 1
}
root=()
[[ $(id -u) == 0 ]] || root=(sudo)
echo "tools: installing Debian's prometheus, for promtool"
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get update -q
"${root[@]}" apt-get install -y -q --no-install-recommends prometheus
