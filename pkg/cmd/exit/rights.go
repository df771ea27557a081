package exit

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LacksRight says whether the API server refused a request because of a missing right.
func LacksRight(err error) bool { return refusedOf(err) != nil }

// refusedOf is what a request was about that was refused because of a missing right; nil: another error.
// Admission refuses with the same reason, and no right would help: a policy adds its causes, a webhook
// leaves out what the request was about, and of a quota only the words differ.
func refusedOf(err error) *metav1.StatusDetails {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Reason != metav1.StatusReasonForbidden {
		return nil
	}
	overQuota := strings.Contains(answer.Status().Message, "exceeded quota: ")
	if of := answer.Status().Details; of != nil && of.Kind != "" && len(of.Causes) == 0 && !overQuota {
		return of
	}
	return nil
}

// RightBy is the advice for a missing right: the role that has it, in a namespace or, where that is
// empty, in the whole cluster, and the command that lists rights.
func RightBy(role, namespace, canI string) string {
	in := ""
	if namespace != "" {
		in = " in namespace " + namespace
	}
	return role + in + " would let you; " + canI + " shows what you may"
}

// NeedsRight adds to an error the role that the request needs, where a right is missing. Documents are
// ConfigMaps, which the ClusterRole edit lets people write; of other objects the verb is named. canI is
// the command that lists rights.
func NeedsRight(err error, verb, namespace, canI string) error {
	of := refusedOf(err)
	if of == nil {
		return err
	}
	role := "a Role"
	switch {
	case namespace == "":
		role = "a ClusterRole"
	case of.Kind == "configmaps" && of.Group == "":
		return WithHelp(err, RightBy("the ClusterRole edit", namespace, canI))
	}
	return WithHelp(err, RightBy(role+" with "+verb+" on "+strings.TrimSuffix(of.Kind+"."+of.Group, "."), namespace, canI))
}

// loggedOut says in kubectl's words that the API server does not accept the credentials, and at what;
// empty: another error.
func loggedOut(err error) string {
	var answer apierrors.APIStatus
	if !apierrors.IsUnauthorized(err) || !errors.As(err, &answer) {
		return ""
	}
	why := answer.Status().Message
	text := "You must be logged in to the server (" + why + ")"
	if doing := strings.TrimSuffix(strings.TrimSuffix(err.Error(), why), ": "); doing != "" {
		text += ": " + doing
	}
	return text
}
