package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestWhichResourcesALookShows(t *testing.T) {
	world := []string{"a", "b", "c"} // by their ids; those in selects are selected
	for name, c := range map[string]struct {
		op       hibernate.Operation
		selects  string
		recorded string
		want     string
		named    string // asked for by their ids
	}{
		"those that are selected":              {hibernate.Shutdown, "a b", "", "a b", ""},
		"each once":                            {hibernate.Shutdown, "a a", "a", "a", ""},
		"recorded ones beside them":            {hibernate.Shutdown, "a", "a c", "a c", "c"},
		"when it wakes, the recorded alone":    {hibernate.Wake, "a b", "c", "c", "c"},
		"one that is gone":                     {hibernate.Wake, "", "b x", "b x:gone", "b x"},
		"nothing":                              {hibernate.Shutdown, "", "", "", ""},
		"nothing is recorded when it is woken": {hibernate.Wake, "a", "", "", ""},
	} {
		var recorded []hibernate.Resource
		for _, id := range strings.Fields(c.recorded) {
			recorded = append(recorded, hibernate.Resource{ID: id, UID: "uid of " + id})
		}
		asked := ""
		seen, err := Resources(executors.SleepCall{Operation: c.op, Recorded: recorded}, Source[string]{
			Selected: func() ([]string, error) { return strings.Fields(c.selects), nil },
			Named: func(ids []string) ([]string, error) {
				asked = strings.Join(ids, " ")
				return slices.DeleteFunc(slices.Clone(world), func(id string) bool { return !slices.Contains(ids, id) }), nil
			},
			Observed: func(id string) hibernate.Observation { return hibernate.Observation{ID: id, UID: "uid of " + id} },
		})
		var got []string
		for _, o := range seen {
			switch {
			case o.Gone:
				got = append(got, o.ID+":gone")
			case o.Lag != Lag:
				t.Errorf("%s: %s is said to be up to date", name, o.ID)
			default:
				got = append(got, o.ID)
			}
			if o.UID != "uid of "+o.ID {
				t.Errorf("%s: %s is %q", name, o.ID, o.UID)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" || err != nil || asked != c.named {
			t.Errorf("%s: %v, asked for %q\n%s", name, err, asked, diff)
		}
	}
}

func TestALookThatFailsShowsNothing(t *testing.T) {
	down := errors.New("down")
	none := func() ([]string, error) { return nil, nil }
	recorded := []hibernate.Resource{{ID: "a"}}
	for name, from := range map[string]Source[string]{
		"of the selected": {Selected: func() ([]string, error) { return nil, down }},
		"of the recorded": {Selected: none, Named: func([]string) ([]string, error) { return nil, down }},
	} {
		seen, err := Resources(executors.SleepCall{Operation: hibernate.Shutdown, Recorded: recorded}, from)
		if !errors.Is(err, down) || len(seen) > 0 {
			t.Errorf("%s: %v, %v", name, seen, err)
		}
	}
}

func TestHowALookBegins(t *testing.T) {
	down := errors.New("down")
	open := func(_ context.Context, call executors.SleepCall) (string, error) {
		if call.Plan.Namespace == "" {
			return "", down
		}
		return "api of " + call.Plan.Namespace, nil
	}
	params := &hibernate.EC2Parameters{}
	p, api, err := Open[hibernate.EC2Parameters](t.Context(), executors.SleepCall{Plan: executors.PlanRef{Namespace: "shop"}, Params: params}, open)
	if err != nil || p != params || api != "api of shop" {
		t.Errorf("%v, %q, %v", p, api, err)
	}
	if _, _, err := Open[hibernate.EC2Parameters](t.Context(), executors.SleepCall{Params: params}, open); !errors.Is(err, down) {
		t.Errorf("the account is not reached: %v", err)
	}
	for _, wrong := range []any{nil, &hibernate.RDSParameters{}, (*hibernate.EC2Parameters)(nil)} {
		if _, _, err := Open[hibernate.EC2Parameters](t.Context(), executors.SleepCall{Plan: executors.PlanRef{Namespace: "shop"}, Params: wrong}, open); err == nil {
			t.Errorf("%T passes", wrong)
		}
	}
}
