#!/usr/bin/env bash
# Puts each mended fault back (test/chaos/faults/*.patch) into a copy of the tree,
# builds that agent, plays the scenario that the patch names, and expects that one
# of the checkers that it names finds something. With names as arguments, those alone.
set -euo pipefail

cd "$(dirname "$0")/../.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unseen=()

# field reads a line "Name: value" from the head of a patch.
field() { sed -n "s/^$2: //p;/^diff /q" "$1"; }

for patch in test/chaos/faults/*.patch; do
	name=$(basename "$patch" .patch)
	if (($# > 0)) && [[ " $* " != *" $name "* ]]; then continue; fi
	echo "=== $name: $(field "$patch" Fault)"
	rm -rf "$work/tree"
	mkdir "$work/tree"
	git ls-files -z | xargs -0 cp --parents -t "$work/tree" 2>/dev/null || true # what was deleted and not committed
	(
		cd "$work/tree"
		git apply "$root/$patch"
		CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags grpcnotrace -o "$work/agent" ./cmd/agent
	)
	bin/chaos --agent "$work/agent" --seed 1 --for 1m --scenario "$(field "$patch" Scenario)" --expect "$(field "$patch" Checkers)" ||
		unseen+=("$name")
done
if ((${#unseen[@]} > 0)); then
	echo "chaos: these faults were not seen: ${unseen[*]}" >&2
	exit 1
fi
