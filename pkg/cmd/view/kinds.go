package view

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// KindsBefore are the kinds of documents that a word before a name stands for, as in plan/NAME; none where
// there is no word or that of ConfigMaps, which may be any. It is false of a word that is no kind of document.
func KindsBefore(word string) (kinds []string, known bool) {
	switch strings.ToLower(word) {
	case "", "configmap", "configmaps", "cm":
		return nil, true
	case "plan", "plans":
		return []string{annotations.KindPlan, annotations.KindHibernatePlan}, true
	case "hibernate-plan", "hibernate-plans", "hibernateplan", "hibernateplans":
		return []string{annotations.KindHibernatePlan}, true
	case "policy", "policies":
		return []string{annotations.KindPolicy}, true
	case "run", "runs":
		return []string{annotations.KindRun}, true
	}
	return nil, false
}

// MayMean says whether a name with a word before it can mean a document of a kind.
func MayMean(word, kind string) bool {
	kinds, known := KindsBefore(word)
	return known && kind != "" && (kinds == nil || slices.Contains(kinds, kind))
}

// KindsMeant are those of some kinds that a name with a word before it can mean, or, if it can mean none of
// them, what the word stands for.
func KindsMeant(word string, among []string) []string {
	kinds, _ := KindsBefore(word)
	meant := slices.DeleteFunc(slices.Clone(among), func(kind string) bool { return kinds != nil && !slices.Contains(kinds, kind) })
	if len(meant) == 0 {
		return kinds
	}
	return meant
}

// KindWords are what people call some kinds: a HibernatePlan is one of the plans.
func KindWords(kinds []string) []string {
	out := slices.Clone(kinds)
	if slices.Contains(out, annotations.KindPlan) {
		out = slices.DeleteFunc(out, func(kind string) bool { return kind == annotations.KindHibernatePlan })
	}
	for i, kind := range out {
		out[i] = KindWord(kind)
	}
	return out
}

// KindWord is what people call a kind of document.
func KindWord(kind string) string {
	if kind == annotations.KindHibernatePlan {
		return "HibernatePlan"
	}
	return strings.ReplaceAll(kind, "-", " ")
}

// WrongKind says that a ConfigMap is not what was looked for.
func WrongKind(cm *corev1.ConfigMap, what string) error {
	kind := cm.Labels[annotations.LabelKind]
	if kind == "" {
		return fmt.Errorf("the ConfigMap %s/%s is no %s: it lacks the label %s", cm.Namespace, cm.Name, what, annotations.LabelKind)
	}
	return fmt.Errorf("%s/%s is a %s and no %s", cm.Namespace, cm.Name, KindWord(kind), what)
}

// NoKind says of a name on the command line that no kind is named by what stands before its slash. Messages
// write a document of another namespace as NAMESPACE/NAME.
func NoKind(name string) string {
	before, bare, _ := strings.Cut(name, "/")
	if slices.Contains([]string{"namespace", "namespaces", "ns"}, strings.ToLower(before)) {
		return fmt.Sprintf("%s: this command takes no namespace, but names of documents in it, with -n %s. 'allow' and 'freeze' take a whole namespace", name, bare)
	}
	return fmt.Sprintf("%s: there is no kind %q here. If %s is a namespace, write: %s -n %s. A document or node is written NAME, plan/NAME, policy/NAME, run/NAME or node/NAME. Other kinds are for 'allow' and 'freeze' alone, whose --end ends what they wrote", name, before, before, bare, before)
}
