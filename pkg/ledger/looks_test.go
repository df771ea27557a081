package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

func look(from, to string) ledger.Look {
	return ledger.Look{From: coretest.Clock(from), To: coretest.Clock(to)}
}

func TestWhatSomebodySaw(t *testing.T) {
	l := ledger.Ledger{Looks: []ledger.Look{look("01:00", "02:00"), look("03:00", "04:00")}}
	for at, want := range map[string]bool{"00:59": false, "01:00": true, "01:30": true, "02:00": true, "02:01": false, "03:00": true, "04:00": true, "04:01": false} {
		if got := l.Saw(coretest.Clock(at)); got != want {
			t.Errorf("at %s: %t", at, got)
		}
	}
	if to, ok := l.LookedTo(); !ok || !to.Equal(coretest.Clock("04:00")) {
		t.Errorf("up to %s, %t", to, ok)
	}
	if to, ok := (ledger.Ledger{}).LookedTo(); ok || (ledger.Ledger{}).Saw(to) {
		t.Errorf("nobody looked: up to %s", to)
	}
}

func TestLooksJoinWhereNothingFellDueBetween(t *testing.T) {
	first := look("01:00", "02:00")
	for _, c := range []struct {
		name  string
		was   []ledger.Look
		from  string
		joins bool
		want  []ledger.Look
	}{
		{"the first", nil, "03:00", false, []ledger.Look{look("03:00", "04:00")}},
		{"the first, which joins nothing", nil, "03:00", true, []ledger.Look{look("03:00", "04:00")}},
		{"one that follows", []ledger.Look{first}, "03:00", false, []ledger.Look{first, look("03:00", "04:00")}},
		{"one that follows, with nothing between", []ledger.Look{first}, "03:00", true, []ledger.Look{look("01:00", "04:00")}},
		{"one that begins at the end of the last", []ledger.Look{first}, "02:00", false, []ledger.Look{look("01:00", "04:00")}},
		{"one that goes on", []ledger.Look{first}, "01:00", false, []ledger.Look{look("01:00", "04:00")}},
		{"it joins the last", []ledger.Look{look("00:10", "00:20"), first}, "01:00", false, []ledger.Look{look("00:10", "00:20"), look("01:00", "04:00")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := ledger.Ledger{Looks: c.was}
			if diff := cmp.Diff(c.want, l.WithLook(coretest.Clock(c.from), coretest.Clock("04:00"), c.joins).Looks); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if n := len(c.was); n > 0 && !cmp.Equal(c.was[n-1], first) {
				t.Errorf("the ledger that was given has changed: %+v", c.was)
			}
		})
	}
}

func TestOfTheOldestLooksItIsForgotten(t *testing.T) {
	l, at := ledger.Ledger{}, coretest.Clock("01:00")
	for i := range 12 {
		from := at.Add(time.Duration(i) * time.Hour)
		l = l.WithLook(from, from.Add(time.Minute), false)
		if want := min(i+1, 10); len(l.Looks) != want || !l.Saw(from) {
			t.Errorf("after %d looks it keeps %d, want %d", i+1, len(l.Looks), want)
		}
	}
	if l.Saw(at.Add(time.Hour)) || !l.Saw(at.Add(2*time.Hour)) {
		t.Errorf("it keeps %+v", l.Looks)
	}
}

func TestWhoLookedAtWhatHasPassedIsForgotten(t *testing.T) {
	first, second := look("01:00", "02:00"), look("03:00", "04:00")
	for at, want := range map[string][]ledger.Look{"00:30": {first, second}, "01:30": {first, second}, "02:00": {second}, "03:00": {second}, "04:00": nil, "05:00": nil} {
		l := ledger.Ledger{Looks: []ledger.Look{first, second}}.Passed(coretest.Clock(at))
		if diff := cmp.Diff(want, l.Looks); diff != "" || !l.Watermark.Equal(coretest.Clock(at)) {
			t.Errorf("past %s: watermark %s, -want +got:\n%s", at, l.Watermark, diff)
		}
	}
}
