// Package stuck words which runs of a plan cannot go on, as it stands on the plan, and reads there
// which of them the agent leaves alone.
package stuck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
)

// MaxBytes is how long Message becomes: enough for the names of fifty runs whose plan has the
// longest name that there is.
const MaxBytes = 6 * document.MaxMessage

// What is said of a run that is left alone, after "run NAME".
const (
	isAlone  = " is left alone"
	isUnread = " cannot be read and is left alone"
	areAlone = " are left alone"
)

const (
	toAdopt = " adopt run/"
	toLabel = "put it back with "
)

// waitsForRun begins why a run waits for another one; the name of that follows.
const waitsForRun = "it waits for run "

// Alone is a run that the agent leaves alone.
type Alone struct {
	Name string
	Why  string // a sentence that begins with "run NAME"
}

// Unsigned is a run whose signature does not count, for one of the reasons below.
func Unsigned(name, why string) Alone {
	return Alone{name, "run " + name + isAlone + ", and nothing of it is put back: " + why}
}

// WhyUnsigned is why a signature does not count that a new one takes the place of.
func WhyUnsigned(namespace, name string, why error) string {
	return fmt.Sprintf("%s; if it is the agent's own, from a backup say, sign it with %s", why, intent.Command(namespace, "adopt", "run/"+name))
}

// WhyUnlabelled is why a signature does not count that does again with a label that is gone.
func WhyUnlabelled(namespace, name, label, value string, why error) string {
	return why.Error() + ", and " + LabelGone(namespace, name, label, value)
}

// LabelGone says of an object that a label of it is gone, with the command that puts it back.
func LabelGone(namespace, name, label, value string) string {
	return fmt.Sprintf("its label %s is gone; "+toLabel+"%s", label, intent.LabelAgain(namespace, name, label, value))
}

// Newer is a run that a newer version wrote.
func Newer(name string, why error) Alone {
	return Alone{name, fmt.Sprintf("run %s%s: %s until a version runs that can read it", name, isAlone, why)}
}

// Unread is a run that cannot be read.
func Unread(name string, why error) Alone {
	return Alone{name, fmt.Sprintf("run %s%s: %s; fix its ConfigMap, or delete it and take its finalizer off, and its cleanup does not run", name, isUnread, why)}
}

// Message says which runs are left alone, and why: of several their names first, so that these
// are there where not all reasons fit. Where there are none it says what else keeps a run.
func Message(alone []Alone, waits string) string {
	if len(alone) == 0 {
		return document.Cut(waits, MaxBytes)
	}
	var names, reasons []string
	for _, a := range alone {
		names, reasons = append(names, a.Name), append(reasons, a.Why)
	}
	all := strings.Join(reasons, "; ")
	if len(alone) > 1 {
		all = "runs " + strings.Join(names, ", ") + areAlone + "; " + all
	}
	return document.Cut(all, MaxBytes)
}

// LeftAlone are the runs that a Message says are left alone, and of each why.
func LeftAlone(message string) map[string]string {
	list, several := strings.CutPrefix(message, "runs ")
	if !several {
		return oneAlone(message)
	}
	list, reasons, whole := strings.Cut(list, areAlone)
	names := strings.Split(list, ", ")
	if !whole { // not even all names fit, and the last may be half of one
		names = names[:len(names)-1]
	}
	out := map[string]string{}
	for _, name := range names {
		out[name] = "run " + name + isAlone + "; why does not fit here, and its Events say it"
	}
	last, found := "", map[string]bool{}
	for said := range strings.SplitSeq(reasons, "; run ") {
		switch name := nameOf(said); {
		case name != "" && slices.Contains(names, name) && !found[name]:
			out[name], found[name], last = "run "+said, true, name
		case last != "": // of a reason that speaks of runs itself
			out[last] += "; run " + said
		}
	}
	return out
}

func oneAlone(message string) map[string]string {
	said, is := strings.CutPrefix(message, "run ")
	if name := nameOf(said); is && name != "" {
		return map[string]string{name: message}
	}
	return nil
}

// nameOf is the run of which is said that it is left alone; empty: something else is said.
func nameOf(said string) string {
	name, _, _ := strings.Cut(said, " ")
	if rest := said[len(name):]; strings.HasPrefix(rest, isAlone) || strings.HasPrefix(rest, isUnread) {
		return name
	}
	return ""
}

// ToAdopt says of why a run is left alone whether its signature is what it lacks.
func ToAdopt(why string) bool { return strings.Contains(why, toAdopt) }

// ToLabel says of why a run is left alone whether a label is what it lacks.
func ToLabel(why string) bool { return strings.Contains(why, toLabel) }

// cannotGoOn follows the name of a run that is at work and does not go on; why follows.
const cannotGoOn = " cannot go on: "

// CannotGoOn is what is said of a run at work that does not go on.
func CannotGoOn(name, why string) string { return "run " + name + cannotGoOn + why }

// ForRun is why a run waits for another one, of its plan or with its target.
func ForRun(ofPlan, ofTarget string) string {
	if ofPlan != "" {
		return waitsForRun + ofPlan + " of this plan"
	}
	return waitsForRun + ofTarget + ", which holds the same target"
}

// WaitsForRun says of a Message whether it is that a run waits for another one.
func WaitsForRun(message string) bool { return strings.Contains(message, cannotGoOn+waitsForRun) }

// NoOpenEntry is why a run cannot go on whose plan's ledger does not know it as open.
const NoOpenEntry = "it has no open entry in its plan's ledger, so it begins nothing"

// HasNoOpenEntry says whether a message says so of a run; of any run, where name is empty.
func HasNoOpenEntry(message, name string) bool {
	if name != "" {
		return strings.HasPrefix(message, CannotGoOn(name, NoOpenEntry))
	}
	return strings.Contains(message, cannotGoOn+NoOpenEntry)
}
