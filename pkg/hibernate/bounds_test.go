package hibernate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// many writes a list of so many in brackets.
func many(n int, one func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = one(i)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// As much as may be is taken, and a little more is not. See also TestListsEndWhereTheyAreSaidTo.
func TestEachBoundOfAPlanIsAtItsBound(t *testing.T) {
	const hours = "schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}\n"
	const target = "targets: [{name: a, type: noop}]\n"
	same := func(one string) func(int) string { return func(int) string { return one } }
	hour := func(i int) string {
		return fmt.Sprintf("{start: \"%02d:%02d\", end: \"%02d:%02d\"}", i/3, 20*(i%3), i/3, 20*(i%3)+1)
	}
	day := func(i int) string {
		return fmt.Sprintf("{fromDate: %s}", time.Unix(int64(i)*86400, 0).UTC().Format(time.DateOnly))
	}
	suspended := func(i int, rest string) string {
		return fmt.Sprintf("{type: suspend, validFrom: \"2026-%02d-01T00:00:00Z\", validUntil: \"2026-%02d-02T00:00:00Z\"%s}", i%12+1, i%12+1, rest)
	}
	yearly := func(i int) string {
		return fmt.Sprintf("{type: suspend, validFrom: \"%d-01-01T00:00:00Z\", validUntil: \"%d-01-01T00:00:00Z\"}", 2000+i, 2001+i)
	}
	of := func(kind, parameters string) string {
		connector := ""
		switch kind {
		case TypeEC2, TypeRDS, TypeASG:
			connector = ", connectorRef: {kind: CloudProvider, name: stg}"
		case TypeEKS:
			connector = ", connectorRef: {kind: K8SCluster, name: stg}"
		}
		return hours + "targets: [{name: a, type: " + kind + connector + ", parameters: {" + parameters + "}}]\n"
	}
	tags := func(n int) string {
		list := many(n, func(i int) string { return fmt.Sprintf("t%d: x", i) })
		return "{" + strings.Trim(list, "[]") + "}"
	}
	for name, c := range map[string]struct {
		fits  []string
		over  string
		fault string
	}{
		"snapshots":             {[]string{hours + target + "keepSnapshots: 1", hours + target + "keepSnapshots: 100"}, hours + target + "keepSnapshots: 101", "spec.keepSnapshots: must be from 1 to 100, is 101"},
		"retries":               {[]string{hours + target + "behavior: {retries: 0}", hours + target + "behavior: {retries: 20}"}, hours + target + "behavior: {retries: 21}", "spec.behavior.retries: must be from 0 to 20, is 21"},
		"retries below none":    {nil, hours + target + "behavior: {retries: -1}", "spec.behavior.retries: must be from 0 to 20, is -1"},
		"an account":            {[]string{hours + target + "serviceAccountName: sleeper"}, hours + target + "serviceAccountName: Sleeper", "spec.serviceAccountName: \"Sleeper\" is no name of a ServiceAccount"},
		"the name of a policy":  {[]string{hours + target + "policies: [{name: nights}]"}, hours + target + "policies: [{name: Nights}]", "spec.policies[0].name: \"Nights\" cannot name a policy"},
		"its namespace":         {[]string{hours + target + "policies: [{name: nights, namespace: ops}]"}, hours + target + "policies: [{name: nights, namespace: Ops}]", "spec.policies[0].namespace: \"Ops\" cannot name a namespace"},
		"policies":              {[]string{hours + target + "policies: " + many(plan.MaxPolicies, same("{name: a}"))}, hours + target + "policies: " + many(plan.MaxPolicies+1, same("{name: a}")), "spec.policies: names"},
		"targets that are none": {nil, hours + "targets: 5", "spec.targets: "},
		"a target's name":       {nil, hours + "targets: [{type: noop}]", "spec.targets[0].name: is missing"},
		"a target's good name":  {nil, hours + "targets: [{name: A, type: noop}]", "spec.targets[0].name: \"A\" cannot name a target"},
		"a target's type":       {nil, hours + "targets: [{name: a}]", "spec.targets[0].type: is missing"},
		"a connector's name":    {nil, hours + "targets: [{name: a, type: workload, connectorRef: {kind: K8SCluster, name: Stg}}]", "spec.targets[0].connectorRef.name: \"Stg\" cannot name a connector"},
		"off-hours":             {[]string{"schedule: {offHours: " + many(MaxOffHours, hour) + "}\n" + target}, "schedule: {offHours: " + many(MaxOffHours+1, hour) + "}\n" + target, "spec.schedule.offHours: has 51"},
		"exclusions":            {[]string{"schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}], exclude: " + many(MaxExclusions, day) + "}\n" + target}, "schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}], exclude: " + many(MaxExclusions+1, day) + "}\n" + target, "spec.schedule.exclude: has 401"},
		"exceptions":            {[]string{hours + target + "exceptions: " + many(MaxExceptions, yearly)}, hours + target + "exceptions: " + many(MaxExceptions+1, yearly), "spec.exceptions: has 51"},
		"exceptions that meet":  {[]string{hours + target + "exceptions: [" + yearly(1) + ", " + yearly(0) + "]", hours + target + "exceptions: [" + yearly(0) + ", " + yearly(1) + "]"}, hours + target + "exceptions: [" + yearly(0) + ", " + yearly(0) + "]", "spec.exceptions[1]: is valid at the same time"},
		"exceptions of which the first has no end": {nil, hours + target + "exceptions: [{type: suspend, validFrom: \"2026-01-01T00:00:00Z\"}, " + suspended(0, "") + "]", "spec.exceptions[0].validUntil: is missing"},
		"exceptions of which one has no beginning": {nil, hours + target + "exceptions: [{type: suspend, validUntil: \"2027-01-01T00:00:00Z\"}, " + suspended(0, "") + "]", "spec.exceptions[0].validFrom: is missing"},
		"exceptions of which the last has no end":  {nil, hours + target + "exceptions: [" + suspended(0, "") + ", {type: suspend, validFrom: \"2026-01-01T00:00:00Z\"}]", "spec.exceptions[1].validUntil: is missing"},
		"a reason":               {[]string{hours + target + "exceptions: [" + suspended(0, ", reason: "+strings.Repeat("x", MaxReason)) + "]"}, hours + target + "exceptions: [" + suspended(0, ", reason: "+strings.Repeat("x", MaxReason+1)) + "]", "spec.exceptions[0].reason: has 1025 bytes"},
		"a lead time":            {[]string{hours + target + "exceptions: [" + suspended(0, ", leadTime: 1s") + "]"}, hours + target + "exceptions: [" + suspended(0, ", leadTime: 0s") + "]", "spec.exceptions[0].leadTime: must be longer than 0s"},
		"a suspend's own hours":  {nil, hours + target + "exceptions: [" + suspended(0, ", offHours: [{start: \"25:00\", end: \"06:00\"}]") + "]", "spec.exceptions[0].offHours[0].start: "},
		"a type of an exception": {nil, hours + target + "exceptions: [{type: pause, validFrom: \"2026-01-01T00:00:00Z\", validUntil: \"2026-01-02T00:00:00Z\", offHours: [{start: \"20:00\", end: \"06:00\"}]}]", "spec.exceptions[0].type: "},
		"at once":                {[]string{hours + target + "execution: {strategy: {type: Parallel, maxConcurrency: 1}}"}, hours + target + "execution: {strategy: {type: Parallel, maxConcurrency: 0}}", "spec.execution.strategy.maxConcurrency: must be at least 1"},
		"at once in a stage":     {[]string{hours + target + "execution: {strategy: {type: Staged}, stages: [{targets: [a], maxConcurrency: 1}]}"}, hours + target + "execution: {strategy: {type: Staged}, stages: [{targets: [a], maxConcurrency: 0}]}", "spec.execution.stages[0].maxConcurrency: must be at least 1"},
		"stages twice":           {nil, hours + target + "execution: {strategy: {type: Staged, stages: [{targets: [a]}]}, stages: [{targets: [a]}]}", "spec.execution.stages: stand in the strategy, too"},
		"stages of no strategy":  {nil, hours + target + "execution: {stages: [{targets: [a]}]}", "spec.execution.stages: are for the strategy Staged"},
		"stages of the strategy": {nil, hours + target + "execution: {strategy: {type: Staged, stages: [{targets: [b]}]}}", "spec.execution.strategy.stages[0].targets[0]: \"b\" is no target"},
		"a timeout":              {[]string{of("noop", "timeout: 1s"), of("noop", "timeout: 24h")}, of("noop", "timeout: 86401s"), "parameters.timeout: must be from 1s to 24h"},
		"a short timeout":        {nil, of("noop", "timeout: 999ms"), "parameters.timeout: must be from 1s to 24h"},
		"a delay":                {[]string{of("noop", "delay: 0s"), of("noop", "failShutdown: 0, failWakeUp: 0")}, of("noop", "failWakeUp: -1"), "parameters.failWakeUp: must not be negative, is -1"},
		"a floor":                {[]string{of("workload", "floor: 0")}, of("workload", "floor: -1"), "parameters.floor: must not be negative, is -1"},
		"a namespace":            {nil, of("workload", "namespaces: [Shop]"), "parameters.namespaces[0]: \"Shop\" cannot name a namespace"},
		"a selector":             {[]string{of("workload", "namespaceSelector: {matchLabels: {a: b}}, selector: {matchLabels: {a: b}}")}, of("workload", "selector: {matchLabels: {-a: b}}"), "parameters.selector: "},
		"kinds":                  {[]string{of("workload", "kinds: "+many(MaxKinds, same("CronJob")))}, of("workload", "kinds: "+many(MaxKinds+1, same("CronJob"))), "parameters.kinds: has 51"},
		"a kind":                 {[]string{of("workload", "kinds: [{apiVersion: a/v1, kind: B}], order: [B]")}, of("workload", "kinds: [{apiVersion: a/v1}]"), "parameters.kinds[0]: write a kind by its name"},
		"a kind with too much":   {nil, of("workload", "kinds: [{apiVersion: a/v1, kind: B, name: c}]"), "parameters.kinds[0]: write a kind by its name"},
		"a kind of no version":   {nil, of("workload", "kinds: [{apiVersion: \"\", kind: B}]"), "parameters.kinds[0]: write a kind by its name"},
		"a kind of no name":      {nil, of("workload", "kinds: [{apiVersion: a/v1, kind: \"\"}]"), "parameters.kinds[0]: write a kind by its name"},
		"a kind that is none":    {nil, of("workload", "kinds: [{apiVersion: a/v1, kind: 5}]"), "parameters.kinds[0]: write a kind by its name"},
		"an order of kinds":      {[]string{of("workload", "order: "+many(MaxKinds, same("CronJob")))}, of("workload", "order: "+many(MaxKinds+1, same("CronJob"))), "parameters.order: has 51"},
		"excluded tags":          {[]string{of("ec2", "selector: {tags: {a: b}, excludeTags: "+tags(mostTags)+"}")}, of("ec2", "selector: {tags: {a: b}, excludeTags: "+tags(mostTags+1)+"}"), "parameters.selector.excludeTags: has 51"},
		"a tag of no key":        {nil, of("ec2", "selector: {tags: {\"\": v}}"), "parameters.selector.tags: \"\" cannot be the key of a tag"},
		"groups to scale":        {[]string{of("asg", "selector: {ids: [web]}, strategy: ScaleToZero")}, of("asg", "selector: {}"), "parameters.selector: is missing"},
		"databases":              {[]string{of("rds", "selector: {tags: {env: stg}}")}, of("rds", "selector: {ids: [1a]}"), "parameters.selector.ids[0]: \"1a\" cannot name a database"},
		"names of node groups":   {[]string{of("eks", "managedNodeGroups: {names: "+many(mostIDs, func(i int) string { return fmt.Sprint("g", i) })+", strategy: ScaleToZero}")}, of("eks", "managedNodeGroups: {names: "+many(mostIDs+1, func(i int) string { return fmt.Sprint("g", i) })+"}"), "parameters.managedNodeGroups.names: has 501"},
		"node groups by tags":    {[]string{of("eks", "managedNodeGroups: {tags: {env: stg}}")}, of("eks", "managedNodeGroups: {tags: "+tags(mostTags+1)+"}"), "parameters.managedNodeGroups.tags: has 51"},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(text string) document.Faults {
				_, faults := Parse([]byte(head + "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"))
				return faults
			}
			for _, text := range c.fits {
				if faults := read(text); len(faults) > 0 {
					t.Errorf("%.200s: %v", text, faults)
				}
			}
			if faults := read(c.over); len(faults) != 1 || !strings.Contains(faults.Error(), c.fault) {
				t.Errorf("%.200s: %v, want %s", c.over, faults, c.fault)
			}
		})
	}
}

func TestADocumentIsReadUpToItsLastByte(t *testing.T) {
	text := head + "  schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}\n  targets: [{name: a, type: noop}]\n#"
	text += strings.Repeat("x", MaxBytes-len(text))
	if _, faults := Parse([]byte(text)); len(faults) > 0 {
		t.Error(faults)
	}
	if _, faults := Parse([]byte(text + "x")); len(faults) != 1 {
		t.Errorf("one byte more: %v", faults)
	}
}

func TestWhatAPlanSaysByDefault(t *testing.T) {
	plain := specOf(t, "schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}")
	said := specOf(t, "schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}\nkeepSnapshots: 7\nserviceAccountName: sleeper\nbehavior: {mode: BestEffort}\nhealthChecks: [{all: true}, {selector: {matchLabels: {a: b}}}]")
	if plain.Snapshots() != DefaultKeepSnapshots || said.Snapshots() != 7 {
		t.Errorf("%d and %d snapshots are kept", plain.Snapshots(), said.Snapshots())
	}
	if plain.Account() == "sleeper" || plain.Account() == "" || said.Account() != "sleeper" {
		t.Errorf("the accounts are %q and %q", plain.Account(), said.Account())
	}
	if plain.BestEffort() || !said.BestEffort() {
		t.Error("the mode is another")
	}
	if len(plain.Checks()) != 0 || len(said.Checks()) != 2 {
		t.Errorf("%d and %d health checks", len(plain.Checks()), len(said.Checks()))
	}
	if got := (Spec{HealthChecks: []any{"all", map[string]any{"selektor": "a"}, map[string]any{"all": true}}}).Checks(); len(got) != 1 {
		t.Errorf("what cannot be read is a health check: %v", got)
	}
}

func TestHowLongATargetMayTake(t *testing.T) {
	timeout := &document.Duration{Duration: time.Minute}
	for name, c := range map[string]struct {
		params any
		want   time.Duration
	}{
		"workloads":          {&WorkloadParameters{}, DefaultTimeout},
		"workloads, as said": {&WorkloadParameters{Timeout: timeout}, time.Minute},
		"databases":          {&RDSParameters{}, time.Hour},
		"databases, as said": {&RDSParameters{Timeout: timeout}, time.Minute},
		"no parameters":      {nil, DefaultTimeout},
	} {
		if got := Timeout(c.params); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if pools := (&EKSParameters{Karpenter: &NodePools{NodePools: []string{"x"}, Strategy: DeleteNodes}}).Pools(); !slices.Equal(pools.NodePools, []string{"x"}) || pools.Strategy != DeleteNodes {
		t.Errorf("the NodePools are %+v", pools)
	}
	if pools := (&EKSParameters{}).Pools(); len(pools.NodePools) > 0 {
		t.Errorf("the NodePools of nobody are %+v", pools)
	}
}

// A target of which something may sleep needs its restore data, or what sleeps is forgotten.
func TestOfWhichTargetsSomethingMaySleep(t *testing.T) {
	states := []State{Pending, Running, Asleep, Awake, Failed, Aborted, Skipped}
	for op, want := range map[Operation][]State{
		Shutdown: {Running, Asleep, Failed},
		Wake:     {Pending, Running, Asleep, Failed, Aborted, Skipped},
		"":       {Asleep},
	} {
		var got []State
		for _, s := range states {
			if (TargetStatus{Operation: op, State: s}).MaySleep() {
				got = append(got, s)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", op, got, want)
		}
	}
}
