package hibernate

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const head = "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec:\n"

func TestWhatIsWrongWithAPlan(t *testing.T) {
	const sleeps = "  schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}\n"
	const abc = "  targets: [{name: a, type: noop}, {name: b, type: noop}, {name: c, type: noop}]\n"
	dag := func(rest string) string { return sleeps + abc + "  execution: {strategy: {type: DAG, " + rest + "}}\n" }
	staged := func(rest string) string {
		return sleeps + abc + "  execution: {strategy: {type: Staged}, stages: [" + rest + "]}\n"
	}
	except := func(one string) string { return sleeps + abc + "  exceptions: [" + one + "]\n" }
	const span = "validFrom: \"2026-03-01T00:00:00Z\", validUntil: \"2026-03-02T00:00:00Z\""
	for name, c := range map[string]struct {
		text string
		want []string // parts of the faults, each of another; none: it is valid
	}{
		"a small one":                              {text: sleeps + abc},
		"nothing in it":                            {text: "  targets: []\n", want: []string{"spec.schedule.offHours: is empty", "spec.targets: is empty"}},
		"a zone that is not there":                 {text: "  schedule: {timezone: Mars/Base, offHours: [{start: \"20:00\", end: \"06:00\"}]}\n" + abc, want: []string{"spec.schedule.timezone"}},
		"its fault is told once":                   {text: "  schedule: {timezone: Mars/Base, offHours: [{start: \"20:00\", end: \"06:00\"}]}\n" + abc + "  exceptions: [{type: extend, " + span + ", offHours: [{start: \"20:00\", end: \"21:00\"}]}]\n", want: []string{"spec.schedule.timezone"}},
		"equal start and end":                      {text: "  schedule: {offHours: [{start: \"20:00\", end: \"20:00\"}]}\n" + abc, want: []string{"spec.schedule.offHours[0].end"}},
		"a field with a slip":                      {text: sleeps + "  targets: [{name: a, typ: noop}]\n", want: []string{"typ", "type: is missing"}},
		"a calendar in exclude":                    {text: "  schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}], exclude: [{calendar: {name: x}}]}\n" + abc, want: []string{"exclude[0].calendar"}},
		"a target twice":                           {text: sleeps + "  targets: [{name: a, type: noop}, {name: a, type: noop}]\n", want: []string{`spec.targets[1].name: "a" appears twice`}},
		"a type that is not known":                 {text: sleeps + "  targets: [{name: a, type: nop}]\n", want: []string{"did you mean noop?"}},
		"a function":                               {text: sleeps + "  targets: [{name: a, type: function, parameters: {endpoint: \"fn:9443\", input: {fleet: stg}, credentials: [{name: cloud, secretName: keys}], tls: {insecure: true}, timeout: 20m}}]\n"},
		"a function of nowhere":                    {text: sleeps + "  targets: [{name: a, type: function, parameters: {endpoint: fn, input: {operation: wake, hibernation: {}}}}]\n", want: []string{"endpoint: \"fn\" is no host and port", "input.hibernation: is written by the agent", "input.operation: is written by the agent"}},
		"a function by an expression":              {text: sleeps + "  targets: [{name: a, type: function, parameters: {endpoint: \"${x}:9443\"}}]\n", want: []string{"endpoint: is taken as it stands"}},
		"one that never comes":                     {text: sleeps + "  targets: [{name: a, type: gke}]\n", want: []string{"not supported"}},
		"a connector that it does not take":        {text: sleeps + "  targets: [{name: a, type: noop, connectorRef: {kind: CloudProvider, name: x}}]\n", want: []string{"takes no"}},
		"instances by their tags":                  {text: sleeps + "  targets: [{name: a, type: ec2, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {tags: {env: stg}, excludeTags: {always: \"on\"}}, hibernate: true}}]\n"},
		"instances of no account":                  {text: sleeps + "  targets: [{name: a, type: ec2, parameters: {selector: {ids: [i-0123456789abcdef0]}}}]\n", want: []string{"connectorRef: is missing"}},
		"instances of a cluster":                   {text: sleeps + "  targets: [{name: a, type: ec2, connectorRef: {kind: K8SCluster, name: stg}, parameters: {selector: {ids: [i-0123456789abcdef0]}}}]\n", want: []string{"takes no \"K8SCluster\""}},
		"all instances of an account":              {text: sleeps + "  targets: [{name: a, type: ec2, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {excludeTags: {env: prod}}}}]\n", want: []string{"selector: is missing; write ids or tags"}},
		"an instance by its name":                  {text: sleeps + "  targets: [{name: a, type: ec2, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {ids: [web-1]}}}]\n", want: []string{"selector.ids[0]: \"web-1\" cannot name an instance"}},
		"groups by their names":                    {text: sleeps + "  targets: [{name: a, type: asg, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {ids: [\"web servers/1\"]}}}]\n"},
		"a group by its ARN":                       {text: sleeps + "  targets: [{name: a, type: asg, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {ids: [\"arn:aws:autoscaling:x\"]}}}]\n", want: []string{"selector.ids[0]: \"arn:aws:autoscaling:x\" cannot name an Auto Scaling group"}},
		"groups whose instances are stopped":       {text: sleeps + "  targets: [{name: a, type: asg, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {ids: [web]}, strategy: StopInstances}}]\n"},
		"groups that sleep in a way of their own":  {text: sleeps + "  targets: [{name: a, type: asg, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {ids: [web]}, strategy: Stop}}]\n", want: []string{"strategy: \"Stop\" is not known; there are ScaleToZero and StopInstances"}},
		"all groups of an account":                 {text: sleeps + "  targets: [{name: a, type: asg, connectorRef: {kind: CloudProvider, name: stg}, parameters: {timeout: 20m}}]\n", want: []string{"selector: is missing; write ids or tags"}},
		"node groups by name and tags":             {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: ManagedNodeGroups}, managedNodeGroups: {names: [workers], tags: {env: stg}, strategy: ScaleToZero}, timeout: 40m}}]\n"},
		"node groups of an account":                {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: CloudProvider, name: stg}, parameters: {managedNodeGroups: {names: [workers]}}}]\n", want: []string{"takes no \"CloudProvider\""}},
		"all nodes of a cluster":                   {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {managedNodeGroups: {}}}]\n", want: []string{"managedNodeGroups: is missing; write names or tags"}},
		"a node group that is none, and one twice": {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {managedNodeGroups: {names: [-x, a, a], strategy: Drain}}}]\n", want: []string{"names[0]: \"-x\" cannot name a node group", "names[2]: \"a\" appears twice", "strategy: \"Drain\" is not known; there is ScaleToZero"}},
		"both kinds of nodes, and their order":     {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Both, order: [ManagedNodeGroups, Karpenter]}, karpenter: {nodePools: [x], strategy: DeleteNodes}, managedNodeGroups: {names: [a]}}}]\n"},
		"both kinds, by what is written":           {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {karpenter: {}, managedNodeGroups: {names: [a]}}}]\n"},
		"all NodePools beside node groups":         {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Both}, managedNodeGroups: {names: [a]}}}]\n"},
		"all NodePools alone":                      {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Karpenter}}}]\n"},
		"both kinds, and no node groups":           {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Both}, karpenter: {}}}]\n", want: []string{"managedNodeGroups: is missing; write names or tags"}},
		"nodes of a kind that is not asked for":    {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: ManagedNodeGroups}, karpenter: {}, managedNodeGroups: {names: [a]}}}]\n", want: []string{"parameters.karpenter: is not for the mode ManagedNodeGroups; write computePolicy: {mode: Both}, or leave it out"}},
		"node groups beside the mode Karpenter":    {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Karpenter}, managedNodeGroups: {names: [a]}}}]\n", want: []string{"parameters.managedNodeGroups: is not for the mode Karpenter"}},
		"no NodePools":                             {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Both}, karpenter: {nodePools: [Small], strategy: Drain}, managedNodeGroups: {names: [a]}}}]\n", want: []string{"karpenter.nodePools[0]: \"Small\" cannot name a NodePool", "karpenter.strategy: \"Drain\" is not known; there is DeleteNodes"}},
		"an order of one kind":                     {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {order: [Karpenter]}, managedNodeGroups: {names: [a]}}}]\n", want: []string{"computePolicy.order: is for the mode Both; this one is ManagedNodeGroups"}},
		"an order with slips":                      {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Both, order: [karpenter, Karpenter]}, managedNodeGroups: {names: [a]}}}]\n", want: []string{"order[0]: \"karpenter\" is not known; there are Karpenter, ManagedNodeGroups; did you mean Karpenter?"}},
		"a kind twice in an order":                 {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Both, order: [Karpenter, Karpenter, Karpenter]}, managedNodeGroups: {names: [a]}}}]\n", want: []string{"order[1]: \"Karpenter\" appears twice", "computePolicy.order: has 3; there are Karpenter and ManagedNodeGroups"}},
		"another mode":                             {text: sleeps + "  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Fargate}, managedNodeGroups: {names: [a]}}}]\n", want: []string{"computePolicy.mode: \"Fargate\" is not known; there are Both, Karpenter, ManagedNodeGroups"}},
		"parameters are read strictly":             {text: sleeps + "  targets: [{name: a, type: noop, parameters: {delai: 3s}}]\n", want: []string{"delai"}},
		"a negative failure":                       {text: sleeps + "  targets: [{name: a, type: noop, parameters: {failShutdown: -1}}]\n", want: []string{"parameters.failShutdown: must not be negative"}},
		"workloads of a kind without version":      {text: sleeps + "  targets: [{name: a, type: workload, parameters: {kinds: [Rollout]}}]\n", want: []string{"kinds[0]: \"Rollout\" is not known by its name"}},
		"a DaemonSet is named":                     {text: sleeps + "  targets: [{name: a, type: workload, parameters: {kinds: [DaemonSet, ScaledObject]}}]\n"},
		"Karpenter's pools":                        {text: sleeps + "  targets: [{name: a, type: karpenter, parameters: {nodePools: [small], strategy: DeleteNodes, timeout: 20m}}]\n"},
		"no name of a pool":                        {text: sleeps + "  targets: [{name: a, type: karpenter, parameters: {nodePools: [Small]}}]\n", want: []string{"nodePools[0]: \"Small\" cannot name a NodePool"}},
		"another strategy of Karpenter's":          {text: sleeps + "  targets: [{name: a, type: karpenter, parameters: {strategy: Drain}}]\n", want: []string{"strategy: \"Drain\" is not known; there is DeleteNodes"}},
		"namespaces twice":                         {text: sleeps + "  targets: [{name: a, type: workload, parameters: {namespaces: [x], namespaceSelector: {matchLabels: {a: b}}}}]\n", want: []string{"write one of them"}},
		"an order of what does not sleep":          {text: sleeps + "  targets: [{name: a, type: workload, parameters: {kinds: [Deployment], order: [CronJob]}}]\n", want: []string{"order[0]"}},
		"a ring":                                   {text: dag("dependencies: [{from: a, to: b}, {from: b, to: c}, {from: c, to: a}]"), want: []string{"wait for each other: a → b → c → a"}},
		"a ring beside other faults":               {text: dag("dependencies: [{from: a, to: b}, {from: b, to: a}, {from: a, to: ghost}, {from: c, to: c}]"), want: []string{`"ghost" is no target`, "c waits for itself", "wait for each other: a → b → a"}},
		"two rings, and one of the edges twice":    {text: dag("dependencies: [{from: a, to: b}, {from: a, to: b}, {from: b, to: a}, {from: a, to: c}, {from: c, to: a}]"), want: []string{"wait for each other: a → b → a; a → c → a"}},
		"a target waits for itself":                {text: dag("dependencies: [{from: a, to: a}]"), want: []string{"waits for itself"}},
		"unknown in a dependency":                  {text: dag("dependencies: [{from: x, to: b}]"), want: []string{`"x" is no target`}},
		"dependencies of another strategy":         {text: sleeps + abc + "  execution: {strategy: {dependencies: [{from: a, to: b}]}}\n", want: []string{"are for the strategy DAG"}},
		"a diamond is no ring":                     {text: dag("dependencies: [{from: a, to: b}, {from: a, to: c}, {from: b, to: c}]")},
		"nobody at once":                           {text: dag("maxConcurrency: 0"), want: []string{"maxConcurrency: must be at least 1"}},
		"a target in two stages":                   {text: staged("{targets: [a, b]}, {targets: [b]}"), want: []string{`stages[1].targets[0]: "b" is in stage 1 already`}},
		"a stage of nobody":                        {text: staged("{targets: []}"), want: []string{"stages[0].targets: is empty"}},
		"no stages":                                {text: staged(""), want: []string{"stages: is empty"}},
		"stages beside dependencies":               {text: sleeps + abc + "  execution: {strategy: {type: DAG, dependencies: [{from: a, to: b}]}, stages: [{targets: [a]}]}\n", want: []string{"stand beside dependencies"}},
		"stages in the strategy":                   {text: sleeps + abc + "  execution: {strategy: {type: Staged, stages: [{targets: [a], parallel: true}]}}\n"},
		"an exception without a type":              {text: except("{" + span + "}"), want: []string{"type: is missing", "offHours: is empty"}},
		"one that ends before it begins":           {text: except("{type: suspend, validFrom: \"2026-03-02T00:00:00Z\", validUntil: \"2026-03-01T00:00:00Z\"}"), want: []string{"is not after validFrom"}},
		"one without an end":                       {text: except("{type: suspend, validFrom: \"2026-03-02T00:00:00Z\"}"), want: []string{"validUntil: is missing"}},
		"one from a day":                           {text: except("{type: suspend, validFrom: \"2026-03-01\", validUntil: \"2026-03-02T00:00:00Z\"}"), want: []string{"is no instant"}},
		"two of a type that collide":               {text: except("{type: suspend, " + span + "}, {type: suspend, " + span + "}"), want: []string{"exceptions[1]: is valid at the same time as spec.exceptions[0]"}},
		"two of two types":                         {text: except("{type: suspend, " + span + "}, {type: extend, " + span + ", offHours: [{start: \"12:00\", end: \"13:00\"}]}")},
		"a lead time of an extension":              {text: except("{type: extend, leadTime: 5m, " + span + ", offHours: [{start: \"12:00\", end: \"13:00\"}]}"), want: []string{"leadTime: is for a suspend"}},
		"a mode with a slip":                       {text: sleeps + abc + "  behavior: {mode: strict}\n", want: []string{"did you mean Strict?"}},
		"endless retries":                          {text: sleeps + abc + "  behavior: {retries: 99}\n", want: []string{"from 0 to 20"}},
		"a health check with a slip":               {text: sleeps + abc + "  healthChecks: [{selektor: {}}]\n", want: []string{"healthChecks[0].selektor"}},
		"all at once":                              {text: "  schedule: {timezone: X, offHours: [{start: \"25:00\", end: \"06:00\"}]}\n  targets: [{name: A, type: x}]\n  keepSnapshots: 0\n", want: []string{"timezone", "start", "name", "type", "keepSnapshots"}},
		"workloads of a cloud":                     {text: sleeps + "  targets: [{name: a, type: workload, connectorRef: {kind: CloudProvider, name: stg}}]\n", want: []string{"takes no \"CloudProvider\""}},
		"workloads of another cluster":             {text: sleeps + "  targets: [{name: a, type: workload, connectorRef: {kind: K8SCluster, name: stg}}]\n"},
		"NodePools of another cluster":             {text: sleeps + "  targets: [{name: a, type: karpenter, connectorRef: {kind: K8SCluster, name: stg}}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := Parse([]byte(head + c.text))
			var said []string
			for _, f := range faults {
				said = append(said, f.String())
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) }) {
					t.Errorf("lacks %q among\n%s", want, strings.Join(said, "\n"))
				}
			}
			if len(said) != len(c.want) {
				t.Errorf("says %d things, want %d:\n%s", len(said), len(c.want), strings.Join(said, "\n"))
			}
		})
	}
}

func TestTheOrderOfTargets(t *testing.T) {
	four := "schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}\ntargets: [{name: a, type: noop}, {name: b, type: noop}, {name: c, type: noop}, {name: d, type: noop}]\n"
	for name, c := range map[string]struct {
		execution string
		rounds    string // who is at work at once when each round succeeds, until all sleep; then as they wake
	}{
		"one after the other": {"", "a|b|c|d / d|c|b|a"},
		"all at once":         {"execution: {strategy: {type: Parallel}}", "a b c d / d c b a"},
		"two at once":         {"execution: {strategy: {type: Parallel, maxConcurrency: 2}}", "a b|c d / d c|b a"},
		"a DAG":               {"execution: {strategy: {type: DAG, dependencies: [{from: c, to: a}, {from: a, to: b}]}}", "c d|a|b / d b|a|c"},
		"a DAG of one":        {"execution: {strategy: {type: DAG, maxConcurrency: 1, dependencies: [{from: c, to: a}]}}", "b|c|a|d / d|b|a|c"},
		"stages":              {"execution: {strategy: {type: Staged}, stages: [{targets: [d, b], parallel: true}, {targets: [a, c]}]}", "b d|a|c / c|a|d b"},
		"and who is in none":  {"execution: {strategy: {type: Staged}, stages: [{targets: [d]}]}", "d|a|b|c / c|b|a|d"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(t, four+c.execution)
			f := Facts{Now: at(t, "2026-03-02T20:00:00Z"), Spec: spec, Plan: "p", UID: "u", Sleep: true, Cycle: "one"}
			got := rounds(t, &f)
			f.Sleep = false
			if got += " / " + rounds(t, &f); got != c.rounds {
				t.Errorf("rounds %s, want %s", got, c.rounds)
			}
		})
	}
}

// rounds has every operation that begins succeed, and says who was at work in each round.
func rounds(t *testing.T, f *Facts) string {
	t.Helper()
	var out []string
	for range 20 {
		d := Decide(*f)
		f.Records = merged(f.Records, d)
		var now []string
		for _, a := range d.Acts {
			i := slices.IndexFunc(f.Records, func(r Record) bool { return r.Target == a.Target })
			if f.Records[i].State != Running {
				continue
			}
			now = append(now, a.Target)
			f.Records[i] = f.Records[i].Passed(true, "", 0, f.Now)
		}
		if len(now) == 0 {
			return strings.Join(out, "|")
		}
		out = append(out, strings.Join(now, " "))
	}
	t.Fatal("it goes on and on")
	return ""
}

// merged are records after what was decided was written.
func merged(records []Record, d Decision) []Record {
	out := slices.Clone(records)
	for _, r := range d.Write {
		if i := slices.IndexFunc(out, func(have Record) bool { return have.Target == r.Target }); i >= 0 {
			out[i] = r
		} else {
			out = append(out, r)
		}
	}
	return slices.DeleteFunc(out, func(r Record) bool { return slices.Contains(d.Closed, r.Target) })
}

func TestWhichNodesOfAClusterOfEKSSleepAndInWhichOrder(t *testing.T) {
	for name, c := range map[string]struct {
		params  string
		want    string
		timeout time.Duration
	}{
		"node groups, as they are written":    {"managedNodeGroups: {names: [a]}", "ManagedNodeGroups", 30 * time.Minute},
		"NodePools, as they are written":      {"karpenter: {nodePools: [x]}", "Karpenter", 30 * time.Minute},
		"both, as they are written":           {"karpenter: {}, managedNodeGroups: {names: [a]}", "Karpenter ManagedNodeGroups", time.Hour},
		"both, by the mode":                   {"computePolicy: {mode: Both}, managedNodeGroups: {names: [a]}", "Karpenter ManagedNodeGroups", time.Hour},
		"node groups first":                   {"computePolicy: {mode: Both, order: [ManagedNodeGroups, Karpenter]}, managedNodeGroups: {names: [a]}", "ManagedNodeGroups Karpenter", time.Hour},
		"node groups first, and no more said": {"computePolicy: {mode: Both, order: [ManagedNodeGroups]}, managedNodeGroups: {names: [a]}, timeout: 20m", "ManagedNodeGroups Karpenter", 20 * time.Minute},
	} {
		plan, faults := Parse([]byte(head + "  schedule: {offHours: [{start: \"20:00\", end: \"06:00\"}]}\n  targets: [{name: a, type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {" + c.params + "}}]\n"))
		if len(faults) > 0 {
			t.Fatalf("%s: %v", name, faults)
		}
		params := plan.Targets[0].Params()
		if got := strings.Join(params.(*EKSParameters).Kinds(), " "); got != c.want || Timeout(params) != c.timeout {
			t.Errorf("%s: %s within %s", name, got, Timeout(params))
		}
	}
}
