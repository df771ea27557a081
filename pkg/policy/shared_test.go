package policy

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func (s *Shared) put(namespace, name string, strategy schedule.Strategy) {
	s.Change(func(b *Resolver) {
		b.PutPolicy(State{Namespace: namespace, Name: name, Spec: PolicySpec{Strategy: strategy}})
	})
}

// slowly has a policy parsed only once wait returns. parsed counts how often that began.
func (s *Shared) slowly(namespace, name string, parsed *int, wait func()) {
	s.Change(func(b *Resolver) {
		ref := PolicyRef{Name: name, Namespace: namespace}
		one := b.reading(ref, b.policies[ref])
		parse := one.policy
		one.policy = sync.OnceValue(func() *schedule.Policy {
			*parsed++
			wait()
			return parse()
		})
		b.parsed.put(ref, one)
	})
}

func asking(namespace string, names ...string) Query {
	q := Query{Namespace: namespace}
	for _, name := range names {
		q.Policies = append(q.Policies, PolicyRef{Name: name})
	}
	return q
}

func TestNobodyWaitsForThePoliciesOfOthersThatAreParsed(t *testing.T) {
	s := NewShared("maint-system")
	s.put("hostile", "large", schedule.Permissive)
	s.put("shop", "hours", schedule.Permissive)
	parsed, begun, release := 0, make(chan struct{}), make(chan struct{})
	s.slowly("hostile", "large", &parsed, func() { close(begun); <-release })
	gates := make(chan *schedule.Gate, 2)
	for range 2 {
		go func() { gates <- s.Ask(asking("hostile", "large")) }()
	}
	<-begun
	now := time.Unix(1000, 0)
	if !s.Ask(asking("shop", "hours")).Verdict(now).Permitted {
		t.Error("another namespace has no answer")
	}
	s.put("shop", "hours", schedule.Restrictive)
	if _, p := s.Policy("shop", "hours"); p.Verdict(now).Permitted || s.Strategy(asking("hostile", "large"), now) != schedule.ByPolicy {
		t.Error("an edit of another namespace is not seen")
	}
	if len(gates) != 0 {
		t.Error("there is a gate before its policy")
	}
	close(release)
	if one, two := <-gates, <-gates; one != two || !one.Verdict(now).Permitted || parsed != 1 || s.Ask(asking("hostile", "large")) != one {
		t.Errorf("who asks the same has several gates, and the policy is parsed %d times", parsed)
	}
}

func TestAnEditWhileAPolicyIsParsedIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*Shared)
		wants bool
	}{
		"of itself":            {func(s *Shared) { s.put("shop", "hours", schedule.Restrictive) }, false},
		"of another of theirs": {func(s *Shared) { s.put("shop", "nights", schedule.Restrictive) }, false},
		"a freeze of their namespace": {func(s *Shared) {
			s.Change(func(b *Resolver) { b.PutNamespace("shop", StanzaText{Strategy: schedule.Restrictive}) })
		}, false},
		"it is dropped": {func(s *Shared) { s.Change(func(b *Resolver) { b.DropPolicy("shop", "hours") }) }, false},
		"of one that they do not name": {func(s *Shared) {
			s.put("shop", "other", schedule.Restrictive)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, parsed := NewShared("maint-system"), 0
			s.put("shop", "hours", schedule.Permissive)
			s.put("shop", "nights", schedule.Permissive)
			s.slowly("shop", "hours", &parsed, func() { c.edit(s) })
			var kept KeptGate
			q, now := asking("shop", "hours", "nights"), time.Unix(1000, 0)
			first := s.Of(&kept, q)
			if got := first.Verdict(now).Permitted; got != c.wants || kept.Gate != first || s.Of(&kept, q) != first || s.Ask(q) != first || parsed != 1 {
				t.Errorf("permitted %t, kept %t, the same when asked again %t, parsed %d times", got, kept.Gate == first, s.Ask(q) == first, parsed)
			}
		})
	}
}

func TestAPolicyThatIsEditedWheneverItIsParsedIsNotReady(t *testing.T) {
	s, parsed, edits := NewShared("maint-system"), 0, 100
	s.put("shop", "hours", schedule.Permissive)
	var edit func()
	edit = func() {
		if edits--; edits > 0 {
			s.put("shop", "hours", schedule.Permissive)
			s.slowly("shop", "hours", &parsed, edit)
		}
	}
	s.slowly("shop", "hours", &parsed, edit)
	now := time.Unix(1000, 0)
	v := s.Ask(asking("shop", "hours")).Verdict(now)
	if v.Permitted || v.Ready || !strings.Contains(v.Reason, "edited again and again") || parsed > mostEdits {
		t.Errorf("%+v after it was parsed %d times", v, parsed)
	}
	edits = 0
	if !s.Ask(asking("shop", "hours")).Verdict(now).Permitted {
		t.Error("it is not ready after the last edit")
	}
	if _, p := s.Policy("shop", "hours"); !p.Ready(now) {
		t.Error("what was said meanwhile is kept")
	}
}

// What does not name a calendar is not parsed again when that is edited, and what its gates remember stays.
func TestAnEditOfACalendarConcernsWhatNamesIt(t *testing.T) {
	for _, namespace := range []string{"shop", "maint-system"} {
		s := NewShared("maint-system")
		edit := func(from string) {
			c, err := schedule.ParseCalendarEntries([]schedule.CalendarEntry{{From: from}})
			if err != nil {
				t.Fatal(err)
			}
			s.Change(func(b *Resolver) { b.PutCalendar(namespace, "holidays", c) })
		}
		edit("2026-12-24")
		for _, name := range []string{"holidays", "others"} {
			s.Change(func(b *Resolver) {
				if name == "others" {
					b.PutCalendar(namespace, name, &schedule.Calendar{})
				}
				b.PutPolicy(State{Namespace: "shop", Name: name, Spec: PolicySpec{Strategy: schedule.MaintenanceScheduled, MaintenanceSchedule: &schedule.MaintenanceSchedule{
					Exclude: []schedule.Exclusion{{Calendar: &schedule.CalendarRef{Name: name, Namespace: namespace}}},
				}}})
			})
		}
		eve := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
		names, other := s.Ask(asking("shop", "holidays")), s.Ask(asking("shop", "others"))
		if names.Verdict(eve).Permitted || !other.Verdict(eve).Permitted {
			t.Errorf("%s: %+v, %+v", namespace, names.Verdict(eve), other.Verdict(eve))
		}
		edit("2026-12-26")
		if s.Ask(asking("shop", "others")) != other {
			t.Errorf("%s: what names another calendar is parsed again", namespace)
		}
		if !s.Ask(asking("shop", "holidays")).Verdict(eve).Permitted {
			t.Errorf("%s: the edit is not seen", namespace)
		}
	}
}
