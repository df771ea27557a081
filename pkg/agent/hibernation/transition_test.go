package hibernation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// since are the instants that the status has of a plan and of its target apps.
func (w *world) since() (plan, began, ended, target string) {
	w.Helper()
	list := annotations.ReadTargets(w.said(annotations.StatusTargets))
	if len(list) != 1 || list[0].Target != "apps" {
		w.Fatalf("targets are %+v", list)
	}
	clock := func(at *time.Time) string {
		if at == nil {
			return ""
		}
		return at.UTC().Format("15:04")
	}
	at, err := time.Parse(time.RFC3339, w.said(annotations.StatusLastTransition))
	if err != nil {
		w.Fatal(err)
	}
	return clock(&at), clock(list[0].StartedAt), clock(list[0].FinishedAt), clock(list[0].LastTransition)
}

func TestTheStatusSaysHowAllTargetsAreAndSinceWhen(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		if overall, since := w.said(annotations.StatusOverall), w.said(annotations.StatusLastTransition); overall != "" || since != "2000-01-01T00:00:00Z" {
			t.Errorf("before its first sleep it is %q since %s", overall, since)
		}
		for _, c := range []struct {
			until   string
			overall hibernate.State
			want    []string // of the plan, and the target's start, end and last transition
		}{
			{"01:10", hibernate.Asleep, []string{"01:00", "01:00", "01:00", "01:00"}},
			{"02:50", hibernate.Asleep, []string{"01:00", "01:00", "01:00", "01:00"}},
			{"03:10", hibernate.Awake, []string{"03:00", "03:00", "03:00", "03:00"}},
			{"24:50", hibernate.Awake, []string{"03:00", "03:00", "03:00", "03:00"}},
			{"25:10", hibernate.Asleep, []string{"01:00", "01:00", "01:00", "01:00"}},
		} {
			w.until(c.until)
			plan, began, ended, target := w.since()
			if got := w.said(annotations.StatusOverall); got != string(c.overall) {
				t.Errorf("at %s all targets are %q, want %s", c.until, got, c.overall)
			}
			if diff := cmp.Diff(c.want, []string{plan, began, ended, target}); diff != "" {
				t.Errorf("at %s: %s", c.until, diff)
			}
		}
		w.begins() // another agent goes on with the instants that it finds
		w.api.ClearLog()
		w.until("26:30")
		if wrote := w.api.Log(); len(wrote) > 0 {
			t.Errorf("it wrote %q", wrote)
		}
		if plan, _, _, target := w.since(); plan != "01:00" || target != "01:00" {
			t.Errorf("the plan is so since %s, its target since %s", plan, target)
		}
	})
}

func TestATargetThatFailsIsTheStateOfAll(t *testing.T) {
	night(t, oneToThree+"behavior: {retries: 1}\n"+apps, func(w *world) {
		w.beds.goes("observe apps", "no answer")
		w.until("01:30")
		if got := w.said(annotations.StatusOverall); got != string(hibernate.Failed) {
			t.Errorf("all targets are %q", got)
		}
		if _, began, ended, target := w.since(); began != "01:00" || ended != target || target == "" {
			t.Errorf("it began at %s, ended at %s, and is so since %s", began, ended, target)
		}
	})
}
