package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/savings"
)

// compiled is a schema as somebody else's validator reads it.
func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	all, err := schemas("../..")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(all[name])
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatalf("%s is no JSON Schema: %v", name, err)
	}
	return s
}

// value is a document's text as JSON, read as the agent reads it.
func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	if _, faults := document.Decode([]byte(text), &v); len(faults) > 0 {
		t.Fatalf("%v in\n%s", faults, text)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// examples are the documents of one kind in the ConfigMaps of examples/, by the
// ConfigMap's name.
func examples(t *testing.T, kind string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	out := map[string]string{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(b), "\n---\n") {
			var cm struct {
				Metadata struct{ Name string }
				Data     map[string]string
			}
			if err := yaml.Unmarshal([]byte(part), &cm); err != nil {
				t.Fatal(err)
			}
			text := cm.Data["plan.yaml"]
			if text == "" {
				continue
			}
			var head struct{ Kind string }
			if err := yaml.Unmarshal([]byte(text), &head); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if head.Kind == kind {
				out[cm.Metadata.Name] = text
			}
		}
	}
	return out
}

func TestTheExamplesAreAsTheSchemaSays(t *testing.T) {
	for kind, file := range map[string]string{"Plan": "plan.schema.json", "HibernatePlan": "hibernateplan.schema.json"} {
		all := examples(t, kind)
		if len(all) == 0 {
			t.Fatalf("no example holds a %s", kind)
		}
		s := compiled(t, file)
		for name, text := range all {
			if err := s.Validate(value(t, text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// with is a valid plan with other lines in its spec, or other steps.
func with(spec, steps string) string {
	if steps == "" {
		steps = "[{name: hold, type: suspend}]"
	}
	return "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec:\n  target: {apiVersion: apps/v1, kind: Deployment, name: orders}\n  " + spec + "\n  steps: " + steps + "\n"
}

// Each case is put to the schema and to the validator of the agent: they are of
// one mind.
func TestTheSchemaSaysWhatTheValidatorSays(t *testing.T) {
	s := compiled(t, "plan.schema.json")
	for name, c := range map[string]struct {
		spec, steps string
		broken      bool
	}{
		"a plan of one step":                    {},
		"an unknown field":                      {spec: "sinceWhen: x", broken: true},
		"another kind of concurrency":           {spec: "concurrencyPolicy: Sometimes", broken: true},
		"every kind of concurrency":             {spec: "concurrencyPolicy: Queue"},
		"catching up with none":                 {spec: "catchUp: none"},
		"a duration in days":                    {spec: "startDeadline: 30d"},
		"a duration that is a number":           {spec: "startDeadline: fast", broken: true},
		"a history without end":                 {spec: "failedRunsHistoryLimit: 101", broken: true},
		"a cron schedule":                       {spec: "triggers: {schedules: [{cron: '0 2 * * 6', timezone: Europe/Berlin}]}"},
		"a schedule of two kinds":               {spec: "triggers: {schedules: [{cron: '0 2 * * 6', at: '2027-01-02T03:00:00', timezone: UTC}]}", broken: true},
		"a schedule of no kind":                 {spec: "triggers: {schedules: [{timezone: UTC}]}", broken: true},
		"no steps":                              {steps: "[]", broken: true},
		"a step without a name":                 {steps: "[{type: suspend}]", broken: true},
		"a step with a name in capitals":        {steps: "[{name: Hold, type: suspend}]", broken: true},
		"a step of an unknown type":             {steps: "[{name: a, type: reboot}]", broken: true},
		"a step that does not say what sleeps":  {steps: "[{name: a, type: hibernate}]", broken: true},
		"a node to drain":                       {steps: "[{name: a, type: drain, properties: {node: worker-1, force: true, timeout: 5m, gracePeriod: 30s, onTimeout: skip}}]"},
		"an odd end of a drain":                 {steps: "[{name: a, type: drain, properties: {node: worker-1, onTimeout: panic}}]", broken: true},
		"nodes to cordon":                       {steps: "[{name: a, type: cordon, properties: {selector: {matchLabels: {pool: gpu}}}}]"},
		"a node to cordon, and nodes":           {steps: "[{name: a, type: cordon, properties: {node: worker-1, selector: {matchLabels: {pool: gpu}}}}]", broken: true},
		"a rollout over nodes":                  {steps: "[{name: r, type: for-each-node, properties: {selector: {matchLabels: {pool: gpu}}, maxUnavailable: 10%, canary: 0, order: oldest-first, soak: 2m, estimate: 20m, onError: continue, maxFailures: 2, steps: [{name: d, type: drain}, {name: u, type: uncordon}]}}]"},
		"a rollout without steps":               {steps: "[{name: r, type: for-each-node, properties: {selector: {matchLabels: {pool: gpu}}, steps: []}}]", broken: true},
		"a rollout with an odd limit":           {steps: "[{name: r, type: for-each-node, properties: {selector: {matchLabels: {pool: gpu}}, maxUnavailable: abc%, steps: [{name: d, type: drain}]}}]", broken: true},
		"a rollout in another order":            {steps: "[{name: r, type: for-each-node, properties: {selector: {matchLabels: {pool: gpu}}, order: newest, steps: [{name: d, type: drain}]}}]", broken: true},
		"labels to add as a map":                {steps: "[{name: a, type: label, properties: {operation: add, labels: {a: b}}}]"},
		"labels to add as a list":               {steps: "[{name: a, type: label, properties: {operation: add, labels: [a]}}]", broken: true},
		"labels to remove as a list":            {steps: "[{name: a, type: label, properties: {operation: remove, labels: [a]}}]"},
		"labels to remove as a map":             {steps: "[{name: a, type: label, properties: {operation: remove, labels: {a: b}}}]", broken: true},
		"annotations to add":                    {steps: "[{name: a, type: annotate, properties: {operation: add, annotations: {a: '${run.name}'}, restoreAfter: true}}]"},
		"a label step that says nothing":        {steps: "[{name: a, type: label}]", broken: true},
		"a patch that is an object":             {steps: "[{name: a, type: patch-object, properties: {resource: {apiVersion: v1, kind: Pod, name: x}, patch: {spec: {}}}}]"},
		"a patch that is a list":                {steps: "[{name: a, type: patch-object, properties: {resource: {apiVersion: v1, kind: Pod, name: x}, patch: []}}]", broken: true},
		"a JSON patch":                          {steps: "[{name: a, type: patch-object, properties: {resource: {apiVersion: v1, kind: Pod, name: x}, patchType: json, patch: [{op: remove, path: /a}]}}]"},
		"a patch of nothing":                    {steps: "[{name: a, type: patch-object, properties: {patch: {}}}]", broken: true},
		"a resource without a name":             {steps: "[{name: a, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment}, replicas: 1}}]", broken: true},
		"replicas":                              {steps: "[{name: a, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: x}, replicas: 0}}]"},
		"replicas from a parameter":             {steps: "[{name: a, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: x}, replicas: '${1 + 1}'}}]"},
		"replicas as a word":                    {steps: "[{name: a, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: x}, replicas: two}}]", broken: true},
		"fewer replicas than none":              {steps: "[{name: a, type: scale, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: x}, replicas: -1}}]", broken: true},
		"a suspend that ends":                   {steps: "[{name: a, type: suspend, properties: {duration: 2h}}]"},
		"a property of another type":            {steps: "[{name: a, type: suspend, properties: {url: x}}]", broken: true},
		"a wait for a condition":                {steps: "[{name: a, type: wait, properties: {resource: {apiVersion: v1, kind: Pod, name: x}, condition: Ready}}]"},
		"a wait for two things":                 {steps: "[{name: a, type: wait, properties: {resource: {apiVersion: v1, kind: Pod, name: x}, condition: Ready, until: 'true'}}]", broken: true},
		"a wait for nothing":                    {steps: "[{name: a, type: wait, properties: {resource: {apiVersion: v1, kind: Pod, name: x}}}]", broken: true},
		"a webhook with all it may have":        {steps: "[{name: a, type: webhook, retry: {limit: 3, backoff: 2s}, properties: {url: 'https://x.example.org', method: PUT, headers: {A: b, C: {secretKeyRef: {name: s, key: k}}}, body: {a: 1}, timeout: 5s, expect: {status: [200], json: {ok: true}}}}]"},
		"a webhook without a url":               {steps: "[{name: a, type: webhook, properties: {method: GET}}]", broken: true},
		"a webhook with an odd method":          {steps: "[{name: a, type: webhook, properties: {url: 'https://x.example.org', method: FETCH}}]", broken: true},
		"a job from an image":                   {steps: "[{name: a, type: job, properties: {image: 'example.org/a', command: [a, b]}}]"},
		"a job from an image and a template":    {steps: "[{name: a, type: job, properties: {image: 'example.org/a', template: {template: {spec: {containers: []}}}}}]", broken: true},
		"a job from nothing":                    {steps: "[{name: a, type: job}]", broken: true},
		"more retries than anybody waits for":   {steps: "[{name: a, type: suspend, retry: {limit: 101}}]", broken: true},
		"finally":                               {spec: "finally: [{name: over, type: suspend}]"},
		"a broken step in finally":              {spec: "finally: [{name: over, type: suspnd}]", broken: true},
		"a watch":                               {spec: "triggers: {watch: [{apiVersion: v1, kind: Pod, namespace: '*', selector: {matchLabels: {a: b}}, fields: [spec.nodeName], events: [create, update], when: 'object.spec.x > 1'}]}"},
		"a watch of no kind":                    {spec: "triggers: {watch: [{apiVersion: v1}]}", broken: true},
		"a watch of an unknown event":           {spec: "triggers: {watch: [{apiVersion: v1, kind: Pod, events: [changed]}]}", broken: true},
		"a policy":                              {spec: "policies: [{name: weekends, namespace: shared}]"},
		"a policy without a name":               {spec: "policies: [{namespace: shared}]", broken: true},
		"approval":                              {spec: "requiresApproval: true\n  approvalTimeout: 2h", steps: "[{name: ask, type: approval, properties: {message: 'now?', timeout: 1h}}]"},
		"what is asked not to happen":           {spec: "freezeTarget: false\n  onWindowClose: finish"},
		"waiting for a window":                  {spec: "onWindowClose: wait"},
		"something else at the end of a window": {spec: "onWindowClose: panic", broken: true},
		"freezing its target":                   {spec: "freezeTarget: true"},
		"retries of a run":                      {spec: "retryLimit: 1"},
		"too many retries of a run":             {spec: "retryLimit: 101", broken: true},
		"steps side by side":                    {steps: "[{name: g, type: step-group, properties: {mode: parallel, maxConcurrency: 2, steps: [{name: b, type: suspend}, {name: c, type: suspend, dependsOn: [b]}]}}]"},
		"a group of nothing":                    {steps: "[{name: g, type: step-group, properties: {steps: []}}]", broken: true},
		"a broken step in a group":              {steps: "[{name: g, type: step-group, properties: {steps: [{name: b, type: nobody}]}}]", broken: true},
		"a group of another mode":               {steps: "[{name: g, type: step-group, properties: {mode: any, steps: [{name: b, type: suspend}]}}]", broken: true},
		"a loop in batches":                     {steps: "[{name: e, type: for-each, properties: {apiVersion: v1, kind: Pod, batches: [1%, 10, 50%, 100%], until: 'object.x', onError: continue, order: oldest, maxConcurrency: 3, steps: [{name: b, type: suspend}]}}]"},
		"a loop in odd batches":                 {steps: "[{name: e, type: for-each, properties: {apiVersion: v1, kind: Pod, batches: [120%], steps: [{name: b, type: suspend}]}}]", broken: true},
		"a loop over no kind":                   {steps: "[{name: e, type: for-each, properties: {apiVersion: v1, steps: [{name: b, type: suspend}]}}]", broken: true},
		"required objects":                      {steps: "[{name: a, type: suspend, requires: [{name: x, apiVersion: v1, kind: Pod, objectName: x}, {name: y, apiVersion: v1, kind: Pod, matchLabels: {a: b}}]}]"},
		"required objects by nothing":           {steps: "[{name: a, type: suspend, requires: [{name: x, apiVersion: v1, kind: Pod}]}]", broken: true},
		"a word on restarts":                    {steps: "[{name: a, type: exec, onRestart: retry, properties: {pod: {name: db-0}, command: [ls]}}]"},
		"an odd word on restarts":               {steps: "[{name: a, type: exec, onRestart: maybe, properties: {pod: {name: db-0}, command: [ls]}}]", broken: true},
		"a template":                            {steps: "[{name: a, type: template/notify, properties: {text: hello}}]"},
		"a template with no name":               {steps: "[{name: a, type: template/}]", broken: true},
		"an object to apply":                    {steps: "[{name: a, type: apply-object, properties: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, remove: [/data/x], force: true}}]"},
		"an object to delete":                   {steps: "[{name: a, type: delete-object, properties: {resource: {apiVersion: v1, kind: Pod, name: x}, propagationPolicy: Foreground, preconditions: {uid: x}}}]"},
		"an odd deletion":                       {steps: "[{name: a, type: delete-object, properties: {resource: {apiVersion: v1, kind: Pod, name: x}, propagationPolicy: Slowly}}]", broken: true},
		"a restart":                             {steps: "[{name: a, type: restart, properties: {resource: {apiVersion: apps/v1, kind: Deployment, name: x}}}]"},
		"health of one and of all":              {steps: "[{name: a, type: health-check, properties: {all: true, resource: {apiVersion: v1, kind: Pod, name: x}}}]", broken: true},
		"health of what is labelled":            {steps: "[{name: a, type: health-check, properties: {selector: {matchLabels: {a: b}}}}]"},
		"a query":                               {steps: "[{name: a, type: prometheus, properties: {url: 'https://p.example.org', query: up, condition: '>= 1', for: 5m, failAfter: 1h}}]"},
		"a silence of everything":               {steps: "[{name: a, type: silence, properties: {alertmanager: 'https://a.example.org', matchers: []}}]", broken: true},
		"a notification":                        {steps: "[{name: a, type: notification, properties: {message: 'hello', sinks: [ops]}}]"},
		"a command":                             {steps: "[{name: a, type: exec, properties: {pod: {matchLabels: {a: b}}, command: [ls]}}]"},
		"a command of nothing":                  {steps: "[{name: a, type: exec, properties: {pod: {matchLabels: {a: b}}, command: []}}]", broken: true},
		"a backup":                              {steps: "[{name: a, type: backup, properties: {method: volume-snapshot, component: db, retain: 30d}}]"},
		"a snapshot of RDS":                     {steps: "[{name: a, type: backup, connectorRef: {kind: CloudProvider, name: aws}, properties: {method: rds-snapshot, component: orders}}]"},
		"a snapshot of RDS in no account":       {steps: "[{name: a, type: backup, properties: {method: rds-snapshot, component: orders}}]", broken: true},
		"a snapshot of RDS on a cluster":        {steps: "[{name: a, type: backup, connectorRef: {kind: K8SCluster, name: stg}, properties: {method: rds-snapshot, component: orders}}]", broken: true},
		"a claim's backup in an account":        {steps: "[{name: a, type: backup, connectorRef: {kind: CloudProvider, name: aws}, properties: {method: velero}}]", broken: true},
		"a plan in an account":                  {spec: "connectorRef: {kind: CloudProvider, name: aws}", broken: true},
		"a backup of an odd kind":               {steps: "[{name: a, type: backup, properties: {method: tape}}]", broken: true},
		"an installed function":                 {steps: "[{name: a, type: function, properties: {functionRef: {name: resize}}}]"},
		"a function that is nowhere":            {steps: "[{name: a, type: function, properties: {}}]", broken: true},
		"a function that is in two places":      {steps: "[{name: a, type: function, properties: {endpoint: 'fn.example.org:9443', functionRef: {name: resize}}}]", broken: true},
		"a function without properties":         {steps: "[{name: a, type: function}]", broken: true},
		"a pipeline":                            {steps: "[{name: a, type: pipeline, properties: {functions: [{name: b, endpoint: 'fn.example.org:9443'}, {name: c, functionRef: {name: resize}, credentials: [{name: c, secretName: s}]}], force: true}}]"},
		"a pipeline without functions":          {steps: "[{name: a, type: pipeline, properties: {functions: []}}]", broken: true},
		"a pipeline of a function that is none": {steps: "[{name: a, type: pipeline, properties: {functions: [{name: b}]}}]", broken: true},
		"a function":                            {steps: "[{name: a, type: function, properties: {endpoint: 'fn.example.org:9443', input: {a: 1}, credentials: [{name: c, secretName: s}], tls: {insecure: true}}}]"},
	} {
		t.Run(name, func(t *testing.T) {
			text := with(c.spec, c.steps)
			_, faults := plan.Parse([]byte(text), "orders")
			err := s.Validate(value(t, text))
			if (len(faults) > 0) != c.broken {
				t.Errorf("the validator says %v of\n%s", faults, text)
			}
			if (err != nil) != c.broken {
				t.Errorf("the schema says %v of\n%s", err, text)
			}
		})
	}
}

func TestTheAgentConfigurationsSchemaSaysWhatTheValidatorSays(t *testing.T) {
	s := compiled(t, "agentconfig.schema.json")
	for spec, broken := range map[string]bool{
		"{}": false,
		"{logLevel: debug, outbound: {allow: ['*.example.org']}, retention: {runs: 30d}}": false,
		"{steps: [{namespaces: ['tenant-*'], deny: [job]}]}":                              false,
		"{nodes: {maxParallelOperations: 10%, maxUnavailable: '3', zoneLimit: 1}}":        false,
		"{nodes: {maxParallelOperations: 0, maxNodeMaintenanceTime: 2h}}":                 false,
		"{nodes: {maxUnavailable: abc%}}":                                                 true,
		"{nodes: {maxUnavailable: 101%}}":                                                 true,
		"{nodes: {maxParallelOperations: -1}}":                                            true,
		"{nodes: {zoneLimit: -1}}":                                                        true,
		"{nodes: {pauseMachineConfigPool: true}}":                                         false,
		"{functions: {tlsSecretRef: {name: maint-function-tls}}}":                         false,
		"{functions: {tlsSecretRef: {}}}":                                                 true,
		"{minimumWindow: {hours: 8, per: 30d}}":                                           false,
		"{minimumWindow: {hours: 0, per: 30d}}":                                           true,
		"{minimumWindow: {hours: 8}}":                                                     true,
		"{lifecycleConditions: false}":                                                    false,
		"{lifecycleConditions: maybe}":                                                    true,
		"{logLevel: loud}":                                                                true,
		"{retention: {runs: 30}}":                                                         true,
		"{outbond: {}}":                                                                   true,
	} {
		text := "apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: " + spec + "\n"
		_, faults := agentconfig.Parse([]byte(text))
		err := s.Validate(value(t, text))
		if (len(faults) > 0) != broken || (err != nil) != broken {
			t.Errorf("%s: the validator says %v, the schema says %v", spec, faults, err)
		}
	}
}

func TestThePricesSchemaSaysWhatTheValidatorSays(t *testing.T) {
	s := compiled(t, "prices.schema.json")
	for name, c := range map[string]struct {
		text   string
		broken bool
	}{
		"two types":           {text: "{currency: USD, hourly: {ec2: {m5.large: 0.096, '*': 0}, workload: {cpu: 0.03}}}"},
		"no currency":         {text: "{hourly: {ec2: {m5.large: 0.096}}}", broken: true},
		"an unknown currency": {text: "{currency: dollar, hourly: {ec2: {m5.large: 0.096}}}", broken: true},
		"no prices":           {text: "{currency: USD, hourly: {}}", broken: true},
		"a price below zero":  {text: "{currency: USD, hourly: {ec2: {m5.large: -1}}}", broken: true},
		"the highest price":   {text: "{currency: USD, hourly: {ec2: {m5.large: 1000000000}}}"},
		"a price above it":    {text: "{currency: USD, hourly: {ec2: {m5.large: 1000000001}}}", broken: true},
		"a price in words":    {text: "{currency: USD, hourly: {ec2: {m5.large: cheap}}}", broken: true},
		"an unknown field":    {text: "{currency: USD, hourly: {ec2: {a: 1}}, monthly: {}}", broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, faults := savings.ParsePrices([]byte(c.text)); (len(faults) > 0) != c.broken {
				t.Fatalf("the validator says %v", faults)
			}
			if err := s.Validate(value(t, c.text)); (err != nil) != c.broken {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

func TestThePatternsAreTheParsers(t *testing.T) {
	duration, name := regexp.MustCompile(durationPattern), regexp.MustCompile(namePattern)
	for _, text := range []string{"90s", "1h30m", "30d", "1.5h", "2d12h", "", "5", "-5s", "1 h", "h", "3us"} {
		_, err := document.ParseDuration(text)
		if positive := err == nil && !strings.HasPrefix(text, "-"); duration.MatchString(text) != positive {
			t.Errorf("duration %q: the pattern says %t, the parser says %v", text, duration.MatchString(text), err)
		}
	}
	for _, text := range []string{"a", "a-1", "1a", "-a", "a-", "A", "a.b", "a_b", ""} {
		if name.MatchString(text) != document.DNSLabel(text) {
			t.Errorf("name %q: the pattern says %t, the validator %t", text, name.MatchString(text), document.DNSLabel(text))
		}
	}
}

func TestEveryTypeHasADescription(t *testing.T) {
	all, err := schemas("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range all {
		for kind, d := range s.Definitions {
			if d.Description == "" {
				t.Errorf("%s: %s has no description", name, kind)
			}
		}
	}
}

// What a policy's schema cannot say (a zone, a day that no month has) the
// validator says alone.
func TestThePolicySchemaSaysWhatTheValidatorSays(t *testing.T) {
	s := compiled(t, "policy.schema.json")
	for name, c := range map[string]struct {
		spec   string
		broken bool
	}{
		"open":                  {spec: "strategy: Permissive"},
		"weekly windows":        {spec: "strategy: MaintenanceSchedule\n  maintenanceSchedule: {timezone: Europe/Berlin, windows: [{days: [Sat], start: '22:00', end: '06:00'}], exclude: [{fromDate: '2026-12-18'}, {calendar: {name: days}}]}"},
		"a month by number":     {spec: "strategy: MaintenanceSchedule\n  maintenanceSchedule: {permit: {recurrence: {frequency: Yearly, yearly: {by: Date, date: {datesOfMonth: [1], month: 3}}}}}"},
		"no strategy":           {spec: "maintenanceSchedule: {permit: {}}", broken: true},
		"an unknown strategy":   {spec: "strategy: ByPolicy", broken: true},
		"an interval too long":  {spec: "strategy: MaintenanceSchedule\n  maintenanceSchedule: {permit: {recurrence: {frequency: Daily, daily: {interval: 731}}}}", broken: true},
		"an unknown field":      {spec: "strategy: Permissive\n  windows: []", broken: true},
		"a frequency of no use": {spec: "strategy: MaintenanceSchedule\n  maintenanceSchedule: {permit: {recurrence: {frequency: Hourly}}}", broken: true},
		"gates":                 {spec: "strategy: Permissive\n  gates: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, selector: {matchLabels: {a: b}}, knob: flux}, {apiVersion: v1, kind: X, namespace: y, name: z, knob: {path: spec.a, closed: 1, open: null}}]"},
		"no such knob":          {spec: "strategy: Permissive\n  gates: [{apiVersion: v1, kind: X, knob: flx}]", broken: true},
		"half a knob":           {spec: "strategy: Permissive\n  gates: [{apiVersion: v1, kind: X, knob: {path: spec.a, closed: 1}}]", broken: true},
		"a knob of a list":      {spec: "strategy: Permissive\n  gates: [{apiVersion: v1, kind: X, knob: {path: spec.a, closed: [], open: null}}]", broken: true},
		"a gate on everything":  {spec: "strategy: Permissive\n  gates: [{apiVersion: v1, kind: X, namespace: '*', knob: crossplane}]", broken: true},
		"a gate without a kind": {spec: "strategy: Permissive\n  gates: [{apiVersion: v1, knob: crossplane}]", broken: true},
		"a gate named twice":    {spec: "strategy: Permissive\n  gates: [{apiVersion: v1, kind: X, name: a, selector: {}, knob: crossplane}]", broken: true},
		"an unknown operator":   {spec: "strategy: Permissive\n  gates: [{apiVersion: v1, kind: X, selector: {matchExpressions: [{key: a, operator: Is}]}, knob: crossplane}]", broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: maint.dev/v1alpha1\nkind: Policy\nspec:\n  " + c.spec + "\n"
			_, faults := policy.Parse([]byte(text))
			if (len(faults) > 0) != c.broken {
				t.Errorf("the validator says %s of\n%s", faults.Error(), text)
			}
			if err := s.Validate(value(t, text)); (err != nil) != c.broken {
				t.Errorf("the schema says %v of\n%s", err, text)
			}
		})
	}
}

// What a HibernatePlan's schema cannot say (a clock that is none, a ring of dependencies)
// the validator says alone.
func TestTheHibernatePlansSchemaSaysWhatTheValidatorSays(t *testing.T) {
	s := compiled(t, "hibernateplan.schema.json")
	const hours = "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"
	const all = hours + ", targets: [{name: a, type: noop}, {name: b, type: noop}]"
	target := func(rest string) string { return hours + ", targets: [{name: a, " + rest + "}]" }
	for spec, broken := range map[string]bool{
		all: false,
		"schedule: {timezone: Asia/Jakarta, offHours: [{start: Fri 20:00, end: Mon 06:00}], exclude: [{fromDate: '2026-12-24', reason: launch}]}, targets: [{name: a, type: noop}]": false,
		"schedule: {offHours: [{start: '20:00', end: '06:00'}], exclude: [{calendar: {name: days}}]}, targets: [{name: a, type: noop}]":                                             true,
		"schedule: {offHours: []}, targets: [{name: a, type: noop}]":                                                                                                                true,
		hours:                   true,
		hours + ", targets: []": true,
		target("type: rds"):     true,
		target("typ: noop"):     true,
		target("type: noop, parameters: {delay: 3s, failShutdown: 2, timeout: 5m}"): false,
		target("type: noop, parameters: {delai: 3s}"):                               true,
		target("type: noop, parameters: {failWakeUp: -1}"):                          true,
		target("type: noop, parameters: {floor: 1}"):                                true,
		target("type: workload, parameters: {namespaces: [shop], kinds: [Deployment, {apiVersion: x.org/v1, kind: App}], floor: 1, order: [App]}"):                                          false,
		target("type: workload, parameters: {kinds: [Rollout]}"):                                                                                                                            true,
		target("type: workload, parameters: {kinds: [{kind: App}]}"):                                                                                                                        true,
		target("type: workload, parameters: {namespaces: [a], namespaceSelector: {}}"):                                                                                                      true,
		target("type: workload, parameters: {selector: {matchExpressions: [{key: a, operator: Is}]}}"):                                                                                      true,
		target("type: workload, parameters: {floor: -1}"):                                                                                                                                   true,
		target("type: ec2, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {tags: {env: stg}}}"):                                                                     false,
		target("type: ec2, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {ids: []}}"):                                                                              true,
		target("type: ec2, connectorRef: {kind: CloudProvider, name: stg}, parameters: {}"):                                                                                                 true,
		target("type: ec2, connectorRef: {kind: CloudProvider, name: stg}"):                                                                                                                 true,
		target("type: ec2, connectorRef: {kind: K8SCluster, name: stg}, parameters: {selector: {tags: {env: stg}}}"):                                                                        true,
		target("type: asg, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {ids: [web]}, timeout: 20m}"):                                                             false,
		target("type: asg, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {ids: [web]}, strategy: StopInstances}"):                                                  false,
		target("type: asg, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {ids: [web]}, strategy: Stop}"):                                                           true,
		target("type: asg, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {excludeTags: {env: prod}}}"):                                                             true,
		target("type: asg, connectorRef: {kind: K8SCluster, name: stg}, parameters: {selector: {ids: [web]}}"):                                                                              true,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {managedNodeGroups: {names: [a]}, computePolicy: {mode: ManagedNodeGroups}}"):                           false,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {managedNodeGroups: {}}"):                                                                               true,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {}"):                                                                                                    true,
		target("type: eks, connectorRef: {kind: CloudProvider, name: stg}, parameters: {managedNodeGroups: {names: [a]}}"):                                                                  true,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {managedNodeGroups: {names: [a]}, computePolicy: {mode: Both}}"):                                        false,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {managedNodeGroups: {names: [a]}, karpenter: {}}"):                                                      false,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Karpenter}}"):                                                                    false,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {karpenter: {nodePools: [a]}}"):                                                                         false,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Both, order: [ManagedNodeGroups, Karpenter]}, managedNodeGroups: {names: [a]}}"): false,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Both}, karpenter: {}}"):                                                          true,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Karpenter}, managedNodeGroups: {names: [a]}}"):                                   true,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: ManagedNodeGroups}, karpenter: {}, managedNodeGroups: {names: [a]}}"):            true,
		target("type: eks, connectorRef: {kind: K8SCluster, name: stg}, parameters: {computePolicy: {mode: Both, order: [karpenter]}, managedNodeGroups: {names: [a]}}"):                    true,
		target("type: function, parameters: {endpoint: 'fn:9443', input: {a: 1}, credentials: [{name: a, secretName: b}], tls: {insecure: true}}"):                                          false,
		target("type: function, parameters: {input: {a: 1}}"):                                                                                                                               true,
		target("type: function, parameters: {endpoint: 'fn:9443', input: {operation: wake}}"):                                                                                               true,
		target("type: ec2, parameters: {selector: {tags: {env: stg}}}"):                                                                                                                     true,
		all + ", execution: {strategy: {type: DAG, maxConcurrency: 3, dependencies: [{from: a, to: b}]}}":                                                                                   false,
		all + ", execution: {strategy: {type: Staged}, stages: [{name: one, parallel: true, targets: [a]}, {targets: [b]}]}":                                                                false,
		all + ", execution: {strategy: {type: DAG, maxConcurrency: 0}}":                                                                                                                     true,
		all + ", execution: {strategy: {type: Random}}":                                                                                                                                     true,
		all + ", execution: {strategy: {type: Staged, stages: [{targets: []}]}}":                                                                                                            true,
		all + ", behavior: {mode: BestEffort, retries: 3, failFast: false}":                                                                                                                 false,
		all + ", behavior: {mode: Lenient}":      true,
		all + ", behavior: {retries: 21}":        true,
		all + ", keepSnapshots: 0":               true,
		all + ", healthChecks: [{all: true}]":    false,
		all + ", healthChecks: [{selektor: {}}]": true,
		all + ", exceptions: [{type: suspend, validFrom: '2026-03-01T00:00:00Z', validUntil: '2026-03-02T00:00:00Z', leadTime: 30m}]": false,
		all + ", exceptions: [{type: pause, validFrom: '2026-03-01T00:00:00Z', validUntil: '2026-03-02T00:00:00Z'}]":                  true,
		all + ", exceptions: [{type: suspend, validFrom: '2026-03-01T00:00:00Z'}]":                                                    true,
		all + ", policies: [{name: Weekends}]": true,
		all + ", steps: []":                    true,
	} {
		text := "apiVersion: maint.dev/v1alpha1\nkind: HibernatePlan\nspec: {" + spec + "}\n"
		_, faults := hibernate.Parse([]byte(text))
		err := s.Validate(value(t, text))
		if (len(faults) > 0) != broken || (err != nil) != broken {
			t.Errorf("%s: the validator says %v, the schema says %v", spec, faults, err)
		}
	}
}
