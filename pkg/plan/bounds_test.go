package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// What is allowed ends where the words of a fault say that it does: each bound with the
// last that passes and the first that does not.
func TestABoundIsWhereItSaysItIs(t *testing.T) {
	const p = "spec.steps[0].properties."
	url := "url: https://example.org"
	target := "target: {apiVersion: v1, kind: ConfigMap, name: x}\n"
	jitter := func(d string) string {
		return planText("triggers: {schedules: [{cron: '0 2 * * *', jitter: " + d + "}]}")
	}
	retry := func(n int) string {
		return planText("", fmt.Sprintf("- {name: a, type: suspend, retry: {limit: %d}}", n))
	}
	policies := func(n int) string {
		return planText("policies: [" + strings.Join(coretest.Repeat(func(i int) string { return fmt.Sprintf("{name: p%d}", i) }, n), ", ") + "]")
	}
	requires := func(n int) string {
		return planText("", "- {name: a, type: suspend, requires: ["+strings.Join(coretest.Repeat(func(i int) string {
			return fmt.Sprintf("{name: r%d, apiVersion: v1, kind: Pod, objectName: x}", i)
		}, n), ", ")+"]}")
	}
	functions := func(n int) string {
		return strings.Join(coretest.Repeat(func(i int) string { return fmt.Sprintf("{name: f%d, endpoint: 'fn:9443'}", i) }, n), ", ")
	}
	for _, c := range []struct{ name, text, want string }{
		{"no jitter", jitter("0s"), ""},
		{"a jitter of a day", jitter("24h"), ""},
		{"a longer one", jitter("24h1s"), "spec.triggers.schedules[0].jitter: must be from 0s to 24h, is 24h0m1s"},
		{"a negative one", jitter("-1s"), "spec.triggers.schedules[0].jitter: must be from 0s to 24h, is -1s"},
		{"no history", planText("successfulRunsHistoryLimit: 0\nfailedRunsHistoryLimit: 100\nretryLimit: 100"), ""},
		{"as many retries as allowed", retry(100), ""},
		{"no retries", retry(0), ""},
		{"fewer than none", retry(-1), "spec.steps[0].retry.limit: must be from 0 to 100, is -1"},
		{"as many policies as are asked", policies(plan.MaxPolicies), ""},
		{"one more", policies(plan.MaxPolicies + 1), fmt.Sprintf("spec.policies: names %d; at most %d are asked", plan.MaxPolicies+1, plan.MaxPolicies)},
		{"a policy of another namespace", planText("policies: [{name: p, namespace: shop}]"), ""},
		{"a namespace that is none", planText("policies: [{name: p, namespace: Shop}]"), `spec.policies[0].namespace: "Shop" cannot name a namespace`},
		{"as many requirements as allowed", requires(plan.MaxRequires), ""},
		{"one requirement more", requires(plan.MaxRequires + 1), "spec.steps[0].requires: has 21; a step may ask for 20"},
		{"an exec that is retried", planText("", "- {name: a, type: exec, onRestart: retry, properties: {pod: {name: db-0}, command: [ls]}}"), ""},
		{"an exec that fails", planText("", "- {name: a, type: exec, onRestart: fail, properties: {pod: {name: db-0}, command: [ls]}}"), ""},
		{"a key of our own among the labels of a target", planText(target + "triggers: {labels: [a/b, b]}"), ""},

		{"all replicas", step("scale", resource+", replicas: 1000000"), ""},
		{"one replica more", step("scale", resource+", replicas: 1000001"), p + "replicas: must be from 0 to 1000000, is 1000001"},
		{"a negative number of them", step("scale", resource+", replicas: -1"), p + "replicas: must be from 0 to 1000000, is -1"},
		{"the longest suspend", step("suspend", "duration: 36500d"), ""},
		{"a longer one", step("suspend", "duration: 876000h1s"), p + "duration: must be at most 36500d, is 876000h0m1s"},
		{"a webhook's shortest timeout", step("webhook", url+", timeout: 1s"), ""},
		{"a shorter one", step("webhook", url+", timeout: 999ms"), p + "timeout: must be from 1s to 10m, is 999ms"},
		{"a webhook's longest timeout", step("webhook", url+", timeout: 10m"), ""},
		{"a longer one of it", step("webhook", url+", timeout: 601s"), p + "timeout: must be from 1s to 10m, is 10m1s"},
		{"the statuses of HTTP", step("webhook", url+", expect: {status: [100, 599]}"), ""},
		{"a status below them", step("webhook", url+", expect: {status: [99]}"), p + "expect.status[0]: must be an HTTP status from 100 to 599, is 99"},
		{"a status above them", step("webhook", url+", expect: {status: [200, 600]}"), p + "expect.status[1]: must be an HTTP status from 100 to 599, is 600"},
		{"a space and a tab in a header", step("webhook", url+`, headers: {X-A: "a b\tc"}`), ""},
		{"a line break in a header", step("webhook", url+`, headers: {X-A: "a\nb"}`), p + "headers.X-A: must be one line"},
		{"a delete character in a header", step("webhook", url+`, headers: {X-A: "a\x7fb"}`), p + "headers.X-A: must be one line"},
		{"a URL without a host", step("webhook", "url: 'https:///hook'"), p + `url: "https:///hook" is no http or https URL`},
		{"a URL of another scheme", step("webhook", "url: 'ftp://example.org'"), p + `url: "ftp://example.org" is no http or https URL`},
		{"what of one may be secret is not told", step("webhook", "url: 'ftp://bot:pass@example.org/hook?token=x'"), p + `url: "ftp://***@example.org/hook" is no http or https URL`},
		{"a password that no URL can hold", step("webhook", "url: 'https://bot:pa/ss?#w@example.org/hook'"), p + `url: "https://***@example.org/hook" is no http or https URL`},
		{"without a scheme", step("webhook", "url: 'bot:pass@example.org'"), p + `url: "***@example.org" is no http or https URL`},
		{"a URL that is none", step("webhook", "url: 'http://[::1'"), p + `url: "http://[::1" is no http or https URL`},
		{"http alone", step("webhook", "url: 'http://example.org'"), ""},
		{"no labels to add", step("label", "operation: add, labels: {}, object: {apiVersion: v1, kind: A, name: b}"), p + "labels: must be a map of labels to add"},
		{"no labels to remove", step("label", "operation: remove, labels: [], object: {apiVersion: v1, kind: A, name: b}"), p + "labels: must be a list of keys to remove"},

		{"a field to remove", step("apply-object", "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, remove: [/data/x, '${run.name}']"), ""},
		{"all of an object to remove", step("apply-object", "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, remove: [/]"), p + `remove: "/" points to no field that can go`},
		{"a name to remove", step("apply-object", "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, remove: [/metadata/name]"), p + `remove: "/metadata/name" points to no field that can go`},
		{"a pointer without its slash", step("apply-object", "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, remove: [data]"), p + `remove: "data" points to no field that can go`},
		{"an object whose kind is empty", step("apply-object", "object: {apiVersion: v1, kind: '', metadata: {name: a}}"), p + "object.kind: is missing"},
		{"an object whose kind is no text", step("apply-object", "object: {apiVersion: v1, kind: 7, metadata: {name: a}}"), p + "object.kind: is missing"},
		{"an object whose name is empty", step("apply-object", "object: {apiVersion: v1, kind: A, metadata: {name: ''}}"), p + "object.metadata.name: is missing"},
		{"an object without a name", step("apply-object", "object: {apiVersion: v1, kind: A, metadata: {}}"), p + "object.metadata.name: is missing"},
		{"a restart of a StatefulSet", step("restart", "resource: {apiVersion: apps/v1, kind: StatefulSet, name: a}"), ""},
		{"a restart of what an expression names", step("restart", "resource: {apiVersion: apps/v1, kind: '${run.parameters.kind}', name: a}"), ""},
		{"a restart of a Pod", step("restart", "resource: {apiVersion: v1, kind: Pod, name: a}"), p + `resource.kind: must be Deployment, StatefulSet or DaemonSet, is "Pod"`},

		{"a condition on a value", step("prometheus", url+", query: up, condition: '>= 3'"), ""},
		{"a condition on series", step("prometheus", url+", query: up, condition: 'series.size() > 0'"), ""},
		{"a condition that an expression yields", step("prometheus", url+", query: up, condition: '${run.parameters.c}'"), ""},
		{"a condition that is none", step("prometheus", url+", query: up, condition: 'value +'"), p + `condition: "value +" does not compile`},
		{"a silence of one alert", step("silence", "alertmanager: https://example.org, matchers: [{name: a, value: b}]"), ""},
		{"a matcher without a value", step("silence", "alertmanager: https://example.org, matchers: [{name: a}]"), p + "matchers: each needs a name and a value"},
		{"a matcher without a name", step("silence", "alertmanager: https://example.org, matchers: [{value: a}]"), p + "matchers: each needs a name and a value"},
		{"the health of what an expression names", step("health-check", "resource: '${required.x[0]}'"), ""},
		{"the health of all, and of what an expression names", step("health-check", "all: true, resource: '${required.x[0]}'"), "spec.steps[0].properties: needs exactly one of resource, selector and all"},
		{"a backup of what an expression picks", step("backup", "method: volume-snapshot, selector: '${required.x[0].spec.selector}'"), ""},
		{"a message to the default sink", step("notification", "message: hello"), ""},
		{"a message to nobody", step("notification", "message: hello, sinks: []"), p + "sinks: is empty: name sinks of the agent's configuration, or leave it out for its default"},
		{"keys to remove that an expression names", step("label", "operation: remove, labels: [a, '${run.parameters.key}'], object: {apiVersion: v1, kind: A, name: b}"), ""},
		{"annotations to remove that an expression names", step("annotate", "operation: remove, annotations: ['${run.parameters.key}'], object: {apiVersion: v1, kind: A, name: b}"), ""},
		{"a key of ours beside one that an expression names", step("label", "operation: remove, labels: ['${run.parameters.key}', maint.dev/kind], object: {apiVersion: v1, kind: A, name: b}"), p + `labels: "maint.dev/kind" belongs to kubectl maint`},
		{"a function", step("function", "endpoint: 'fn:9443', credentials: [{name: a, secretName: b}, {name: c, secretName: b}], tls: {secretName: s, serverName: n}"), ""},
		{"a function in plaintext", step("function", "endpoint: 'fn:9443', tls: {insecure: true}"), ""},
		{"an installed function", step("function", "functionRef: {name: resize}"), ""},
		{"an installed function with a certificate of its own", step("function", "functionRef: {name: resize}, tls: {secretName: s}"), ""},
		{"an installed function and an endpoint", step("function", "functionRef: {name: resize}, endpoint: 'fn:9443'"), "spec.steps[0].properties: needs exactly one of endpoint (host:port) and functionRef (an installed function)"},
		{"no function at all", step("function", "input: {}"), "spec.steps[0].properties: needs exactly one of endpoint (host:port) and functionRef (an installed function)"},
		{"an installed function without a name", step("function", "functionRef: {name: ''}"), p + `functionRef.name: "" is no name of an installed function`},
		{"a pipeline", step("pipeline", "functions: [{name: a, endpoint: 'fn:9443'}, {name: b, functionRef: {name: resize}, input: {a: 1}, timeout: 5s}], force: true"), ""},
		{"as many functions as allowed", step("pipeline", "functions: ["+functions(plan.MaxFunctions)+"]"), ""},
		{"one function more", step("pipeline", "functions: ["+functions(plan.MaxFunctions+1)+"]"), p + "functions: must be from 1 to 20, are 21"},
		{"a pipeline without a function", step("pipeline", "functions: []"), p + "functions: must be from 1 to 20, are 0"},
		{"two functions of one name", step("pipeline", "functions: [{name: a, endpoint: 'fn:9443'}, {name: a, endpoint: 'fn:9443'}]"), p + `functions[1].name: "a" appears twice`},
		{"a function of a pipeline without a name", step("pipeline", "functions: [{endpoint: 'fn:9443'}]"), p + `functions[0].name: "" is no name`},
		{"a function of a pipeline that is nowhere", step("pipeline", "functions: [{name: a}]"), p + "functions[0]: needs exactly one of endpoint"},
		{"a function of a pipeline at no port", step("pipeline", "functions: [{name: a, endpoint: fn}]"), p + `functions[0].endpoint: "fn" is no host and port`},
		{"plaintext and a Secret", step("function", "endpoint: 'fn:9443', tls: {insecure: true, secretName: s}"), p + "tls: insecure is plaintext"},
		{"plaintext and a name of a server", step("function", "endpoint: 'fn:9443', tls: {insecure: true, serverName: s}"), p + "tls: insecure is plaintext"},
		{"an endpoint without a port", step("function", "endpoint: fn"), p + `endpoint: "fn" is no host and port`},
		{"an endpoint with an empty port", step("function", "endpoint: 'fn:'"), p + `endpoint: "fn:" is no host and port`},
		{"an endpoint without a host", step("function", "endpoint: ':9443'"), p + `endpoint: ":9443" is no host and port`},
		{"a credential without a Secret", step("function", "endpoint: 'fn:9443', credentials: [{name: a}]"), p + "credentials: each needs a name and a secretName"},
		{"a credential without a name", step("function", "endpoint: 'fn:9443', credentials: [{secretName: a}]"), p + "credentials: each needs a name and a secretName"},
		{"a credential that appears twice", step("function", "endpoint: 'fn:9443', credentials: [{name: a, secretName: b}, {name: a, secretName: c}]"), p + `credentials: "a" appears twice`},
		{"a backup that is kept", step("backup", "method: velero, selector: {matchLabels: {a: b}}, retain: 1ns"), ""},
		{"a backup that is kept for no time", step("backup", "method: velero, selector: {matchLabels: {a: b}}, retain: 0s"), p + "retain: must be longer than 0s, is 0s"},

		{"objects of a group", planText("", each("", "apiVersion: apps/v1, kind: Deployment")), ""},
		{"objects of a group that is none", planText("", each("", "apiVersion: a/b/c, kind: A")), p + `apiVersion: "a/b/c" is no apiVersion`},
		{"objects of no version", planText("", each("", "apiVersion: apps/, kind: A")), p + `apiVersion: "apps/" is no apiVersion`},
		{"objects of all namespaces", planText("", each("namespace: '*'")), ""},
		{"objects of a namespace", planText("", each("namespace: shop")), ""},
		{"objects of a namespace that an expression names", planText("", each("namespace: '${plan.namespace}'")), ""},
		{"objects of a kind that an expression names", planText("", each("", "apiVersion: '${run.parameters.v}', kind: '${run.parameters.k}'")), ""},
		{"objects with labels that an expression names", planText("", each("selector: {matchLabels: {app: '${run.parameters.app}'}, matchExpressions: [{key: tier, operator: In, values: ['${run.parameters.tier}']}]}")), ""},
		{"objects with a selector that an expression names", planText("", each("selector: '${required.x[0].spec.selector}'")), ""},
		{"objects in an order that an expression names", planText("", each("order: '${run.parameters.order}'")), ""},
		{"what an expression of a loop may not speak of", planText("", each("namespace: '${each.metadata.namespace}'")), p + "namespace: "},
		{"what a failure does, by an expression", planText("", each("onError: '${run.parameters.x}'")), p + "onError: cannot be an expression: it says how the steps run, and is taken as it stands; of a for-each, apiVersion, kind, namespace, selector, when, until, order can be"},
		{"a batch by an expression", planText("", each("batches: ['${run.parameters.x}']")), p + "batches[0]: cannot be an expression: it says how the steps run"},
		{"objects for which a condition holds", planText("", each(`when: "each.spec.version in ['1.2', '1.3']"`)), ""},
		{"a condition in which an expression stands", planText("", each(`when: "each.spec.version == '${run.parameters.from}'"`)), ""},
		{"a condition on something else", planText("", each("when: 'object.spec.x'")), p + `when: "object.spec.x" does not compile`},
		{"a condition that is none", planText("", each("when: '1 + 1'")), p + "when: "},
		{"objects of a namespace that is none", planText("", each("namespace: Shop")), p + `namespace: "Shop" is no namespace`},
		{"batches up to all", planText("", each("batches: [1, 10%, 100%]")), ""},
		{"a batch of more than all", planText("", each("batches: [101%]")), p + `batches[0]: "101%" is no batch`},
		{"batches that are as large as the one before", planText("", each("batches: [10%, 10%]")), p + "batches: each must be larger than the one before: 10% comes after 10%"},
		{"numbers that are smaller than the one before", planText("", each("batches: [7, 5]")), p + "batches: each must be larger than the one before: 5 comes after 7"},
		{"numbers and shares, which only the objects tell apart", planText("", each("batches: [1, 150, 10%, 200, 100%]")), ""},
		{"a share that is smaller than the share before, with a number between", planText("", each("batches: [20%, 5, 10%]")), p + "batches: each must be larger than the one before: 10% comes after 20%"},
		{"none at once", planText("", each("maxConcurrency: 0")), p + "maxConcurrency: must be from 1 to 100, is 0"},
		{"none of a group at once", planText("", "- {name: g, type: step-group, properties: {mode: parallel, maxConcurrency: 0, steps: [{name: b, type: suspend}]}}"), p + "maxConcurrency: must be from 1 to 100, is 0"},
		{"fewer than none at once", planText("", each("maxConcurrency: -1")), p + "maxConcurrency: must be from 1 to 100, is -1"},
		{"as many at once as a plan has steps", planText("", each("maxConcurrency: 100")), ""},
		{"one more at once", planText("", each("maxConcurrency: 101")), p + "maxConcurrency: must be from 1 to 100, is 101"},
	} {
		t.Run(c.name, func(t *testing.T) { wantOneFault(t, c.text, c.want) })
	}
}

// wantOneFault checks that a plan has one fault that begins so, or none.
func wantOneFault(t *testing.T, text, want string) {
	t.Helper()
	got := faultsOf(text)
	if want == "" {
		if len(got) > 0 {
			t.Errorf("refused: %s\nof\n%s", strings.Join(got, "\n"), text)
		}
		return
	}
	if len(got) != 1 || !strings.Contains(got[0], ": "+want) {
		t.Errorf("got %q, want %s\nof\n%s", got, want, text)
	}
}

func TestWhatNodesAStepMayName(t *testing.T) {
	const p = "spec.steps[0].properties"
	rollout := func(more string) string {
		return planText("", "- {name: roll, type: for-each-node, properties: {"+strings.TrimPrefix(more+", ", ", ")+"steps: [{name: d, type: drain}]}}")
	}
	for _, c := range []struct{ name, text, want string }{
		{"one by name", step("cordon", "node: worker-1.example.org"), ""},
		{"one that an expression names", step("drain", "node: '${run.parameters.node}'"), ""},
		{"several by their labels", step("uncordon", "selector: {matchLabels: {pool: gpu}}"), ""},
		{"neither", step("cordon", ""), p + ": needs node or selector: outside of a for-each-node it has no node to default to"},
		{"neither, of a drain", step("drain", ""), p + ": needs node or selector"},
		{"neither, of an uncordon", step("uncordon", ""), p + ": needs node or selector"},
		{"both", step("cordon", "node: a, selector: {matchLabels: {pool: gpu}}"), p + ".selector: stands beside node: name one node, or pick several"},
		{"a name that is none", step("cordon", "node: Worker_1"), p + `.node: "Worker_1" is no name of a node`},
		{"a selector that is none", step("drain", "selector: {matchLabels: {'-a': b}}"), p + `.selector.matchLabels: "-a" is no label's key`},
		{"in a rollout it is the item's", rollout(""), ""},
		{"in a group of a rollout, too", planText("", "- {name: roll, type: for-each-node, properties: {steps: [{name: g, type: step-group, properties: {steps: [{name: d, type: drain}]}}]}}"), ""},
		{"in a loop over something else it is none", planText("", "- {name: e, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: [{name: d, type: drain}]}}"), p + ".steps[0].properties: needs node or selector"},
		{"behind a rollout it is none", planText("", "- {name: roll, type: for-each-node, properties: {steps: [{name: d, type: drain}]}}", "- {name: c, type: cordon}"), "spec.steps[1].properties: needs node or selector"},
		{"a wait in a rollout is for its node", planText("", "- {name: roll, type: for-each-node, properties: {steps: [{name: w, type: wait, properties: {condition: Ready}}]}}"), ""},
		{"a wait elsewhere is for what it names", step("wait", "condition: Ready"), p + ".resource: is missing"},
		{"a scale in a rollout has nothing to default to", planText("", "- {name: roll, type: for-each-node, properties: {steps: [{name: s, type: scale, properties: {replicas: 1}}]}}"), p + ".steps[0].properties.resource: is missing"},
		{"a condition may speak of the node", planText("", "- {name: roll, type: for-each-node, properties: {steps: [{name: d, type: drain, if: 'node.spec.unschedulable'}]}}"), ""},
		{"in a loop over nodes it may not", planText("", "- {name: e, type: for-each, properties: {apiVersion: v1, kind: Node, steps: [{name: s, type: suspend, if: 'node.spec.unschedulable'}]}}"), p + ".steps[0].if: "},
		{"of each it may", planText("", "- {name: e, type: for-each, properties: {apiVersion: v1, kind: Node, steps: [{name: s, type: suspend, if: 'each.spec.unschedulable'}]}}"), ""},
		{"behind a loop it may not", planText("", each(""), "- {name: z, type: suspend, if: 'each.spec.x'}"), "spec.steps[1].if: "},
		{"a rollout in a loop", planText("", "- {name: e, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: [{name: roll, type: for-each-node, properties: {steps: [{name: d, type: drain}]}}]}}"), p + ".steps[0].type: a for-each-node cannot stand in a loop"},
		{"a loop in a rollout", planText("", "- {name: roll, type: for-each-node, properties: {steps: [{name: e, type: for-each, properties: {apiVersion: v1, kind: Pod, steps: [{name: d, type: drain}]}}]}}"), ""},
		{"a rollout in a group", planText("", group("parallel", "{name: roll, type: for-each-node, properties: {steps: [{name: d, type: drain}]}}")), ""},

		{"all that a rollout may say", rollout("selector: {matchLabels: {pool: gpu}}, maxUnavailable: 10%, when: 'node.metadata.name != \"a\"', canary: 0, order: name, soak: 0s, estimate: 1h, onError: continue, maxFailures: 3"), ""},
		{"a selector of a rollout that is none", rollout("selector: {matchLabels: {'-a': b}}"), p + `.selector.matchLabels: "-a" is no label's key`},
		{"as many canaries as nodes", rollout(fmt.Sprintf("canary: %d", plan.MaxItems)), ""},
		{"one canary more", rollout(fmt.Sprintf("canary: %d", plan.MaxItems+1)), p + ".canary: must be from 0 to 2000, is 2001"},
		{"fewer canaries than none", rollout("canary: -1"), p + ".canary: must be from 0 to 2000, is -1"},
		{"none away, which is one at least", rollout("maxUnavailable: 0"), ""},
		{"no share of them, which is one at least", rollout("maxUnavailable: 0%"), ""},
		{"fewer than none", rollout("maxUnavailable: -1"), p + ".maxUnavailable: "},
		{"nodes by expressions", rollout("selector: {matchLabels: {pool: '${run.parameters.pool}'}}, order: '${run.parameters.order}', when: '${run.parameters.when}'"), ""},
		{"a limit by an expression", rollout("maxUnavailable: '${run.parameters.n}'"), p + ".maxUnavailable: cannot be an expression: it says how the steps run, and is taken as it stands; of a for-each-node, selector, when, order can be"},
		{"a soak by an expression", rollout("soak: '${run.parameters.n}'"), p + ".soak: cannot be an expression"},
		{"a share that is none", rollout("maxUnavailable: many"), p + `.maxUnavailable: "many" is neither a number nor a share`},
		{"a condition on nodes that is none", rollout("when: 'object.x'"), p + `.when: "object.x" does not compile`},
		{"an order that is none", rollout("order: newest"), p + `.order: must be oldest-first or name, is "newest"`},
		{"the oldest first", rollout("order: oldest-first"), ""},
		{"a soak that is none", rollout("soak: -1s"), p + ".soak: must be from 0s to"},
		{"what a failure does that is none", rollout("onError: ignore"), p + `.onError: must be stop or continue, is "ignore"`},
		{"failures where one stops it", rollout("maxFailures: 1"), p + ".maxFailures: is for onError: continue, and a number of nodes"},
		{"failures where one stops it by word", rollout("onError: stop, maxFailures: 1"), p + ".maxFailures: is for onError: continue"},
		{"no bound of failures", rollout("onError: stop, maxFailures: 0"), ""},
		{"fewer failures than none", rollout("onError: continue, maxFailures: -1"), p + ".maxFailures: is for onError: continue, and a number of nodes"},
	} {
		t.Run(c.name, func(t *testing.T) { wantOneFault(t, c.text, c.want) })
	}
}

func TestWhatAWatchMayAskFor(t *testing.T) {
	const p = "spec.triggers.watch[0]"
	watch := func(rule string) string { return planText("triggers: {watch: [{" + rule + "}]}") }
	fields := func(n int) string {
		return watch("apiVersion: v1, kind: A, fields: [" + strings.Join(coretest.Repeat(func(i int) string { return fmt.Sprintf("spec.f%d", i) }, n), ", ") + "]")
	}
	rules := func(n int) string {
		return planText("triggers: {watch: [" + strings.Join(coretest.Repeat(func(i int) string { return fmt.Sprintf("{apiVersion: v1, kind: K%d}", i) }, n), ", ") + "]}")
	}
	for _, c := range []struct{ name, text, want string }{
		{"a kind", watch("apiVersion: v1, kind: ConfigMap"), ""},
		{"a kind of a group", watch("apiVersion: apps/v1, kind: Deployment, namespace: shop"), ""},
		{"all namespaces", watch("apiVersion: v1, kind: ConfigMap, namespace: '*'"), ""},
		{"no apiVersion", watch("kind: ConfigMap"), p + `.apiVersion: must be <group>/<version>, or v1; is ""`},
		{"an apiVersion of no group", watch("apiVersion: /v1, kind: Secret"), p + `.apiVersion: must be <group>/<version>, or v1; is "/v1"`},
		{"an apiVersion that is none", watch("apiVersion: a/b/c, kind: ConfigMap"), p + `.apiVersion: must be <group>/<version>, or v1; is "a/b/c"`},
		{"no kind", watch("apiVersion: v1"), p + ".kind: is missing"},
		{"a namespace that is none", watch("apiVersion: v1, kind: A, namespace: Shop"), p + `.namespace: "Shop" cannot name a namespace; "*" asks for all`},
		{"labels", watch("apiVersion: v1, kind: A, selector: {matchLabels: {a: b}}"), ""},
		{"labels that are none", watch("apiVersion: v1, kind: A, selector: {matchLabels: {'-a': b}}"), p + `.selector.matchLabels: "-a" is no label's key`},
		{"events", watch("apiVersion: v1, kind: A, events: [create, update, delete]"), ""},
		{"an event that is none", watch("apiVersion: v1, kind: A, events: [create, change]"), p + `.events[1]: must be one of create, update, delete, is "change"`},
		{"an event without a word", watch("apiVersion: v1, kind: A, events: ['']"), p + `.events[0]: must be one of create, update, delete, is "nothing"`},
		{"a condition", watch("apiVersion: v1, kind: A, when: 'object.spec.x != oldObject.spec.x'"), ""},
		{"a condition over something else", watch("apiVersion: v1, kind: A, when: 'run.name == \"x\"'"), p + `.when: "run.name == \"x\"" does not compile`},
		{"as many fields as are compared", fields(plan.MaxWatchFields), ""},
		{"one field more", fields(plan.MaxWatchFields + 1), p + ".fields: names 21 fields; at most 20 are compared"},
		{"a field that is no path", watch("apiVersion: v1, kind: A, fields: ['spec[']"), p + `.fields[0]: "spec[" is no path: a bracket is not closed`},
		{"all of the metadata", watch("apiVersion: v1, kind: A, fields: [metadata]"), ""},
		{"labels as a field", watch("apiVersion: v1, kind: A, fields: [metadata.labels, spec.resourceVersion]"), ""},
		{"a field that changes with every write", watch("apiVersion: v1, kind: A, fields: [metadata.resourceVersion]"), p + `.fields[0]: "metadata.resourceVersion" changes with every write`},
		{"who wrote it", watch("apiVersion: v1, kind: A, fields: ['metadata.managedFields[0].time']"), p + `.fields[0]: "metadata.managedFields[0].time" changes with every write`},
		{"as many rules as are watched", rules(plan.MaxWatchRules), ""},
		{"one rule more", rules(plan.MaxWatchRules + 1), "spec.triggers.watch: has 21 rules; at most 20 are watched"},
		{"the same rule twice", planText("triggers: {watch: [{apiVersion: v1, kind: A}, {apiVersion: v1, kind: B}, {apiVersion: v1, kind: A}]}"), "spec.triggers.watch[2]: is the same as watch[0]"},
	} {
		t.Run(c.name, func(t *testing.T) { wantOneFault(t, c.text, c.want) })
	}
}

// A run that an earlier version made goes on: what that took is taken.
func TestASnapshotMayHoldWhatAnEarlierVersionTook(t *testing.T) {
	for name, step := range map[string]plan.Step{
		"a loop":  {Type: "for-each", Properties: map[string]any{"apiVersion": "v1", "kind": "Pod"}},
		"a group": {Type: "step-group", Properties: map[string]any{"mode": "parallel"}},
	} {
		step.Name = "holds"
		step.Properties["maxConcurrency"], step.Properties["steps"] = int64(0), []any{map[string]any{"name": "in", "type": "suspend"}}
		if faults := plan.CheckSnapshot(plan.Spec{Steps: []plan.Step{step}}, nil); len(faults) > 0 {
			t.Errorf("%s that says maxConcurrency: 0 is not read any more: %v", name, faults)
		}
		if got := step.Concurrency(3); got != 3 {
			t.Errorf("of %s %d are at work at once", name, got)
		}
	}
}
