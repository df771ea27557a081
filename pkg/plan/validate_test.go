package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/coretest"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// What a valid plan may say, row by row.
func TestParseAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"the whole of KubeVela's maintenance story": planText(`description: Weekly database maintenance
target: {apiVersion: apps/v1, kind: Deployment, name: orders}
triggers:
  onCreate: false
  schedules:
  - {cron: "0 2 * * 6", timezone: America/New_York, jitter: 10m}
  - {rrule: "FREQ=WEEKLY;BYDAY=SA", timezone: Europe/Berlin}
  - {at: "2026-05-01T12:00:00+02:00"}
  labels: [maintenance.company.org/database-upgrade, upgrade]
serviceAccountName: maint-runner
startDeadline: 1h
catchUp: latest
concurrencyPolicy: Queue
maxDuration: 2h
parameters: [{name: mode, default: fast, description: how}]
onFailure:
- {name: tell, type: webhook, properties: {url: "https://example.org/${run.name}"}}
finally:
- {name: unpause, type: label, if: always, properties: {operation: remove, labels: [paused]}}`,
			`- name: start
  type: webhook
  timeout: 1m
  retry: {limit: 3, backoff: 10s, maxBackoff: 5m}
  properties: {url: https://example.org/start, headers: {Authorization: {secretKeyRef: {name: hook, key: token}}, X-Run: "${run.name}", X-Plain: text}, expect: {status: [200, 202], json: {ok: true}}}`,
			`- name: scale-down
  type: scale
  if: "steps['start'].phase == 'Succeeded'"
  properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: orders}, replicas: 0, restoreAfter: true}`),
		"templates where other types are wanted": planText("",
			"- {name: a, type: suspend, properties: {duration: '${run.parameters.wait}'}}",
			"- {name: b, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: x}, replicas: '${1 + 1}', restoreAfter: '${run.dryRun}'}}",
			"- {name: c, type: patch-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: x}, patch: '${steps.a.outputs}'}}",
			"- {name: d, type: webhook, properties: {url: '${run.parameters.url}', timeout: '${run.parameters.t}', expect: {status: ['${200}']}, method: '${run.parameters.m}'}}",
			"- {name: e, type: label, properties: {operation: '${run.parameters.op}', labels: '${run.parameters.labels}', object: '${target}'}}",
			"- {name: f, type: job, properties: {template: '${run.parameters.template}'}}",
			"- {name: g, type: wait, properties: {resource: '${target}', condition: Ready}}",
			"- {name: h, type: wait, properties: {resource: {apiVersion: v1, kind: Pod, name: x, namespace: '${plan.namespace}'}, until: 'object.status.phase == \"Running\"'}}"),
		"literal dollars":                   planText("", "- {name: a, type: webhook, properties: {url: https://example.org, body: {text: '$${not.code}', price: '$5'}}}"),
		"a list of JSON patches":            planText("", "- {name: a, type: patch-object, properties: {resource: {apiVersion: v1, kind: ConfigMap, name: x}, patchType: json, patch: [{op: remove, path: /data/x}]}}"),
		"keys to remove":                    planText("target: {apiVersion: v1, kind: ConfigMap, name: x}", "- {name: a, type: annotate, properties: {operation: remove, annotations: [example.org/a]}}"),
		"a prefix that only ends like ours": planText("target: {apiVersion: v1, kind: ConfigMap, name: x}\ntriggers: {labels: [notmaint.dev/a]}"),
		"days as a duration":                planText("maxDuration: 30d"),
		"a job by its template":             planText("", "- {name: a, type: job, properties: {template: {template: {spec: {containers: [{name: a, image: b}]}}}}}"),
		"a job by its image":                planText("", "- {name: a, type: job, properties: {image: busybox, command: [sh, -c, 'echo hi']}}"),
		"a hundred steps": planText("", coretest.Repeat(func(i int) string {
			return "- {name: s" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ", type: suspend}"
		}, 100)...),
		"an empty list of finally": planText("finally: []"),
	} {
		t.Run(name, func(t *testing.T) { wantFaults(t, text) })
	}
}

func step(kind, properties string) string {
	return planText("", "- {name: a, type: "+kind+", properties: {"+properties+"}}")
}

// onAWS is a backup in an account of AWS.
func onAWS(properties string) string {
	return planText("", "- {name: a, type: backup, connectorRef: {kind: CloudProvider, name: aws}, properties: {"+properties+"}}")
}

const inGroup = "spec.steps[0].properties.steps"

func group(mode string, steps ...string) string {
	return "- {name: g, type: step-group, properties: {mode: " + mode + ", steps: [" + strings.Join(steps, ", ") + "]}}"
}

// nest is a step within steps, so many deep.
func nest(n int) string {
	text := "{name: s, type: suspend}"
	for i := range n {
		text = fmt.Sprintf("{name: g%d, type: step-group, properties: {steps: [%s]}}", i, text)
	}
	return "- " + text
}

func each(more string, instead ...string) string {
	of := "apiVersion: v1, kind: Pod"
	if len(instead) > 0 {
		of = instead[0]
	}
	return "- {name: e, type: for-each, properties: {" + strings.Trim(of+", "+more, ", ") + ", steps: [{name: s, type: suspend}]}}"
}

const resource = "resource: {apiVersion: apps/v1, kind: Deployment, name: orders}"

// One row for each rule: the fault, without its line, and nothing else.
func TestParseRefuses(t *testing.T) {
	p := "spec.steps[0].properties."
	sixtyFour := strings.Repeat("a", 64)
	for _, c := range []struct{ text, want string }{
		// the plan
		{planText("catchUp: last"), "spec.catchUp: must be one of latest, all, none, is \"last\"; did you mean latest?"},
		{planText("concurrencyPolicy: forbid"), "spec.concurrencyPolicy: must be one of Forbid, Allow, Replace, Queue, is \"forbid\"; did you mean Forbid?"},
		{planText("onWindowClose: stop"), "spec.onWindowClose: must be one of finish, wait, abort, is \"stop\""},
		{planText("startDeadline: 0s"), "spec.startDeadline: must be longer than 0s, is 0s"},
		{planText("maxDuration: -1h"), "spec.maxDuration: must be longer than 0s, is -1h0m0s"},
		{planText("maxDuration: 2562047h"), "spec.maxDuration: must be at most 36500d, is 2562047h0m0s"},
		{planText("approvalTimeout: soon"), "spec.approvalTimeout: \"soon\" is no duration: write it like 90s, 15m, 1h30m or 30d"},
		{planText("successfulRunsHistoryLimit: -1"), "spec.successfulRunsHistoryLimit: must be from 0 to 100, is -1"},
		{planText("failedRunsHistoryLimit: 101"), "spec.failedRunsHistoryLimit: must be from 0 to 100, is 101"},
		{planText("serviceAccountName: Not A Name"), "spec.serviceAccountName: \"Not A Name\" cannot name a ServiceAccount"},
		{planText("mirrorPrefix: request.maint.dev"), "spec.mirrorPrefix: \"request.maint.dev\" belongs to kubectl maint: write a prefix of your own, or mirror.maint.dev"},
		{planText("mirrorPrefix: maint.dev"), "spec.mirrorPrefix: \"maint.dev\" belongs to kubectl maint: write a prefix of your own, or mirror.maint.dev"},
		{planText("mirrorPrefix: UPPER"), "spec.mirrorPrefix: \"UPPER\" is no prefix: write it like mirror.example.org"},
		{planText("parameters: [{name: 'a b'}]"), "spec.parameters[0].name: \"a b\" cannot name a parameter: letters, digits, '-', '_' and '.'"},
		{planText("parameters: [{name: a}, {name: a}]"), "spec.parameters[1].name: \"a\" appears twice"},
		// not yet
		{planText("policies: [{name: A}]"), "spec.policies[0].name: \"A\" cannot name a policy: at most 63 characters of a-z, 0-9 and '-'"},
		{planText("policies: [{namespace: a}]"), "spec.policies[0].name: is missing: the name of a policy"},
		{planText("freezeTarget: true"), "spec.freezeTarget: needs spec.target: that is what is frozen"},
		{step("hibernate", ""), p + "plan: is missing"},
		{step("wake", "plan: 'A b'"), p + "plan: \"A b\" cannot name a HibernatePlan"},
		{planText("retryLimit: 101"), "spec.retryLimit: must be from 0 to 100, is 101"},
		// order, requires, restarts
		{planText("", "- {name: a, type: suspend, dependsOn: [b]}"), "spec.steps[0].dependsOn: is for the steps of a parallel step-group; others run in order"},
		{planText("", group("parallel", "{name: b, type: suspend, dependsOn: [b]}")), inGroup + "[0].dependsOn[0]: is the step itself"},
		{planText("", group("parallel", "{name: b, type: suspend, dependsOn: [cc]}", "{name: ccc, type: suspend}")), inGroup + `[0].dependsOn[0]: there is no step "cc" in this group; did you mean "ccc"?`},
		{planText("", group("parallel", "{name: b, type: suspend}", "{name: c, type: suspend, dependsOn: [b, b]}")), inGroup + `[1].dependsOn[1]: "b" appears twice`},
		{planText("", group("parallel", "{name: b, type: suspend, dependsOn: [c]}", "{name: c, type: suspend, dependsOn: [b]}")), inGroup + `[0].dependsOn: step "b" waits for itself through c`},
		{planText("", group("sequential", "{name: b, type: suspend}", "{name: c, type: suspend, dependsOn: [b]}")), inGroup + "[1].dependsOn: is for the steps of a parallel step-group; others run in order"},
		{planText("", "- {name: a, type: suspend, onRestart: retry}"), "spec.steps[0].onRestart: is for exec alone: steps of type suspend know how to go on"},
		{planText("", "- {name: a, type: exec, onRestart: again, properties: {pod: {name: db-0}, command: [ls]}}"), `spec.steps[0].onRestart: must be fail or retry, is "again"`},
		{planText("", "- {name: a, type: suspend, requires: [{name: b, apiVersion: v1, kind: Pod}]}"), "spec.steps[0].requires[0]: needs exactly one of objectName and matchLabels"},
		{planText("", "- {name: a, type: suspend, requires: [{name: b, apiVersion: v1, kind: Pod, objectName: a}, {name: b, apiVersion: v1, kind: Pod, objectName: a}]}"), `spec.steps[0].requires[1].name: "b" appears twice`},
		{planText("", "- {name: a, type: suspend, requires: [{name: b, apiVersion: v1, kind: Pod, objectName: a/b}]}"), `spec.steps[0].requires[0].objectName: "a/b" cannot name an object: no name is . or .., or has / or % in it`},
		{planText("", "- {name: a, type: suspend, requires: [{name: b, kind: Pod, objectName: a}]}"), "spec.steps[0].requires[0].apiVersion: is missing; write it like apps/v1"},
		{planText("", "- {name: a, type: suspend, requires: [{name: b, apiVersion: v1, kind: Pod, objectName: '${run.name}'}]}"), "spec.steps[0].requires[0].objectName: is taken as it stands: it cannot hold an expression"},
		// steps that hold steps
		{planText("", group("both", "{name: b, type: suspend}")), `spec.steps[0].properties.mode: must be sequential or parallel, is "both"`},
		{planText("", "- {name: g, type: step-group, properties: {mode: sequential, maxConcurrency: 2, steps: [{name: b, type: suspend}]}}"), "spec.steps[0].properties.maxConcurrency: is for mode: parallel"},
		{planText("", "- {name: g, type: step-group, properties: {mode: parallel, maxConcurrency: '${1}', steps: [{name: b, type: suspend}]}}"), "spec.steps[0].properties.maxConcurrency: cannot be an expression: it says how the steps run, and is taken as it stands"},
		{planText("", "- {name: g, type: step-group, properties: {steps: []}}"), inGroup + ": is empty: a step-group needs a step"},
		{planText("", "- {name: g, type: step-group, properties: {}}"), inGroup + ": is missing: a step of type step-group needs it"},
		{planText("", group("parallel", "{name: g, type: suspend}")), inGroup + `[0].name: "g" is already the name of spec.steps[0]`},
		{planText("", group("parallel", "{name: b, type: nobody}")), inGroup + `[0].type: unknown step type "nobody"; known are label`},
		{planText("", group("parallel", "{name: b, type: suspend, tiemout: 1s}")), inGroup + `[0].tiemout: unknown field; did you mean "timeout"?`},
		{planText("", group("parallel", "{name: b, type: suspend, timeout: '${run.name}'}")), inGroup + "[0].timeout: cannot be an expression: only properties are"},
		{planText("", group("parallel", "{name: b, type: webhook, properties: {url: 'https://example.org/${nobody}'}}")), inGroup + `[0].properties.url: "nobody" does not compile: `},
		{planText("", strings.Replace(group("parallel", "{name: b, type: suspend}"), "name: g", "name: finally", 1)), `spec.steps[0].name: "finally" cannot name a step that holds others: it is the name of a section`},
		{planText("", nest(6)), strings.Repeat(inGroup+"[0]", 1) + strings.Repeat(".properties.steps[0]", 4) + ".properties.steps: are too deep: steps may hold steps 5 times"},
		{planText("", group("parallel", coretest.Repeat(func(i int) string { return fmt.Sprintf("{name: s%d, type: suspend}", i) }, 100)...)), "spec.steps: a plan may have 100 steps, this one has 101"},
		// for-each
		{planText("", each("", "kind: Pod")), "spec.steps[0].properties.apiVersion: is missing: a step of type for-each needs it"},
		{planText("", each("batches: [10%, 5%]")), p + "batches: each must be larger than the one before: 5% comes after 10%"},
		{planText("", each("batches: [0]")), p + `batches[0]: "0" is no batch: write a number of objects, or a share like 10%`},
		{planText("", each("batches: [120%]")), p + `batches[0]: "120%" is no batch: write a number of objects, or a share like 10%`},
		{planText("", each("until: each.x == 1")), p + "until: \"each.x == 1\" does not compile: "},
		{planText("", each("order: random")), p + `order: must be name, oldest or newest, is "random"`},
		{planText("", each("onError: ignore")), p + `onError: must be stop or continue, is "ignore"`},
		{planText("", each("maxConcurrency: -1")), p + "maxConcurrency: must be from 1 to 100, is -1"},
		{planText("", each("selector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}")), p + `selector.matchExpressions[0].operator: must be one of In, NotIn, Exists, DoesNotExist, is "Like"`},
		// templates
		{planText("", "- {name: a, type: template/A_b}"), `spec.steps[0].type: "A_b" cannot name a template: write it like template/notify`},
		{planText("", "- {name: a, type: template/notify, properties: {text: '${params.x}'}}"), p + `text: "params.x" does not compile: `},
		// target and triggers
		{planText("target: {apiVersion: apps/v1, kind: Deployment}"), "spec.target.name: is missing; write it like orders"},
		{planText("target: {apiVersion: v1, kind: ConfigMap, name: ../x}"), "spec.target.name: \"../x\" cannot name an object: no name is . or .., or has / or % in it"},
		{planText("target: {apiVersion: v1, kind: ConfigMap, name: ..}"), "spec.target.name: \"..\" cannot name an object: no name is . or .., or has / or % in it"},
		{planText("target: {apiVersion: /v1, kind: Secret, name: b}"), "spec.target.apiVersion: \"/v1\" is no apiVersion; write it like apps/v1 or v1"},
		{planText("target: {apiVersion: a/b/c, kind: A, name: b}"), "spec.target.apiVersion: \"a/b/c\" is no apiVersion; write it like apps/v1 or v1"},
		{planText("triggers: {labels: [a]}"), "spec.triggers.labels: need a target: they are labels on it"},
		{planText("target: {apiVersion: v1, kind: A, name: b}\ntriggers: {labels: [a b]}"), "spec.triggers.labels[0]: \"a b\" is no key: write name or prefix.example.org/name, the name at most 63 letters, digits, '-', '_' and '.'"},
		{planText("target: {apiVersion: v1, kind: A, name: b}\ntriggers: {labels: [a, a]}"), "spec.triggers.labels[1]: \"a\" appears twice"},
		{planText("target: {apiVersion: v1, kind: A, name: b}\ntriggers: {labels: [maint.dev/phase]}"), "spec.triggers.labels[0]: \"maint.dev/phase\" belongs to kubectl maint: choose a prefix of your own"},
		{planText("triggers: {schedules: [{cron: '0 2 * * 6', timezone: Europe/Berln}]}"), "spec.triggers.schedules[0].timezone: "},
		{planText("triggers: {schedules: [{cron: '61 * * * *'}]}"), "spec.triggers.schedules[0].cron: "},
		{planText("triggers: {schedules: [{cron: '0 0 30 2 *'}]}"), "spec.triggers.schedules[0].cron: "},
		{planText("triggers: {schedules: [{rrule: 'FREQ=MINUTELY;BYSECOND=0,30'}]}"), "spec.triggers.schedules[0].rrule: BYSECOND names several seconds of a minute"},
		{planText("triggers: {schedules: [{cron: '* * * * *'}, {rrule: 'FREQ=MINUTELY;BYSECOND=30'}]}"), "spec.triggers.schedules[1]: fires at second 30 of a minute and schedules[0] at second 0, and a plan begins at most once in a minute"},
		{planText("triggers: {schedules: [" + strings.Repeat("{cron: '0 2 * * 6'},", 51) + "]}"), "spec.triggers.schedules: are 51; at most 50 are allowed"},
		{planText("triggers: {schedules: [{}]}"), "spec.triggers.schedules[0].cron: is missing; write one of cron, rrule and at"},
		{planText("triggers: {schedules: [{cron: '0 2 * * 6', at: '2026-01-01T00:00:00Z'}]}"), "spec.triggers.schedules[0]"},
		{planText("triggers: {schedules: [{cron: '0 2 * * 6', jitter: 25h}]}"), "spec.triggers.schedules[0].jitter: must be from 0s to 24h, is 25h0m0s"},
		// steps
		{"apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {}\n", "spec.steps: is empty: a plan needs a step"},
		{planText("", coretest.Repeat(func(i int) string { return "- {name: a, type: suspend}" }, 101)...), "spec.steps: a plan may have 100 steps, this one has 101"},
		{planText("", "- {name: a_b, type: suspend}"), "spec.steps[0].name: \"a_b\" cannot name a step: at most 63 characters of a-z, 0-9 and '-'"},
		{planText("", "- {name: "+sixtyFour+", type: suspend}"), "spec.steps[0].name: \"" + sixtyFour + "\" cannot name a step: at most 63 characters of a-z, 0-9 and '-'"},
		{planText("finally: [{name: pause, type: suspend}]"), "spec.finally[0].name: \"pause\" is already the name of spec.steps[0]"},
		{planText("", "- {name: a, type: suspend, timeout: 0s}"), "spec.steps[0].timeout: must be longer than 0s, is 0s"},
		{planText("", "- {name: a, type: suspend, retry: {limit: 101}}"), "spec.steps[0].retry.limit: must be from 0 to 100, is 101"},
		{planText("", "- {name: a, type: suspend, retry: {limit: 1, backoff: 0s}}"), "spec.steps[0].retry.backoff: must be longer than 0s, is 0s"},
		{planText("", "- {name: a, type: suspend, if: 'run.name +'}"), "spec.steps[0].if: \"run.name +\" does not compile: "},
		{planText("", "- {name: a, type: suspend, if: '1 + 1'}"), "spec.steps[0].if: \"1 + 1\" must give bool, gives int"},
		{planText("", "- {name: a, type: suspend, if: 'target.spec.paused'}"), "spec.steps[0].if: \"target.spec.paused\" does not compile: "},
		{planText("", "- {name: a, type: suspend, if: 'nobody.knows'}"), "spec.steps[0].if: \"nobody.knows\" does not compile: "},
		{planText("finally: [{name: b, type: scale, properties: {" + resource + ", replicas: 1, restoreAfter: true}}]"), "spec.finally[0].properties.restoreAfter: comes too late in finally: what a run found is put back before finally begins"},
		// templates
		{step("webhook", "url: https://example.org, body: '${run.name'"), p + "body: a ${ is not closed; write $${ for a literal ${"},
		{step("webhook", "url: https://example.org, body: {a: ['x ${nobody.name}']}"), p + "body.a[0]: \"nobody.name\" does not compile: "},
		{step("webhook", "url: https://example.org, body: '${each.name}'"), p + "body: \"each.name\" does not compile: "},
		{step("suspend", "duration: 'soon ${'"), p + "duration: a ${ is not closed; write $${ for a literal ${"},
		// label, annotate
		{step("label", "operation: add, labels: {a: b}"), p + "object: is missing, and the plan has no target to default to"},
		{step("label", "operation: set, labels: {a: b}, object: {apiVersion: v1, kind: A, name: b}"), p + "operation: must be add or remove, is \"set\""},
		{step("label", "operation: add, labels: [a], object: {apiVersion: v1, kind: A, name: b}"), p + "labels: must be a map of labels to add, like {team: payments}"},
		{step("label", "operation: add, labels: {a: 1}, object: {apiVersion: v1, kind: A, name: b}"), p + "labels: must be a map of labels to add, like {team: payments}"},
		{step("label", "operation: add, labels: {a: 'b c'}, object: {apiVersion: v1, kind: A, name: b}"), p + "labels.a: \"b c\" is no label value: at most 63 letters, digits, '-', '_' and '.'"},
		{step("label", "operation: add, labels: {a/b/c: b}, object: {apiVersion: v1, kind: A, name: b}"), p + "labels: \"a/b/c\" is no key: write name or prefix.example.org/name, the name at most 63 letters, digits, '-', '_' and '.'"},
		{step("label", "operation: remove, labels: {a: b}, object: {apiVersion: v1, kind: A, name: b}"), p + "labels: must be a list of keys to remove, like [maintenance]"},
		{step("label", "operation: remove, labels: [], object: {apiVersion: v1, kind: A, name: b}"), p + "labels: must be a list of keys to remove, like [maintenance]"},
		{step("label", "operation: add, object: {apiVersion: v1, kind: A, name: b}"), p + "labels: is missing: a step of type label needs it"},
		{step("annotate", "operation: add, annotations: {status.maint.dev/phase: x}, object: {apiVersion: v1, kind: A, name: b}"), p + "annotations: \"status.maint.dev/phase\" belongs to kubectl maint: choose a prefix of your own"},
		{step("annotate", "operation: add, annotations: {a: b}, object: {apiVersion: v1, kind: A}"), p + "object.name: is missing; write it like orders"},
		// patch-object, scale
		{step("patch-object", resource), p + "patch: is missing: a step of type patch-object needs it"},
		{step("patch-object", resource+", patch: text"), p + "patch: must be an object or, with patchType: json, a list of operations"},
		{step("patch-object", resource+", patch: []"), p + "patch: must be an object; a list of operations needs patchType: json"},
		{step("patch-object", resource+", patchType: json, patch: {}"), p + "patch: must be a list of operations, like [{op: replace, path: /spec/paused, value: true}]"},
		{step("patch-object", resource+", patchType: yaml, patch: {}"), p + "patchType: must be strategic, merge or json, is \"yaml\""},
		{step("patch-object", "patch: {a: b}"), p + "resource: is missing: a step of type patch-object needs it"},
		{step("scale", "resource: {apiVersion: apps/v1, kind: Deployment, name: a, namespace: '../b'}, replicas: 1"), p + "resource.namespace: \"../b\" is no namespace"},
		{step("scale", "resource: {apiVersion: apps/v1, kind: Deployment, name: 'a%2fb'}, replicas: 1"), p + "resource.name: \"a%2fb\" cannot name an object: no name is . or .., or has / or % in it"},
		{step("scale", resource), p + "replicas: is missing: a step of type scale needs it"},
		{step("scale", resource+", replicas: -1"), p + "replicas: must be from 0 to 1000000, is -1"},
		{step("scale", resource+", replicas: '3'"), p + "replicas: must be a whole number, is \"3\""},
		// suspend, wait
		{step("suspend", "duration: 0s"), p + "duration: must be longer than 0s; without a duration the run waits for kubectl maint resume"},
		{step("suspend", "duration: 2562047h"), p + "duration: must be at most 36500d, is 2562047h0m0s"},
		{step("wait", resource), "spec.steps[0].properties: needs exactly one of condition and until"},
		{step("wait", resource+", condition: Ready, until: 'true'"), "spec.steps[0].properties: needs exactly one of condition and until"},
		{step("wait", resource+", until: 'object.status ='"), p + "until: \"object.status =\" does not compile: "},
		{step("wait", resource+", until: 'run.name == \"a\"'"), p + "until: \"run.name == \\\"a\\\"\" does not compile: "},
		// webhook
		{step("webhook", "method: POST"), p + "url: is missing: a step of type webhook needs it"},
		{step("webhook", "url: example.org"), p + "url: \"example.org\" is no http or https URL"},
		{step("webhook", "url: 'ftp://example.org'"), p + "url: \"ftp://example.org\" is no http or https URL"},
		{step("webhook", "url: 'https://u:p@example.org'"), p + "url: must not hold a password; use headers with a secretKeyRef"},
		{step("webhook", "url: https://example.org, method: post"), p + "method: must be GET, POST, PUT, PATCH or DELETE, is \"post\""},
		{step("webhook", "url: https://example.org, headers: {X: ''}"), p + "headers.X: needs a value or a secretKeyRef, and not both"},
		{step("webhook", "url: https://example.org, headers: {X: {value: a, secretKeyRef: {name: a, key: b}}}"), p + "headers.X: needs a value or a secretKeyRef, and not both"},
		{step("webhook", "url: https://example.org, headers: {X: {secretKeyRef: {name: a}}}"), p + "headers.X: needs the secretKeyRef's name and key"},
		{step("webhook", "url: https://example.org, headers: {'X Y': a}"), p + "headers.X Y: \"X Y\" cannot name a header"},
		{step("webhook", "url: https://example.org, headers: {X: \"a\\nB: c\"}"), p + "headers.X: must be one line"},
		{step("webhook", "url: https://example.org, headers: {idempotency-key: '${run.name}'}"), p + "headers.idempotency-key: is set by the agent; choose another name"},
		{step("webhook", "url: https://example.org, timeout: 11m"), p + "timeout: must be from 1s to 10m, is 11m0s"},
		{step("webhook", "url: https://example.org, timeout: 1ms"), p + "timeout: must be from 1s to 10m, is 1ms"},
		{step("webhook", "url: https://example.org, expect: {status: [200, 600]}"), p + "expect.status[1]: must be an HTTP status from 100 to 599, is 600"},
		// apply-object, delete-object, restart, health-check
		{step("apply-object", "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: null}}"), p + "object.data.b: is null, which removes nothing under server-side apply: name the field in remove"},
		{step("apply-object", "object: {apiVersion: v1, kind: ConfigMap}"), p + "object.metadata.name: is missing"},
		{step("apply-object", "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: b}}"), p + "object.metadata.uid: is the API server's and cannot be applied"},
		{step("apply-object", "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, remove: [data]"), p + "remove: \"data\" points to no field that can go; write a JSON pointer like /spec/replicas"},
		{step("delete-object", resource+", propagationPolicy: Later"), p + "propagationPolicy: must be Background, Foreground or Orphan, is \"Later\""},
		{step("restart", "resource: {apiVersion: v1, kind: Pod, name: a}"), p + "resource.kind: must be Deployment, StatefulSet or DaemonSet, is \"Pod\""},
		{step("health-check", ""), "spec.steps[0].properties: needs exactly one of resource, selector and all"},
		{step("health-check", "all: true, selector: {matchLabels: {a: b}}"), "spec.steps[0].properties: needs exactly one of resource, selector and all"},
		{step("health-check", "selector: {kind: Pod, matchLabels: {a: b}}"), p + "selector: needs apiVersion and kind together, or neither"},
		// prometheus, silence, notification, function
		{step("prometheus", "url: https://p.example.org, query: up, condition: 'up > 3'"), p + "condition: \"up > 3\" does not compile: "},
		{step("prometheus", "url: https://p.example.org, query: up, condition: '>= 3', interval: 1ms"), p + "interval: must be from 1s to 24h0m0s, is 1ms"},
		{step("silence", "alertmanager: a, matchers: [{name: a, value: b}]"), p + "alertmanager: \"a\" is no http or https URL"},
		{step("silence", "alertmanager: https://a.example.org, matchers: []"), p + "matchers: is empty: a silence of everything is not meant"},
		{step("notification", "message: hello, sinks: []"), p + "sinks: is empty: name sinks of the agent's configuration"},
		{step("function", "endpoint: example.org"), p + "endpoint: \"example.org\" is no host and port; write it like fn.example.org:9443"},
		{step("function", "endpoint: 'a:1', tls: {insecure: true, secretName: b}"), p + "tls: insecure is plaintext: it goes with neither secretName nor serverName"},
		// exec, backup
		{step("exec", "pod: {name: a, matchLabels: {b: c}}, command: [ls]"), p + "pod: needs exactly one of name and labels (matchLabels, matchExpressions)"},
		{step("exec", "pod: {name: a}, command: []"), p + "command: is empty"},
		{step("backup", "method: rds"), p + "method: must be volume-snapshot, velero or rds-snapshot, is \"rds\""},
		{onAWS("method: rds-snapshot"), p + "component: is missing: the name or ARN of a database instance or of an Aurora cluster"},
		{onAWS("method: rds-snapshot, component: 'arn:aws:s3:::bucket'"), p + "component: \"arn:aws:s3:::bucket\" cannot name a database of RDS: write its name or its ARN"},
		{onAWS("method: rds-snapshot, component: orders, selector: {matchLabels: {a: b}}"), p + "selector: is for resources in the cluster; rds-snapshot takes a component"},
		{onAWS("method: rds-snapshot, component: orders, veleroNamespace: a"), p + "veleroNamespace: goes with method velero"},
		{onAWS("method: rds-snapshot, component: orders, retain: 0s"), p + "retain: must be longer than 0s, is 0s"},
		{step("backup", "method: rds-snapshot, component: orders"), "spec.steps[0].connectorRef: is missing: the CloudProvider in whose account the database is; write {kind: CloudProvider, name: …}"},
		{step("backup", "method: volume-snapshot"), "spec.steps[0].properties: volume-snapshot needs exactly one of component and selector"},
		{step("backup", "method: velero, component: db"), p + "component: velero takes a selector"},
		{step("backup", "method: velero, volumeSnapshotClass: a"), p + "volumeSnapshotClass: goes with method volume-snapshot"},
		// job
		{step("job", ""), "spec.steps[0].properties: needs exactly one of template (a Job's spec) and image"},
		{step("job", "image: a, template: {template: {spec: {containers: []}}}"), "spec.steps[0].properties: needs exactly one of template (a Job's spec) and image"},
		{step("job", "template: {}"), p + "template.template: is missing; a Job's spec holds a pod template here"},
		{step("job", "template: {template: {spec: {}}}"), p + "template.template.spec.containers: is missing; a Job needs a container"},
		{step("job", "template: {template: {spec: {containers: []}}}, command: [a]"), p + "command: stands in the template's containers when a template is given"},
	} {
		t.Run(c.want, func(t *testing.T) {
			got := faultsOf(c.text)
			for i, g := range got {
				_, got[i], _ = strings.Cut(g, ": ")
			}
			if len(got) == 0 {
				t.Fatalf("was accepted:\n%s", document.Cut(c.text, 1000))
			}
			if !strings.HasPrefix(got[0], c.want) {
				t.Error(cmp.Diff([]string{c.want}, got))
			}
			if len(got) > 1 && !strings.Contains(c.want, "schedules[0]") {
				t.Errorf("and besides: %q", got[1:])
			}
		})
	}
}

func TestPlanNames(t *testing.T) {
	text := []byte(planText(""))
	for _, name := range []string{"a", "orders-weekly", "0", strings.Repeat("a", 63)} {
		if _, faults := plan.Parse(text, name); len(faults) > 0 {
			t.Error(faults)
		}
	}
	for _, name := range []string{"A", "a.b", "-a", "a-", "a_b", "ä", strings.Repeat("a", 64), "a\n"} {
		_, faults := plan.Parse(text, name)
		if len(faults) != 1 || faults[0].Path != "metadata.name" {
			t.Errorf("%q: %v", name, faults)
		}
	}
}

func TestDefaultsAreTheContracts(t *testing.T) {
	s := plan.Spec{}.Defaulted()
	got := []any{s.ServiceAccountName, s.CatchUp, s.ConcurrencyPolicy, s.OnWindowClose, s.MirrorPrefix, s.StartDeadline.String(), s.MaxDuration.String(), s.ApprovalTimeout.String(), *s.SuccessfulRunsHistoryLimit, *s.FailedRunsHistoryLimit}
	want := []any{"maint-runner", plan.CatchUpLatest, plan.Forbid, plan.CloseFinish, "mirror.maint.dev", "1h0m0s", "1h0m0s", "24h0m0s", 3, 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
