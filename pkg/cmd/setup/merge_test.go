package setup

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// object is one of what a version prints.
func object(t *testing.T, m Manifests, kind, name string) *unstructured.Unstructured {
	t.Helper()
	all, err := m.Objects()
	if err != nil {
		t.Fatal(err)
	}
	u := byKey(all)[objectKey{kind, name}]
	if u == nil {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return u
}

// owned notes who owns fields of an object; fields is as managedFields has it.
func owned(u *unstructured.Unstructured, manager string, op metav1.ManagedFieldsOperationType, fields string) {
	u.SetManagedFields(append(u.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: manager, Operation: op, APIVersion: u.GetAPIVersion(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}))
}

func at(t *testing.T, u *unstructured.Unstructured, path ...string) any {
	t.Helper()
	object := u.Object
	if path[0] == "container" {
		object, path = container(u), path[1:]
	}
	v, _, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func next() Manifests {
	m := released()
	m.Version, m.Image = "v0.2.0", "kubectl-maint/agent:v0.2.0"
	return m
}

func never(string) bool { return false }

func TestAnUpgradeOfTheDeployment(t *testing.T) {
	resources := func(d *unstructured.Unstructured) map[string]any {
		return container(d)["resources"].(map[string]any)
	}
	pod := func(d *unstructured.Unstructured) map[string]any {
		v, _, _ := unstructured.NestedFieldNoCopy(d.Object, "spec", "template", "spec")
		return v.(map[string]any)
	}
	toleration := map[string]any{"key": "dedicated", "operator": "Exists"}
	for _, c := range []struct {
		name  string
		admin func(d *unstructured.Unstructured)
		flags []string
		m     func(*Manifests)
		path  []string
		want  any // nil: not applied
		kept  string
	}{
		{name: "the image follows the version", path: []string{"container", "image"}, want: "kubectl-maint/agent:v0.2.0"},
		{name: "the version's label follows too", path: []string{"metadata", "labels", versionLabel}, want: "v0.2.0"},
		{
			name: "a number of replicas that is no default is applied as it is",
			admin: func(d *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(d.Object, int64(5), "spec", "replicas")
			},
			path: []string{"spec", "replicas"}, want: int64(5), kept: "spec.replicas: 5",
		},
		{
			name: "a number of replicas that an autoscaler owns is left to it",
			admin: func(d *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(d.Object, int64(5), "spec", "replicas")
				owned(d, "kube-controller-manager", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{}}}`)
			},
			path: []string{"spec", "replicas"}, kept: "spec.replicas: 5 (set by kube-controller-manager)",
		},
		{
			name: "replicas on the command line win",
			admin: func(d *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(d.Object, int64(5), "spec", "replicas")
			},
			flags: []string{flagReplicas}, m: func(m *Manifests) { m.Replicas = 3 },
			path: []string{"spec", "replicas"}, want: int64(3),
		},
		{
			name:  "more memory stays",
			admin: func(d *unstructured.Unstructured) { resources(d)["limits"].(map[string]any)["memory"] = "1Gi" },
			path:  []string{"container", "resources", "limits", "memory"}, want: "1Gi", kept: `spec.template.spec.containers[agent].resources.limits.memory: "1Gi"`,
		},
		{
			name:  "a limit that was taken away stays away",
			admin: func(d *unstructured.Unstructured) { delete(resources(d), "limits") },
			path:  []string{"container", "resources", "limits"}, kept: "without spec.template.spec.containers[agent].resources.limits",
		},
		{
			name: "a probe that somebody edited is theirs",
			admin: func(d *unstructured.Unstructured) {
				container(d)["readinessProbe"].(map[string]any)["periodSeconds"] = int64(30)
				owned(d, "kubectl-edit", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"agent\"}":{"f:readinessProbe":{"f:periodSeconds":{}}}}}}}}`)
			},
			path: []string{"container", "readinessProbe", "periodSeconds"}, kept: "spec.template.spec.containers[agent].readinessProbe.periodSeconds: 30 (set by kubectl-edit)",
		},
		{
			name:  "tolerations are said again, so that they stay",
			admin: func(d *unstructured.Unstructured) { pod(d)["tolerations"] = []any{toleration} },
			path:  []string{"spec", "template", "spec", "tolerations"}, want: []any{toleration},
		},
		{
			name:  "tolerating a cordon comes to the others",
			admin: func(d *unstructured.Unstructured) { pod(d)["tolerations"] = []any{toleration} },
			flags: []string{flagTolerate}, m: func(m *Manifests) { m.TolerateCordon = true },
			path: []string{"spec", "template", "spec", "tolerations"}, want: []any{toleration, map[string]any{"key": cordonTaint, "operator": "Exists", "effect": "NoSchedule"}},
		},
		{
			name: "tolerating a cordon goes when it is said",
			admin: func(d *unstructured.Unstructured) {
				pod(d)["tolerations"] = []any{map[string]any{"key": cordonTaint, "operator": "Exists", "effect": "NoSchedule"}}
			},
			flags: []string{flagTolerate}, path: []string{"spec", "template", "spec", "tolerations"},
		},
		{
			name: "where pods are spread stays as somebody has it",
			admin: func(d *unstructured.Unstructured) {
				pod(d)["topologySpreadConstraints"].([]any)[0].(map[string]any)["maxSkew"] = int64(2)
				owned(d, "kubectl-edit", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:template":{"f:spec":{"f:topologySpreadConstraints":{"k:{\"topologyKey\":\"kubernetes.io/hostname\"}":{"f:maxSkew":{}}}}}}}`)
			},
			path: []string{"spec", "template", "spec", "topologySpreadConstraints"}, kept: "spec.template.spec.topologySpreadConstraints: ",
			want: []any{map[string]any{
				"maxSkew": int64(2), "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
				"labelSelector": map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "maint-agent"}},
			}},
		},
		{
			name: "arguments that were added stay",
			admin: func(d *unstructured.Unstructured) {
				container(d)["args"] = append(container(d)["args"].([]any), "--log-level=debug", "--watch-namespace", "shop")
			},
			path: []string{"container", "args"}, want: []any{"--namespace=maint-system", "--leader-elect=true", "--log-level=debug", "--watch-namespace", "shop"},
			kept: "the arguments --log-level=debug --watch-namespace shop",
		},
		{
			name: "who elects no leader goes on so",
			admin: func(d *unstructured.Unstructured) {
				container(d)["args"] = []any{"--leader-elect=false", "--namespace=maint-system"}
			},
			path: []string{"container", "args"}, want: []any{"--leader-elect=false", "--namespace=maint-system"}, kept: "the arguments --leader-elect=false",
		},
		{
			name: "acting at last takes the dry run away",
			admin: func(d *unstructured.Unstructured) {
				container(d)["args"] = append(container(d)["args"].([]any), argDryRun)
			},
			path: []string{"container", "args"}, want: []any{"--namespace=maint-system", "--leader-elect=true"},
		},
		{
			name:  "an own tag stays and is told",
			admin: func(d *unstructured.Unstructured) { container(d)["image"] = "example.org/agent:stable" },
			path:  []string{"container", "image"}, want: "example.org/agent:stable", kept: "the image example.org/agent:stable: ",
		},
		{
			name:  "an image on the command line wins",
			admin: func(d *unstructured.Unstructured) { container(d)["image"] = "example.org/agent:stable" },
			flags: []string{flagImage}, m: func(m *Manifests) { m.Image = "example.org/agent:new" },
			path: []string{"container", "image"}, want: "example.org/agent:new",
		},
		{
			name: "what was in the manifests that kubectl applied is applied again",
			admin: func(d *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(d.Object, int64(5), "spec", "replicas")
				owned(d, "kubectl-client-side-apply", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{}}}`)
			},
			path: []string{"spec", "replicas"}, want: int64(5), kept: "spec.replicas: 5",
		},
		{
			name: "who tolerates a cordon goes on so",
			admin: func(d *unstructured.Unstructured) {
				pod(d)["tolerations"] = []any{map[string]any{"key": cordonTaint, "operator": "Exists", "effect": "NoSchedule"}}
			},
			path: []string{"spec", "template", "spec", "tolerations"}, want: []any{map[string]any{"key": cordonTaint, "operator": "Exists", "effect": "NoSchedule"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			live, m := object(t, released(), "Deployment", "maint-agent").DeepCopy(), next()
			if c.admin != nil {
				c.admin(live)
			}
			if c.m != nil {
				c.m(&m)
			}
			before := live.DeepCopy()
			got, kept, err := merger{manifests: m, given: func(f string) bool { return slices.Contains(c.flags, f) }}.merge(object(t, m, "Deployment", "maint-agent"), live)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, at(t, got, c.path...)); diff != "" {
				t.Errorf("what is applied (-want +got):\n%s", diff)
			}
			if told := strings.Join(kept, "\n"); !strings.HasPrefix(told, c.kept) || strings.Contains(told, "(set by") != strings.Contains(c.kept, "(set by") || (c.kept == "") != (told == "") || len(kept) > 1 {
				t.Errorf("it tells that it keeps %q; want %q", kept, c.kept)
			}
			if !cmp.Equal(before, live) {
				t.Error("it changed what stands in the cluster's place")
			}
		})
	}
}

func TestAnUpgradeOfWhatIsNotTheDeployment(t *testing.T) {
	agent := map[string]any{"kind": "ServiceAccount", "name": "maint-agent", "namespace": "maint-system"}
	other := map[string]any{"kind": "ServiceAccount", "name": "auditor", "namespace": "ops"}
	was, guarded := released(), next()
	was.Admission, guarded.Admission = true, true
	for _, c := range []struct {
		name, kind, object string
		admin              func(u *unstructured.Unstructured)
		path               []string
		want               any
		kept               []string
	}{
		{
			name: "a subject that was added stays", kind: "ClusterRoleBinding", object: "maint-agent",
			admin: func(u *unstructured.Unstructured) { u.Object["subjects"] = []any{agent, other} },
			path:  []string{"subjects"}, want: []any{agent, other}, kept: []string{"the subject ServiceAccount ops/auditor"},
		},
		{
			name: "the agent comes back among the subjects", kind: "ClusterRoleBinding", object: "maint-agent",
			admin: func(u *unstructured.Unstructured) { u.Object["subjects"] = []any{other} },
			path:  []string{"subjects"}, want: []any{other, agent}, kept: []string{"the subject ServiceAccount ops/auditor"},
		},
		{
			name: "a binding that was emptied stays empty", kind: "ClusterRoleBinding", object: "maint-agent-nodes",
			admin: func(u *unstructured.Unstructured) { delete(u.Object, "subjects") },
			path:  []string{"subjects"}, kept: []string{"without subjects"},
		},
		{
			name: "the standard of pod security that somebody chose stays", kind: "Namespace", object: "maint-system",
			admin: func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, "baseline", "metadata", "labels", "pod-security.kubernetes.io/enforce")
			},
			path: []string{"metadata", "labels", "pod-security.kubernetes.io/enforce"}, want: "baseline", kept: []string{`metadata.labels.pod-security.kubernetes.io/enforce: "baseline"`},
		},
		{
			name: "a policy that only warns goes on so", kind: "ValidatingAdmissionPolicyBinding", object: "maint-agent-secrets",
			admin: func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedSlice(u.Object, []any{"Warn"}, "spec", "validationActions")
			},
			path: []string{"spec", "validationActions"}, want: []any{"Warn"}, kept: []string{`spec.validationActions: ["Warn"]`},
		},
		{
			name: "what a policy says is ours", kind: "ValidatingAdmissionPolicy", object: "maint-agent-secrets",
			admin: func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, "Ignore", "spec", "failurePolicy")
				owned(u, "kubectl-edit", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:failurePolicy":{}}}`)
			},
			path: []string{"spec", "failurePolicy"}, want: "Fail",
		},
		{
			name: "and what one says that changes requests", kind: "MutatingAdmissionPolicy", object: "maint-actor",
			admin: func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "never", "expression": "false"}}, "spec", "matchConditions")
			},
			path: []string{"spec", "matchConditions"}, want: at(t, object(t, guarded, "MutatingAdmissionPolicy", "maint-actor"), "spec", "matchConditions"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := object(t, was, c.kind, c.object).DeepCopy()
			c.admin(live)
			got, kept, err := merger{manifests: guarded, given: never}.merge(object(t, guarded, c.kind, c.object), live)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, at(t, got, c.path...)); diff != "" {
				t.Errorf("what is applied (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.kept, kept); diff != "" {
				t.Errorf("what is told (-want +got):\n%s", diff)
			}
		})
	}
}

// An earlier version had one binding for a policy that has three today, and one policy for
// what three look at.
func TestABindingThatIsNewDoesAsTheOneThatWasThere(t *testing.T) {
	was, is := released(), next()
	was.Admission, is.Admission = true, true
	for _, c := range []struct {
		name  string
		stood []any // actions of the binding that was there; nil: there was none
		want  []any
		told  bool
	}{
		{"it warns beside one that warns", []any{"Warn"}, []any{"Warn"}, true},
		{"it refuses beside one that refuses", []any{"Deny"}, []any{"Deny"}, false},
		{"it refuses in a cluster that had none", nil, []any{"Deny"}, false},
	} {
		for name, before := range map[string]string{
			"maint-agent-configmaps-made":        "maint-agent-configmaps",
			"maint-agent-configmaps-kube-system": "maint-agent-configmaps",
			"maint-records-names":                "maint-records",
			"maint-freeze-autoscalers":           "maint-freeze",
			"maint-freeze-status":                "maint-freeze",
			"maint-actor-check-nodes":            "maint-actor-check",
		} {
			t.Run(name+": "+c.name, func(t *testing.T) {
				live := objectsByKey{}
				if c.stood != nil {
					first := object(t, was, policyBinding, before).DeepCopy()
					first.Object["spec"].(map[string]any)[validationActions] = c.stood
					live[keyOf(first)] = first
				}
				got, kept, err := merger{manifests: is, given: never}.add(object(t, is, policyBinding, name), live)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, at(t, got, "spec", validationActions)); diff != "" {
					t.Errorf("what is applied (-want +got):\n%s", diff)
				}
				var told []string
				if c.told {
					told = []string{`spec.validationActions: ["Warn"] (as validatingadmissionpolicybinding/` + before + ` has)`}
				}
				if diff := cmp.Diff(told, kept); diff != "" {
					t.Errorf("what is told (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Whoever adds a policy decides whether it continues one that admins may have set to warn,
// and names it here or in continuedPolicies. A name that begins like another says nothing.
func TestEveryPolicyContinuesOneOrIsNew(t *testing.T) {
	m := next()
	m.Admission, m.Cloud = true, true
	want := map[string][]string{
		"maint-actor-check-nodes":  {"maint-actor-check-nodes", "maint-actor-check"},
		"maint-freeze-autoscalers": {"maint-freeze-autoscalers", "maint-freeze"},
		"maint-freeze-status":      {"maint-freeze-status", "maint-freeze"},
	}
	for _, policy := range []string{ // all of these were there before any other
		"maint-actor-check", "maint-agent-configmaps", "maint-agent-kubelets", "maint-agent-namespaces", "maint-agent-nodes", "maint-agent-secrets",
		"maint-agent-tokens", "maint-documents", "maint-freeze", "maint-intents", "maint-nodes", "maint-records", "maint-status",
	} {
		want[policy] = []string{policy}
	}
	all, err := m.Objects()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, u := range all {
		if u.GetKind() == "ValidatingAdmissionPolicy" {
			got[u.GetName()] = BindingsBefore(u.GetName())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("whose bindings a new one does as (-want +got):\n%s", diff)
	}
	if got := BindingsBefore("maint-nodes-of-another-kind"); len(got) != 1 {
		t.Errorf("a policy continues %v by its name alone", got[1:])
	}
}

// older is what an earlier version had of an object: other texts, and lists that are shorter and in
// another order.
func older(value any) any {
	switch was := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range was {
			out[key] = older(inner)
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range slices.Backward(was) {
			out = append(out, older(inner))
		}
		return out[:max(1, len(out)-1)]
	case string:
		return was + " of before"
	}
	return value
}

// A version replaces its policies as a whole, of whatever kind they are: half of one and half of
// another is none that anybody has tried.
func TestAnUpgradeReplacesEveryPolicy(t *testing.T) {
	m := next()
	m.Admission, m.Cloud = true, true
	all, err := m.Objects()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, want := range all {
		if !policyKind(want.GetKind()) || strings.HasSuffix(want.GetKind(), "Binding") {
			continue
		}
		kinds[want.GetKind()]++
		live := want.DeepCopy()
		live.Object["spec"] = older(want.Object["spec"])
		got, kept, err := merger{manifests: m, given: never}.merge(want, live)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" || len(kept) > 0 {
			t.Errorf("%s keeps %q (-want +applied):\n%s", named(want), kept, diff)
		}
	}
	if kinds["ValidatingAdmissionPolicy"] == 0 || kinds["MutatingAdmissionPolicy"] == 0 {
		t.Errorf("there were %v", kinds)
	}
}

func TestTheConfigurationIsNeverApplied(t *testing.T) {
	live := object(t, released(), "ConfigMap", "maint-agent").DeepCopy()
	live.Object["data"] = map[string]any{"config.yaml": "theirs"}
	got, kept, err := merger{manifests: next(), given: never}.merge(object(t, next(), "ConfigMap", "maint-agent"), live)
	if got != nil || err != nil || !cmp.Equal(kept, []string{"the configuration"}) {
		t.Errorf("it applies %v, keeps %q, %v", got, kept, err)
	}
}
