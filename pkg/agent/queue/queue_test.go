package queue

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
)

func key() types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: "plan"} }

// looks works on one key for an hour, and gives the instants of the looks at it, since
// the first. Each answer is one look's; the last is that of all that follow.
func looks(t *testing.T, answers ...func() (time.Duration, error)) (at []time.Duration, panics int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Name: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler), OnPanic: func() { panics++ }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		q.Add(key())
		start := time.Now()
		q.Work(ctx, 3, func(_ context.Context, k types.NamespacedName) (time.Time, error) {
			if k != key() {
				t.Errorf("looks at %s", k)
			}
			answer := answers[min(len(at), len(answers)-1)]
			at = append(at, time.Since(start))
			wake, err := answer()
			if wake == 0 {
				return time.Time{}, err
			}
			return time.Now().Add(wake), err
		})
	})
	return at, panics
}

func rests() (time.Duration, error)   { return 0, nil }
func wakes() (time.Duration, error)   { return 25 * time.Minute, nil }
func fails() (time.Duration, error)   { return 0, errors.New("no") }
func fenced() (time.Duration, error)  { return 0, client.ErrFenced }
func away() (time.Duration, error)    { return 0, io.ErrUnexpectedEOF }
func collide() (time.Duration, error) { return 0, ErrConflict }
func breaks() (time.Duration, error)  { panic("oh") }

func TestWhenAKeyIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answers     []func() (time.Duration, error)
		least, most int           // looks within an hour
		second      time.Duration // the latest instant of the second; zero: there is none
		panics      bool
	}{
		"when somebody adds it":                         {answers: []func() (time.Duration, error){rests}, least: 1, most: 1},
		"when it says":                                  {answers: []func() (time.Duration, error){wakes}, least: 3, most: 3, second: 25 * time.Minute},
		"soon after a failure, and later and later":     {answers: []func() (time.Duration, error){fails}, least: 100, most: 150, second: 100 * time.Millisecond},
		"soon after a conflict":                         {answers: []func() (time.Duration, error){collide, rests}, least: 2, most: 2, second: 100 * time.Millisecond},
		"after a panic, which is counted":               {answers: []func() (time.Duration, error){breaks, rests}, least: 2, most: 2, second: 100 * time.Millisecond, panics: true},
		"without growing pauses while the fence stands": {answers: []func() (time.Duration, error){fenced}, least: 3000, most: 8000, second: time.Second},
		"without growing pauses while nobody answers":   {answers: []func() (time.Duration, error){away}, least: 3000, most: 8000, second: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			at, panics := looks(t, c.answers...)
			if len(at) < c.least || len(at) > c.most {
				t.Errorf("looked at %d times", len(at))
			}
			if c.second > 0 && (len(at) < 2 || at[1] > c.second) {
				t.Errorf("the second look came at %v, want it by %s", at[:min(2, len(at))], c.second)
			}
			if (panics > 0) != c.panics {
				t.Errorf("%d panics", panics)
			}
		})
	}
}

// What succeeds once begins with short pauses again.
func TestPausesBeginAnewAfterASuccess(t *testing.T) {
	soon := func() (time.Duration, error) { return time.Second, nil }
	at, _ := looks(t, fails, fails, fails, fails, soon, fails, rests)
	if grown, anew := at[4]-at[3], at[6]-at[5]; grown <= 4*anew {
		t.Errorf("after four failures it paused for %s, after a success and one for %s", grown, anew)
	}
}

func TestTheSoonestAndTheLatestOfInstants(t *testing.T) {
	a, b := time.Unix(1, 0), time.Unix(2, 0)
	if !Soonest(time.Time{}, b, a, time.Time{}).Equal(a) || !Soonest().IsZero() || !Soonest(time.Time{}).IsZero() {
		t.Error("an instant that is not set counts, or the soonest is not taken")
	}
	if !Latest(a, b).Equal(b) || !Latest(b, a).Equal(b) {
		t.Error("the latest is not taken")
	}
}
