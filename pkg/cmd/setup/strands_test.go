package setup

import "testing"

// Only who takes rights that the agent has leaves behind what is alive.
func TestWhichFlagTakesRights(t *testing.T) {
	readOnly := func() *Manifests {
		m := released()
		m.ReadOnly = true
		return &m
	}
	noRequests := func() *Manifests {
		m := released()
		m.Without = []string{partRequests}
		return &m
	}
	cloud := func() *Manifests {
		m := released()
		m.Cloud = true
		return &m
	}
	for name, c := range map[string]struct {
		before, now  *Manifests
		flag, spared string
	}{
		"nothing changes":         {new(released()), new(released()), "", ""},
		"it may change nothing":   {new(released()), readOnly(), flagReadOnly, ""},
		"it could change nothing": {readOnly(), readOnly(), "", ""},
		"one namespace is left":   {new(released()), new(alone()), flagSingle, "maint-system"},
		"it had one namespace":    {new(alone()), new(alone()), "", ""},
		"it gets all":             {new(alone()), new(released()), "", ""},
		"it gets no tokens":       {cloud(), new(released()), "", ""},
		"it keeps its tokens":     {cloud(), cloud(), "", ""},
		"there was none":          {nil, readOnly(), "", ""},
		"it loses the nodes":      {new(released()), noRequests(), flagWithout, ""},
		"it had no nodes":         {noRequests(), noRequests(), "", ""},
		"it had one namespace, and loses no nodes": {new(alone()), func() *Manifests {
			m := alone()
			m.Without = []string{partRequests}
			return &m
		}(), "", ""},
	} {
		live := objectsByKey{}
		if c.before != nil {
			objects, err := c.before.Objects()
			if err != nil {
				t.Fatal(err)
			}
			live = byKey(objects)
		}
		if flag, spared := c.now.narrowing(live); flag != c.flag || spared != c.spared {
			t.Errorf("%s: %q, but not in %q", name, flag, spared)
		}
	}
}
