package aws

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	awsasg "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/asg"
	awsec2 "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/ec2"
	awseks "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/eks"
	awsrds "github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/rds"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/aws/session"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/sleepertest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// rights are the actions of IAM that each section of the page on AWS names.
func rights(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/hibernation-aws.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	parts := regexp.MustCompile(`(?m)^##+ (.*)$`).FindAllSubmatchIndex(text, -1)
	for i, at := range parts {
		end := len(text)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		named := map[string]bool{}
		for _, found := range regexp.MustCompile(`\b(?:autoscaling|ec2|eks|kms|rds|sts):[A-Z][A-Za-z]+\b/?`).FindAll(text[at[1]:end], -1) {
			if action := string(found); !strings.HasSuffix(action, "/") { // that is a key of a condition
				named[action] = true
			}
		}
		out[string(text[at[2]:at[3]])] = slices.Sorted(maps.Keys(named))
	}
	return out
}

// actions are those that the calls of an interface stand for: each takes its input from the
// package of its service.
func actions[API any]() []string {
	var out []string
	for m := range reflect.TypeFor[API]().Methods() {
		if in := m.Type.In(1); in.Kind() == reflect.Pointer {
			out = append(out, path.Base(in.Elem().PkgPath())+":"+m.Name)
		}
	}
	return out
}

// ofSTS are the calls of STS that sessions make: they have no interface.
func ofSTS(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../pkg/executors/aws/session/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if of, is := n.(*ast.SelectorExpr); is && isClientOfSTS(of.X) {
				out = append(out, "sts:"+of.Sel.Name)
			}
			return true
		})
	}
	return out
}

// isClientOfSTS says whether an expression is sts.NewFromConfig(…).
func isClientOfSTS(e ast.Expr) bool {
	call, is := e.(*ast.CallExpr)
	if !is {
		return false
	}
	made, is := call.Fun.(*ast.SelectorExpr)
	if !is || made.Sel.Name != "NewFromConfig" {
		return false
	}
	from, is := made.X.(*ast.Ident)
	return is && from.Name == "sts"
}

// besides are rights that AWS asks for beside those for the calls themselves.
func besides() map[string][]string {
	return map[string][]string{
		"ec2": {"kms:CreateGrant"},                                             // EC2 uses the key of an encrypted disk as whoever starts an instance
		"asg": {"kms:CreateGrant"},                                             // as well
		"rds": {"rds:AddTagsToResource"}, "Backups": {"rds:AddTagsToResource"}, // snapshots are made with tags
	}
}

// The page names each right that a call needs, and no other.
func TestTheRightsInTheDocsAreThoseForTheCalls(t *testing.T) {
	docs := rights(t)
	docs["asg"] = append(docs["asg"], docs["Groups that keep their instances"]...)
	for section, calls := range map[string][]string{
		"A connector":           ofSTS(t),
		"ec2":                   actions[awsec2.API](),
		"asg":                   actions[awsasg.API](),
		"eks":                   append(actions[awseks.API](), actions[awseks.Access]()...),
		"rds":                   actions[awsrds.API](),
		"Other clusters by EKS": actions[awseks.Access](),
	} {
		compareRights(t, section, append(calls, besides()[section]...), docs[section])
	}
}

func compareRights(t *testing.T, section string, calls, docs []string) {
	t.Helper()
	slices.Sort(calls)
	slices.Sort(docs)
	if diff := cmp.Diff(slices.Compact(calls), slices.Compact(docs)); diff != "" || len(calls) == 0 {
		t.Errorf("section %s of docs/hibernation-aws.md (-rights for the calls +named there):\n%s", section, diff)
	}
}

// noting is an AWS that notes the actions it is asked for.
type noting struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]bool
}

func newNoting(t *testing.T) *noting {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	n, onward := &noting{asked: map[string]bool{}}, httputil.NewSingleHostReverseProxy(to)
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action, service := bodyOf(r).Get("Action"), regexp.MustCompile(`/([a-z0-9]+)/aws4_request`).FindStringSubmatch(r.Header.Get("Authorization"))
		if len(service) == 2 && service[1] != "sts" {
			n.mu.Lock()
			n.asked[service[1]+":"+action] = true
			n.mu.Unlock()
		}
		onward.ServeHTTP(w, r)
	}))
	t.Cleanup(n.Close)
	return n
}

// is has a call go there.
func (n *noting) is(cloud *executors.Cloud) *executors.Cloud {
	out := *cloud
	out.Endpoint = n.URL
	return &out
}

// night has a target sleep and wake.
func (n *noting) night(t *testing.T, w sleepertest.Backend, cycle string) {
	t.Helper()
	c := w.Call()
	c.Cloud, c.Plan.Name, c.Target, c.Cycle, c.Snapshots = n.is(c.Cloud), "nights", "all", cycle, 1
	r := hibernate.Record{}
	for _, op := range []hibernate.Operation{hibernate.Shutdown, hibernate.Wake} {
		for done, passes := false, 0; !done; passes++ {
			c.Operation, c.Recorded, c.Now = op, r.Resources, time.Now()
			seen, err := w.Sleeper().Observe(t.Context(), c)
			if err != nil || passes > 20 {
				t.Fatalf("%s: %v %+v", op, err, r.Resources)
			}
			act, step := w.Sleeper().Shutdown, r.ToSleep(seen, c.Now)
			if op == hibernate.Wake {
				act, step = w.Sleeper().Wake, r.ToWake(seen, c.Now)
			}
			r, done, c.Recorded = step.Record, step.Done, step.Record.Resources
			for _, result := range act(t.Context(), c, step.Due) {
				if result.Err != nil {
					t.Error(result.Err)
				}
			}
		}
	}
}

// backup has a snapshot taken of a database each week, and those before go.
func (n *noting) backup(t *testing.T, component string) {
	t.Helper()
	step := awsrds.NewBackups(session.NewPool(time.Now))
	for week, run := range []string{"weekly-1", "weekly-2"} {
		c := saves(run, component)
		c.Cloud, c.Now = n.is(c.Cloud), c.Now.AddDate(0, 0, 8*week)
		c.Properties.(*plan.BackupProperties).Retain = &document.Duration{Duration: 7 * 24 * time.Hour}
		if out := saved(t, step, c); out.State != executors.Done {
			t.Fatalf("%s: %v %q", component, out.State, out.Message)
		}
	}
}

// What a night and a backup ask AWS for needs the rights that the page names for each, and no
// other: the two ways in which groups sleep have rights of their own.
func TestTheRightsInTheDocsAreThoseForWhatIsAsked(t *testing.T) {
	nights := func(build func(t *testing.T) sleepertest.Backend) func(t *testing.T, n *noting) {
		return func(t *testing.T, n *noting) {
			w := build(t)
			n.night(t, w, "nights-2026-11-23T20:00:00Z")
			time.Sleep(time.Second) // moto's clock has seconds, by which snapshots are told apart
			n.night(t, w, "nights-2026-11-24T20:00:00Z")
		}
	}
	alsoStopped := []string{"kms:CreateGrant"}
	for section, c := range map[string]struct {
		does    func(t *testing.T, n *noting)
		besides []string
	}{
		"ec2":                              {nights(newInstances), alsoStopped},
		"asg":                              {nights(newGroups), nil},
		"Groups that keep their instances": {nights(newKept), alsoStopped},
		"rds":                              {nights(func(t *testing.T) sleepertest.Backend { return newDatabases(t, true) }), besides()["rds"]},
		"Backups": {func(t *testing.T, n *noting) {
			newDatabases(t, false)
			n.backup(t, "stg-orders")
			n.backup(t, "arn:aws:rds:"+region+":"+account+":cluster:stg-shop")
		}, besides()["Backups"]},
	} {
		t.Run(section, func(t *testing.T) {
			fresh(t)
			n := newNoting(t)
			c.does(t, n)
			compareRights(t, section, append(slices.Collect(maps.Keys(n.asked)), c.besides...), rights(t)[section])
		})
	}
}
