package drain_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
)

// combinations are options that differ in all that decides who is drained with whom.
func combinations() []drain.Options {
	var out []drain.Options
	filters := func(names ...string) (f []drain.EvictionFilter) {
		for _, n := range names {
			f = append(f, drain.EvictionFilter{ByResourceNameRegex: n})
		}
		return f
	}
	for _, selector := range []string{"", "app=a", "app=b"} {
		for _, f := range [][]drain.EvictionFilter{nil, filters("gpu"), filters("net"), filters("net", "gpu")} {
			for bits := range 16 {
				o := drain.Options{
					PodSelector: selector, EvictionFilters: f, Force: bits&1 > 0, DeleteEmptyDir: bits&2 > 0,
					WaitForVolumes: bits&4 > 0, Timeout: &document.Duration{Duration: time.Minute}, OnTimeout: drain.TimeoutRetry,
				}
				if bits&8 > 0 {
					o.OnTimeout = drain.TimeoutForce
				}
				out = append(out, o)
			}
		}
	}
	return out
}

func asText(o drain.Options) string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestOneDrainForTwoDoesNothingThatNobodyAsked(t *testing.T) {
	all, merged := combinations(), 0
	for _, a := range all {
		for _, b := range all {
			m, ok := drain.Merge(a, b)
			if !ok {
				continue
			}
			merged++
			switch {
			case !m.Includes(a) || !m.Includes(b):
				t.Fatalf("%s is not all of %s and %s", asText(m), asText(a), asText(b))
			case m.OnTimeout != a.OnTimeout:
				t.Fatalf("%s does not go by the rules of %s", asText(m), asText(a))
			case m.Force && !a.Force && !b.Force, m.DeleteEmptyDir && !a.DeleteEmptyDir && !b.DeleteEmptyDir:
				t.Fatalf("%s is more than %s and %s", asText(m), asText(a), asText(b))
			case !a.Includes(m) && !b.Includes(m) && (a.Force != b.Force || a.PodSelector != b.PodSelector):
				t.Fatalf("%s does to pods of one what the other asked: %s and %s", asText(m), asText(a), asText(b))
			}
		}
	}
	if merged < len(all) {
		t.Errorf("only %d pairs of %d options go together", merged, len(all))
	}
}

func TestWhichDrainsGoTogether(t *testing.T) {
	filters := func(names ...string) (f []drain.EvictionFilter) {
		for _, n := range names {
			f = append(f, drain.EvictionFilter{ByResourceNameRegex: n})
		}
		return f
	}
	minute, hour := &document.Duration{Duration: time.Minute}, &document.Duration{Duration: time.Hour}
	for name, c := range map[string]struct {
		first, second drain.Options
		want          *drain.Options // nil: they do not go together
	}{
		"two that are the same":                         {drain.Options{Force: true}, drain.Options{Force: true}, &drain.Options{Force: true}},
		"the first includes the second, with its time":  {drain.Options{Force: true, Timeout: minute}, drain.Options{Timeout: hour}, &drain.Options{Force: true, Timeout: minute}},
		"the second includes the first":                 {drain.Options{PodSelector: "app=a"}, drain.Options{}, &drain.Options{}},
		"the same, where they differ in time":           {drain.Options{PodSelector: "app=a", Timeout: minute}, drain.Options{Timeout: hour}, nil},
		"the same, where one has no time of its own":    {drain.Options{PodSelector: "app=a", Timeout: minute}, drain.Options{}, nil},
		"the same, and neither waits long for a pod":    {drain.Options{PodSelector: "app=a", PodTimeout: minute}, drain.Options{PodTimeout: minute}, &drain.Options{PodTimeout: minute}},
		"one waits longer for a pod":                    {drain.Options{PodSelector: "app=a", PodTimeout: minute}, drain.Options{PodTimeout: hour}, nil},
		"one gives pods longer":                         {drain.Options{PodSelector: "app=a", GracePeriod: minute}, drain.Options{GracePeriod: hour}, nil},
		"one forces what is left":                       {drain.Options{PodSelector: "app=a", OnTimeout: drain.TimeoutForce}, drain.Options{}, nil},
		"pods of two kinds, sorted and each once":       {drain.Options{EvictionFilters: filters("net", "gpu")}, drain.Options{EvictionFilters: filters("fpga", "gpu")}, &drain.Options{EvictionFilters: filters("fpga", "gpu", "net")}},
		"pods of two kinds, one by force":               {drain.Options{EvictionFilters: filters("net"), Force: true}, drain.Options{EvictionFilters: filters("gpu")}, nil},
		"pods of two kinds, one with their emptyDir":    {drain.Options{EvictionFilters: filters("net"), DeleteEmptyDir: true}, drain.Options{EvictionFilters: filters("gpu")}, nil},
		"pods of two kinds, one waits for volumes":      {drain.Options{EvictionFilters: filters("net"), WaitForVolumes: true}, drain.Options{EvictionFilters: filters("gpu")}, nil},
		"pods of two kinds, of two apps":                {drain.Options{EvictionFilters: filters("net"), PodSelector: "app=a"}, drain.Options{EvictionFilters: filters("gpu"), PodSelector: "app=b"}, nil},
		"pods of two apps":                              {drain.Options{PodSelector: "app=a"}, drain.Options{PodSelector: "app=b"}, nil},
		"all pods, and some: the first has no filters":  {drain.Options{}, drain.Options{EvictionFilters: filters("gpu")}, &drain.Options{}},
		"some pods, and all: the second has no filters": {drain.Options{EvictionFilters: filters("gpu")}, drain.Options{}, &drain.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := drain.Merge(c.first, c.second)
			if ok != (c.want != nil) {
				t.Fatalf("they go together: %t", ok)
			}
			if want := c.want; ok && asText(got) != asText(*want) {
				t.Errorf("%s, want %s", asText(got), asText(*want))
			}
		})
	}
}
