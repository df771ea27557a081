package view

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// LeftAlone says why the agent leaves a run alone, and what helps, by the condition RunStuck of its
// plan; empty: it does not. One that waits for another run, or that the API server refuses to have
// written, is not left alone: the agent still follows it.
func LeftAlone(plan *corev1.ConfigMap, run string) string { return AllLeftAlone(plan)[run] }

// AllLeftAlone are the runs of a plan that the agent leaves alone, and of each LeftAlone.
func AllLeftAlone(plan *corev1.ConfigMap) map[string]string {
	stuck, is := Stands(Conditions(plan), "RunStuck", metav1.ConditionTrue)
	if !is {
		return nil
	}
	out := map[string]string{}
	for _, said := range strings.Split(strings.TrimPrefix(stuck, "run "), "; run ") {
		name, why := said, ""
		if end := strings.IndexAny(said, " :"); end >= 0 {
			name, why = said[:end], said[end:]
		}
		newer := strings.HasPrefix(why, ": ") && strings.Contains(why, "left alone")
		if newer || strings.HasPrefix(why, " is left alone") || strings.HasPrefix(why, " cannot be read and is left alone") {
			out[name] = "run " + said
		}
	}
	return out
}

// Unclaimed says whether a run is at work that has no open entry in its plan's ledger, by the condition RunStuck
// of its plan: it begins nothing, whatever somebody tells it, and only an abort ends it.
func Unclaimed(plan *corev1.ConfigMap, run string) bool {
	if plan == nil { // it is described without its object
		return false
	}
	stuck, _ := Stands(Conditions(plan), "RunStuck", metav1.ConditionTrue)
	return strings.HasPrefix(stuck, "run "+run+" cannot go on: it has no open entry")
}

// Adopted says whether a run that its plan still says is left alone for its signature has been signed
// since, with a key: the agent has not looked at it again.
func Adopted(cm *corev1.ConfigMap, why, key string) bool {
	return cm != nil && key != "" && annotations.SignedWith(cm) == key && annotations.CheckForm(cm) == nil &&
		strings.Contains(why, " adopt run/") && !strings.Contains(why, "its signature is false")
}
