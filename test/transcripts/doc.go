// Package transcripts has a shell give command lines to the built plugin, on a real API server
// beside the built agent, and compares all that is printed, and the exit codes, with what
// stands in testdata.
//
// A transcript reads like a terminal. Lines that begin with # are for the reader.
//
//	$ kubectl maint check weekends
//	> -o name             the next line of the same command, of sh
//	policy/weekends       what came on standard output
//	! warning: …          what came on standard error
//	[exit 3]              the exit code, where it is not 0
//
// A line of output that would be taken for one of these begins with a backslash, and so does
// the end of an output that is an empty line, or lacks its end of line.
//
// `MAINT_WRITE=1 go test ./test/transcripts` writes the answers anew: read what
// changed before it is committed. MAINT_BIN names a folder with commands that were built
// before; without it they are built here.
//
// Each transcript has a namespace of its own, named like the file, and the zone of
// Berlin. The folders say what there is: offline (no cluster), bare (an API server, no agent),
// installed (both, and nothing else), agent and nodes (both), silent (both, and the agent was killed),
// older (both, and the agent is one that knows neither HibernatePlans nor requests for nodes; only with
// MAINT_UPGRADE=1). The shell knows besides:
//
//	eventually COMMAND    gives a command again until it ends with 0, and prints what it printed then
//	terminal COLUMNS COMMAND   gives it in a terminal so wide
//	plan NAME SPEC        writes a plan, and waits until an agent has taken it up
//	plans COUNT SPEC NAMESPACE   writes plan-1, plan-2 and so on
//	made FILE             says whether the run that an answer in FILE names has been created
//
// What changes from one run to the next is replaced; see [words].
package transcripts
