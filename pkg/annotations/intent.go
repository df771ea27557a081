package annotations

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Intent reads what people ask of a plan. A pause that is not understood holds until it is removed,
// and is a fault. All actors that it names count as unverified.
func Intent(a map[string]string) intent.Intent {
	return IntentBy(a, func(string, Stamp) bool { return false })
}

// Stamp is the value of an intent, and the actor whom it names.
type Stamp struct{ Value, Actor string }

// Stamps are the intents that name somebody, by their names (trigger, abort, …).
func Stamps(a map[string]string) map[string]Stamp {
	var all map[string]Stamp
	for _, key := range actedOn() {
		by := a[Actor(key)]
		if by == "" {
			continue
		}
		if all == nil {
			all = map[string]Stamp{}
		}
		all[strings.TrimPrefix(key, IntentPrefix)] = Stamp{a[key], by}
	}
	return all
}

// The admission policies that refuse an actor who is not the user, and what is the agent's own
// from anybody else; and what each asks first.
const (
	ActorPolicyName        = "maint-actor-check"
	ActorPolicyCondition   = "an-actor-that-is-untrue"
	RecordsPolicyName      = "maint-records"
	RecordsPolicyCondition = "a-record-and-not-the-agent"
)

// actedOn are the intents of which it is told who stands behind them.
func actedOn() []string {
	return []string{Pause, Skip, Trigger, Bypass, ChangeStrategy, Approve, Reject, Resume, Abort, Retry, HoldState}
}

// IntentBy is Intent for who can tell which actors are the true ones: verified says it of the
// intent of a name (trigger, abort, …).
func IntentBy(a map[string]string, verified func(what string, stamp Stamp) bool) intent.Intent {
	in := intent.Intent{Token: token(a[Trigger]), Actors: map[string]intent.Actor{}}
	in.Pause, in.Faults = readPause(Pause, a[Pause], in.Faults)
	misread := len(in.Faults) > 0
	in.Skip, in.Faults = readSkip(a[Skip], in.Faults)
	before := len(in.Faults)
	in.Asked, in.Faults = readOptions(a[TriggerOptions], in.Faults)
	in.Unclear = len(in.Faults) > before && in.Asked.Token == ""
	in.Resume, in.Abort, in.Retry = readAsk(a[Resume]), readAsk(a[Abort]), readAsk(a[Retry])
	in.Approve, in.Reject = readAsk(a[Approve]), readAsk(a[Reject])
	in.Stanza = Stanza(a)
	in.Bypass, in.Faults = readBypass(a[Bypass], append(in.Faults, in.Stanza.Faults...))
	for _, key := range actedOn() {
		what := strings.TrimPrefix(key, IntentPrefix)
		if by := ActorOf(a, key); by != (intent.Actor{}) {
			by.Verified = by.Name != "" && verified(what, Stamp{a[key], a[Actor(key)]})
			in.Actors[what] = by
		}
	}
	in.Pause.By = in.Actors["pause"].Said("")
	if misread { // of a node, a namespace or a policy only the pause is shown, and no fault
		in.Pause.By += fmt.Sprintf(" (%s: %q is not understood)", Pause, document.Cut(a[Pause], 80))
	}
	if in.Bypass.Reason != "" { // it stands in the value itself
		by := in.Actors["bypass"]
		by.Reason = in.Bypass.Reason
		in.Bypass.By = by.Said("")
	}
	return in
}

// ActorOf is who wrote an intent, and why, as far as that stands beside it: each in one line.
func ActorOf(a map[string]string, key string) intent.Actor {
	return intent.Actor{Name: document.Cut(oneLine(a[Actor(key)]), 256), Reason: document.Cut(oneLine(a[Reason(key)]), 512)}
}

// PauseOf is the pause of a namespace, whose name it bears, or of the whole cluster.
func PauseOf(of string, a map[string]string) schedule.Pause {
	p := Intent(map[string]string{Pause: a[Pause], Actor(Pause): a[Actor(Pause)], Reason(Pause): a[Reason(Pause)]}).Pause
	p.Of = of
	return p
}

// PauseText is a pause with who asked for it and why, by which two pauses can be compared; empty
// where there is none.
func PauseText(a map[string]string) string {
	if a[Pause] == "" {
		return ""
	}
	return strings.Join([]string{a[Pause], a[Actor(Pause)], a[Reason(Pause)]}, "\x00")
}

// WholeCluster is what the pause on the agent's namespace holds, as messages name it.
const WholeCluster = "the whole cluster"

// NamespaceNamed is what the pause of a namespace calls it: namespace shop.
func NamespaceNamed(name string) string { return "namespace " + name }

// oneLine is a text of somebody's in one line: it stands among lines of ours.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// longestToken is how much of a token is remembered as it is: a hundred of them
// stand in a ledger.
const longestToken = 128

// token is a trigger token as it is remembered: a hash stands in for a long one.
func token(value string) string {
	if len(value) <= longestToken {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func off(value string) bool { return value == "" || value == "false" }

func readPause(key, value string, faults document.Faults) (schedule.Pause, document.Faults) {
	if off(value) {
		return schedule.Pause{}, faults
	}
	if value == "true" {
		return schedule.Pause{On: true}, faults
	}
	until, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return schedule.Pause{On: true}, append(faults, document.Fault{Path: key, Message: fmt.Sprintf("%q is neither true nor an RFC 3339 instant like 2026-12-01T06:00:00Z; it pauses until it is removed", document.Cut(value, 80))})
	}
	return schedule.Pause{On: true, Until: &until}, faults
}

func readSkip(value string, faults document.Faults) (intent.Skip, document.Faults) {
	switch {
	case off(value):
		return intent.Skip{}, faults
	case value == "true":
		return intent.Skip{All: true}, faults
	case value == "next":
		return intent.Skip{Next: true}, faults
	}
	if rest, ok := strings.CutPrefix(value, "until:"); ok {
		until, err := time.Parse(time.RFC3339, rest)
		if err != nil {
			return intent.Skip{All: true}, append(faults, notUnderstood(value, "until:<RFC 3339 instant>"))
		}
		return intent.Skip{Until: &until}, faults
	}
	var skip intent.Skip
	for _, item := range strings.Split(value, ",") {
		at, err := time.Parse(time.RFC3339, strings.TrimSpace(item))
		if err != nil {
			return intent.Skip{All: true}, append(faults, notUnderstood(item, "true, next, until:<instant> or RFC 3339 slots"))
		}
		skip.Slots = append(skip.Slots, at)
	}
	return skip, faults
}

func notUnderstood(value, want string) document.Fault {
	return document.Fault{Path: Skip, Message: fmt.Sprintf("%q is not understood: write %s; all slots are skipped until it is mended", document.Cut(value, 80), want)}
}

// FormatSkip writes a skip as the annotation holds it.
func FormatSkip(s intent.Skip) string {
	switch {
	case s.All:
		return "true"
	case s.Until != nil:
		return "until:" + s.Until.UTC().Format(time.RFC3339)
	case s.Next:
		return "next"
	}
	slots := make([]string, len(s.Slots))
	for i, at := range s.Slots {
		slots[i] = at.UTC().Format(time.RFC3339)
	}
	return strings.Join(slots, ",")
}

func readOptions(value string, faults document.Faults) (intent.TriggerOptions, document.Faults) {
	var o intent.TriggerOptions
	if value == "" {
		return o, faults
	}
	dec := json.NewDecoder(strings.NewReader(value))
	dec.DisallowUnknownFields()
	err := dec.Decode(&o)
	if err == nil && dec.More() {
		err = errors.New("something follows the object")
	}
	if err != nil {
		return intent.TriggerOptions{}, append(faults, document.Fault{Path: TriggerOptions, Message: fmt.Sprintf("is not understood, and the trigger waits: %s", err)})
	}
	if size := sizeOf(o.Parameters); size > maxParameters {
		return intent.TriggerOptions{}, append(faults, document.Fault{Path: TriggerOptions, Message: fmt.Sprintf("holds parameters of %d bytes, and the trigger waits: at most %d are kept", size, maxParameters)})
	}
	if o.AsOf != "" && len(o.Parameters) > 0 {
		return intent.TriggerOptions{}, append(faults, document.Fault{Path: TriggerOptions, Message: "holds asOf and parameters, and the trigger waits: a rollback has the parameters of its run"})
	}
	o.Token, o.Reason = token(o.Token), document.Cut(strings.TrimSpace(o.Reason), 512)
	if o.OutsideWindow && o.Reason == "" {
		faults = append(faults, document.Fault{Path: TriggerOptions, Message: "outsideWindow needs a reason"})
		o.OutsideWindow = false
	}
	return o, faults
}

// maxParameters is how many bytes of parameters a trigger may give: they stand in
// the ledger until their run was created.
const maxParameters = 16 << 10

func sizeOf(m map[string]string) (n int) {
	for k, v := range m {
		n += len(k) + len(v)
	}
	return n
}

func readAsk(value string) intent.RunRef {
	run, step, _ := strings.Cut(value, "/")
	return intent.RunRef{Run: run, Step: step}
}

func keysOf(m map[string]string) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}

func uid(s string) types.UID { return types.UID(s) }
