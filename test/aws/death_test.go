package aws

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	awsrds "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/rds"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
)

// death is an AWS at one call of which its client dies: before it is sent, or with its reply
// lost.
type death struct {
	*httptest.Server
	mu    sync.Mutex
	at    int
	lost  bool
	calls int
	where string // empty: it lives
	ends  func()
}

func newDeath(t *testing.T, at int, lost bool) *death {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	d, onward := &death{at: at, lost: lost}, httputil.NewSingleHostReverseProxy(to)
	d.Server = httptest.NewServer(d.before(onward))
	t.Cleanup(d.Close)
	return d
}

// bodyOf is the form in the body of a request, which still has it.
func bodyOf(r *http.Request) url.Values {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	asked, _ := url.ParseQuery(string(body))
	return asked
}

// before stands before a server whose calls count, too.
func (d *death) before(onward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		asked := bodyOf(r)
		d.calls++
		switch {
		case d.where != "": // of one that is dead
			panic(http.ErrAbortHandler)
		case d.calls == d.at:
			d.where = cmp.Or(asked.Get("Action"), r.Method+" "+r.URL.Path)
			if d.lost {
				onward.ServeHTTP(httptest.NewRecorder(), r)
			}
			d.ends()
			panic(http.ErrAbortHandler)
		}
		onward.ServeHTTP(w, r)
	})
}

// writes has what a client writes in a cluster count, too.
func (d *death) writes(cluster http.RoundTripper) http.RoundTripper {
	return client.RoundTripper(func(r *http.Request) (*http.Response, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case d.where != "": // of one that is dead
			return nil, io.ErrUnexpectedEOF
		case r.Method == http.MethodGet: // a watch lasts
			d.mu.Unlock()
			defer d.mu.Lock()
			return cluster.RoundTrip(r)
		}
		if d.calls++; d.calls != d.at {
			return cluster.RoundTrip(r)
		}
		d.where = r.Method + " " + r.URL.Path
		if d.lost {
			if answer, err := cluster.RoundTrip(r); err == nil {
				_ = answer.Body.Close()
			}
		}
		d.ends()
		return nil, io.ErrUnexpectedEOF
	})
}

func (d *death) asked() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.where
}

// Wherever an agent dies while it takes a snapshot, the next one finds that same snapshot,
// and takes no second one.
func TestABackupWhoseAgentDiesAtAnyCallTakesOneSnapshot(t *testing.T) {
	for _, lost := range []bool{false, true} {
		var places []string
		for at := 1; ; at++ {
			w := newDatabases(t, false)
			c := saves("weekly-1", "stg-orders")
			d := newDeath(t, at, lost)
			ctx, cancel := context.WithCancel(t.Context())
			d.ends = cancel
			victim := *c.Cloud
			victim.Endpoint = d.URL
			first := c
			first.Cloud = &victim
			step := awsrds.NewBackups(session.NewPool(time.Now))
			for range 3 {
				if step.Pass(ctx, first).State != executors.NotYet || ctx.Err() != nil {
					break
				}
			}
			cancel()
			where := d.asked()
			if where == "" { // it was done before its call of that number
				break
			}
			places = append(places, where)
			out := saved(t, awsrds.NewBackups(session.NewPool(time.Now)), c)
			there, err := w.api.DescribeDBSnapshots(t.Context(), &rds.DescribeDBSnapshotsInput{DBInstanceIdentifier: aws.String("stg-orders"), SnapshotType: aws.String("manual")})
			if err != nil {
				t.Fatal(err)
			}
			if out.State != executors.Done || len(there.DBSnapshots) != 1 || out.Outputs["snapshot"] != *there.DBSnapshots[0].DBSnapshotIdentifier {
				t.Errorf("it died at call %d, %s, its reply lost %t: %v %q, and there are %d", at, where, lost, out.State, out.Message, len(there.DBSnapshots))
			}
		}
		if !slices.Contains(places, "CreateDBSnapshot") || !slices.Contains(places, "GetCallerIdentity") {
			t.Errorf("it died at %q", places)
		}
		t.Log(len(places), " calls: ", places)
	}
}

// The database is deleted once its snapshot is asked for.
func TestABackupIsFoundAfterItsDatabaseIsGone(t *testing.T) {
	w := newDatabases(t, false)
	c := saves("weekly-1", "stg-orders")
	step := awsrds.NewBackups(session.NewPool(time.Now))
	if out := step.Pass(t.Context(), c); out.State != executors.NotYet {
		t.Fatalf("%v %q", out.State, out.Message)
	}
	if _, err := w.api.DeleteDBInstance(t.Context(), &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String("stg-orders"), SkipFinalSnapshot: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	if out := saved(t, step, c); out.State != executors.Done || out.Outputs["database"] != "db/stg-orders" {
		t.Errorf("%v %s %q", out.State, out.Reason, out.Message)
	}
	if out := saved(t, step, saves("weekly-2", "stg-orders")); out.State != executors.Failed || out.Reason != executors.ReasonNotFound {
		t.Errorf("the next run: %v %s %q", out.State, out.Reason, out.Message)
	}
}
