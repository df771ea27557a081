package agentconfig_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

func TestAgentConfig(t *testing.T) {
	head := "apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec:\n"
	config, faults := agentconfig.Parse([]byte(head + "  steps: [{namespaces: [\"team-*\", shop], deny: [job, exec]}, {namespaces: [\"*\"], deny: [webhook]}]\n  outbound: {allow: [10.0.0.0/8, example.org, \"*.example.org\", \"::1\"]}\n  retention: {runs: 7d}\n  logLevel: debug\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for namespace, want := range map[string][]string{"team-a": {"job", "exec", "webhook"}, "shop": {"job", "exec", "webhook"}, "shopping": {"webhook"}} {
		if diff := cmp.Diff(want, config.Denied(namespace)); diff != "" {
			t.Errorf("%s: %s", namespace, diff)
		}
	}
	const sinks = "  notifications: {sinks: ["
	for text, want := range map[string]string{
		"  logLevel: loud\n":                                "spec.logLevel: must be one of debug, info, warn, error, is \"loud\"",
		"  steps: [{namespaces: [a], deny: [webhok]}]\n":    "spec.steps[0].deny[0]: unknown step type \"webhok\"; did you mean \"webhook\"?",
		"  steps: [{deny: [webhook]}]\n":                    "spec.steps[0].namespaces: is missing: name the namespaces, or \"*\" for all",
		"  steps: [{namespaces: [\"*-a\"], deny: [job]}]\n": "spec.steps[0].namespaces[0]: \"*-a\" is no namespace: write its name, or a beginning and *, like team-*",
		"  outbound: {deny: [\"http://a\"]}\n":              "spec.outbound.deny[0]: \"http://a\" is no host name, *.domain, address or CIDR",
		"  retention: {runs: 0d}\n":                         "spec.retention.runs: must be longer than 0s, is 0s",
		"  colour: red\n":                                   "spec.colour: unknown field; known are functions, lifecycleConditions, logLevel, minimumWindow, nodes, notifications, outbound, retention, steps",
		sinks + "{name: ops, urlSecretRef: {name: a, key: b}}, {name: ops, urlSecretRef: {name: a, key: b}}]}\n": "spec.notifications.sinks[1].name: \"ops\" appears twice",
		"  functions: {tlsSecretRef: {name: A_B}}\n":                                                             "spec.functions.tlsSecretRef.name: \"A_B\" is no name of a Secret; it stands in the agent's own namespace",
		"  minimumWindow: {hours: 8}\n":                                                                          "spec.minimumWindow.per: is missing; write it like 30d",
		"  minimumWindow: {hours: 8, per: 30m}\n":                                                                "spec.minimumWindow.per: must be from 1h to 366d, is 30m0s",
		"  minimumWindow: {hours: 0, per: 30d}\n":                                                                "spec.minimumWindow.hours: must be more than 0 and at most the hours of per, 720, is 0",
		"  minimumWindow: {hours: 25, per: 1d}\n":                                                                "spec.minimumWindow.hours: must be more than 0 and at most the hours of per, 24, is 25",
		"  lifecycleConditions: maybe\n":                                                                         "spec.lifecycleConditions: must be true or false, is \"maybe\"",
		"  notifications: {before: 30s}\n":                                                                       "spec.notifications.before: must be from 1m to 7d, is 30s",
		sinks + "{name: Ops, urlSecretRef: {name: a, key: b}}]}\n":                                               "spec.notifications.sinks[0].name: \"Ops\" is no name: write lower case letters, digits and dashes, at most 63",
		sinks + "{name: ops, urlSecretRef: {key: b}}]}\n":                                                        "spec.notifications.sinks[0].urlSecretRef.name: \"\" is no name of a Secret; it stands in the agent's own namespace",
		sinks + "{name: ops, urlSecretRef: {name: a}}]}\n":                                                       "spec.notifications.sinks[0].urlSecretRef.key: is missing: name the key that holds the URL",
		"  notifications: {on: [RunFailed, Runfailed]}\n":                                                        "spec.notifications.on[1]: must be one of RunFailed, RunSucceeded, SlotMissed, WindowOpening, DrainBlocked, is \"Runfailed\"",
	} {
		_, faults := agentconfig.Parse([]byte(head + text))
		if len(faults) != 1 || !strings.HasSuffix(faults[0].String(), want) {
			t.Errorf("%s gives %v", text, faults)
		}
	}
}

// Bounds belong to what is allowed.
func TestTheLeastAndTheMostOfAConfiguration(t *testing.T) {
	for _, text := range []string{
		"  notifications: {before: 1m}\n", "  notifications: {before: 7d}\n",
		"  minimumWindow: {hours: 1, per: 1h}\n", "  minimumWindow: {hours: 0.5, per: 366d}\n", "  minimumWindow: {hours: 24, per: 1d}\n",
	} {
		if _, faults := agentconfig.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec:\n" + text)); len(faults) > 0 {
			t.Errorf("%s gives %v", text, faults)
		}
	}
}

// The agent asks for each Secret once, and for none that cannot be.
func TestTheSecretsOfAConfiguration(t *testing.T) {
	sink := func(secret string) agentconfig.Sink {
		return agentconfig.Sink{URLSecretRef: document.SecretKeyRef{Name: secret, Key: "url"}}
	}
	config := agentconfig.AgentConfig{Notifications: agentconfig.Notifications{Sinks: []agentconfig.Sink{sink("b"), sink("A_B"), sink("a"), sink("b"), sink("")}}}
	if diff := cmp.Diff([]string{"b", "a"}, config.Secrets()); diff != "" {
		t.Error(diff)
	}
}

// A sink that names namespaces is there for nobody else, not even by its name; what is
// said of the cluster goes to all.
func TestWhoMaySendToASink(t *testing.T) {
	config, faults := agentconfig.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec:\n  notifications:\n    sinks: [{name: all, urlSecretRef: {name: s, key: a}}, {name: team, namespaces: [shop, \"team-*\"], urlSecretRef: {name: s, key: b}}]\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for namespace, may := range map[string]bool{"shop": true, "team-a": true, "": false, "team": false, "shopping": false, "other": false} {
		_, err := config.Notifications.Sink(namespace, "team")
		if (err == nil) != may {
			t.Errorf("namespace %q: %v", namespace, err)
		}
		if err != nil && strings.Contains(err.Error(), "names all, team") {
			t.Errorf("namespace %q is told of it: %v", namespace, err)
		}
		if _, err := config.Notifications.Sink(namespace, "all"); err != nil {
			t.Error(err)
		}
	}
}

func TestSinks(t *testing.T) {
	config, faults := agentconfig.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec:\n  notifications:\n    sinks: [{name: ops, urlSecretRef: {name: sinks, key: ops}}, {name: dba, urlSecretRef: {name: sinks, key: dba}}]\n    on: [RunFailed, RunSucceeded, SlotMissed]\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if got, err := config.Notifications.Sink("shop", "dba"); err != nil || got.URLSecretRef != (document.SecretKeyRef{Name: "sinks", Key: "dba"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for there, n := range map[string]agentconfig.Notifications{"names ops, dba": config.Notifications, "names none": {}} {
		var fault *agentconfig.SinkError
		if _, err := n.Sink("shop", "opps"); !errors.As(err, &fault) || err.Error() != `"opps": not among spec.notifications.sinks of the AgentConfig, which `+there {
			t.Error(err)
		}
	}
}

func TestWhereStepsSendThatNameNoSink(t *testing.T) {
	sink := func(name string, namespaces ...string) agentconfig.Sink {
		return agentconfig.Sink{Name: name, Namespaces: namespaces}
	}
	for name, c := range map[string]struct {
		sinks []agentconfig.Sink
		want  string
		fault string
	}{
		"to the one of that name":                         {sinks: []agentconfig.Sink{sink("ops"), sink("default"), sink("dba")}, want: "default"},
		"else to the only one":                            {sinks: []agentconfig.Sink{sink("ops")}, want: "ops"},
		"to the only one that the namespace may use":      {sinks: []agentconfig.Sink{sink("ops", "other"), sink("dba", "sh*"), sink("default", "other")}, want: "dba"},
		"to the one of that name, if it is the first":     {sinks: []agentconfig.Sink{sink("default"), sink("ops")}, want: "default"},
		"to none of several":                              {sinks: []agentconfig.Sink{sink("ops"), sink("secret", "other"), sink("dba")}, fault: `"default": a step names no sink, and spec.notifications.sinks of the AgentConfig has none of this name, but several others: ops, dba`},
		"to none of those that the namespace may not use": {sinks: []agentconfig.Sink{sink("ops", "other")}, fault: `"default": a step names no sink, and spec.notifications.sinks of the AgentConfig names none`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := agentconfig.Notifications{Sinks: c.sinks}.Default("shop")
			var fault *agentconfig.SinkError
			if got.Name != c.want || errors.As(err, &fault) != (c.fault != "") || err != nil && err.Error() != c.fault {
				t.Errorf("%q, %v", got.Name, err)
			}
		})
	}
}

// An agent that starts with the example of the documentation is ready.
func TestTheExampleOfTheContractIsRead(t *testing.T) {
	got, faults := agentconfig.Parse([]byte(`apiVersion: maint.dev/v1alpha1
kind: AgentConfig
spec:
  logLevel: info
  nodes: {maxParallelOperations: 1, maxUnavailable: 20%, zoneLimit: 1, maxNodeMaintenanceTime: 0s, pauseMachineConfigPool: true}
  steps: [{namespaces: ["tenant-*"], deny: [exec]}]
  outbound: {allow: ["*.example.org"], deny: []}
  notifications: {sinks: [{name: ops, urlSecretRef: {name: maint-sinks, key: ops}}], on: [RunFailed, WindowOpening, DrainBlocked]}
  retention: {runs: 30d}
  functions: {tlsSecretRef: {name: maint-function-tls}}
  minimumWindow: {hours: 8, per: 30d}
  lifecycleConditions: true
`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if diff := cmp.Diff([]string{"maint-sinks", "maint-function-tls"}, got.Secrets()); diff != "" {
		t.Error(diff)
	}
	if m := got.MinimumWindow; m == nil || m.Enough() != 8*time.Hour || m.Per.Duration != 30*24*time.Hour || !got.WritesLifecycle() {
		t.Errorf("read as %+v", got)
	}
}

func TestWhetherLifecycleConditionsAreWritten(t *testing.T) {
	for text, want := range map[string]bool{"{}": true, "{lifecycleConditions: true}": true, "{lifecycleConditions: false}": false} {
		got, faults := agentconfig.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: " + text + "\n"))
		if len(faults) > 0 || got.WritesLifecycle() != want {
			t.Errorf("%s: %t, %v", text, got.WritesLifecycle(), faults)
		}
	}
}

// Who may call no function does not call it as the only one of a pipeline.
func TestAPipelineIsDeniedWithItsFunctions(t *testing.T) {
	for text, want := range map[string][]string{
		"[function]":           {"function", "pipeline"},
		"[pipeline]":           {"pipeline"},
		"[pipeline, function]": {"pipeline", "function"},
		"[exec]":               {"exec"},
	} {
		got, faults := agentconfig.Parse([]byte("apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: {steps: [{namespaces: [shop], deny: " + text + "}]}\n"))
		if diff := cmp.Diff(want, got.Denied("shop")); diff != "" || len(faults) > 0 {
			t.Errorf("%s: %v %s", text, faults, diff)
		}
	}
}
