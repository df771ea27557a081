package capacity

import (
	"context"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestASizeIsPutBackAsFarAsTheGroupMayBeThatLarge(t *testing.T) {
	for name, c := range map[string]struct {
		was  Size
		most int32
		want Size
		why  string
	}{
		"as it was":                            {Size{2, 5, 10}, 10, Size{2, 5, 10}, ""},
		"its max was raised":                   {Size{2, 5, 10}, 20, Size{2, 5, 20}, ""},
		"its max is what it was at":            {Size{2, 5, 10}, 5, Size{2, 5, 5}, ""},
		"its max is below what it was at":      {Size{2, 5, 10}, 3, Size{2, 3, 3}, "it was at min 2, desired 5 and is put back at min 2, desired 3: its max is 3 by now"},
		"its max is below its min":             {Size{2, 5, 10}, 1, Size{1, 1, 1}, "it was at min 2, desired 5 and is put back at min 1, desired 1: its max is 1 by now"},
		"it may have none":                     {Size{2, 5, 10}, 0, Size{0, 0, 0}, "it was at min 2, desired 5 and cannot be put back: its max is 0 by now"},
		"the restore data says less than min":  {Size{3, 1, 10}, 10, Size{3, 3, 10}, "it was at min 3, desired 1 and is put back at min 3, desired 3: desired cannot be less than min (max is 10)"},
		"it had no instance and a min of none": {Size{0, 0, 4}, 0, Size{0, 0, 0}, ""},
	} {
		got, why := c.was.Within(c.most)
		if got != c.want || why != c.why {
			t.Errorf("%s: %+v, %q", name, got, why)
		}
	}
}

func TestAGroupOfNoInstances(t *testing.T) {
	for s, want := range map[Size]bool{{0, 0, 5}: true, {0, 0, 0}: true, {0, 1, 5}: false, {1, 1, 5}: false} {
		if s.None() != want {
			t.Errorf("%+v: %t", s, !want)
		}
	}
}

// What is wrong with the restore data of one group keeps no other from being put back.
func TestRestoreDataOfAGroupThatIsNonsenseIsNotPutBack(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                         "the restore data of bad does not say how many instances it had: it has min 0, desired 0",
		`null`:                       "the restore data of bad does not say how many instances it had",
		`{"min":0,"desired":0}`:      "the restore data of bad does not say how many instances it had",
		`{"min":-1,"desired":2}`:     "the restore data of bad does not say how many instances it had: it has min -1, desired 2",
		`{"min":"one"}`:              "the restore data of bad: json: cannot unmarshal string",
		`{"min":1,"desired":3.5}`:    "the restore data of bad: json: cannot unmarshal number",
		`{"min":1,"desired":3e9}`:    "the restore data of bad: json: cannot unmarshal number",
		`["min",1,"desired",3]`:      "the restore data of bad: json: cannot unmarshal array",
		`{"min":1,"desired":3,"max"`: "the restore data of bad: unexpected end of JSON input",
	} {
		var set []string
		find := func([]string) ([]Group, error) {
			var out []Group
			for _, name := range []string{"bad", "good"} {
				out = append(out, Group{UID: name, Max: 5, Set: func(context.Context, hibernate.Due, Size) error {
					set = append(set, name)
					return nil
				}})
			}
			return out, nil
		}
		due := []hibernate.Due{{Resource: hibernate.Resource{ID: "bad", UID: "bad", Before: []byte(text)}}, {Resource: hibernate.Resource{ID: "good", UID: "good", Before: []byte(`{"min":1,"desired":2,"max":5}`)}}}
		said := ""
		for _, r := range Refill(t.Context(), due, find) {
			if r.Err != nil {
				said += r.ID + ": " + r.Err.Error()
			}
		}
		if !strings.HasPrefix(said, "bad: "+want) || strings.Join(set, " ") != "good" {
			t.Errorf("%s: it says %q, and %q are set", text, said, set)
		}
	}
}
