package transcripts

import (
	"fmt"
	"regexp"
	"strings"
)

// words replaces what another run of the same commands would say otherwise. What is replaced
// keeps its width where it can, so that tables stay aligned.
//
//	maint-run-x-RUN0000001   the random end of a run's name; the number says which of the transcript's
//	YYYY-MM-DDThh:mm:ssZ     an instant from 2026 to 2039; others stay as they are
//	Ddd YYYY-MM-DD hh:mm     the same for people
//	AGE                      a duration of a column, in brackets, or after in, after, for
//	UID, RV, PORT, WORK      an object's UID and resource version, a port, the transcript's folder
//	(nothing)                lines that tell what a run, a step, a target or a node is at while it is waited for:
//	                         what is over before somebody looks is not shown
//	PROGRESS                 what a HibernatePlan says once all is awake: by its targets first, then by
//	                         its schedule
//	HOST                     the machine of an agent, and what tells the agents on it apart
type words struct {
	work string
	runs map[string]string
}

func newWords(work string) *words {
	return &words{work: work, runs: map[string]string{}}
}

var ( //nolint:gochecknoglobals // compiled once
	runNames = regexp.MustCompile(`\b(maint-run-[a-z0-9-]+?)-([a-z2-7]{10})\b`)
	machine  = regexp.MustCompile(`\b(20\d\d-\d\d-\d\d)T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	people   = regexp.MustCompile(`\b(?:(Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(20\d\d-\d\d-\d\d)( \d\d:\d\d(:\d\d)?)?( CET| CEST)?`)
	uids     = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	versions = regexp.MustCompile(`(resourceVersion"?: )"\d+"`)
	ports    = regexp.MustCompile(`\b127\.0\.0\.1:\d+`)
	ages     = regexp.MustCompile(`(  |\bin |\bafter |\bfor |\bheld for |\(|\blast seen )(?:\d+(?:ms|[dhms]))+( ago|\)|:|$| +\S|)`)
	elapsed  = regexp.MustCompile(`\b(?:\d+(?:ms|[dhms]))+ ago\b`)
	lasted   = regexp.MustCompile(`("duration": )"(?:\d+(?:ms|[dhms]))+"`)
	hosts    = regexp.MustCompile(`(\b(?:identity|pod)"?: "?)[\w.-]+`)
	progress = regexp.MustCompile(`(YYYY-MM-DDThh:mm:ssZ plan [\w-]+: Active): .*`)
	passing  = regexp.MustCompile(`(?m)^(?:! )?(?:YYYY-MM-DDThh:mm:ssZ (?:(?:run|step) [\w/-]+: (?:Pending|Running)(?: \(dry run\))?|[\w-]+: target [\w-]+: (?:Pending|Running)|plan [\w-]+: (?:Hibernating|WakingUp): .*|node [\w-]+: being released, was \w+|waiting for run [\w-]+(?:: .*)?)|waiting for \w+ of node/[\w-]+: .*)(?:\n|\z)`)
	columns  = regexp.MustCompile(`(\S) {3,}`)
	digits   = regexp.MustCompile(`\d`)
)

func (w *words) replace(text string) string {
	text = strings.ReplaceAll(text, w.work, "WORK")
	text = runNames.ReplaceAllStringFunc(text, w.run)
	text = machine.ReplaceAllStringFunc(text, func(s string) string {
		if !isOurs(machine.FindStringSubmatch(s)[1]) {
			return s
		}
		zone := machine.FindStringSubmatch(s)[3]
		return "YYYY-MM-DDThh:mm:ss" + digits.ReplaceAllString(zone, "0")
	})
	dated := people.ReplaceAllStringFunc(text, date)
	squeezed := dated != text && strings.Contains(dated, " hh:mm")
	text = dated
	text = uids.ReplaceAllString(text, "UID")
	text = versions.ReplaceAllString(text, `$1"RV"`)
	text = ports.ReplaceAllString(text, "127.0.0.1:PORT")
	text = hosts.ReplaceAllString(text, "${1}HOST")
	text = strings.TrimSuffix(passing.ReplaceAllString(text, ""), "\n")
	text = progress.ReplaceAllString(text, "$1: PROGRESS")
	text = lasted.ReplaceAllString(elapsed.ReplaceAllString(text, "AGE ago"), `$1"AGE"`)
	return replaceAges(text, squeezed)
}

// replaceAges replaces durations that people read. Where one, or a time of day, stands within a
// table, all its columns are three spaces apart: how wide they are depends on it.
func replaceAges(text string, within bool) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for was := ""; was != lines[i]; { // two beside each other share what is between them
			was = lines[i]
			lines[i] = ages.ReplaceAllString(was, "${1}AGE$2")
		}
		within = within || lines[i] != line && !strings.HasSuffix(lines[i], "AGE")
	}
	text = strings.Join(lines, "\n")
	if within {
		return columns.ReplaceAllString(text, "$1   ")
	}
	return text
}

// run numbers the runs in the order in which they are first told of.
func (w *words) run(name string) string {
	if _, known := w.runs[name]; !known {
		w.runs[name] = fmt.Sprintf("RUN%07d", len(w.runs)+1)
	}
	return runNames.FindStringSubmatch(name)[1] + "-" + w.runs[name]
}

// date leaves out the seconds, which are not shown where they are 0.
func date(s string) string {
	parts := people.FindStringSubmatch(s)
	if !isOurs(parts[2]) {
		return s
	}
	out := "YYYY-MM-DD"
	if parts[1] != "" {
		out = "Ddd " + out
	}
	if parts[3] != "" {
		out += " hh:mm"
	}
	if parts[5] != "" {
		out += " CET"
	}
	return out
}

// isOurs says whether a date may be one of the time in which the tests run. Transcripts write
// of earlier and of later ones.
func isOurs(date string) bool { return date >= "2026" && date < "2040" }
