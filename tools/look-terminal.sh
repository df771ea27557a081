#!/bin/sh
# Shows the live view of the cluster of KUBECONFIG in terminals of several sizes, and writes what stands on
# their screens into test/look/testdata/terminal-*.txt: to be looked at, since no test can say whether a
# screen reads well. It needs tmux, and a cluster in which something is to be seen (go run ./test/demo -keep).
set -eu
command -v tmux >/dev/null || { echo "look-terminal: there is no tmux here" >&2; exit 0; }
command -v kubectl-maint >/dev/null || { echo "look-terminal: kubectl-maint is not on the PATH" >&2; exit 2; }
out=${OUT:-test/look/testdata}
socket=look-terminal-$$
trap 'tmux -L "$socket" kill-server 2>/dev/null || true' EXIT
tmux -L "$socket" new-session -d -s stays # the server ends with its last session

# screen NAME WIDTH HEIGHT KEYS...: the live view after some keys; "resize WxH" among them changes the size.
screen() {
	name=$1 wide=$2 tall=$3
	shift 3
	tmux -L "$socket" new-session -d -s "$name" -x "$wide" -y "$tall" "kubectl-maint ${FLAGS:-status -w -A}"
	sleep "${WAIT:-3}"
	for key in "$@"; do
		case $key in
		resize*) size=${key#resize } && tmux -L "$socket" resize-window -t "$name" -x "${size%x*}" -y "${size#*x}" ;;
		*) tmux -L "$socket" send-keys -t "$name" "$key" ;;
		esac
		sleep 1
	done
	tmux -L "$socket" capture-pane -p -t "$name" >"$out/terminal-$name.txt"
	tmux -L "$socket" kill-session -t "$name"
	echo "$out/terminal-$name.txt"
}

screen 80x24 80 24
screen 200x50 200 50
screen 20x8 20 8
screen narrowed 200 50 "resize 80x24"
screen widened 80 24 "resize 200x50"
screen keys 80 24 "?"
screen filter 80 24 / o
