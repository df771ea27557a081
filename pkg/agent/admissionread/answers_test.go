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
		want    []News
	}{
		"it is read":          {[]error{nil, nil}, []News{AsBefore, AsBefore}},
		"the right was taken": {[]error{nil, forbidden, forbidden, forbidden, forbidden}, []News{AsBefore, AsBefore, AsBefore, Withheld, AsBefore}},
		"it is refused while the API server begins": {[]error{nil, forbidden, forbidden, nil, forbidden, forbidden}, []News{AsBefore, AsBefore, AsBefore, AsBefore, AsBefore, AsBefore}},
		"the right was never there":                 {[]error{forbidden, forbidden, forbidden}, []News{AsBefore, AsBefore, Withheld}},
		"the right comes":                           {[]error{forbidden, forbidden, forbidden, nil}, []News{AsBefore, AsBefore, Withheld, Back}},
		"the kind is not served":                    {[]error{gone}, []News{Withheld}},
		"the kind was served":                       {[]error{nil, gone, gone, gone}, []News{AsBefore, AsBefore, AsBefore, Withheld}},
		"the API server is away in between":         {[]error{nil, forbidden, away, forbidden}, []News{AsBefore, AsBefore, AsBefore, Withheld}},
		"the API server is away":                    {[]error{nil, away, away, away}, []News{AsBefore, AsBefore, AsBefore, AsBefore}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
			answers := Answers{Now: func() time.Time { return now }}
			for i, err := range c.answers {
				if got := answers.Heard(err); got != c.want[i] {
					t.Errorf("answer %d: %d, want %d", i+1, got, c.want[i])
				}
				now = now.Add(workflow.RefusalTimeout / 2)
			}
		})
	}
}
