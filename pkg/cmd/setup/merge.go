package setup

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/image"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

const (
	argDryRun      = "--dry-run"
	argMetricsAuth = "--metrics-auth"
	argLeaderElect = "--leader-elect"
	argWatch       = "--watch-namespace"
	versionLabel   = "app.kubernetes.io/version"

	policyBinding     = "ValidatingAdmissionPolicyBinding"
	validationActions = "validationActions"
)

// merger combines the manifests with what exists in the cluster: the rules of our roles, the
// policies and the version are ours; every other field that an admin changed stays as it is. It
// writes nothing itself.
type merger struct {
	manifests Manifests
	given     func(flag string) bool
	known     map[objectKey][]rbacv1.PolicyRule // everything that install ever wrote into a role
	acts      []string                          // accounts that the agent may impersonate already
}

// merge returns the configuration to apply to an existing object, and which fields were kept as an
// admin set them. nil: nothing is applied.
func (m merger) merge(want, live *unstructured.Unstructured) (*unstructured.Unstructured, []string, error) {
	want = want.DeepCopy()
	var kept []string
	var err error
	switch want.GetKind() {
	case "ConfigMap": // created once, then the admin's
		if !reflect.DeepEqual(want.Object["data"], live.Object["data"]) {
			kept = []string{"the configuration"}
		}
		return nil, kept, nil
	case "Role", "ClusterRole":
		kept, err = m.role(want, live)
	case "RoleBinding", "ClusterRoleBinding":
		kept, err = subjects(want, live)
	case "Deployment":
		kept, err = m.deployment(want, live)
	}
	if err != nil {
		return nil, nil, err
	}
	s := fieldMerger{kind: want.GetKind(), given: m.given, owners: othersFields(live), kept: kept}
	s.merge(want.Object, live.Object, "")
	return want, s.kept, nil
}

// add returns the configuration for a new object, and which parts follow an admin's choice
// elsewhere. Tokens are for every account that the agent impersonates. A new binding behaves as the
// one of the earlier version: otherwise an admin who set a policy to warn would be refused by the
// others.
func (m merger) add(want *unstructured.Unstructured, all objectsByKey) (*unstructured.Unstructured, []string, error) {
	if want.GetName() == cloudRole && want.GetKind() == "ClusterRole" {
		want, err := withTokens(want, m.acts)
		return want, nil, err
	}
	if want.GetKind() != policyBinding {
		return want, nil, nil
	}
	of, _, err := unstructured.NestedString(want.Object, "spec", "policyName")
	if err != nil {
		return nil, nil, err
	}
	var first *unstructured.Unstructured
	for _, name := range BindingsBefore(of) {
		if first = all[objectKey{policyBinding, name}]; first != nil {
			break
		}
	}
	if first == nil {
		return want, nil, nil
	}
	ours, _, _ := unstructured.NestedSlice(want.Object, "spec", validationActions)
	actions, there, err := unstructured.NestedSlice(first.Object, "spec", validationActions)
	if err != nil || !there || reflect.DeepEqual(ours, actions) {
		return want, nil, err
	}
	want = want.DeepCopy()
	kept := fmt.Sprintf("spec.%s: %s (as %s has)", validationActions, valueWords(actions), named(first))
	return want, []string{kept}, unstructured.SetNestedSlice(want.Object, actions, "spec", validationActions)
}

// BindingsBefore are the bindings, nearest first, that a new binding of a policy follows: that of
// the policy itself, then that of the policy which did its work in an earlier version, if there was
// one.
func BindingsBefore(policy string) []string {
	names := []string{policy}
	for before, continuing := range continuedPolicies() {
		if slices.Contains(continuing, policy) {
			names = append(names, before)
		}
	}
	return names
}

// continuedPolicies maps policies to those that took over a part of their work. Such a policy was
// split off from one that admins may have set to warn; a policy with a new purpose is not in it.
func continuedPolicies() map[string][]string {
	return map[string][]string{
		"maint-actor-check": {"maint-actor-check-nodes"},
		"maint-freeze":      {"maint-freeze-autoscalers", "maint-freeze-status"},
	}
}

func (m merger) role(want, live *unstructured.Unstructured) ([]string, error) {
	wanted, err := rulesOf(want)
	if err != nil {
		return nil, err
	}
	standing, err := rulesOf(live)
	if err != nil {
		return nil, err
	}
	rules, kept := mergeRules(wanted, standing, append(formerRules(), m.known[keyOf(want)]...), m.manifests.Impersonate)
	return kept, putRules(want, rules)
}

// subjects keeps subjects that an admin added. A binding that an admin emptied stays empty.
func subjects(want, live *unstructured.Unstructured) ([]string, error) {
	ours, _, err := unstructured.NestedSlice(want.Object, "subjects")
	if err != nil {
		return nil, err
	}
	standing, _, err := unstructured.NestedSlice(live.Object, "subjects")
	if err != nil {
		return nil, err
	}
	same := func(a any) func(any) bool { return func(b any) bool { return sameSubject(a, b) } }
	var kept []string
	for _, s := range standing {
		if !slices.ContainsFunc(ours, same(s)) {
			kept = append(kept, "the subject "+subjectWords(s))
		}
	}
	if len(standing) == 0 {
		unstructured.RemoveNestedField(want.Object, "subjects")
		return []string{"without subjects"}, nil
	}
	for _, s := range ours {
		if !slices.ContainsFunc(standing, same(s)) {
			standing = append(standing, s)
		}
	}
	return kept, unstructured.SetNestedSlice(want.Object, standing, "subjects")
}

func sameSubject(a, b any) bool {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	return x["kind"] == y["kind"] && x["name"] == y["name"] && x["namespace"] == y["namespace"]
}

func subjectWords(s any) string {
	fields, _ := s.(map[string]any)
	name := fmt.Sprint(fields["name"])
	if ns, there := fields["namespace"]; there {
		name = fmt.Sprint(ns) + "/" + name
	}
	return fmt.Sprint(fields["kind"]) + " " + name
}

// deployment merges the fields that are partly ours and partly the admin's.
func (m merger) deployment(want, live *unstructured.Unstructured) (kept []string, err error) {
	ours, standing := container(want), container(live)
	if ours == nil || standing == nil {
		return nil, fmt.Errorf("%s has no container agent: it is not what install wrote", named(live))
	}
	if !m.given(flagImage) {
		was, _ := standing["image"].(string)
		why := ""
		ours["image"], why = image.Next(was, live.GetLabels()[versionLabel], fmt.Sprint(ours["image"]))
		if why != "" {
			kept = append(kept, fmt.Sprintf("the image %s: %s; --image changes it", was, why))
		}
	}
	standingArgs := argsOf(live)
	if m.given(flagSingle) { // an earlier install wrote them; for another namespace they are an admin's
		standingArgs = slices.DeleteFunc(standingArgs, func(arg string) bool { return arg == argWatch+"="+live.GetNamespace() })
	}
	args, extra := mergeArgs(argsOf(want), standingArgs)
	ours["args"] = args
	if len(extra) > 0 {
		kept = append(kept, "the arguments "+strings.Join(extra, " "))
	}
	return kept, m.tolerations(want, live)
}

// tolerations keeps existing ones, with or without ours. They have to be applied again: a list that
// is no longer applied would be removed.
func (m merger) tolerations(want, live *unstructured.Unstructured) error {
	where := []string{"spec", "template", "spec", "tolerations"}
	ours, _, err := unstructured.NestedSlice(want.Object, where...)
	if err != nil {
		return err
	}
	out, _, err := unstructured.NestedSlice(live.Object, where...)
	if err != nil {
		return err
	}
	if m.given(flagTolerate) {
		out = slices.DeleteFunc(out, func(t any) bool {
			fields, _ := t.(map[string]any)
			return fields["key"] == cordonTaint
		})
		out = append(out, ours...)
	}
	if len(out) == 0 {
		unstructured.RemoveNestedField(want.Object, where...)
		return nil
	}
	return unstructured.SetNestedSlice(want.Object, out, where...)
}

// cordonTaint is the taint of every cordoned node.
const cordonTaint = "node.kubernetes.io/unschedulable"

// mergeArgs keeps arguments that an admin added, and the choice of leader election. The agent's
// namespace, and whether it acts, are for install to decide.
func mergeArgs(ours, live []string) (out []any, extra []string) {
	flagOf := func(arg string) string { name, _, _ := strings.Cut(arg, "="); return name }
	left := slices.Clone(ours)
	for i, arg := range live {
		at := slices.IndexFunc(left, func(a string) bool { return flagOf(a) == flagOf(arg) })
		switch {
		case at >= 0 && flagOf(arg) == argLeaderElect && arg != left[at]:
			out, extra = append(out, arg), append(extra, arg)
			left = slices.Delete(left, at, at+1)
		case at >= 0:
			out = append(out, left[at])
			left = slices.Delete(left, at, at+1)
		case flagOf(arg) == argDryRun, flagOf(arg) == argMetricsAuth, slices.ContainsFunc(ours, func(a string) bool { return flagOf(a) == flagOf(arg) }):
			// written by install once, or present twice
		case !strings.HasPrefix(arg, "-") && i > 0 && slices.Contains([]string{argDryRun, argMetricsAuth, "--namespace"}, live[i-1]):
			// the value of one of our flags, as a separate argument
		default:
			out, extra = append(out, arg), append(extra, arg)
		}
	}
	for _, arg := range left {
		out = append(out, arg)
	}
	return out, extra
}

// fieldMerger walks through a configuration and the existing object.
type fieldMerger struct {
	kind   string
	given  func(flag string) bool
	owners map[string]string // fields with other owners than installers, and those owners
	kept   []string
}

// merge keeps every field as an admin set it. A field of another manager is not applied at all, so
// that it stays theirs; others are applied with their present value. Whoever changes a default of
// the manifests has to distinguish the old default from an admin's value here: the upgrade from the
// manifests in test/install/testdata fails until then.
func (s *fieldMerger) merge(want, live map[string]any, path string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		at := path + "." + key
		have, there := live[key]
		switch {
		case s.ours(at) || there && covers(want[key], have):
		case !there && s.mayBeAbsent(at):
			delete(want, key)
			s.kept = append(s.kept, "without "+at[1:])
		case !there:
		case s.descend(want[key], have, at):
		case s.owners[at] != "":
			delete(want, key)
			s.kept = append(s.kept, fmt.Sprintf("%s: %s (set by %s)", at[1:], valueWords(have), s.owners[at]))
		default:
			want[key] = have
			s.kept = append(s.kept, fmt.Sprintf("%s: %s", at[1:], valueWords(have)))
		}
	}
}

// descend merges the inside of a field, where it is a map or a list with keys.
func (s *fieldMerger) descend(want, have any, path string) bool {
	if fields, ok := want.(map[string]any); ok {
		live, ok := have.(map[string]any)
		if ok {
			s.merge(fields, live, path)
		}
		return ok
	}
	list, _ := want.([]any)
	key := listKey(path)
	if key == "" {
		return false
	}
	live, ok := have.([]any)
	for _, item := range list {
		fields, _ := item.(map[string]any)
		for _, other := range live {
			if theirs, _ := other.(map[string]any); theirs[key] == fields[key] {
				s.merge(fields, theirs, fmt.Sprintf("%s[%v]", path, fields[key]))
			}
		}
	}
	return ok
}

// listKey is the key of a list's items in our Deployment; empty: the list is one value.
func listKey(path string) string {
	switch path[strings.LastIndex(path, ".")+1:] {
	case "containers", "env":
		return "name"
	case "ports":
		return "containerPort"
	}
	return ""
}

// ours says which fields the manifests, the command line, or an earlier merge decide alone.
func (s *fieldMerger) ours(path string) bool {
	switch s.kind {
	case "Role", "ClusterRole":
		return path == ".rules"
	case "RoleBinding", "ClusterRoleBinding":
		return path == ".subjects" || path == ".roleRef"
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		return path == ".spec"
	case "Deployment":
		return slices.Contains([]string{
			".metadata.labels." + versionLabel, ".metadata.annotations." + partsKey, ".spec.selector", ".spec.template.spec.tolerations",
			".spec.template.spec.containers[agent].image", ".spec.template.spec.containers[agent].args",
		}, path) || path == ".spec.replicas" && s.given(flagReplicas)
	}
	return false
}

// mayBeAbsent says which fields an admin may have removed. Any other missing field is new in this
// version. An existing namespace may hold other pods, which a pod security standard would refuse.
func (s *fieldMerger) mayBeAbsent(path string) bool {
	return s.kind == "Namespace" || s.kind == "Deployment" && (strings.HasPrefix(path, ".spec.template.spec.containers[agent].resources") || path == ".spec.template.spec.topologySpreadConstraints")
}

// covers says whether a value has everything that is wanted; the API server adds defaults.
func covers(want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		for key := range w {
			value, there := h[key]
			ok = ok && there && covers(w[key], value)
		}
		return ok
	case []any:
		h, ok := have.([]any)
		ok = ok && len(h) == len(w)
		for i := 0; ok && i < len(w); i++ {
			ok = covers(w[i], h[i])
		}
		return ok
	}
	return reflect.DeepEqual(want, have)
}

func valueWords(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return document.Cut(string(b), 100)
}

// othersFields are the fields of an object with owners that are no installers, by path.
func othersFields(live *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for _, m := range live.GetManagedFields() {
		if m.FieldsV1 == nil || installer(m) {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) == nil { // what cannot be read owns no field that is known here
			leaves(fields, "", func(path string) { out[path] = m.Manager })
		}
	}
	return out
}

// installer says whether a field manager applies the manifests as printed: what it owns may be our
// default as well as an admin's value.
func installer(m metav1.ManagedFieldsEntry) bool {
	if m.Operation == metav1.ManagedFieldsOperationApply {
		return m.Manager == annotations.ManagerCLI || m.Manager == "kubectl"
	}
	return slices.Contains([]string{annotations.ManagerCLI, "kubectl-client-side-apply", "kubectl-create"}, m.Manager)
}

// leaves visits the fields of a field set that contain no others.
func leaves(fields map[string]any, path string, visit func(path string)) {
	for key, inner := range fields {
		at := path
		switch kind, name, _ := strings.Cut(key, ":"); kind {
		case "f":
			at += "." + name
		case "k":
			at += "[" + itemKey(name) + "]"
		default: // the item itself, or a member of a set
			continue
		}
		under, _ := inner.(map[string]any)
		if len(under) == 0 {
			visit(at)
			continue
		}
		leaves(under, at, visit)
	}
}

// itemKey is how merge calls an item of a list.
func itemKey(text string) string {
	var key map[string]any
	_ = json.Unmarshal([]byte(text), &key) // an unreadable key gives an empty name
	for _, by := range []string{"name", "containerPort"} {
		if value, there := key[by]; there {
			return fmt.Sprint(value)
		}
	}
	return text
}
