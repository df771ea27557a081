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
# shellcheck disable=SC2086 # one word per package
{
	CGO_ENABLED=1 go test -race -timeout 20m -skip "$large|$nights|$alike|$bad" $packages
	go test -timeout 20m -run "$large|$nights|$often|$alike|$bad" $packages
}
