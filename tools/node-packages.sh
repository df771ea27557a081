#!/usr/bin/env bash
# Makes sure that a real node can run here: it needs Linux, root, and two
# Debian packages, which this installs where they are missing. It never lets a
# test go on without them: a node that did not start proves nothing.
set -euo pipefail

packages=(runc containernetworking-plugins)

main() {
	[[ $(uname -s) == Linux ]] || stop "a real node runs on Linux only, and this is $(uname -s)"
	[[ $(id -u) == 0 ]] || stop "a kubelet needs root: run 'sudo make e2e-node', on a machine that may be thrown away"
	if complete; then return; fi
	command -v apt-get >/dev/null ||
		stop "runc or the CNI plugins (ptp, host-local) are missing, and this is no Debian: install runc and containernetworking-plugins (dnf, apk, pacman have both)"
	echo "tools: installing ${packages[*]}"
	install || { apt-get update -q && install; } || stop "apt-get could not install ${packages[*]}"
	complete || stop "${packages[*]} are installed, but runc is not on PATH or the CNI plugins are neither in /usr/lib/cni nor in /opt/cni/bin"
}

complete() {
	command -v runc >/dev/null && [[ -x /usr/lib/cni/ptp || -x /opt/cni/bin/ptp ]]
}

install() {
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}"
}

stop() {
	echo "############################################################" >&2
	echo "# NO REAL NODE: $1" >&2
	echo "# What needs a real kubelet was NOT tested.                 " >&2
	echo "############################################################" >&2
	exit 1
}

main
