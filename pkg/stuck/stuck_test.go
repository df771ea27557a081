package stuck_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
)

var errWhy = errors.New("it carries no signature; run z is left alone, it says")

func TestWhatIsWrittenOfRunsLeftAloneIsReadAgain(t *testing.T) {
	unsigned, newer, unread := stuck.Unsigned("r", stuck.WhyUnsigned("shop", "r", errWhy)), stuck.Newer("q", errors.New("shop/q was written by a newer version")), stuck.Unread("p", errors.New("no JSON"))
	for name, c := range map[string]struct {
		alone []stuck.Alone
		waits string
	}{
		"none":                        {nil, ""},
		"one that another waits for":  {nil, stuck.CannotGoOn("r", stuck.ForRun("", "q"))},
		"one of which no write holds": {nil, stuck.CannotGoOn("r", "it is immutable")},
		"its signature is not ours":   {[]stuck.Alone{unsigned}, ""},
		"a newer version wrote it":    {[]stuck.Alone{newer}, ""},
		"it cannot be read":           {[]stuck.Alone{unread}, "run x cannot go on: y"},
		"three of them":               {[]stuck.Alone{unsigned, newer, unread}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			for _, a := range c.alone {
				want[a.Name] = a.Why
			}
			message := stuck.Message(c.alone, c.waits)
			if len(c.alone) == 1 && message != c.alone[0].Why {
				t.Errorf("of one run it is said: %q, want %q", message, c.alone[0].Why)
			}
			if got := stuck.LeftAlone(message); !maps.Equal(got, want) {
				t.Errorf("%q is read as %q, not %q", message, got, want)
			}
		})
	}
}

func TestFiftyRunsLeftAloneAreAllKnown(t *testing.T) {
	var alone []stuck.Alone
	for i := range 50 {
		name := fmt.Sprintf("maint-run-%s-%010d", strings.Repeat("p", 63), i)
		alone = append(alone, stuck.Unsigned(name, stuck.WhyUnsigned("shop", name, errWhy)))
	}
	message := stuck.Message(alone, "")
	got := stuck.LeftAlone(message)
	if len(message) > stuck.MaxBytes || len(got) != 50 {
		t.Fatalf("%d bytes name %d runs", len(message), len(got))
	}
	if first := alone[0]; got[first.Name] != first.Why {
		t.Errorf("of the first: %q", got[first.Name])
	}
	if last := alone[49].Name; got[last] != "run "+last+" is left alone; why does not fit here, and its Events say it" {
		t.Errorf("of the last: %q", got[last])
	}
}

func TestHalfANameIsNoRun(t *testing.T) {
	alone := []stuck.Alone{stuck.Newer("aaaa", errWhy), stuck.Newer("bbbb", errWhy)}
	message := document.Cut(stuck.Message(alone, ""), len("runs aaaa, bb")+len(document.Ellipsis))
	if got := stuck.LeftAlone(message); len(got) != 1 || got["aaaa"] == "" {
		t.Errorf("%q is read as %q", message, got)
	}
}

func TestWhoWaitsForARunIsKnownByIt(t *testing.T) {
	for message, want := range map[string]bool{
		stuck.CannotGoOn("r", stuck.ForRun("q", "")): true,
		stuck.CannotGoOn("r", stuck.ForRun("", "q")): true,
		stuck.CannotGoOn("r", "it is immutable"):     false,
	} {
		if stuck.WaitsForRun(message) != want {
			t.Errorf("%q: not %t", message, want)
		}
	}
	if !stuck.ToAdopt(stuck.Unsigned("r", stuck.WhyUnsigned("shop", "r", errWhy)).Why) || stuck.ToAdopt(stuck.Unread("r", errWhy).Why) {
		t.Error("who is to be signed is not known by it")
	}
}

func TestWhichRunHasNoOpenEntryIsKnownByIt(t *testing.T) {
	said := stuck.CannotGoOn("a", stuck.NoOpenEntry) + "; 'kubectl maint abort a' ends it"
	for name, want := range map[string]bool{"a": true, "": true, "b": false} {
		if got := stuck.HasNoOpenEntry(said, name); got != want {
			t.Errorf("of %q: %t", name, got)
		}
	}
	for _, other := range []string{"", stuck.CannotGoOn("a", stuck.ForRun("b", "")), stuck.CannotGoOn("a", stuck.ForRun("", "b"))} {
		if stuck.HasNoOpenEntry(other, "") || stuck.HasNoOpenEntry(other, "a") {
			t.Errorf("%q says so", other)
		}
	}
	for want, got := range map[string]string{
		"it waits for run b of this plan":                 stuck.ForRun("b", "c"),
		"it waits for run c, which holds the same target": stuck.ForRun("", "c"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
