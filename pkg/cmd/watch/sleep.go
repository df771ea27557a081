package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/live"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// Awaited is a HibernatePlan in a wait.
type Awaited struct {
	Object *corev1.ConfigMap
	// Key and Value are the status by which the agent shows that it has seen the intent; until
	// then the rest of its status may be older.
	Key, Value string
	Phases     []hibernate.Phase // those that end the wait successfully
}

// FollowSleep shows HibernatePlans of the namespace live until each has reached its state, or has
// failed.
func FollowSleep(ctx context.Context, c *factory.Factory, k *factory.Cluster, plans []Awaited) error {
	return live.Run(ctx, c, k, live.View{Title: "hibernation"}, func(ctx context.Context, k *factory.Cluster, show func([]view.Line)) error {
		return followSleep(ctx, c, k, plans, show)
	})
}

func followSleep(ctx context.Context, c *factory.Factory, k *factory.Cluster, plans []Awaited, show func([]view.Line)) error {
	only := ByLabel(annotations.LabelKind + "=" + annotations.KindHibernatePlan)
	if len(plans) == 1 {
		only = ByName(plans[0].Object.Name)
	}
	seen, err := ConfigMaps(ctx, k, k.Namespace, only)
	f := sleepFollower{c: c, everywhere: k.Namespace == "", plans: plans, seen: seen, screen: Screen{Env: c.Env, Live: show}}
	if err != nil {
		return f.ended(ctx, err)
	}
	tick, silent := time.NewTicker(time.Second), time.NewTicker(factory.AgentTimeout)
	defer tick.Stop()
	defer silent.Stop()
	agent := c.WatchAgent(k)
	for {
		if over, err := f.refresh(); over {
			return err
		}
		select {
		case <-ctx.Done():
			return f.ended(ctx, nil)
		case <-seen.Changed:
		case <-tick.C: // the ages change
			if err := agent.Check(ctx, "the request is kept, and goes on when an agent is back"); err != nil {
				return err
			}
		case <-silent.C:
			if err := f.silent(ctx, k); err != nil && !agent.IsLate(ctx) {
				return err
			}
		}
	}
}

type sleepFollower struct {
	c          *factory.Factory
	everywhere bool // the plans are of all namespaces
	plans      []Awaited
	seen       *Cache
	screen     Screen
}

// refresh draws all plans, and says whether each has reached its end.
func (f *sleepFollower) refresh() (over bool, err error) {
	over = true
	var failed, gone []string
	var picture []view.Line
	var said []print.Update
	for _, a := range f.plans {
		cm := f.seen.ConfigMap(a.Object.Namespace, a.Object.Name)
		if cm == nil || cm.UID != a.Object.UID {
			gone = append(gone, a.Object.Name)
			continue
		}
		s := view.NewSleeper(cm, nil, nil)
		v := print.New(f.c.Env, s.Zone())
		picture = append(picture, view.LinesOf(view.SleeperResource(s), v.SleepPicture(s)...)...)
		said = append(said, v.SleepUpdates(s)...)
		done, why := a.at(s)
		over = over && done
		if why != "" {
			failed = append(failed, why)
		}
	}
	f.screen.ShowOf(picture, said)
	switch {
	case !over:
		return false, nil
	case len(failed) > 0:
		return true, exit.Errorf(exit.CodeRunFailed, "%s", strings.Join(failed, "\n"))
	case len(gone) > 0:
		return true, exit.Errorf(exit.CodeError, "deleted meanwhile: %s", strings.Join(gone, ", "))
	}
	return true, nil
}

// at says whether a plan has reached its end, and what went wrong.
func (a Awaited) at(s view.Sleeper) (done bool, failure string) {
	if s.Object.Annotations[a.Key] != a.Value {
		return false, ""
	}
	phase := hibernate.Phase(s.Object.Annotations[annotations.StatusPhase])
	message := s.Object.Annotations[annotations.StatusMessage]
	switch {
	case phase == hibernate.InError || phase == hibernate.Invalid:
		return true, fmt.Sprintf("plan %s: %s%s", s.Name, phase, view.Colon(message))
	case !slices.Contains(a.Phases, phase):
		return false, ""
	}
	for _, t := range s.Targets() {
		if t.State == hibernate.Failed || t.State == hibernate.Aborted {
			return true, fmt.Sprintf("plan %s: %s, but target %s has %s%s", s.Name, phase, t.Target, strings.ToLower(string(t.State)), view.Colon(t.Message))
		}
	}
	return true, ""
}

// silent says that the agent has not reacted for too long.
func (f *sleepFollower) silent(ctx context.Context, k *factory.Cluster) error {
	for _, a := range f.plans {
		cm := f.seen.ConfigMap(a.Object.Namespace, a.Object.Name)
		if cm != nil && cm.UID == a.Object.UID && cm.Annotations[a.Key] != a.Value {
			return exit.Errorf(exit.CodeNoAgent, "the agent does not handle the request to plan %s, which is kept: it waits for the API server, is too old, or does not watch namespace %s; %s", cm.Name, cm.Namespace, UpgradeAgent(ctx, f.c, k))
		}
	}
	return nil
}

func (f *sleepFollower) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return EndedEarly(ctx, "the request is kept, and goes on without you; see "+strings.Join(f.shownBy(), " and "))
}

// shownBy are the commands that show the plans: one for each namespace, where they are of all.
func (f *sleepFollower) shownBy() []string {
	of, names := f.c.Suggest(), map[string][]string{}
	for _, a := range f.plans {
		names[a.Object.Namespace] = append(names[a.Object.Namespace], a.Object.Name)
	}
	var out []string
	for _, namespace := range slices.Sorted(maps.Keys(names)) {
		if f.everywhere {
			of = of.In(namespace)
		}
		out = append(out, of.StatusOf(strings.Join(names[namespace], " ")))
	}
	return out
}
