package watch

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
)

// Each row is looks one after another: what each takes, and what becomes of it.
func TestASlowServerIsGivenMoreTimeAndASilentOneIsNot(t *testing.T) {
	const silent = time.Hour
	type look struct {
		takes  time.Duration
		ended  time.Duration // after it began
		failed string
	}
	for name, looks := range map[string][]look{
		"one that nothing is shown without": {{takes: 70 * time.Second, ended: 70 * time.Second}, {silent, 2 * time.Minute, "not everything was answered within 2m0s"}},
		"a fast one":                        {{takes: time.Second, ended: time.Second}, {takes: 9 * time.Second, ended: 9 * time.Second}},
		"one that takes longer and longer":  {{25 * time.Second, 10 * time.Second, "not everything was answered within 10s"}, {25 * time.Second, 20 * time.Second, "not everything was answered within 20s"}, {25 * time.Second, 25 * time.Second, ""}, {45 * time.Second, 45 * time.Second, ""}},
		"one that is fast again":            {{15 * time.Second, 10 * time.Second, "not everything was answered within 10s"}, {time.Second, time.Second, ""}, {15 * time.Second, 10 * time.Second, "not everything was answered within 10s"}},
		"a silent one": {
			{silent, 10 * time.Second, "not everything was answered within 10s"},
			{silent, 20 * time.Second, "not everything was answered within 20s"},
			{silent, 40 * time.Second, "not everything was answered within 40s"},
			{silent, 80 * time.Second, "not everything was answered within 1m20s"},
			{silent, 2 * time.Minute, "not everything was answered within 2m0s"},
			{silent, 2 * time.Minute, "not everything was answered within 2m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := AnswerTimeout{Patient: strings.Contains(name, "nothing is shown")}
				for i, l := range looks {
					begun := time.Now()
					err := p.Within(t.Context(), func(ctx context.Context) error {
						select {
						case <-ctx.Done(): // and a part is missing
						case <-time.After(l.takes):
						}
						return nil
					})
					said := ""
					if err != nil {
						said = err.Error()
					}
					if took := time.Since(begun); took != l.ended || said != l.failed || (err != nil) != Unanswered(err) {
						t.Errorf("look %d ends after %s: %q", i, took, said)
					}
				}
			})
		})
	}
}

func TestWhoLeavesIsToldOfNoServerThatIsLate(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	var p AnswerTimeout
	if err := p.Within(ctx, func(ctx context.Context) error { leave(); return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWhichErrorsPass(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no connection":      {remedy.Commands{}.Explain("list", &url.Error{Op: "Get", URL: "https://cluster", Err: errors.New("connection refused")}), true},
		"a server that ends": {apierrors.NewServiceUnavailable("shutting down"), true},
		"one that is busy":   {apierrors.NewTooManyRequests("later", 1), true},
		"a right":            {apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("not for you")), false},
		"what is not there":  {errors.New("there is no plan orders"), false},
		"nothing":            {nil, false},
	} {
		if got := Unanswered(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
