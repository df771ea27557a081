package print

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// The kinds of lists that scripts read.
const (
	KindDocumentList    = "DocumentList"
	KindRunList         = "RunList"
	KindNodeRequest     = "NodeRequest"
	KindNodeRequestList = "NodeRequestList"
)

// Document is a document as its author wrote it, with its status.
type Document struct {
	Metadata DocumentMetadata `json:"metadata"`
	Spec     any              `json:"spec,omitempty"` // absent if the text cannot be read
	Status   DocumentStatus   `json:"status"`
	Faults   []string         `json:"faults,omitempty"`
}

// DocumentMetadata names a document, with its labels.
type DocumentMetadata struct {
	Identity
	Labels map[string]string `json:"labels,omitempty"`
}

// DocumentStatus is what the agent says of a document. Fields that its kind does not have are
// absent.
type DocumentStatus struct {
	Phase       string             `json:"phase,omitempty"`
	Message     string             `json:"message,omitempty"`
	Next        *time.Time         `json:"next,omitempty"`       // of a plan: its next run
	Last        *time.Time         `json:"last,omitempty"`       // of a plan: its last run
	LastResult  string             `json:"lastResult,omitempty"` // and how that ended
	AsleepSince *time.Time         `json:"asleepSince,omitempty"`
	SleepsAt    *time.Time         `json:"sleepsAt,omitempty"`
	WakesAt     *time.Time         `json:"wakesAt,omitempty"`
	Strategy    schedule.Strategy  `json:"strategy,omitempty"` // of a policy: the one in force
	Permitted   *bool              `json:"permitted,omitempty"`
	Behavior    *policy.Behavior   `json:"behavior,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
}

// DocumentValue is a document of any kind but a run for scripts. Its name is that of the ConfigMap,
// which kubectl accepts, too. sleeper is a HibernatePlan with what stands around it.
func DocumentValue(cm *corev1.ConfigMap, plan func(*corev1.ConfigMap) view.Plan, sleeper func(*corev1.ConfigMap) view.Sleeper, now time.Time) Value {
	body := Document{
		Metadata: DocumentMetadata{Identity: identityOf(cm.ObjectMeta), Labels: cm.Labels},
		Status:   DocumentStatus{Message: cm.Annotations[annotations.StatusMessage], Conditions: view.Conditions(cm)},
	}
	kind, faults := body.read(cm, plan, sleeper, now)
	for _, f := range faults {
		body.Faults = append(body.Faults, f.String())
	}
	if body.Spec == nil {
		body.Spec = specIn(cm)
	}
	return Value{Kind: kind, Name: mapName(cm.Name), Body: body}
}

// mapName is a ConfigMap's name as kubectl prints it.
func mapName(name string) string { return "configmap/" + name }

// read fills in the fields of a document's kind, and returns the kind and the faults.
func (d *Document) read(cm *corev1.ConfigMap, plan func(*corev1.ConfigMap) view.Plan, sleeper func(*corev1.ConfigMap) view.Sleeper, now time.Time) (kind string, faults document.Faults) {
	switch cm.Labels[annotations.LabelKind] {
	case annotations.KindHibernatePlan:
		s := sleeper(cm)
		d.Status.Phase, d.Status.Message = s.Phase()
		d.Status.AsleepSince, d.Status.SleepsAt, d.Status.WakesAt = s.Instant(annotations.StatusAsleep), s.FallsAsleepAt(now), s.WakesAt(now)
		return "HibernatePlan", s.Faults
	case annotations.KindPolicy:
		state := annotations.Policy(cm)
		d.Status.Strategy = state.StrategyOf(now)
		d.Status.Permitted, d.Status.Behavior = view.PolicySaid(cm, now)
		return "Policy", state.Faults
	case annotations.KindCalendar:
		_, faults := annotations.Calendar(cm)
		d.Spec = calendarIn(cm)
		return "Calendar", faults
	case annotations.KindStepTemplate:
		return "StepTemplate", annotations.StepTemplate(cm).Faults
	}
	p := plan(cm)
	d.Status.Phase, d.Status.Message = p.Phase()
	d.Status.Next, d.Status.Last = published(p.Object, annotations.StatusNextRun), published(cm, annotations.StatusLastRun)
	d.Status.LastResult = p.Published(annotations.StatusLastResult)
	return "Plan", p.Faults
}

// published is an instant in an object's status; nil: none.
func published(cm *corev1.ConfigMap, key string) *time.Time {
	at, err := time.Parse(time.RFC3339, cm.Annotations[key])
	if err != nil {
		return nil
	}
	return &at
}

// specIn is the spec as it is written; nil if the text is not YAML, which the faults report.
func specIn(cm *corev1.ConfigMap) any {
	text, fault := annotations.DocumentText(cm)
	if fault != nil {
		return nil
	}
	var written struct {
		Spec any `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(text), &written); err != nil {
		return nil
	}
	return written.Spec
}

// calendarIn is the text of a calendar, which has no spec: its list of dates, or the feed.
func calendarIn(cm *corev1.ConfigMap) any {
	text, fault := annotations.DocumentText(cm)
	if fault != nil {
		return nil
	}
	if _, feed := cm.Data[annotations.DataICS]; feed {
		return map[string]any{"ics": text}
	}
	var dates any
	if err := yaml.Unmarshal([]byte(text), &dates); err != nil {
		return nil
	}
	return map[string]any{"dates": dates}
}

// RunItem is a run of a list for scripts; one that cannot be read says why.
func RunItem(cm *corev1.ConfigMap, r view.Run, err error) Value {
	out := Value{Kind: KindRunStatus, Name: mapName(cm.Name)}
	if err != nil {
		out.Body = RunStatus{Metadata: identityOf(cm.ObjectMeta), Plan: cm.Labels[annotations.LabelPlan], Phase: view.BrokenRun, Message: err.Error(), Steps: []StepStatus{}}
		return out
	}
	out.Body = RunValue(r)
	return out
}

// NodeRequest is a request for a node.
type NodeRequest struct {
	Node string `json:"node"`
	ClaimValue
}

// NodeRequestValues are the requests for a node, for scripts. They all have the node's name.
func NodeRequestValues(n *corev1.Node) []Value {
	var out []Value
	for i, c := range view.RequestClaims(n) {
		body := NodeRequest{Node: n.Name, ClaimValue: claimValue(c)}
		name := ""
		if i == 0 {
			name = "node/" + n.Name
		}
		out = append(out, Value{Kind: KindNodeRequest, Name: name, Body: body})
	}
	return out
}
