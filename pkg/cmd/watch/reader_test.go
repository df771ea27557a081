package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// What is watched is not asked for, what is not is asked for seldom.
func TestAReaderAsksOnlyForWhatIsNotWatched(t *testing.T) {
	inBubble(t, func(ctx context.Context, o *cmdtest.Cluster, k *factory.Cluster) {
		w, err := ConfigMaps(ctx, k, "shop", ByLabel(annotations.LabelKind+" in (plan,run)"))
		if err != nil {
			t.Fatal(err)
		}
		seen := w.Reader(k, "shop", annotations.KindPlan, annotations.KindRun)
		asked := func(look func()) int {
			o.Kube.ClearActions()
			look()
			return len(o.Kube.Actions())
		}
		list := func(namespace, selector, field string) func() {
			return func() {
				if _, err := seen.ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, FieldSelector: field}); err != nil {
					t.Error(err)
				}
			}
		}
		get := func(name string) func() {
			return func() { _, _ = seen.ConfigMaps("shop").Get(ctx, name, metav1.GetOptions{}) }
		}
		for _, c := range []struct {
			name string
			look func()
			want int
		}{
			{"a kind", list("shop", annotations.LabelKind+"=plan", ""), 0},
			{"some kinds and more", list("shop", annotations.LabelKind+" in (plan,run),a=b", ""), 0},
			{"a kind that is not watched", list("shop", annotations.LabelKind+" in (plan,policy)", ""), 1},
			{"and again", list("shop", annotations.LabelKind+" in (plan,policy)", ""), 0},
			{"all but a kind", list("shop", annotations.LabelKind+"!=run", ""), 1},
			{"whatever has a kind", list("shop", annotations.LabelKind, ""), 1},
			{"no kind", list("shop", "a=b", ""), 1},
			{"all namespaces", list("", annotations.LabelKind+"=plan", ""), 1},
			{"another namespace", list("ops", annotations.LabelKind+"=plan", ""), 1},
			{"by name", list("shop", annotations.LabelKind+"=plan", "metadata.name=orders"), 1},
			{"a plan", get("orders"), 0},
			{"what is not there", get("ghost"), 1},
			{"and is not there again", get("ghost"), 0},
			{"a namespace", func() { _, _ = seen.Kube.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{}) }, 1},
			{"the same", func() { _, _ = seen.Kube.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{}) }, 0},
			{"all of them", func() { _, _ = seen.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}) }, 1},
		} {
			if got := asked(c.look); got != c.want {
				t.Errorf("%s: asked %d times, want %d", c.name, got, c.want)
			}
		}
		time.Sleep(readAgain)
		if got := asked(get("ghost")); got != 1 {
			t.Errorf("it is never asked for again: %d", got)
		}
		plans, err := seen.Plans(ctx, "shop", "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"mail", "orders"}, namesOf(plans)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}, cmdtest.Plan("orders", ""), cmdtest.Plan("mail", ""))
}

// A node names the plan that it is cordoned for as soon as it is: which run has it must be as new, in
// whatever namespace the run is.
func TestAReaderKnowsTheRunsOfAllNamespacesAtOnce(t *testing.T) {
	elsewhere := func(name string, phase run.Phase) *corev1.ConfigMap {
		r := cmdtest.RunOf()
		r.Run.Name, r.Run.Namespace, r.Journal.Phase = name, "ops", phase
		cm, err := annotations.RunObject(r.Run, r.Journal)
		if err != nil {
			t.Fatal(err)
		}
		return cmdtest.Signed(cm)
	}
	for _, c := range []struct {
		name   string
		before func(*cmdtest.Cluster)
		watch  bool
		asks   int
		runs   int
	}{
		{name: "while they are watched", watch: true, asks: 0, runs: 1},
		{name: "while they are not", asks: 1, runs: 0},
		{name: "who may not read them", before: func(o *cmdtest.Cluster) { o.Forbids("list", "configmaps", "") }, watch: true, asks: 1, runs: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(ctx context.Context, o *cmdtest.Cluster, k *factory.Cluster) {
				w, err := ConfigMaps(ctx, k, "shop", ByLabel(annotations.LabelKind+"=run"))
				if err != nil {
					t.Fatal(err)
				}
				if c.before != nil {
					c.before(o)
				}
				if c.watch {
					w.WatchActiveRuns(ctx, k)
				}
				seen := w.Reader(k, "shop", annotations.KindRun)
				o.Kube.ClearActions()
				if runs, _, err := seen.ActiveRuns(ctx); err != nil || len(runs) != 0 || len(o.Kube.Actions()) != c.asks {
					t.Errorf("%d runs, asked %d times: %v", len(runs), len(o.Kube.Actions()), err)
				}
				o.Creates(elsewhere("maint-run-roll-x", run.Running))
				o.Creates(elsewhere("maint-run-roll-w", run.Succeeded))
				if news := pending(w.Changed); news != (c.runs > 0) {
					t.Errorf("news: %t", news)
				}
				if runs, _, err := seen.ActiveRuns(ctx); err != nil || len(runs) != c.runs {
					t.Errorf("%d runs: %v", len(runs), err)
				}
			})
		})
	}
}

func namesOf(list []*corev1.ConfigMap) (out []string) {
	for _, cm := range list {
		out = append(out, cm.Name)
	}
	return out
}

func TestAWatchThatBreaksIsTold(t *testing.T) {
	var told []string
	hear := broken(&factory.Cluster{Broken: func(err error) { told = append(told, err.Error()) }})
	ended, end := context.WithCancel(t.Context())
	end()
	hear(t.Context(), nil, context.DeadlineExceeded)
	hear(t.Context(), nil, fmt.Errorf("watch: %w", io.EOF))
	hear(ended, nil, context.DeadlineExceeded)
	broken(&factory.Cluster{})(t.Context(), nil, context.DeadlineExceeded)
	if diff := cmp.Diff([]string{"context deadline exceeded"}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Off a screen, nobody hears of each watch that breaks; that none may be begun is said, once.
func TestAWatchThatIsForbiddenIsSaidOnce(t *testing.T) {
	var said []string
	refused := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no"))
	hear := broken(&factory.Cluster{Warn: func(text string) { said = append(said, text) }})
	for _, err := range []error{context.DeadlineExceeded, refused, refused} {
		hear(t.Context(), nil, err)
	}
	if len(said) != 1 || said[0] != "what changes is seen up to a minute late, since you may not watch configmaps" {
		t.Errorf("%q", said)
	}
	var told []error
	broken(&factory.Cluster{Warn: func(text string) { t.Error(text) }, Broken: func(err error) { told = append(told, err) }})(t.Context(), nil, refused)
	if len(told) != 1 {
		t.Errorf("a screen is told %d times", len(told))
	}
}
