package runs

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const backups = `steps:
- {name: save, type: backup, connectorRef: {kind: CloudProvider, name: aws}, properties: {method: rds-snapshot, component: orders}}
- {name: hook, type: webhook, properties: {url: "https://example.org"}}
`

func account() connector.AWS {
	return connector.AWS{AccountID: "123456789012", Region: "eu-west-1", Auth: connector.Auth{ServiceAccount: &connector.ServiceAccountAuth{}}}
}

// A step is given the account that its connector names as it was when the run began, and no
// other step is.
func TestABackupIsGivenItsAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		aws := account()
		w.asked(backups, func(r *run.Run) {
			r.Connectors = map[string]connector.Connector{"CloudProvider/aws": {Cloud: &connector.CloudSpec{Type: connector.TypeAWS, AWS: &aws}}}
		})
		w.begins("a")
		w.after(time.Minute)
		w.ends(run.Succeeded, "")
		save, hook := w.steps.last("save"), w.steps.last("hook")
		if save.Cloud == nil || hook.Cloud != nil {
			t.Fatalf("the backup has %+v, the webhook %+v", save.Cloud, hook.Cloud)
		}
		if diff := cmp.Diff(account(), save.Cloud.AWS); diff != "" {
			t.Error(diff)
		}
		if save.Plan.Account != "maint-runner" {
			t.Errorf("it acts as %s", save.Plan.Account)
		}
	})
}

// A run without the connector was not made by the agent.
func TestABackupWithoutItsAccountIsLeftAlone(t *testing.T) {
	for name, connectors := range map[string]map[string]connector.Connector{
		"none":                {},
		"that of another":     {"CloudProvider/other": {Cloud: &connector.CloudSpec{}}},
		"one of another kind": {"CloudProvider/aws": {Cluster: &connector.ClusterSpec{}}},
		"an empty one":        {"CloudProvider/aws": {}},
		"one without AWS":     {"CloudProvider/aws": {Cloud: &connector.CloudSpec{Type: connector.TypeAWS}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.asked(backups, func(r *run.Run) { r.Connectors = connectors })
				w.begins("a")
				w.after(time.Minute)
				if n := w.count("pass save"); n != 0 {
					t.Errorf("it is made %d times", n)
				}
				if text := w.scraped(); !strings.Contains(text, "\nmaint_internal_errors_total 0\n") {
					t.Error("the agent erred over it")
				}
			})
		})
	}
}

// scraped are the agent's metrics, as Prometheus reads them.
func (w *world) scraped() string {
	answer := httptest.NewRecorder()
	w.metrics.Handler(func() bool { return true }, func(*bufio.Writer) {}, nil).ServeHTTP(answer, httptest.NewRequestWithContext(w.Context(), http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}
