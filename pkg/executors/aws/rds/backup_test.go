package rds

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// saving is a step on an account.
type saving struct {
	*account
	call executors.Call
}

func saves(a *account, component string) *saving {
	return &saving{a, executors.Call{
		Run: "weekly-20261123", Plan: executors.PlanRef{Name: "weekly", Namespace: "team", Account: "maint-runner"}, Path: "save", Attempt: 1, Now: a.now,
		Properties: &plan.BackupProperties{Method: plan.MethodRDSSnapshot, Component: component},
		Cloud:      &executors.Cloud{AWS: connector.AWS{Region: "eu-central-1"}},
	}}
}

func (s *saving) pass(ctx context.Context) executors.Outcome {
	s.call.Now = s.now
	return Backups{Open: func(ctx context.Context, _ executors.SleepCall) (API, error) { return s.account, ctx.Err() }}.Pass(ctx, s.call)
}

// through passes until the step has ended, and lets time go on in between.
func (s *saving) through(t *testing.T) executors.Outcome {
	t.Helper()
	for range 10 {
		out := s.pass(t.Context())
		if out.State != executors.NotYet {
			return out
		}
		if !out.WakeAt.After(s.call.Now) || out.Message == "" {
			t.Fatalf("it waits by %q until %s", out.Message, out.WakeAt)
		}
		s.settle()
	}
	t.Fatal("it has no end")
	return executors.Outcome{}
}

func TestASnapshotOfADatabaseIsTakenOnceAndWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		component, id, kind, arn string
	}{
		"an instance":            {"orders", "db/orders", "DBSnapshot", "arn:snapshot:"},
		"in other letters":       {"Orders", "db/orders", "DBSnapshot", "arn:snapshot:"},
		"an instance's ARN":      {"arn:aws:rds:eu-central-1:123456789012:db:orders", "db/orders", "DBSnapshot", "arn:snapshot:"},
		"a cluster of Aurora":    {"shop", "cluster/shop", "DBClusterSnapshot", "arn:cluster-snapshot:"},
		"one of two, by its ARN": {"arn:aws:rds:eu-central-1:123456789012:cluster:both", "cluster/both", "DBClusterSnapshot", "arn:cluster-snapshot:"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			a.add("orders", statusAvailable)
			a.addCluster("shop", statusAvailable)
			a.addCluster("both", statusAvailable)
			a.add("both", statusAvailable)
			s := saves(a, c.component)
			out := s.through(t)
			again := s.pass(t.Context()) // as after a crash before the journal was written
			if diff := cmp.Diff(out, again); diff != "" {
				t.Errorf("the same pass says otherwise: %s", diff)
			}
			if diff := cmp.Diff([]string{"snapshot " + c.id}, a.asked); diff != "" {
				t.Error(diff)
			}
			made, _ := out.Outputs["snapshot"].(string)
			want := map[string]any{"snapshot": made, "arn": c.arn + made, "database": c.id}
			if diff := cmp.Diff(want, out.Outputs); diff != "" || out.State != executors.Done || a.taken[made] == nil {
				t.Errorf("%v %q: %s", out.State, out.Message, diff)
			}
			if len(out.Changed) != 1 || out.Changed[0].Kind != c.kind || out.Changed[0].Name != made || out.Changed[0].What != "created" {
				t.Errorf("changed: %+v", out.Changed)
			}
		})
	}
}

func TestNamesOfSnapshotsAreThoseThatRDSTakes(t *testing.T) {
	long := strings.Repeat("very-long-", 12)
	for _, of := range []struct{ plan, database, run, path string }{
		{"weekly", "orders", "weekly-1", "save"}, {long[:63], long[:63], long, "group/" + long}, {"a--b", "o", "r", "s"},
	} {
		s := saves(newAccount(), of.database)
		s.call.Plan.Name, s.call.Run, s.call.Path = of.plan, of.run, of.path
		b := backup{call: s.call, database: database{id: ofCluster + of.database, name: of.database}}
		name := b.name()
		if !regexp.MustCompile(`^[a-z][a-z0-9-]{0,61}[a-z0-9]$`).MatchString(name) || strings.Contains(name, "--") {
			t.Errorf("%q (%d) is none", name, len(name))
		}
		for what, change := range map[string]func(*executors.Call){
			"run": func(c *executors.Call) { c.Run += "x" }, "path": func(c *executors.Call) { c.Path += "x" }, "attempt": func(c *executors.Call) { c.Attempt++ }, "namespace": func(c *executors.Call) { c.Plan.Namespace += "x" },
		} {
			other := b
			change(&other.call)
			if other.name() == name {
				t.Errorf("another %s has the same name %s", what, name)
			}
		}
		for _, tag := range b.tags() {
			if !regexp.MustCompile(`^[A-Za-z0-9 _.:/=+@-]{1,256}$`).MatchString(*tag.Value) {
				t.Errorf("%s=%q is no tag", *tag.Key, *tag.Value)
			}
		}
	}
}

func TestAReplyThatIsLostIsFoundAgain(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable)
	a.loses = true
	s := saves(a, "orders")
	if out := s.pass(t.Context()); out.State != executors.NotYet || out.Reason != executors.ReasonUnavailable {
		t.Fatalf("%v %s %q", out.State, out.Reason, out.Message)
	}
	if out := s.through(t); out.State != executors.Done || len(a.taken) != 1 || len(a.asked) != 1 {
		t.Errorf("%v %q: asked %q", out.State, out.Message, a.asked)
	}
}

// What becomes of a database while its snapshot is taken is not the snapshot's affair.
func TestASnapshotIsFoundWhateverBecomesOfItsDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		component string
		change    func(a *account)
		want      string
	}{
		"an instance is deleted":     {"Orders", func(a *account) { delete(a.instances, "orders") }, "db/orders"},
		"by its ARN":                 {"arn:aws:rds:eu-central-1:123456789012:db:orders", func(a *account) { delete(a.instances, "orders") }, "db/orders"},
		"a cluster is deleted":       {"shop", func(a *account) { delete(a.clusters, "shop"); delete(a.instances, "shop-1") }, "cluster/shop"},
		"a cluster, by its ARN":      {"arn:aws:rds:eu-central-1:123456789012:cluster:shop", func(a *account) { delete(a.clusters, "shop") }, "cluster/shop"},
		"another gets the same name": {"orders", func(a *account) { a.addCluster("orders", statusAvailable) }, "db/orders"},
	} {
		for _, lost := range []bool{false, true} {
			a := newAccount()
			a.add("orders", statusAvailable)
			a.addCluster("shop", statusAvailable)
			a.loses = lost
			s := saves(a, c.component)
			if out := s.pass(t.Context()); out.State != executors.NotYet || len(a.asked) != 1 {
				t.Fatalf("%s: %v %q", name, out.State, out.Message)
			}
			c.change(a)
			out := s.through(t)
			if out.State != executors.Done || out.Outputs["database"] != c.want || len(a.asked) != 1 {
				t.Errorf("%s, the reply lost %t: %v %s %q, asked %q", name, lost, out.State, out.Reason, out.Message, a.asked)
			}
			s.call.Attempt++
			if out := s.pass(t.Context()); out.State != executors.Failed || out.Reason != executors.ReasonNotFound && out.Reason != "Ambiguous" {
				t.Errorf("%s: another attempt says %v %s %q", name, out.State, out.Reason, out.Message)
			}
		}
	}
}

// Nor does it count for ours what somebody else has under its name.
func TestWithoutItsDatabaseASnapshotOfSomebodyElseIsNotOurs(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable)
	s := saves(a, "orders")
	made := s.through(t).Outputs["snapshot"].(string)
	a.taken[made].tags = nil
	delete(a.instances, "orders")
	if out := s.pass(t.Context()); out.State != executors.Failed || out.Reason != executors.ReasonNotFound {
		t.Errorf("%v %s %q", out.State, out.Reason, out.Message)
	}
}

func TestASnapshotOfSomebodyElseIsNotTakenForOurs(t *testing.T) {
	for name, change := range map[string]func(*taken){
		"without tags":        func(s *taken) { s.tags = nil },
		"of another step":     func(s *taken) { s.tags[2].Value = aws.String("other") },
		"of another database": func(s *taken) { s.of = "db/users" },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			a.add("orders", statusAvailable)
			a.add("users", statusAvailable)
			s := saves(a, "orders")
			out := s.through(t)
			change(a.taken[out.Outputs["snapshot"].(string)])
			out = s.pass(t.Context())
			if out.State != executors.Failed || !out.Permanent || out.Reason != "NotOurs" || !strings.Contains(out.Message, "was not taken by this step; delete it") {
				t.Errorf("%v %s %q", out.State, out.Reason, out.Message)
			}
		})
	}
}

func TestWhatKeepsASnapshotFromBeingTaken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a *account)
		of     string
		reason string
		want   string
		state  executors.State
		ends   bool // no other attempt mends it
	}{
		"no such database":        {of: "gone", reason: executors.ReasonNotFound, want: "there is no database gone in region eu-central-1", state: executors.Failed, ends: true},
		"one name of two":         {change: func(a *account) { a.addCluster("orders", statusAvailable) }, reason: "Ambiguous", want: "write the ARN, arn:aws:rds:eu-central-1:123456789012:db:orders or arn:aws:rds:eu-central-1:123456789012:cluster:orders", state: executors.Failed, ends: true},
		"a member of a cluster":   {change: func(a *account) { a.addCluster("shop", statusAvailable) }, of: "shop-1", reason: "Unsupported", want: "db/shop-1 is part of the cluster shop, of which a snapshot is taken as a whole: name that", state: executors.Failed, ends: true},
		"an engine of another":    {change: func(a *account) { a.addCluster("docs", statusAvailable).Engine = aws.String("docdb") }, of: "docs", reason: "Unsupported", want: "the engine of cluster/docs is docdb, which is not RDS' own", state: executors.Failed, ends: true},
		"it is stopped":           {change: func(a *account) { a.instances["orders"].DBInstanceStatus = aws.String(statusStopped) }, reason: "NotAvailable", want: "db/orders is stopped, in which AWS takes no snapshot", state: executors.Failed},
		"it is full":              {change: func(a *account) { a.instances["orders"].DBInstanceStatus = aws.String("storage-full") }, reason: "NotAvailable", want: "db/orders is storage-full", state: executors.Failed},
		"it is backed up already": {change: func(a *account) { a.instances["orders"].DBInstanceStatus = aws.String("modifying") }, reason: "Waiting", want: "db/orders is modifying; its snapshot is taken once it is available", state: executors.NotYet},
		"it may not be taken":     {change: func(a *account) { a.refuses["db/orders"] = "AccessDenied" }, reason: executors.ReasonForbidden, want: "take a snapshot of db/orders: AccessDenied: User: nights is not authorized", state: executors.Failed, ends: true},
		"there are too many":      {change: func(a *account) { a.refuses["db/orders"] = "SnapshotQuotaExceeded" }, reason: "RefusedByAWS", want: "take a snapshot of db/orders: SnapshotQuotaExceeded", state: executors.Failed},
		"AWS has too much to do":  {change: func(a *account) { a.refuses["db/orders"] = "Throttling" }, reason: executors.ReasonUnavailable, want: "take a snapshot of db/orders: Throttling", state: executors.NotYet},
		"it may not be looked at": {change: func(a *account) { a.refuses["look"] = "AccessDenied" }, reason: executors.ReasonForbidden, want: "look for the snapshot maint-weekly-orders-", state: executors.Failed, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			a.add("orders", statusAvailable)
			if c.change != nil {
				c.change(a)
			}
			if c.of == "" {
				c.of = "orders"
			}
			out := saves(a, c.of).pass(t.Context())
			if out.State != c.state || out.Permanent != c.ends || out.Reason != c.reason || !strings.Contains(out.Message, c.want) || len(a.taken) > 0 {
				t.Errorf("%v %s %q (permanent: %t)", out.State, out.Reason, out.Message, out.Permanent)
			}
		})
	}
}

func TestASnapshotThatFailedIsTheAttemptsFailureAndTheNextOneTakesAnother(t *testing.T) {
	for status, reason := range map[string]string{"failed": "SnapshotFailed", "deleting": "Deleted"} {
		a := newAccount()
		a.add("orders", statusAvailable)
		s := saves(a, "orders")
		s.pass(t.Context())
		for _, one := range a.taken {
			one.status = status
		}
		a.settle()
		if out := s.pass(t.Context()); out.State != executors.Failed || out.Permanent || out.Reason != reason || len(a.asked) != 1 {
			t.Errorf("%s: %v %s %q", status, out.State, out.Reason, out.Message)
		}
		s.call.Attempt++
		if out := s.through(t); out.State != executors.Done || len(a.taken) != 2 {
			t.Errorf("%s: the next attempt is %v %q", status, out.State, out.Message)
		}
	}
}

func TestADryRunSaysWhatItWouldTake(t *testing.T) {
	for status, want := range map[string]string{
		statusAvailable: "dry run: would take the snapshot maint-weekly-orders-", "modifying": "once it is available; it is modifying",
	} {
		a := newAccount()
		a.add("orders", status)
		s := saves(a, "orders")
		s.call.DryRun = true
		if out := s.pass(t.Context()); out.State != executors.Done || !strings.Contains(out.Message, want) || len(a.asked) > 0 {
			t.Errorf("%v %q, asked %q", out.State, out.Message, a.asked)
		}
	}
}

// Of the snapshots of a database those go that this step took, and that are older than it
// says, and not before the new one can be restored from.
func TestOlderSnapshotsOfTheStepGoOnceTheNewOneIsThere(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable)
	s := saves(a, "orders")
	s.call.Properties.(*plan.BackupProperties).Retain = &document.Duration{Duration: 7 * 24 * time.Hour}
	take := func(run string, change func(*executors.Call)) string {
		s.call.Run = run
		before := s.call
		if change != nil {
			change(&s.call)
		}
		out := s.through(t)
		if out.State != executors.Done {
			t.Fatal(out.Message)
		}
		s.call = before
		return out.Outputs["snapshot"].(string)
	}
	old := take("weekly-1", nil)
	others := []string{
		take("weekly-1", func(c *executors.Call) { c.Path = "other" }),
		take("weekly-1", func(c *executors.Call) { c.Plan.Name = "monthly" }),
	}
	a.taken["by-hand"] = &taken{of: "db/orders", status: statusAvailable, at: a.now}
	a.now = a.now.Add(6 * 24 * time.Hour)
	young := take("weekly-2", nil)
	if a.taken[old] == nil {
		t.Error("it goes before its time")
	}
	a.now = a.now.Add(24 * time.Hour)
	a.asked = nil
	s.call.Run = "weekly-3"
	if out := s.pass(t.Context()); out.State != executors.NotYet || a.taken[old] == nil {
		t.Errorf("%v: the old one goes before the new one is there", out.State)
	}
	out := s.through(t)
	if diff := cmp.Diff([]string{"snapshot db/orders", "delete " + old}, a.asked); diff != "" {
		t.Error(diff)
	}
	for _, name := range append(others, "by-hand", young, out.Outputs["snapshot"].(string)) {
		if a.taken[name] == nil {
			t.Errorf("%s is gone", name)
		}
	}
	if len(out.Changed) != 2 || out.Changed[1].What != "deleted" || !strings.Contains(out.Message, "; 1 older snapshots were deleted") {
		t.Errorf("%q, changed %+v", out.Message, out.Changed)
	}
}

func TestABackupIsNotAskedForByAnAgentThatMayLeadNoMore(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable)
	s := saves(a, "orders")
	s.call.Clients.Fence = func() error { return errors.New("the lease is over") }
	if out := s.pass(t.Context()); out.State != executors.Failed || len(a.asked) > 0 {
		t.Errorf("%v %q, asked %q", out.State, out.Message, a.asked)
	}
}

func TestABackupThatIsCancelledReturnsAtOnce(t *testing.T) {
	a := newAccount()
	a.add("orders", statusAvailable)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out := saves(a, "orders").pass(ctx); out.State != executors.NotYet || len(a.asked) > 0 {
		t.Errorf("%v %q", out.State, out.Message)
	}
}

func TestWhatKeepsAnAccountFromBeingReached(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		reason string
		state  executors.State
	}{
		"another account": {errors.New("the credentials are of account 1, and the connector names 2: nothing is done"), executors.ReasonNoConnection, executors.Failed},
		"the address":     {&smithy.OperationError{ServiceID: "STS", OperationName: "x", Err: refusedAddress{}}, executors.ReasonNoConnection, executors.Failed},
		"no answer":       {&smithy.OperationError{ServiceID: "STS", OperationName: "x", Err: errors.New("no route")}, executors.ReasonUnavailable, executors.NotYet},
		"a bad key":       {&smithy.GenericAPIError{Code: "InvalidClientTokenId", Message: "no"}, executors.ReasonForbidden, executors.Failed},
		"broken":          {&smithy.GenericAPIError{Code: "InternalFailure", Fault: smithy.FaultServer}, executors.ReasonUnavailable, executors.NotYet},
	} {
		t.Run(name, func(t *testing.T) {
			b := Backups{Open: func(context.Context, executors.SleepCall) (API, error) { return nil, c.err }}
			out := b.Pass(t.Context(), saves(newAccount(), "orders").call)
			if out.State != c.state || out.Reason != c.reason || out.Message == "" {
				t.Errorf("%v %s %q", out.State, out.Reason, out.Message)
			}
		})
	}
}

// refusedAddress is what the outbound rules say.
type refusedAddress struct{}

func (refusedAddress) Error() string   { return "refused" }
func (refusedAddress) Refused() string { return "10.0.0.1 is private" }
