package drain

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// maxCause is how much of an error a status says, in bytes (a guess: what a 403 says has room).
const maxCause = 300

// LookFailed says why the pods of a node could not be read before its drain, or during one that has
// begun. late is how long they took too long for; zero: there was an error instead.
func LookFailed(err error, late time.Duration, begun bool) string {
	within, when, cause := "", "before", ": "+document.Cut(document.OneLine(err.Error()), maxCause)
	if late > 0 { // the error says the same in other words
		within, cause = " within "+late.String(), ""
	}
	if begun {
		when = "during"
	}
	return "its pods could not be read" + within + " " + when + " its drain" + cause
}

// NamespacesOf are those that some pods are in.
func NamespacesOf(pods []Pod) map[string]bool {
	out := map[string]bool{}
	for _, p := range pods {
		out[p.Namespace] = true
	}
	return out
}
