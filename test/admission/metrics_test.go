package admission_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// An agent that asks who reads its metrics does so with the rights that install
// --metrics-auth prints, and while another leads as well.
func TestMetricsAreForScrapersAlone(t *testing.T) {
	w := newTown(t)
	w.does(admin(), "status") // an agent leads already
	text, err := exec.CommandContext(w.ctx, world.plugin, "install", "--metrics-auth").Output()
	w.must(err)
	printed := string(text)
	var mine []string
	for doc := range strings.SplitSeq(printed, "\n---\n") {
		if strings.Contains(doc, "name: maint-agent-metrics") || strings.Contains(doc, "name: maint-metrics-reader") {
			mine = append(mine, doc)
		}
	}
	if len(mine) != 3 || !strings.Contains(printed, "- --metrics-auth") {
		t.Fatalf("install prints %d objects for it", len(mine))
	}
	w.must(harness.Apply(w.ctx, world.cluster.AdminConfig(), "", []byte(strings.Join(mine, "\n---\n")), nil))
	config, err := world.cluster.ServiceAccountConfig(w.ctx, annotations.DefaultNamespace, "maint-agent")
	w.must(err)
	path, err := world.cluster.KubeconfigFile("standby", config)
	w.must(err)
	process, err := harness.StartAgent(world.agent, path, "--metrics-auth")
	w.must(err)
	t.Cleanup(func() { _ = process.Stop() })
	w.until("it listens", func() error {
		if process.Address() == "" {
			return errors.New(process.Log())
		}
		return nil
	})
	scraper, err := world.cluster.ServiceAccountConfig(w.ctx, w.ns, "maint-runner")
	w.must(err)
	answers := func(token string, code int, says string) {
		t.Helper()
		w.until(fmt.Sprintf("the answer is %d", code), func() error {
			got, body, err := scrapes(w.ctx, process.Address(), token)
			if err == nil && (got != code || !strings.Contains(body, says)) {
				err = fmt.Errorf("it answers %d %q", got, body[:min(len(body), 200)])
			}
			return err
		})
	}
	answers("", http.StatusUnauthorized, "send a token")
	answers("made-up", http.StatusUnauthorized, "does not know")
	answers(config.BearerToken, http.StatusForbidden, "maint-metrics-reader") // the agent's own, first: an answer is believed for a while
	w.must(world.bindCluster(w.ctx, "maint-metrics-reader", account(w.ns, "maint-runner")))
	w.must(eventuallyErr(w.ctx, func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: account(w.ns, "maint-runner").name, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		}}
		got, err := world.admin.AuthorizationV1().SubjectAccessReviews().Create(w.ctx, review, metav1.CreateOptions{})
		if err == nil && !got.Status.Allowed {
			err = errors.New("the right is not known yet")
		}
		return err
	}))
	answers(scraper.BearerToken, http.StatusOK, "maint_build_info")
}

// scrapes asks an agent for its metrics, with a token.
func scrapes(ctx context.Context, address, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}
