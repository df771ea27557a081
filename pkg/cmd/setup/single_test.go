package setup

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// alone is an agent of one namespace.
func alone() Manifests {
	m := released()
	m.SingleNamespace = true
	return m
}

// Whatever it may do beyond its namespace is a rule that no Role can give.
func TestAnAgentOfOneNamespaceHasNoOtherRightInTheCluster(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*Manifests)
		want []string
	}{
		"as it comes":  {func(*Manifests) {}, []string{"impersonate userextras/maint.dev/run of authentication.k8s.io"}},
		"as nobody":    {func(m *Manifests) { m.ReadOnly = true }, nil},
		"with metrics": {func(m *Manifests) { m.MetricsAuth, m.ReadOnly = true, true }, []string{"create tokenreviews of authentication.k8s.io", "create subjectaccessreviews of authorization.k8s.io", "get /metrics"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := alone()
			c.set(&m)
			all, err := m.Objects()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range all {
				if u.GetKind() != "ClusterRole" {
					continue
				}
				rules, err := rulesOf(u)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range rules {
					got = append(got, ruleWords(r))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("it may in the cluster (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnInstallationOfOneNamespaceIsRememberedAndLeft(t *testing.T) {
	all, err := alone().Objects()
	if err != nil {
		t.Fatal(err)
	}
	given := func(flags ...string) func(string) bool {
		return func(flag string) bool { return slices.Contains(flags, flag) }
	}
	m := next()
	m.adopt(byKey(all), never)
	if !m.SingleNamespace || len(m.Without) > 0 {
		t.Errorf("an upgrade takes over %+v", m)
	}
	m = next()
	m.adopt(byKey(all), given(flagSingle))
	if m.SingleNamespace || len(m.Without) > 0 {
		t.Errorf("after --single-namespace=false it is %+v: what it had no use for is left out", m)
	}
}

func TestTheArgumentOfOneNamespaceGoesWithTheFlag(t *testing.T) {
	for name, c := range map[string]struct {
		live  Manifests
		add   []any
		now   Manifests
		given bool
		want  []any
	}{
		"it comes with the flag":             {released(), nil, alone(), true, []any{"--namespace=maint-system", "--leader-elect=true", "--watch-namespace=maint-system"}},
		"it goes with the flag":              {alone(), nil, released(), true, []any{"--namespace=maint-system", "--leader-elect=true"}},
		"it stays where nothing is said":     {alone(), nil, alone(), false, []any{"--namespace=maint-system", "--leader-elect=true", "--watch-namespace=maint-system"}},
		"another namespace is an admin's":    {released(), []any{"--watch-namespace=shop"}, released(), true, []any{"--namespace=maint-system", "--leader-elect=true", "--watch-namespace=shop"}},
		"one of an admin's own makes way":    {released(), []any{"--watch-namespace=shop"}, alone(), true, []any{"--namespace=maint-system", "--leader-elect=true", "--watch-namespace=maint-system"}},
		"an admin's own stays, with no flag": {released(), []any{"--watch-namespace=maint-system"}, released(), false, []any{"--namespace=maint-system", "--leader-elect=true", "--watch-namespace=maint-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, c.live, "Deployment", "maint-agent")
			container(live)["args"] = append(container(live)["args"].([]any), c.add...)
			got, _, err := merger{manifests: c.now, given: func(flag string) bool { return c.given && flag == flagSingle }}.merge(object(t, c.now, "Deployment", "maint-agent"), live)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, container(got)["args"]); diff != "" {
				t.Errorf("the arguments (-want +got):\n%s", diff)
			}
		})
	}
}

// An upgrade and a removal know the objects of both kinds of installation.
func TestAllHoldsTheObjectsOfEveryInstallation(t *testing.T) {
	all, err := released().all()
	if err != nil {
		t.Fatal(err)
	}
	there := byKey(all)
	if len(there) != len(all) {
		t.Error("an object is there twice")
	}
	for _, m := range []Manifests{released(), alone()} {
		objects, err := m.Objects()
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objects {
			if there[keyOf(u)] == nil {
				t.Errorf("%s is not among them", named(u))
			}
		}
	}
}
