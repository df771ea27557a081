package queue

import (
	"slices"
	"strings"
	"testing"
)

func TestTheOrderOfTurns(t *testing.T) {
	for name, c := range map[string]struct {
		share int
		does  string // adds a1, "-a" has one of a leave, "!a1" drops it, "x" drops what has most and came last, "." takes what is next
		want  string
		left  int
	}{
		"one namespace in the order of arrival":           {9, "a1 a2 a3 . . . .", "a1 a2 a3 none", 0},
		"who has fewer at work first":                     {9, "a1 a2 a3 b1 . . . .", "a1 b1 a2 a3", 0},
		"who comes later, and has none at work, first":    {9, "a1 a2 a3 b1 b2 b3 . . c1 . .", "a1 b1 c1 a2", 3},
		"in turn where nothing stays at work":             {9, "a1 a2 a3 b1 b2 c1 . -a . -b . -c . -a . -b .", "a1 b1 c1 a2 b2 a3", 0},
		"who has many at work after who has had a few":    {9, "a1 a2 a3 a4 . . . b1 b2 . . .", "a1 a2 a3 b1 b2 a4", 0},
		"no more than a share":                            {2, "a1 a2 a3 . . . -a .", "a1 a2 none a3", 0},
		"no more than a share, and others go on":          {1, "a1 a2 a3 b1 . . . -b . b2 .", "a1 b1 none none b2", 2},
		"what is dropped is not handed out":               {9, "a1 a2 b1 !a1 . . .", "a2 b1 none", 0},
		"a namespace of which all is dropped has no turn": {1, "a1 a2 a3 . !a2 !a3 -a . !b1 b1 .", "a1 none b1", 0},
		"the newest of who has most is dropped":           {9, "a1 b1 b2 a2 b3 x . . . . .", "a1 b1 a2 b2 none", 0},
		"of those who have as many, of who is next":       {9, "b1 a1 x . .", "a1 none", 0},
		"of who has its share at work none is dropped":    {1, "a1 a2 a3 . x b1 x . -a . .", "a1 none a2 none", 1},
		"nothing of nobody":                               {1, ". a1 . -a .", "none a1 none", 0},
	} {
		turns, got := NewTurns[string](c.share), []string{}
		for do := range strings.FieldsSeq(c.does) {
			switch name := strings.TrimLeft(do, "-!"); {
			case do == ".":
				next, ok := turns.Next()
				if !ok {
					next = "none"
				}
				got = append(got, next)
			case do == "x":
				turns.DropNewest()
			case strings.HasPrefix(do, "-"):
				turns.Leave(name)
			case strings.HasPrefix(do, "!"):
				turns.Drop(name[:1], func(one string) bool { return one == name })
			default:
				turns.Add(name[:1], name)
			}
		}
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if n := turns.Waiting(); n != c.left {
			t.Errorf("%s: %d wait, want %d", name, n, c.left)
		}
	}
}

// A namespace is known while something of it is at work or waits.
func TestTurnsRememberNobody(t *testing.T) {
	turns := NewTurns[int](2)
	for i := range 100 {
		namespace := string(rune('a' + i%20))
		turns.Add(namespace, i)
	}
	for range 30 {
		turns.Next()
	}
	for i := range 20 {
		turns.Drop(string(rune('a'+i)), func(int) bool { return true })
	}
	for i := range 30 {
		turns.Leave(string(rune('a' + i%20)))
	}
	if len(turns.byNamespace) > 0 || turns.Waiting() > 0 {
		t.Errorf("remembers %v", turns.byNamespace)
	}
	for _, namespaces := range turns.ready {
		if namespaces.Len() > 0 {
			t.Errorf("%d may have another at work", namespaces.Len())
		}
	}
}
