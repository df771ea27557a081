#!/bin/sh
# Prints how many lines of tests there are for each line of code.
# Code is pkg/ and cmd/. Tests are their _test.go files, the rooms that only tests import, and
# test/ without the benchmarks and the demo. What a generator wrote counts as neither.
set -eu
cd "$(dirname "$0")/.."

rooms='^pkg/(coretest|cmd/cmdtest|agent/agenttest|executors/(conformance|sleepertest|function/functiontest))/'

lines() { tr '\n' '\0' | xargs -0 cat | wc -l; }

files=$(git ls-files '*.go' | while read -r f; do
	[ -e "$f" ] || continue
	head -n 3 "$f" | grep -q '^// Code generated .* DO NOT EDIT\.$' || echo "$f"
done)
own=$(echo "$files" | grep -E '^(pkg|cmd)/')
code=$(echo "$own" | grep -v '_test\.go$' | grep -vE "$rooms" | lines)
beside=$({ echo "$own" | grep '_test\.go$'; echo "$own" | grep -v '_test\.go$' | grep -E "$rooms"; } | lines)
whole=$(echo "$files" | grep -E '^test/' | grep -vE '^test/(bench|demo)/' | lines)
tests=$((beside + whole))
echo "$tests lines of tests ($beside beside the code, $whole in test/) for $code lines of code: $((tests / code)).$(printf '%02d' $((tests * 100 / code % 100)))"
