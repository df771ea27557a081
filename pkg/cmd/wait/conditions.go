package wait

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// permitted waits until change is permitted. The agent publishes the result of everything behind an
// object on the object, so that its own changes are enough.
func (o *options) permitted(ctx context.Context, k *factory.Cluster, kind string, found factory.Resource) error {
	live, object, err := o.watched(ctx, k, found)
	if err != nil {
		return o.broken(ctx, err)
	}
	name := kind + "/" + objectOf(found).GetName()
	var s view.Subject
	var version string
	var read time.Time
	return o.until(ctx, k, live.Changed, name, func() (bool, string, error) {
		meta, there := object()
		if !there {
			return false, "", exit.Errorf(exit.CodeNotNow, "%s was deleted", name)
		}
		now := o.Now()
		if is := meta.ResourceVersion; read.IsZero() || is != version || now.Sub(read) > unpublished {
			fresh, err := source.FindSubject(ctx, o.Factory, k, name)
			if err != nil {
				return false, "", o.broken(ctx, err)
			}
			if fresh.Invalid != s.Invalid {
				source.WarnInvalid(o.Factory, fresh)
			}
			s, version, read = fresh, is, now
		}
		v := s.Verdict(now)
		return v.Permitted, view.Permission(v) + " (" + v.Reason + ")", nil
	})
}

// unpublished is how often everything behind the object is read again, for what is not published on
// it: a pause of the cluster, on a node that nobody requests.
const unpublished = 30 * time.Second

// watched is a live picture of a document or a node, and its present state; false: it is gone.
func (o *options) watched(ctx context.Context, k *factory.Cluster, found factory.Resource) (*watch.Cache, func() (metav1.ObjectMeta, bool), error) {
	if n := found.Node; n != nil {
		live, err := watch.Nodes(ctx, k, make(chan struct{}, 1), n.Name)
		return live, func() (metav1.ObjectMeta, bool) {
			if is := live.Node(n.Name); is != nil {
				return is.ObjectMeta, true
			}
			return metav1.ObjectMeta{}, false
		}, err
	}
	cm := found.Document
	live, err := watch.ConfigMaps(ctx, k, cm.Namespace, watch.ByName(cm.Name))
	return live, func() (metav1.ObjectMeta, bool) {
		if is := live.ConfigMap(cm.Namespace, cm.Name); is != nil {
			return is.ObjectMeta, true
		}
		return metav1.ObjectMeta{}, false
	}, err
}

// broken tells an early end from another error.
func (o *options) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return watch.EndedEarly(ctx, o.name+" is not waited for any longer")
	}
	return err
}

// document waits for a phase or a condition of a document.
func (o *options) document(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) error {
	live, err := watch.ConfigMaps(ctx, k, cm.Namespace, watch.ByName(cm.Name))
	if err != nil {
		return o.broken(ctx, err)
	}
	alone, err := o.leftAlone(ctx, k, cm)
	if err != nil {
		return o.broken(ctx, err)
	}
	name := cm.Labels[annotations.LabelKind] + "/" + cm.Name
	return o.until(ctx, k, live.Changed, name, func() (bool, string, error) {
		now := live.ConfigMap(cm.Namespace, cm.Name)
		if now == nil || now.UID != cm.UID {
			return false, "", exit.Errorf(exit.CodeNotNow, "%s was deleted", name)
		}
		if !seen(now) {
			o.ignored = fmt.Sprintf("the agent does not look at %s: it is too old, or does not watch namespace %s", name, cm.Namespace)
			return false, "the agent has not looked at it yet", nil
		}
		if o.what == forCondition && now.Labels[annotations.LabelKind] == annotations.KindRun {
			so, stands, err := o.conditionOfRun(ctx, k, now)
			return so, stands, cmp.Or(err, alone(so))
		}
		if o.what == forCondition {
			so, stands := o.holds(view.Conditions(now))
			return so, stands, nil
		}
		so, stands, err := o.phase(ctx, k, now)
		return so, stands, cmp.Or(err, alone(so))
	})
}

// leftAlone gives what says of a run that it will not be as it is to be, since the agent leaves it
// alone: nil where it is so, and of other documents.
func (o *options) leftAlone(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) (func(so bool) error, error) {
	plan := cm.Labels[annotations.LabelPlan]
	if cm.Labels[annotations.LabelKind] != annotations.KindRun || plan == "" {
		return func(bool) error { return nil }, nil
	}
	plans, err := watch.ConfigMaps(ctx, k, cm.Namespace, watch.ByName(plan))
	return func(so bool) error {
		if so {
			return nil
		}
		return watch.LeftAlone(ctx, o.Factory, k, plans.ConfigMap(cm.Namespace, plan), cm.Name)
	}, err
}

// seen says whether what the agent published of a document is about this version of it. A run has one
// version.
func seen(cm *corev1.ConfigMap) bool {
	return cm.Labels[annotations.LabelKind] == annotations.KindRun || cm.Annotations[annotations.StatusObserved] == annotations.Observed(cm)
}

// phasesOf are all phases of a kind of document.
func phasesOf(kind string) []string {
	switch kind {
	case annotations.KindRun:
		return []string{string(run.Pending), string(run.Running), string(run.Succeeded), string(run.Failed), string(run.Aborted), string(run.Replaced)}
	case annotations.KindHibernatePlan:
		return []string{string(hibernate.Active), string(hibernate.Hibernating), string(hibernate.Hibernated), string(hibernate.WakingUp), string(hibernate.Suspended), string(hibernate.InError), string(hibernate.Invalid)}
	}
	return []string{string(trigger.PhaseIdle), string(trigger.PhaseWaiting), string(trigger.PhaseRunning), string(trigger.PhasePaused), string(trigger.PhaseInvalid)}
}

// phase says whether a document has the phase.
func (o *options) phase(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) (bool, string, error) {
	kind, got, message := cm.Labels[annotations.LabelKind], cm.Annotations[annotations.StatusPhase], cm.Annotations[annotations.StatusMessage]
	if kind == annotations.KindRun {
		r, err := k.ReadRun(ctx, cm)
		if err != nil {
			return false, "", err
		}
		got, message = string(r.Journal.Phase), r.Journal.Message
	}
	return o.reached(kind, cm.Name, got, message)
}

// reached says whether the phase that somebody has is the one that is waited for. A run that has ended
// with another phase never will have it.
func (o *options) reached(kind, name, got, message string) (bool, string, error) {
	stands := "no phase yet"
	if got != "" {
		stands = "phase " + got
	}
	stands += view.Colon(print.New(o.Env, o.Zone).AgentText(message))
	if known := phasesOf(kind); !slices.ContainsFunc(known, func(p string) bool { return strings.EqualFold(p, o.value) }) {
		return false, "", o.neverHas(o.name, known)
	}
	switch {
	case strings.EqualFold(got, o.value):
		return true, stands, nil
	case run.Phase(got).Ended() && kind == annotations.KindRun:
		return false, "", exit.Errorf(neverCode(run.Phase(got)), "run %s ended, and will never be %s: %s", name, o.value, stands)
	}
	return false, stands, nil
}

// holds says whether a condition has the status.
func (o *options) holds(list []metav1.Condition) (bool, string) {
	kind, status, _ := strings.Cut(o.value, "=")
	status = cmp.Or(status, string(metav1.ConditionTrue))
	i := slices.IndexFunc(list, func(c metav1.Condition) bool { return strings.EqualFold(c.Type, kind) })
	if i < 0 {
		var has []string
		for _, c := range list {
			has = append(has, c.Type)
		}
		return false, "it has no condition " + kind + view.PrefixList(", but ", has)
	}
	c := list[i]
	return strings.EqualFold(string(c.Status), status), fmt.Sprintf("condition %s=%s%s", c.Type, c.Status, view.Colon(print.New(o.Env, o.Zone).AgentText(c.Message)))
}

// conditionOfRun says whether a run has the condition. Those of a run that does not count do not
// count either.
func (o *options) conditionOfRun(ctx context.Context, k *factory.Cluster, cm *corev1.ConfigMap) (bool, string, error) {
	r, err := k.ReadRun(ctx, cm)
	if err != nil {
		return false, "", err
	}
	list := view.Conditions(cm)
	if r.Journal.Phase.Ended() {
		return o.had(cm.Name, r.Journal.Phase, list)
	}
	so, stands := o.holds(list)
	return so, stands, nil
}

// had says whether a run that has ended has the condition: else it never will have it.
func (o *options) had(name string, phase run.Phase, list []metav1.Condition) (bool, string, error) {
	so, stands := o.holds(list)
	if so {
		return true, stands, nil
	}
	return false, stands, exit.Errorf(neverCode(phase), "run %s ended, and will never have condition %s: %s", name, o.value, stands)
}

// neverCode is the exit code of what a run that has ended never will be.
func neverCode(phase run.Phase) int {
	if phase == run.Failed {
		return exit.CodeRunFailed
	}
	return exit.CodeNotNow
}

// node waits for a node's request, or for one of its published conditions.
func (o *options) node(ctx context.Context, k *factory.Cluster, n *corev1.Node) error {
	requestor := ""
	if o.what != forCondition {
		var err error
		if requestor, err = k.Requestor(ctx, o.requestor); err != nil {
			return err
		}
	}
	changed := make(chan struct{}, 1)
	live, err := watch.Nodes(ctx, k, changed, n.Name)
	if err != nil {
		return o.broken(ctx, err)
	}
	return o.until(ctx, k, changed, "node/"+n.Name, func() (bool, string, error) {
		now := live.Node(n.Name)
		switch {
		case now == nil || now.UID != n.UID:
			if o.what == forReleased {
				return true, "it is gone", nil
			}
			return false, "", exit.Errorf(exit.CodeNotNow, "node %s was deleted", n.Name)
		case o.what == forCondition:
			so, stands := o.holds(view.ConditionsIn(now.Annotations))
			return so, stands, nil
		}
		return o.request(annotations.Node(now), requestor)
	})
}

// request is the state of a requestor's request.
func (o *options) request(n nodes.Node, requestor string) (bool, string, error) {
	a := view.AskedBy(n, requestor)
	if o.what == forReleased {
		if a == nil {
			return true, requestor + " does not ask for it", nil
		}
		return false, view.RequestWords(a), nil
	}
	switch {
	case a == nil || a.Gone:
		return false, "", exit.Errorf(exit.CodeNotNow, "node %s: %s does not ask for it: ask with %s", n.Name, requestor, o.Suggest().Drain(n.Name))
	case a.Fault != "":
		return false, "", exit.Errorf(exit.CodeNotNow, "node %s: the request of %s cannot be read: %s", n.Name, requestor, a.Fault)
	case view.GivenUp(*a):
		return false, "", exit.Errorf(exit.CodeNotNow, "node %s: %s", n.Name, view.RequestReason(*a))
	}
	if a.Status == nil {
		o.ignored = fmt.Sprintf("the agent writes nothing about node %s: it is too old, or watches only one namespace", n.Name)
	}
	is, has := view.Has(n, *a, o.Now())
	return has, view.RequestWords(&is), nil
}
