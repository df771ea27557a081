package policy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

func TestWhetherTwoStanzasSayTheSame(t *testing.T) {
	at, later := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)
	elsewhere := at.In(time.FixedZone("x", 3600))
	base := func() policy.StanzaText {
		return policy.StanzaText{Strategy: schedule.PermissiveUntil, Policies: []policy.PolicyRef{{Name: "p"}}, Until: &at}
	}
	for _, c := range []struct {
		name string
		edit func(*policy.StanzaText)
		want bool
	}{
		{"nothing differs", func(*policy.StanzaText) {}, true},
		{"the same instant in another zone", func(s *policy.StanzaText) { s.Until = &elsewhere }, true},
		{"what was not understood says nothing", func(s *policy.StanzaText) { s.Faults = document.Faults{{Message: "x"}} }, true},
		{"the strategy", func(s *policy.StanzaText) { s.Strategy = schedule.RestrictiveUntil }, false},
		{"the policies", func(s *policy.StanzaText) { s.Policies = nil }, false},
		{"a policy's namespace", func(s *policy.StanzaText) { s.Policies = []policy.PolicyRef{{Name: "p", Namespace: "n"}} }, false},
		{"its end", func(s *policy.StanzaText) { s.Until = &later }, false},
		{"it has no end", func(s *policy.StanzaText) { s.Until = nil }, false},
	} {
		other := base()
		c.edit(&other)
		if got := base().Equal(other); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	for name, c := range map[string]struct {
		stanza policy.StanzaText
		want   bool
	}{
		"nothing":        {policy.StanzaText{}, false},
		"an end alone":   {policy.StanzaText{Until: &at}, false},
		"a strategy":     {policy.StanzaText{Strategy: schedule.Permissive}, true},
		"policies alone": {policy.StanzaText{Policies: []policy.PolicyRef{{Name: "p"}}}, true},
	} {
		if got := c.stanza.Set(); got != c.want {
			t.Errorf("%s says something: %t", name, got)
		}
	}
}

func TestQuestionsThatMayHaveOtherAnswersHaveOtherKeys(t *testing.T) {
	at, later := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)
	elsewhere := at.In(time.FixedZone("x", 3600))
	refs := []policy.PolicyRef{{Name: "p"}}
	base := policy.Query{Namespace: "shop", Bypass: &at, Own: policy.StanzaText{Until: &at}}
	for name, q := range map[string]policy.Query{
		"another namespace":       {Namespace: "other", Bypass: &at, Own: policy.StanzaText{Until: &at}},
		"another strategy":        {Namespace: "shop", Bypass: &at, Own: policy.StanzaText{Until: &at, Strategy: schedule.Restrictive}},
		"another end":             {Namespace: "shop", Bypass: &at, Own: policy.StanzaText{Until: &later}},
		"no end":                  {Namespace: "shop", Bypass: &at},
		"policies of the stanza":  {Namespace: "shop", Bypass: &at, Own: policy.StanzaText{Until: &at, Policies: refs}},
		"policies of the plan":    {Namespace: "shop", Bypass: &at, Own: policy.StanzaText{Until: &at}, Policies: refs},
		"policies that mean it":   {Namespace: "shop", Bypass: &at, Own: policy.StanzaText{Until: &at}, Gates: refs},
		"a bypass of longer":      {Namespace: "shop", Bypass: &later, Own: policy.StanzaText{Until: &at}},
		"no bypass":               {Namespace: "shop", Own: policy.StanzaText{Until: &at}},
		"a bypass instead of end": {Namespace: "shop", Bypass: &at},
	} {
		if q.Key() == base.Key() {
			t.Errorf("%s has the same key", name)
		}
	}
	same := policy.Query{Namespace: "shop", Bypass: &elsewhere, Own: policy.StanzaText{Until: &elsewhere}}
	if same.Key() != base.Key() {
		t.Errorf("the same instants in another zone: %s, %s", same.Key(), base.Key())
	}
}

func TestTheStrategyInForceIsTheOneThatStatusNames(t *testing.T) {
	now := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	later, earlier := now.Add(time.Hour), now.Add(-time.Hour)
	says := func(s schedule.Strategy, until *time.Time, policies ...string) policy.StanzaText {
		out := policy.StanzaText{Strategy: s, Until: until}
		for _, p := range policies {
			out.Policies = append(out.Policies, policy.PolicyRef{Name: p})
		}
		return out
	}
	for _, c := range []struct {
		name     string
		own, of  policy.StanzaText // the object's, its namespace's
		policies bool
		gates    bool
		want     schedule.Strategy
	}{
		{"nobody says anything", says("", nil), says("", nil), false, false, schedule.Permissive},
		{"its own", says(schedule.Restrictive, nil), says(schedule.Permissive, nil), true, false, schedule.Restrictive},
		{"its plan's policies", says("", nil), says(schedule.Permissive, nil), true, false, schedule.ByPolicy},
		{"a policy that means it", says("", nil), says(schedule.Permissive, nil), false, true, schedule.ByPolicy},
		{"its namespace's", says("", nil), says(schedule.ByPolicy, nil, "p"), false, false, schedule.ByPolicy},
		{"a closed namespace comes before all", says(schedule.Permissive, nil), says(schedule.Restrictive, nil), true, false, schedule.Restrictive},
		{"an open time", says(schedule.PermissiveUntil, &later), says("", nil), false, false, schedule.Permissive},
		{"an open time that is over closes", says(schedule.PermissiveUntil, &earlier), says("", nil), false, false, schedule.Restrictive},
		{"one ends at its end", says(schedule.PermissiveUntil, &now), says("", nil), false, false, schedule.Restrictive},
		{"one that is over gives way to policies", says(schedule.PermissiveUntil, &earlier, "p"), says("", nil), false, false, schedule.ByPolicy},
		{"and to its plan's", says(schedule.PermissiveUntil, &earlier), says("", nil), true, false, schedule.ByPolicy},
		{"an open time of its namespace that is over", says("", nil), says(schedule.PermissiveUntil, &earlier), false, false, schedule.Restrictive},
		{"a closed time", says(schedule.RestrictiveUntil, &later), says("", nil), false, false, schedule.Restrictive},
		{"a closed time that is over opens", says(schedule.RestrictiveUntil, &earlier), says("", nil), false, false, schedule.Permissive},
		{"a closed time whose end cannot be read stays closed", says(schedule.RestrictiveUntil, nil), says("", nil), false, false, schedule.Restrictive},
		{"policies without a strategy", says("", nil, "p"), says("", nil), false, false, schedule.ByPolicy},
		{"a strategy that nobody knows is told as it stands", says("Maybe", nil), says("", nil), false, false, "Maybe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := policy.NewResolver("maint-system")
			b.PutNamespace("shop", c.of)
			q := policy.Query{Namespace: "shop", Own: c.own}
			if c.policies {
				q.Policies = []policy.PolicyRef{{Name: "p"}}
			}
			if c.gates {
				q.Gates = []policy.PolicyRef{{Name: "p", Namespace: "shop"}}
			}
			if got := b.Strategy(q, now); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	b := policy.NewResolver("maint-system")
	b.PutNamespace("", policy.StanzaText{Strategy: schedule.Restrictive})
	if got := b.Strategy(policy.Query{}, now); got != schedule.Permissive {
		t.Errorf("an object of the cluster has no namespace that closes it: %s", got)
	}
	if v := b.Gate(policy.Query{}).Verdict(now); !v.Permitted {
		t.Errorf("nor is its gate closed by one: %+v", v)
	}
	if b.Gated(policy.Query{}) {
		t.Error("nor does one stand between it and its change")
	}
}

func TestTheStrategyOfAPolicyItself(t *testing.T) {
	now := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	later := now.Add(time.Hour)
	for name, c := range map[string]struct {
		state policy.State
		want  schedule.Strategy
	}{
		"its document's":                    {policy.State{}, schedule.MaintenanceScheduled},
		"somebody paused it":                {policy.State{Pause: schedule.Pause{On: true}, Stanza: policy.StanzaText{Strategy: schedule.Permissive}}, schedule.Restrictive},
		"the pause is over":                 {policy.State{Pause: schedule.Pause{On: true, Until: &now}}, schedule.MaintenanceScheduled},
		"its stanza's":                      {policy.State{Stanza: policy.StanzaText{Strategy: schedule.PermissiveUntil, Until: &later}}, schedule.Permissive},
		"its stanza's is over":              {policy.State{Stanza: policy.StanzaText{Strategy: schedule.PermissiveUntil, Until: &now}}, schedule.MaintenanceScheduled},
		"a stanza that asks other policies": {policy.State{Stanza: policy.StanzaText{Strategy: schedule.ByPolicy}}, schedule.MaintenanceScheduled},
	} {
		c.state.Spec.Strategy = schedule.MaintenanceScheduled
		if got := c.state.StrategyOf(now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhatStandsBetweenAnObjectAndItsChange(t *testing.T) {
	now := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	refs := []policy.PolicyRef{{Name: "p", Namespace: "shop"}}
	for name, c := range map[string]struct {
		query policy.Query
		of    policy.StanzaText
		gated bool
		gate  bool
	}{
		"nothing":                  {policy.Query{Namespace: "shop"}, policy.StanzaText{}, false, false},
		"its own stanza":           {policy.Query{Namespace: "shop", Own: policy.StanzaText{Strategy: schedule.Permissive}}, policy.StanzaText{}, true, true},
		"its plan's policies":      {policy.Query{Namespace: "shop", Policies: refs}, policy.StanzaText{}, true, true},
		"policies that mean it":    {policy.Query{Namespace: "shop", Gates: refs}, policy.StanzaText{}, true, true},
		"its namespace":            {policy.Query{Namespace: "shop"}, policy.StanzaText{Strategy: schedule.Restrictive}, true, true},
		"a bypass alone is a gate": {policy.Query{Namespace: "shop", Bypass: &now}, policy.StanzaText{}, false, true},
	} {
		b := policy.NewResolver("maint-system")
		b.PutNamespace("shop", c.of)
		if got := b.Gated(c.query); got != c.gated {
			t.Errorf("%s: gated %t", name, got)
		}
		if got := b.GateIfAny(c.query) != nil; got != c.gate {
			t.Errorf("%s: a gate %t", name, got)
		}
	}
}

func TestAPausedPolicyIsClosedAndABrokenOneStaysBroken(t *testing.T) {
	now := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	later := now.Add(time.Hour)
	open := policy.State{Namespace: "shop", Name: "p", Spec: policy.PolicySpec{Strategy: schedule.Permissive}}
	for name, c := range map[string]struct {
		edit      func(*policy.State)
		permitted bool
		ready     bool
	}{
		"as it is":          {func(*policy.State) {}, true, true},
		"paused":            {func(s *policy.State) { s.Pause = schedule.Pause{On: true} }, false, true},
		"paused for a time": {func(s *policy.State) { s.Pause = schedule.Pause{On: true, Until: &later} }, false, true},
		"its pause is over": {func(s *policy.State) { s.Pause = schedule.Pause{On: true, Until: &now} }, true, true},
		"paused under a stanza": {func(s *policy.State) {
			s.Pause, s.Stanza = schedule.Pause{On: true}, policy.StanzaText{Strategy: schedule.Permissive}
		}, false, true},
		"closed by its stanza":      {func(s *policy.State) { s.Stanza = policy.StanzaText{Strategy: schedule.Restrictive} }, false, true},
		"broken":                    {func(s *policy.State) { s.Faults = document.Faults{{Message: "x"}} }, false, false},
		"broken and paused as well": {func(s *policy.State) { s.Faults, s.Pause = document.Faults{{Message: "x"}}, schedule.Pause{On: true} }, false, false},
		"a strategy that is none":   {func(s *policy.State) { s.Spec.Strategy = "Maybe" }, false, false},
	} {
		b, state := policy.NewResolver("maint-system"), open
		c.edit(&state)
		b.PutPolicy(state)
		v := b.Gate(policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "p"}}}).Verdict(now)
		if v.Permitted != c.permitted || v.Ready != c.ready {
			t.Errorf("%s: permitted %t, ready %t: %s", name, v.Permitted, v.Ready, v.Reason)
		}
	}
}

// Who shows why a policy is closed asks it without its own pause.
func TestAPolicyWithoutItsOwnPause(t *testing.T) {
	now := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	b := policy.NewResolver("maint-system")
	put := func(name string, stanza policy.StanzaText) {
		b.PutPolicy(policy.State{Namespace: "shop", Name: name, Spec: policy.PolicySpec{Strategy: schedule.Permissive}, Pause: schedule.Pause{On: true}, Stanza: stanza})
	}
	put("open", policy.StanzaText{})
	put("frozen", policy.StanzaText{Strategy: schedule.Restrictive})
	for name, want := range map[string]struct{ permitted, ready bool }{"open": {true, true}, "frozen": {false, true}, "gone": {false, false}} {
		if v := schedule.NewGate(schedule.GateSpec{Policies: []*schedule.Policy{b.Unpaused("shop", name)}}).Verdict(now); v.Permitted != want.permitted || v.Ready != want.ready {
			t.Errorf("%s: permitted %t, ready %t: %s", name, v.Permitted, v.Ready, v.Reason)
		}
	}
}

func TestWhoseWordAffectsAllNamespaces(t *testing.T) {
	for agent, want := range map[string]map[string]bool{"maint-system": {"maint-system": true, "shop": false}, "": {"shop": true}} {
		for namespace, affects := range want {
			if got := policy.NewResolver(agent).AffectsAllNamespaces(namespace); got != affects {
				t.Errorf("an agent of %q, and namespace %s: %t", agent, namespace, got)
			}
		}
	}
}

func TestAResolverForgetsWhatIsDeleted(t *testing.T) {
	b := policy.NewResolver("maint-system")
	for _, p := range []string{"b", "a"} {
		b.PutPolicy(policy.State{Namespace: "shop", Name: p, Spec: policy.PolicySpec{Strategy: schedule.Permissive}})
	}
	b.PutPolicy(policy.State{Namespace: "app", Name: "z"})
	var names []string
	for _, p := range b.Policies() {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if diff := cmp.Diff([]string{"app/z", "shop/a", "shop/b"}, names); diff != "" {
		t.Error(diff)
	}
	now := time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)
	q := policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "a"}}}
	if v := b.Gate(q).Verdict(now); !v.Permitted {
		t.Fatalf("%+v", v)
	}
	before := b.Generation(q)
	b.DropPolicy("shop", "a")
	if v := b.Gate(q).Verdict(now); v.Ready || b.Generation(q) == before {
		t.Errorf("it is gone: %+v, generation %d", v, b.Generation(q))
	}
	if _, there := b.State("shop", "a"); there {
		t.Error("its state is still there")
	}
	if s, there := b.State("shop", "b"); !there || s.Name != "b" {
		t.Errorf("the other: %+v, %t", s, there)
	}
	put(t, b, "shop", "weekend", weekend, policy.StanzaText{})
	b.PutCalendar("maint-system", "days", &schedule.Calendar{})
	saturday := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	if v := b.Policy("shop", "weekend"); v == nil {
		t.Fatal("no policy")
	}
	q.Policies = []policy.PolicyRef{{Name: "weekend"}}
	if v := b.Gate(q).Verdict(saturday); !v.Permitted {
		t.Errorf("with its calendar: %+v", v)
	}
	b.DropCalendar("maint-system", "days")
	if v := b.Gate(q).Verdict(saturday); v.Ready {
		t.Errorf("without it: %+v", v)
	}
}

// A tenant who edits all day makes nobody else's gates be asked for again.
func TestWhoseQuestionsAnEditIsNewsFor(t *testing.T) {
	questions := map[string]policy.Query{
		"shop":               {Namespace: "shop", Policies: []policy.PolicyRef{{Name: "p"}}},
		"mall":               {Namespace: "mall", Policies: []policy.PolicyRef{{Name: "p"}}},
		"gated from mall":    {Namespace: "shop", Gates: []policy.PolicyRef{{Name: "p", Namespace: "mall"}}},
		"of the cluster":     {Policies: []policy.PolicyRef{{Name: "p"}}},
		"nothing before it ": {Namespace: "shop"},
	}
	for name, c := range map[string]struct {
		agent string
		edit  func(b *policy.Resolver)
		news  []string
	}{
		"a tenant's policy":              {"maint-system", func(b *policy.Resolver) { b.PutPolicy(policy.State{Namespace: "mall", Name: "p"}) }, []string{"gated from mall", "mall"}},
		"a tenant's policy is gone":      {"maint-system", func(b *policy.Resolver) { b.DropPolicy("mall", "p") }, []string{"gated from mall", "mall"}},
		"a tenant's calendar":            {"maint-system", func(b *policy.Resolver) { b.PutCalendar("mall", "days", nil) }, []string{"gated from mall", "mall"}},
		"a tenant's calendar is gone":    {"maint-system", func(b *policy.Resolver) { b.DropCalendar("mall", "days") }, []string{"gated from mall", "mall"}},
		"what a tenant has is not known": {"maint-system", func(b *policy.Resolver) { b.PutUnread("mall") }, []string{"gated from mall", "mall"}},
		"a tenant's namespace": {"maint-system", func(b *policy.Resolver) {
			b.PutNamespace("mall", policy.StanzaText{Strategy: schedule.Restrictive})
		}, []string{"gated from mall", "mall"}},
		"a third one's":       {"maint-system", func(b *policy.Resolver) { b.PutPolicy(policy.State{Namespace: "depot", Name: "p"}) }, nil},
		"the agent's":         {"maint-system", func(b *policy.Resolver) { b.PutPolicy(policy.State{Namespace: "maint-system", Name: "p"}) }, slices.Sorted(maps.Keys(questions))},
		"nobody knows whose ": {"", func(b *policy.Resolver) { b.PutPolicy(policy.State{Namespace: "depot", Name: "p"}) }, slices.Sorted(maps.Keys(questions))},
	} {
		b, before := policy.NewResolver(c.agent), map[string]int64{}
		b.PutPolicy(policy.State{Namespace: "mall", Name: "p"})
		for of, q := range questions {
			before[of] = b.Generation(q)
		}
		c.edit(b)
		var news []string
		for of, q := range questions {
			if b.Generation(q) != before[of] {
				news = append(news, of)
			}
		}
		slices.Sort(news)
		if diff := cmp.Diff(c.news, news); diff != "" {
			t.Errorf("%s is news for (-want +got):\n%s", name, diff)
		}
	}
}

// What is kept of policies is read again where what they name changes, and nowhere else.
func TestAPolicyIsReadAgainWhenItsCalendarChanges(t *testing.T) {
	saturday := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, at := range []string{"shop", "maint-system"} {
		b := policy.NewResolver("maint-system")
		put(t, b, "shop", "weekend", strings.ReplaceAll(weekend, "maint-system", at), policy.StanzaText{})
		q := policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "weekend"}}}
		for i, there := range []bool{false, true, false, true} {
			if there {
				b.PutCalendar(at, "days", &schedule.Calendar{})
			} else {
				b.DropCalendar(at, "days")
			}
			b.PutCalendar("mall", "days", nil)
			if v := b.Gate(q).Verdict(saturday); v.Ready != there {
				t.Errorf("calendar of %s, change %d: ready %t: %s", at, i, v.Ready, v.Reason)
			}
		}
	}
}

func TestWhatAnotherNamespaceHasMayNotBeNamed(t *testing.T) {
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		agent, own, of string // the agent's namespace, the object's, the policy's
		ready          bool
	}{
		"its own namespace":               {"maint-system", "shop", "shop", true},
		"the agent's":                     {"maint-system", "shop", "maint-system", true},
		"another one":                     {"maint-system", "shop", "other", false},
		"of the cluster, and the agent's": {"maint-system", "", "maint-system", true},
		"of the cluster, and another":     {"maint-system", "", "other", false},
		"nobody knows the agent's place":  {"", "shop", "other", true},
	} {
		b := policy.NewResolver(c.agent)
		b.PutPolicy(policy.State{Namespace: c.of, Name: "p", Spec: policy.PolicySpec{Strategy: schedule.Permissive}})
		v := b.Gate(policy.Query{Namespace: c.own, Policies: []policy.PolicyRef{{Name: "p", Namespace: c.of}}}).Verdict(now)
		if v.Ready != c.ready {
			t.Errorf("%s: ready %t: %s", name, v.Ready, v.Reason)
		}
	}
	foreign := policy.NewResolver("maint-system")
	foreign.PutCalendar("other", "days", &schedule.Calendar{})
	put(t, foreign, "shop", "p", "strategy: MaintenanceSchedule\nmaintenanceSchedule: {permit: {}, exclude: [{calendar: {name: days, namespace: other}}]}", policy.StanzaText{})
	v := foreign.Gate(policy.Query{Namespace: "shop", Policies: []policy.PolicyRef{{Name: "p"}}}).Verdict(now)
	if want := "policy p: not ready: calendar days is in namespace other, and only those of its own namespace and of maint-system may be named"; v.Ready || v.Reason != want {
		t.Errorf("a calendar of another namespace: %+v, want %q", v, want)
	}
}

func TestTheAgentsNamespaceIsWhereAnObjectOfTheClusterLooks(t *testing.T) {
	b := policy.NewResolver("maint-system")
	b.PutNamespace("shop", policy.StanzaText{Strategy: schedule.ByPolicy, Policies: []policy.PolicyRef{{Name: "of-namespace"}}})
	for name, c := range map[string]struct {
		query policy.Query
		want  []policy.PolicyRef
	}{
		"of the cluster": {policy.Query{Policies: []policy.PolicyRef{{Name: "p"}}}, []policy.PolicyRef{{Name: "p", Namespace: "maint-system"}}},
		"of a namespace": {
			policy.Query{Namespace: "shop", Own: policy.StanzaText{Policies: []policy.PolicyRef{{Name: "p"}, {Name: "p"}}}, Policies: []policy.PolicyRef{{Name: "p"}, {Name: "q", Namespace: "n"}}, Gates: []policy.PolicyRef{{Name: "g", Namespace: "far"}}},
			[]policy.PolicyRef{{Name: "p", Namespace: "shop"}, {Name: "q", Namespace: "n"}, {Name: "g", Namespace: "far"}, {Name: "of-namespace", Namespace: "shop"}},
		},
	} {
		if diff := cmp.Diff(c.want, b.Uses(c.query)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestABehaviorSaysSinceWhenAsFarAsItIsKnown(t *testing.T) {
	now := time.Date(2026, 5, 1, 2, 0, 0, 500, time.UTC)
	second := now.Truncate(time.Second)
	before, later := now.Add(-time.Hour), now.Add(time.Hour)
	shut := schedule.Verdict{Reason: "Restrictive"}
	open := schedule.Verdict{Permitted: true, Reason: "Permissive"}
	for name, c := range map[string]struct {
		was  *policy.Behavior
		v    schedule.Verdict
		want policy.Behavior
	}{
		"the first time":             {nil, open, policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive"}}},
		"what was written by nobody": {&policy.Behavior{}, open, policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive"}}},
		"somebody closed it just now": {
			&policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive"}}, shut,
			policy.Behavior{
				Current: policy.Period{State: policy.ChangesPaused, Strategy: schedule.Permissive, Reason: "Restrictive", StartTime: &second},
				History: []policy.Period{{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive", EndTime: &second}},
			},
		},
		"the old one had ended before": {
			&policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive", EndTime: &before}}, shut,
			policy.Behavior{
				Current: policy.Period{State: policy.ChangesPaused, Strategy: schedule.Permissive, Reason: "Restrictive", StartTime: &second},
				History: []policy.Period{{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive", EndTime: &before}},
			},
		},
		"the old one was to end later": {
			&policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive", EndTime: &later}}, shut,
			policy.Behavior{
				Current: policy.Period{State: policy.ChangesPaused, Strategy: schedule.Permissive, Reason: "Restrictive", StartTime: &second},
				History: []policy.Period{{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive", EndTime: &second}},
			},
		},
		"nothing has changed, and when it began is kept": {
			&policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive", StartTime: &before}}, open,
			policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive", StartTime: &before}},
		},
		"the strategy is another": {
			&policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.ByPolicy, Reason: "Permissive", StartTime: &before}}, open,
			policy.Behavior{
				Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive", StartTime: &second},
				History: []policy.Period{{State: policy.ChangesUnpaused, Strategy: schedule.ByPolicy, Reason: "Permissive", StartTime: &before, EndTime: &second}},
			},
		},
		"the reason is another": {
			&policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "window", StartTime: &before}}, open,
			policy.Behavior{
				Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "Permissive", StartTime: &second},
				History: []policy.Period{{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "window", StartTime: &before, EndTime: &second}},
			},
		},
		"the next window of the same kind": {
			&policy.Behavior{Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "window", StartTime: &before, EndTime: &before}},
			schedule.Verdict{Permitted: true, Reason: "window", Since: &now, Until: &later},
			policy.Behavior{
				Current: policy.Period{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "window", StartTime: &now, EndTime: &later},
				History: []policy.Period{{State: policy.ChangesUnpaused, Strategy: schedule.Permissive, Reason: "window", StartTime: &before, EndTime: &before}},
			},
		},
	} {
		if diff := cmp.Diff(c.want, c.was.Advance(c.v, schedule.Permissive, now)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
