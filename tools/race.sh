#!/usr/bin/env bash
# Runs the tests of the packages that have goroutines under the race detector.
# The detector needs cgo, cgo needs a C compiler, and Go itself does not: where
# there is none this says so, and fails only in CI.
set -euo pipefail

cd "$(dirname "$0")/.."
packages=$(go list ./pkg/... | grep -E '/pkg/(agent|executors|informer)(/|$)' || true)
if [[ -z $packages ]]; then
	echo "race: no package under pkg/agent or pkg/executors" >&2
	exit 1
fi
if [[ ${1:-} == --packages ]]; then
	echo "$packages"
	exit 0
fi
cc=$(go env CC)
if ! printf '#include <pthread.h>\n#include <stdlib.h>\nint main(void) { return 0; }\n' |
	"${cc%% *}" -x c - -o /dev/null 2>/dev/null; then
	echo "############################################################" >&2
	echo "# NO RACE DETECTOR: '$cc' cannot compile C here.            " >&2
	echo "# Races in pkg/agent and pkg/executors were NOT looked for. " >&2
	echo "# Install gcc and the C library's headers, e.g. apt-get     " >&2
	echo "# install gcc libc6-dev, and run 'make race'.               " >&2
	echo "############################################################" >&2
	if [[ ${CI:-} == true ]]; then exit 1; fi
	# shellcheck disable=SC2086 # one word per package
	exec go test -timeout 20m $packages
fi

# What measures the heap, or decodes tens of megabytes by one goroutine, is left out: the
# detector makes that ten times slower and sees nothing in it. It runs without, afterwards.
large='TakeTheMemory|GatesKeepSoMuch|WhatGatesLeftIsTakenIn|TakesTheMemory|FullLedgersPushOut|TooLargeForAPage|PageThatIsTooLarge|ObjectThatGrowsTooLarge'
# Nights that are played again and again differ in where the agent dies, not in what its
# goroutines share: TestWhereverAnAgentDiesAllWakesAsItWas stands for them.
nights='DiesHoursAreCounted|DiesBetweenTwoSleeps|DiesOnWaking|DiesDeletedRestoreData|EarlierNight|OlderLedger|SleepThatNoLedger'
# Under the detector an agent dies at two writes of a story, without it at fourteen.
often='DiesAllWakesAsItWas'
# These differ from others in what is said, what time it is or what was written before, not in
# which goroutines do the work.
alike='WhatPeopleSayToAPlan|PassesNoSlots|ASkipThatIsPast|OffWindowsOfADryRun|NothingIsKeptIsDecidedAlike|ABackupBringsBack|SomebodyMakesImmutable|HasSoMuchRestoreData|ItsOwnerStopped'
# The tables of documents that cannot be differ in the documents alone.
bad='TestATargetThatCannotBeIsSaid|TestAPlanThatCannotBeIsSaid'
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# detect runs packages under the detector, and keeps what it printed.
detect() {
	CGO_ENABLED=1 go test -race -timeout 20m -skip "$large|$nights|$alike|$bad" "$@" 2>&1 | tee "$log"
}

# crashed prints the packages of the log in which the detector itself came to an end, which it does
# at times beside testing/synctest (golang.org/issue/78156), and fails if another one failed too.
crashed() {
	awk '
		/^ThreadSanitizer: CHECK failed/ { crash = 1 }
		/--- FAIL|DATA RACE|^panic:|^fatal error:/ { real = 1 }
		/^(ok|FAIL|\?)[ \t]+[^ \t]+/ {
			if ($1 == "FAIL") { if (crash && !real) print $2; else other = 1 }
			crash = real = 0
		}
		END { exit other }
	' "$log"
}

# shellcheck disable=SC2086 # one word per package
{
	if ! detect $packages; then
		again=$(crashed) && [[ -n $again ]] || exit 1
		echo "race: the detector crashed (golang.org/issue/78156); once more: $again" >&2
		detect $again
	fi
	go test -timeout 20m -run "$large|$nights|$often|$alike|$bad" $packages
}
