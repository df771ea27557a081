package drain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// PodAction is what a drain does with a pod.
type PodAction string

// The treatments.
const (
	Evict  PodAction = "evict"
	Await  PodAction = "await"  // it leaves by finishing
	Skip   PodAction = "skip"   // it stays, on purpose
	Refuse PodAction = "refuse" // it would have to leave, and may not: nothing can be drained, and onTimeout force does not delete it
)

// Verdict is what becomes of one pod.
type Verdict struct {
	Do    PodAction
	Surge bool // Evict: once a replacement is Ready elsewhere
	Order int  // low first
	Own   bool // the agent's own pod, the last of its replicas on the node
	// Warning and Error are what kubectl drain says of it under the same flags;
	// Error stands with Refuse.
	Warning, Error string
	// Why is what we say of it, where kubectl says nothing.
	Why string
	// Remedy is what a person can do, with Refuse.
	Remedy string
}

// Reason is why a pod is not simply evicted.
func (v Verdict) Reason() string {
	for _, s := range []string{v.Error, v.Why, v.Warning} {
		if s != "" {
			return s
		}
	}
	return ""
}

// kubectl's words (k8s.io/kubectl/pkg/drain/filters.go).
const (
	daemonSetWarning  = "ignoring DaemonSet-managed Pods"
	localStorageFatal = "Pods with local storage (use --delete-emptydir-data to override)"
	unmanagedFatal    = "Pods that declare no controller (use --force to override)"
	unmanagedWarning  = "deleting Pods that declare no controller"
)

// DaemonSets says whether a DaemonSet is there, or why nobody knows.
type DaemonSets func(namespace, name string) (bool, error)

// Judge gives verdicts under one set of options.
type Judge struct {
	options    Options
	selector   selector.Labels
	filters    []*regexp.Regexp
	fault      string
	daemonSets DaemonSets
	agent      Agent
	noSurge    bool
	late       bool
	failed     map[string]Replacement
}

// NewJudge judges under options. Options that cannot be read are no error here:
// every pod is refused with it, since doubt must not evict.
func NewJudge(o Options, daemonSets DaemonSets) Judge {
	j := Judge{options: o, daemonSets: daemonSets}
	picked, err := selector.Parse(o.PodSelector)
	if err != nil {
		j.fault = "podSelector: " + err.Error()
	}
	j.selector = picked
	for _, f := range o.EvictionFilters {
		re, err := expr.CompilePattern(f.ByResourceNameRegex)
		if err != nil {
			j.fault = fmt.Sprintf("evictionFilters: %q does not compile: %s", document.Cut(f.ByResourceNameRegex, 100), err)
			continue
		}
		j.filters = append(j.filters, re)
	}
	return j
}

// WithoutSurge judges where no replacements are made: a pod that asks for one stays.
func (j Judge) WithoutSurge() Judge {
	j.noSurge = true
	return j
}

// WithFailed is the judge of a drain that has tried to replace pods, by uid, and could not: its
// forecast knows what is in their way.
func (j Judge) WithFailed(failed map[string]Replacement) Judge {
	j.failed = failed
	return j
}

// Begun is the judge of a drain that began at an instant: its forecast knows whether its time is
// over.
func (j Judge) Begun(since, now time.Time) Judge {
	at, limited := Deadline(j.options, since)
	j.late = !since.IsZero() && limited && !now.Before(at)
	return j
}

// Of is the verdict on a pod: what was not picked is not looked at, then comes
// kubectl's verdict for the same flags, then what the pod's annotations say.
func (j Judge) Of(p Pod) Verdict {
	if j.fault != "" {
		return Verdict{Do: Refuse, Why: j.fault, Remedy: "correct the drain's options"}
	}
	if p.TooLarge {
		return Verdict{Do: Refuse, Why: fmt.Sprintf("its labels, claims, resources and owner take more than %d KiB, and are not read", maxPod>>10), Remedy: "take some of its labels away, or delete the pod"}
	}
	if !j.selector.Matches(p.Labels) {
		return Verdict{Do: Skip, Why: "podSelector does not pick it"}
	}
	if !j.picked(p) {
		return Verdict{Do: Skip, Why: "no eviction filter picks it"}
	}
	v := j.kubectl(p)
	if v.Do == Skip {
		return v
	}
	v = j.annotated(p, v)
	if v.Do == Evict && !p.Deleting && p.String() == j.agent.Pod {
		return j.agents(v)
	}
	return v
}

// picked says whether one of the eviction filters means a resource of the pod.
func (j Judge) picked(p Pod) bool {
	return len(j.options.EvictionFilters) == 0 || slices.ContainsFunc(j.filters, func(re *regexp.Regexp) bool {
		return slices.ContainsFunc(p.Resources, re.MatchString)
	})
}

// kubectl is the verdict of kubectl drain --ignore-daemonsets. Its filters run
// one after the other, a later one forgets the warning of an earlier: of the
// warnings about pods that go, only that on unmanaged ones is ever seen.
func (j Judge) kubectl(p Pod) Verdict {
	if p.OfDaemonSet() && !p.Finished() {
		there, err := j.daemonSets(p.Namespace, p.Controller.Name)
		switch {
		case err != nil:
			return Verdict{Do: Refuse, Error: err.Error(), Remedy: "the DaemonSet must be readable: grant get on daemonsets.apps"}
		case there:
			return Verdict{Do: Skip, Warning: daemonSetWarning}
		case !j.options.Force:
			return Verdict{
				Do: Refuse, Error: fmt.Sprintf("daemonsets.apps %q not found", p.Controller.Name),
				Remedy: "its DaemonSet is gone: delete the pod, or set force",
			}
		}
	}
	if p.Mirror {
		return Verdict{Do: Skip, Why: "a static pod: only its node can end it"}
	}
	if p.Finished() {
		return Verdict{Do: Evict}
	}
	if p.EmptyDir && !j.options.DeleteEmptyDir {
		return Verdict{Do: Refuse, Error: localStorageFatal, Remedy: "set deleteEmptyDir if the data may be lost, or annotate the pod with maint.dev/drain=skip if it may stay"}
	}
	if p.Controller != nil {
		return Verdict{Do: Evict}
	}
	if !j.options.Force {
		return Verdict{Do: Refuse, Error: unmanagedFatal, Remedy: "nothing would bring it back: delete it, set force, or annotate it with maint.dev/drain=skip if it may stay"}
	}
	return Verdict{Do: Evict, Warning: unmanagedWarning}
}

// annotated is what the pod's own annotations make of kubectl's verdict. What
// they say but nobody understands holds the drain up: a pod that says something
// about drains does not want to be evicted like any other.
func (j Judge) annotated(p Pod, v Verdict) Verdict {
	v.Order = p.Order
	if p.OrderFault != "" {
		return Verdict{Do: Refuse, Why: fmt.Sprintf("maint.dev/drain-order is %q", document.Cut(p.OrderFault, 50)), Remedy: "write a whole number"}
	}
	switch p.How {
	case HowSkip:
		return Verdict{Do: Skip, Why: p.howSaid()}
	case HowWaitCompleted:
		if p.Finished() {
			return Verdict{Do: Skip, Why: "has completed, and was waited for: " + p.howSaid()}
		}
		return Verdict{Do: Await, Order: p.Order, Why: p.howSaid()}
	case "", HowSurge:
	default:
		return Verdict{Do: Refuse, Why: fmt.Sprintf("maint.dev/drain is %q", document.Cut(p.How, 50)), Remedy: "write skip, wait-completed or surge"}
	}
	if v.Do == Refuse {
		return v
	}
	if p.Kept != "" && !p.Finished() {
		if !j.options.Force {
			return Verdict{Do: Refuse, Order: p.Order, Why: p.Kept, Remedy: "wait until its owner takes the annotation away, or set force"}
		}
		v.Why = p.Kept + " (set aside by force)"
	}
	v.Surge = p.How == HowSurge && p.Controller != nil && p.Controller.Kind == "ReplicaSet" && !p.Finished()
	if v.Surge && j.noSurge {
		return Verdict{Do: Refuse, Order: p.Order, Why: p.howSaid() + ", and no replacements are made on another cluster", Remedy: "have the agent of its own cluster drain the node, or take the annotation away"}
	}
	return v
}

func (p Pod) howSaid() string {
	if p.HasHowLabel {
		return "label cluster.x-k8s.io/drain: " + p.How
	}
	return "maint.dev/drain: " + p.How
}

// Judged is a pod and its verdict.
type Judged struct {
	Pod
	Verdict
}

// All judges pods, in the order of namespace and name.
func (j Judge) All(pods []Pod) []Judged {
	out := make([]Judged, len(pods))
	for i, p := range pods {
		out[i] = Judged{p, j.Of(p)}
	}
	slices.SortFunc(out, func(a, b Judged) int { return strings.Compare(a.Pod.String(), b.Pod.String()) })
	return out
}

// Words are what kubectl drain prints about pods: its line of warnings, and its
// errors. It prints several of a kind in no order, we in that of the alphabet.
func Words(judged []Judged) (warnings string, faults []string) {
	warned := words(judged, "", func(v Verdict) string { return v.Warning })
	return strings.Join(warned, "; "), words(judged, "cannot delete ", func(v Verdict) string { return v.Error })
}

func words(judged []Judged, before string, word func(Verdict) string) []string {
	pods := map[string][]string{}
	for _, j := range judged {
		if w := word(j.Verdict); w != "" {
			pods[w] = append(pods[w], j.Pod.String())
		}
	}
	var out []string
	for w, names := range pods {
		out = append(out, before+w+": "+strings.Join(names, ", "))
	}
	slices.Sort(out)
	return out
}
