package admissionread

import (
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func TestWhenAPolicyCountsAsOneThatCannotBeRead(t *testing.T) {
	gone := apierrors.NewNotFound(admissionv1.Resource("validatingadmissionpolicies"), "")
	forbidden := apierrors.NewForbidden(admissionv1.Resource("validatingadmissionpolicies"), "", nil)
	away := errors.New("connection refused")
	for name, c := range map[string]struct {
		answers []error // half of workflow.RefusalTimeout after each other
		want    []Change
	}{
		"it is read":          {[]error{nil, nil}, []Change{Unchanged, Unchanged}},
		"the right was taken": {[]error{nil, forbidden, forbidden, forbidden, forbidden}, []Change{Unchanged, Unchanged, Unchanged, Denied, Unchanged}},
		"it is refused while the API server begins": {[]error{nil, forbidden, forbidden, nil, forbidden, forbidden}, []Change{Unchanged, Unchanged, Unchanged, Unchanged, Unchanged, Unchanged}},
		"the right was never there":                 {[]error{forbidden, forbidden, forbidden}, []Change{Unchanged, Unchanged, Denied}},
		"the right comes":                           {[]error{forbidden, forbidden, forbidden, nil}, []Change{Unchanged, Unchanged, Denied, Restored}},
		"the kind is not served":                    {[]error{gone}, []Change{Denied}},
		"the kind was served":                       {[]error{nil, gone, gone, gone}, []Change{Unchanged, Unchanged, Unchanged, Denied}},
		"the API server is away in between":         {[]error{nil, forbidden, away, forbidden}, []Change{Unchanged, Unchanged, Unchanged, Denied}},
		"the API server is away":                    {[]error{nil, away, away, away}, []Change{Unchanged, Unchanged, Unchanged, Unchanged}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
			answers := ReadAccess{Now: func() time.Time { return now }}
			for i, err := range c.answers {
				if got := answers.Observe(err); got != c.want[i] {
					t.Errorf("answer %d: %d, want %d", i+1, got, c.want[i])
				}
				now = now.Add(workflow.RefusalTimeout / 2)
			}
		})
	}
}
