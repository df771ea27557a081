package hibernation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// A right that is missing is said with whom it is missing and the command that grants it.
func TestAMissingRightIsSaidWithTheCommandThatGrantsIt(t *testing.T) {
	const grant = "'kubectl maint rbac -f FILE | kubectl apply -f -', with the plan's file, grants all that it needs, and 'kubectl maint -n shop doctor nights' checks it"
	for name, c := range map[string]struct {
		verb string
		says string
	}{
		"to look":         {"list", "Error: apps failed: deployments.apps is forbidden: User \"" + runner + "\" cannot list resource \"deployments\""},
		"to put to sleep": {"patch", "Error: apps failed: deployments.apps \"orders\" is forbidden: User \"" + runner + "\" cannot patch resource \"deployments\""},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+"behavior: {retries: 0}\n"+apps, func(w *world) {
				w.api.Deny(runner, c.verb, "deployments")
				w.until("01:10")
				if got := w.phase(); !strings.HasPrefix(got, c.says) || !strings.HasSuffix(got, "; if ServiceAccount shop/maint-runner lacks that right, "+grant) {
					t.Errorf("the plan says %q", got)
				}
			})
		})
	}
}

// What else went wrong is said as it is, and no message grows beyond its bound.
func TestWhatIsSaidOfAFault(t *testing.T) {
	call := executors.SleepCall{Plan: "nights", Namespace: "shop", Account: "maint-runner"}
	elsewhere := call
	elsewhere.Clients.Connection = "c"
	denied := fmt.Errorf("web: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("no")))
	long := strings.Repeat("x", 2*document.MaxMessage)
	for name, c := range map[string]struct {
		call   executors.SleepCall
		text   string
		faults []error
		begins string
		ends   string
	}{
		"no right is missing":     {call, "not now", []error{errors.New("not now")}, "not now", "not now"},
		"one of several is":       {call, "a; b", []error{errors.New("a"), denied}, "a; b; if ServiceAccount", "checks it"},
		"a long one":              {call, long, []error{denied}, "xxx", "checks it"},
		"in another cluster":      {elsewhere, "web", []error{denied}, "web; grant that in the other cluster", "'kubectl maint -n shop doctor nights' names all rights that it needs there"},
		"nothing but its message": {call, long, nil, "xxx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := said(c.call, c.text, c.faults...)
			if !strings.HasPrefix(got, c.begins) || !strings.HasSuffix(got, c.ends) || len(got) > document.MaxMessage {
				t.Errorf("%d bytes: %q", len(got), got)
			}
		})
	}
}
