package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

// idleHistory is how many ended runs each plan of the idle benchmark keeps.
const idleHistory = 3

// idleAtSize weighs an agent on many plans with history that have nothing to do:
// ready, forbidden to read their targets, and without targets. And it says how soon
// the end of such a wait is noticed.
func (b *bench) idleAtSize(ctx context.Context, out io.Writer) (err error) {
	plans := b.plans
	b.plans = b.idle
	defer func() { b.plans = plans }()
	err = b.openShared(ctx, out)
	defer func() { err = errors.Join(err, b.close()) }()
	if err != nil {
		return err
	}
	if err := b.makeIdle(ctx); err != nil {
		return err
	}
	s := sample{}
	if err := b.idleOnce(ctx, s, "ready-", "a run can start", nil); err != nil {
		return err
	}
	if err := b.grantAll(ctx, "patch"); err != nil {
		return err
	}
	err = b.idleOnce(ctx, s, "forbidden-", "forbidden", func(ctx context.Context) error {
		return b.noticed(ctx, s, "given", "a run can start", b.grant(0, "get", "patch", "list", "watch"))
	})
	if err != nil {
		return err
	}
	if err := b.grantAll(ctx, "get", "patch"); err != nil {
		return err
	}
	if err := b.removeTargets(ctx); err != nil {
		return err
	}
	if err := b.idleOnce(ctx, s, "missing-", "does not exist", nil); err != nil {
		return err
	}
	if err := b.grantAll(ctx, "get", "patch", "list", "watch"); err != nil {
		return err
	}
	err = b.idleOnce(ctx, s, "watched-", "does not exist", func(ctx context.Context) error {
		return b.noticed(ctx, s, "appears", "a run can start", func(ctx context.Context) error {
			_, err := b.admin.CoreV1().ConfigMaps(b.namespace(0)).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: targetName(0)}}, metav1.CreateOptions{})
			return err
		})
	})
	if err != nil {
		return err
	}
	table(out, fmt.Sprintf("idle agent, %d plans with %d ended runs each", b.idle, idleHistory), []sample{s}, idleFigures())
	return nil
}

func idleFigures() []figure {
	var out []figure
	for _, phase := range [][2]string{
		{"ready-", "all ready"},
		{"forbidden-", "no account may read its targets"},
		{"missing-", "no target is there, none may be watched"},
		{"watched-", "no target is there, all are watched"},
	} {
		prefix, what := phase[0], phase[1]
		out = append(
			out,
			figure{prefix + "rss", "MiB", "resident (VmRSS), " + what},
			figure{prefix + "peak", "MiB", "highest resident (VmHWM) since the agent began"},
			figure{prefix + "cpu", "%", fmt.Sprintf("of one core, in %s", settling)},
		)
	}
	return append(
		out,
		figure{"given", "s", "from the right to read targets in one namespace, while all the others wait, until its first plan is ready"},
		figure{"appears", "s", "from a target, where it is watched, until its plan is ready"},
	)
}

// idleText is a plan as people have them: a schedule far away, a target, a few
// steps.
func idleText(i int) string {
	return fmt.Sprintf(`apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  description: yearly maintenance of service %d
  target: {apiVersion: v1, kind: ConfigMap, name: %s}
  triggers:
    schedules:
    - {cron: "%d %d 1 1 *", timezone: Europe/Berlin}
  startDeadline: 2h
  steps:
  - {name: before, type: label, properties: {operation: add, labels: {example.org/maintenance: "${run.name}"}}}
  - {name: hold, type: suspend, properties: {duration: 5m}}
  finally:
  - {name: after, type: label, properties: {operation: remove, labels: [example.org/maintenance]}}
`, i, targetName(i), i%60, i%24)
}

// makeIdle makes targets, plans and their history. The runs are made as they are
// left, since to run them all would take hours.
func (b *bench) makeIdle(ctx context.Context) error {
	b.say("idle: making %d targets, plans and %d ended runs", b.plans, b.plans*idleHistory)
	if err := b.makeTargets(ctx); err != nil {
		return err
	}
	return each(ctx, b.plans, func(ctx context.Context, i int) error {
		cm, err := b.admin.CoreV1().ConfigMaps(b.namespace(i)).Create(ctx, annotations.NewPlan(b.namespace(i), planName(i), idleText(i), ""), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		spec, faults := annotations.Plan(cm)
		if len(faults) > 0 {
			return faults
		}
		for n := range idleHistory {
			if err := b.makeEnded(ctx, cm, spec.Defaulted(), n); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) makeEnded(ctx context.Context, cm *corev1.ConfigMap, spec plan.Spec, n int) error {
	now := time.Now().UTC()
	r := run.Request{Kind: run.ByToken, Token: fmt.Sprint(n), At: now}
	one := run.Run{
		APIVersion: document.APIVersion, Kind: "Run", Name: annotations.RunName(cm.Name, string(cm.UID), r), Namespace: cm.Namespace,
		Plan: cm.Name, PlanUID: string(cm.UID), Request: r, Spec: spec,
	}
	j := workflow.NewJournal(one)
	j.Phase, j.StartedAt, j.FinishedAt, j.Message = run.Succeeded, &now, &now, "all steps are done"
	object, err := annotations.RunObject(one, j)
	if err != nil {
		return err
	}
	annotations.Retire(object, one)
	_, err = b.admin.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, object, metav1.CreateOptions{FieldManager: annotations.ManagerAgent})
	return err
}

// idleOnce starts an agent, waits until every plan says what it should and the
// agent is at rest, and weighs it.
func (b *bench) idleOnce(ctx context.Context, s sample, prefix, says string, then func(context.Context) error) error {
	a, err := b.startAgent(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.Stop() }()
	if err := b.allSay(ctx, says); err != nil {
		return b.explain(ctx, a, err)
	}
	if err := b.rest(ctx, a); err != nil {
		return err
	}
	before := cpuByName()["agent"]
	if err := until(ctx, time.Now().Add(settling)); err != nil {
		return err
	}
	s[prefix+"cpu"] = 100 * (cpuByName()["agent"] - before) / settling.Seconds()
	if s[prefix+"rss"], s[prefix+"peak"], err = a.resident(); err != nil {
		return err
	}
	b.say("idle: %s%.0f MiB, at most %.0f, %.1f %% of a core; load average %s", prefix, s[prefix+"rss"], s[prefix+"peak"], s[prefix+"cpu"], loadAverage())
	if b.profile != "" {
		if err := errors.Join(b.saveAgent(ctx, a, "idle-"+prefix+"heap", "heap?gc=1"), b.saveAgent(ctx, a, "idle-"+prefix+"cpu", "profile?seconds=10")); err != nil {
			return err
		}
	}
	if then == nil {
		return nil
	}
	return then(ctx)
}

// rest waits until the agent spends less than a fortieth of a core.
func (b *bench) rest(ctx context.Context, a *agent) error {
	const pause = 10 * time.Second
	for range 60 {
		before := cpuByName()["agent"]
		if err := until(ctx, time.Now().Add(pause)); err != nil {
			return err
		}
		if cpuByName()["agent"]-before < pause.Seconds()/40 {
			return nil
		}
	}
	return b.explain(ctx, a, errors.New("the agent does not come to rest within 10 minutes"))
}

// allSay waits until the condition Ready of all plans says something.
func (b *bench) allSay(ctx context.Context, what string) error {
	limit := time.Now().Add(15 * time.Minute)
	for {
		n := 0
		for i := range b.namespaces {
			list, err := b.admin.CoreV1().ConfigMaps(b.namespace(i)).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindPlan, ResourceVersion: "0"})
			if err != nil {
				return err
			}
			for _, cm := range list.Items {
				if strings.Contains(cm.Annotations[annotations.StatusConditions], what) {
					n++
				}
			}
		}
		switch {
		case n >= b.plans:
			return nil
		case time.Now().After(limit):
			return fmt.Errorf("%d of %d plans say %q", n, b.plans, what)
		}
		if err := until(ctx, time.Now().Add(3*time.Second)); err != nil {
			return err
		}
	}
}

// noticed measures how long it takes after an act until a plan of the first
// namespace says something.
func (b *bench) noticed(ctx context.Context, s sample, name, says string, act func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	seen, err := observe(ctx, b.admin.CoreV1().ConfigMaps(b.namespace(0)).Watch, annotations.LabelKind+"="+annotations.KindPlan, func(o runtime.Object) []sight {
		if !strings.Contains(o.(*corev1.ConfigMap).Annotations[annotations.StatusConditions], says) {
			return nil
		}
		return []sight{{mark: name, key: "any"}}
	})
	if err != nil {
		return err
	}
	defer seen.stop()
	began := time.Now()
	if err := act(ctx); err != nil {
		return err
	}
	if err := seen.wait(ctx, name, 1, 2*time.Minute); err != nil {
		return err
	}
	s[name] = time.Since(began).Seconds()
	b.say("idle: noticed after %.2f s", s[name])
	return nil
}

// grant gives one namespace's account rights to ConfigMaps.
func (b *bench) grant(i int, verbs ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		role, err := b.admin.RbacV1().Roles(b.namespace(i)).Get(ctx, "maint-runner", metav1.GetOptions{})
		if err != nil {
			return err
		}
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}}
		_, err = b.admin.RbacV1().Roles(b.namespace(i)).Update(ctx, role, metav1.UpdateOptions{})
		return err
	}
}

func (b *bench) grantAll(ctx context.Context, verbs ...string) error {
	return each(ctx, b.namespaces, func(ctx context.Context, i int) error { return b.grant(i, verbs...)(ctx) })
}

func (b *bench) removeTargets(ctx context.Context) error {
	return each(ctx, b.namespaces, func(ctx context.Context, i int) error {
		return b.admin.CoreV1().ConfigMaps(b.namespace(i)).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: targetLabel + "=true"})
	})
}
