package annotations

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Keys of HibernatePlans and of what the agent keeps for them.
const (
	HoldState     = "maint.dev/hold-state" // awake or asleep, whatever the schedule says
	HoldUntil     = "maint.dev/hold-until" // RFC 3339; without it until it is taken away
	StatusTargets = "status.maint.dev/targets"
	StatusWakes   = "status.maint.dev/wakes"   // RFC 3339: when what sleeps wakes
	StatusSleeps  = "status.maint.dev/sleeps"  // RFC 3339: when it falls asleep next
	StatusAsleep  = "status.maint.dev/asleep"  // RFC 3339: since when it sleeps
	StatusOverall = "status.maint.dev/overall" // the state of all targets together, as transition.Overall has it
	// StatusLastTransition is since when the plan has its phase: RFC 3339.
	StatusLastTransition = "status.maint.dev/last-transition"
	StatusHold           = "status.maint.dev/hold" // the hold of which the status speaks, see FormatHold

	DataRestore = "restore.json"
	// RestoreFinalizer keeps restore data until what it speaks of is awake.
	RestoreFinalizer = "maint.dev/restore"
)

// NewHibernatePlan is the ConfigMap that holds a HibernatePlan's text.
func NewHibernatePlan(namespace, name, text, account string) *corev1.ConfigMap {
	cm := NewPlan(namespace, name, text, account)
	cm.Labels[LabelKind] = KindHibernatePlan
	return cm
}

// HibernatePlan reads the HibernatePlan in a ConfigMap and reports everything wrong with
// it. One with faults is returned as far as it could be read.
func HibernatePlan(cm *corev1.ConfigMap) (hibernate.Spec, document.Faults) {
	text, fault := DocumentText(cm)
	if fault != nil {
		return hibernate.Spec{}, document.Faults{*fault}
	}
	spec, faults := hibernate.Parse([]byte(text))
	faults = append(faults, NameFaults(cm, "a plan")...)
	if fault := accountLabel(cm, spec.Account()); fault != nil && len(faults) == 0 {
		faults = append(faults, *fault)
	}
	return spec, faults
}

// ReadHold reads what holds a plan asleep or awake. What is not understood holds nothing,
// and is a fault.
func ReadHold(a map[string]string) (hibernate.Hold, document.Faults) {
	var faults document.Faults
	h := hibernate.Hold{}
	switch state := a[HoldState]; state {
	case "":
		if a[HoldUntil] != "" {
			faults = append(faults, document.Fault{Path: HoldUntil, Message: "has no effect without " + HoldState})
		}
		return h, faults
	case "awake", "asleep":
		h.On, h.Asleep = true, state == "asleep"
	default:
		return h, append(faults, document.Fault{Path: HoldState, Message: fmt.Sprintf("%q is neither awake nor asleep: the hold is ignored", document.Cut(state, 80))})
	}
	if text := a[HoldUntil]; text != "" {
		until, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return hibernate.Hold{}, append(faults, document.Fault{Path: HoldUntil, Message: fmt.Sprintf("%q is no RFC 3339 instant like 2026-03-02T06:00:00Z: the hold is ignored", document.Cut(text, 80))})
		}
		h.Until = &until
	}
	return h, faults
}

// FormatHold is a hold in one word, or with its end in UTC: "awake until 2026-03-02T06:00:00Z". No
// hold is the empty text.
func FormatHold(h hibernate.Hold) string {
	if !h.On {
		return ""
	}
	text := "awake"
	if h.Asleep {
		text = "asleep"
	}
	if h.Until != nil {
		text += " until " + h.Until.UTC().Format(time.RFC3339)
	}
	return text
}

// RestoreName names the restore data of a plan's target.
func RestoreName(planName, target string) string {
	return agentName(KindRestore, planName, Hash10(planName+"/"+target))
}

// RestoreCopyName names the copy of restore data that somebody deletes. It stands until the restore
// data is written again.
func RestoreCopyName(planName, target string) string {
	return RestoreName(planName, target) + copySuffix
}

const copySuffix = "-copy"

// RestoreCopy says whether a name is one of RestoreCopyName.
func RestoreCopy(name string) bool { return strings.HasSuffix(name, copySuffix) }

// RescuedName names the copy, in the agent's own namespace, of restore data whose namespace is
// being deleted. A namespace that is created and deleted once more has another copy.
func RescuedName(namespace string, r hibernate.Record) string {
	plan := r.Plan
	if !document.DNSLabel(plan) { // what does not count may be of any plan
		plan = "unknown"
	}
	return agentName(KindRestore, plan, Hash10(namespace+"/"+r.Plan+"/"+r.PlanUID+"/"+r.Target+"/"+r.Cycle))
}

// RestoreObject is the ConfigMap that keeps a target's restore data. It has no owner: it
// must outlive the plan until everything is awake again.
func RestoreObject(namespace string, r hibernate.Record) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: RestoreName(r.Plan, r.Target), Finalizers: []string{RestoreFinalizer},
			Labels: map[string]string{LabelKind: KindRestore, LabelPlan: r.Plan},
		},
	}
	return WithRestore(cm, r)
}

// WithRestore is a target's ConfigMap with other restore data. What waking does not need is
// left out where it does not fit; data that does not fit even then is a *TooManyResources.
func WithRestore(cm *corev1.ConfigMap, r hibernate.Record) (*corev1.ConfigMap, error) {
	text, err := restoreText(r)
	if err != nil {
		return nil, fmt.Errorf("restore data of %s/%s: %w", r.Plan, r.Target, err)
	}
	out := cm.DeepCopy()
	out.Data = map[string]string{DataRestore: string(text)}
	return out, nil
}

// ReadRestore reads a target's restore data. It is refused with ErrForeign where the plan and the
// target that it names are not those of its own name and label.
func ReadRestore(cm *corev1.ConfigMap) (hibernate.Record, error) {
	var r hibernate.Record
	if cm.Labels[LabelKind] != KindRestore {
		return r, fmt.Errorf("%w: ConfigMap %s lacks the label %s=%s", ErrForeign, cm.Name, LabelKind, KindRestore)
	}
	if err := understood(cm); err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(cm.Data[DataRestore]), &r); err != nil {
		return r, fmt.Errorf("%w: %s of ConfigMap %s: %w", ErrForeign, DataRestore, cm.Name, err)
	}
	if strings.TrimSuffix(cm.Name, copySuffix) != RestoreName(r.Plan, r.Target) || cm.Labels[LabelPlan] != r.Plan {
		return r, fmt.Errorf("%w: ConfigMap %s speaks of target %q of plan %q", ErrForeign, cm.Name, document.Cut(r.Target, 80), document.Cut(r.Plan, 80))
	}
	if err := r.Check(); err != nil {
		return r, fmt.Errorf("%w: %s of ConfigMap %s: %w", ErrForeign, DataRestore, cm.Name, err)
	}
	return r, nil
}

// ReadRescued reads the copy of restore data whose namespace was deleted. It belongs to no
// plan, and nothing wakes by it.
func ReadRescued(cm *corev1.ConfigMap) (hibernate.Record, error) {
	var r hibernate.Record
	if cm.Labels[LabelKind] != KindRestore || cm.Labels[LabelPlan] != "" {
		return r, fmt.Errorf("%w: ConfigMap %s is no copy of restore data", ErrForeign, cm.Name)
	}
	if err := understood(cm); err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(cm.Data[DataRestore]), &r); err != nil {
		return r, fmt.Errorf("%w: %s of ConfigMap %s: %w", ErrForeign, DataRestore, cm.Name, err)
	}
	if err := r.Check(); err != nil {
		return r, fmt.Errorf("%w: %s of ConfigMap %s: %w", ErrForeign, DataRestore, cm.Name, err)
	}
	return r, nil
}

// Targets is the text of status.maint.dev/targets.
func Targets(list []hibernate.TargetStatus) string {
	if len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(list)
	if err != nil {
		return ""
	}
	return string(text)
}

// ReadTargets reads status.maint.dev/targets; what cannot be read is none.
func ReadTargets(text string) []hibernate.TargetStatus {
	var out []hibernate.TargetStatus
	if json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}
