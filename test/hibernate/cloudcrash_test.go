package hibernate_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/test/moto"
)

// deadlyAWS stands between one agent and AWS, and kills the agent at one of its calls.
type deadlyAWS struct {
	*httptest.Server
	mu     sync.Mutex
	at     int    // which call it is
	action string // which of those for this; empty: of all
	lost   bool   // AWS does what it is asked, and its reply is lost
	calls  int    // so far
	where  string // what was asked for then
	onward http.Handler
	killed func()
}

func newDeadlyAWS(t *testing.T, at int, lost bool) *deadlyAWS {
	t.Helper()
	target, err := url.Parse(world.aws.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	d := &deadlyAWS{at: at, lost: lost, onward: httputil.NewSingleHostReverseProxy(target)}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { d.serve(d.onward, w, req) }))
	t.Cleanup(func() {
		d.CloseClientConnections()
		d.Close()
	})
	return d
}

// before has it stand before another AWS.
func (d *deadlyAWS) before(other *httptest.Server) {
	d.onward = other.Config.Handler
}

// kills says what has the agent die.
func (d *deadlyAWS) kills(kill func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.killed = kill
}

func (d *deadlyAWS) serve(onward http.Handler, w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.where != "" { // of one that is dead
		panic(http.ErrAbortHandler)
	}
	asked, _ := url.ParseQuery(string(body))
	if d.action == "" || d.action == asked.Get("Action") {
		d.calls++
	}
	if d.calls < d.at || d.action != "" && d.action != asked.Get("Action") {
		onward.ServeHTTP(w, req)
		return
	}
	d.where = cmp.Or(asked.Get("Action"), req.Method+" "+req.URL.Path)
	if d.lost {
		onward.ServeHTTP(httptest.NewRecorder(), req)
	}
	d.killed()
	panic(http.ErrAbortHandler)
}

func (d *deadlyAWS) asked() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.where
}

// Wherever in a cycle an agent is killed, at a call of AWS before it is sent or with its
// reply lost, the next one brings all back as it was, and takes no snapshot twice.
func TestAKillAtAnyCallOfAWSWakesAllAsItWas(t *testing.T) {
	newCloudLab(t) // that there is an AWS
	x := newCrashing(t)
	killedAtEach(t, "call", x.cloudCycle)
}

// cloudCycle has a machine and a database sleep and wake while the agent is killed at its
// n-th call, and says which one that was.
func (x *crashing) cloudCycle(t *testing.T, n int, lost bool) string {
	l := newCloudLab(t)
	db := l.database()
	l.runner(readsKeys())
	l.keys()
	l.connector(moto.Account, byKeys)
	deadly := newDeadlyAWS(t, n, lost)
	l.must(os.Setenv("AWS_ENDPOINT_URL", deadly.URL))
	victim := x.victim(l.lab)
	l.must(os.Setenv("AWS_ENDPOINT_URL", world.aws.Endpoint))
	deadly.kills(victim.kill)
	l.sleeper("nights", fmt.Sprintf(`
schedule: {offHours: [{start: "20:00", end: "20:01", daysOfWeek: [MON]}]}
targets:
- {name: vm, type: ec2, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {tags: {team: %[1]s}}}}
- {name: db, type: rds, connectorRef: {kind: CloudProvider, name: stg}, parameters: {selector: {tags: {team: %[1]s}}, snapshotBeforeStop: true}}
`, l.ns))
	l.hold("asleep")
	l.phaseOf("nights", hibernate.Hibernated, "2 of 2")
	l.is(db, "stopped", "stopped", deadly.asked())
	l.hold("awake")
	l.phaseOf("nights", hibernate.Active, "")
	l.is(db, "running", "available", deadly.asked())
	if taken := db.snapshots(l); taken != 1 {
		l.Errorf("killed at %s: %d snapshots were taken", deadly.asked(), taken)
	}
	where := deadly.asked()
	victim.end(where != "")
	return where
}

// database is one of RDS, of the lab's own.
type database struct {
	api  *rds.Client
	name string
}

func (l *cloudLab) database() database {
	l.Helper()
	name := strings.Trim("db-"+l.ns[max(0, len(l.ns)-40):], "-")
	for strings.Contains(name, "--") { // RDS takes none
		name = strings.ReplaceAll(name, "--", "-")
	}
	api := rds.NewFromConfig(aws.Config{Region: "eu-central-1", BaseEndpoint: aws.String(world.aws.Endpoint), HTTPClient: http.DefaultClient, Credentials: credentials.NewStaticCredentialsProvider("admin", "admin", "")})
	_, err := api.CreateDBInstance(l.ctx, &rds.CreateDBInstanceInput{
		DBInstanceIdentifier: aws.String(name), DBInstanceClass: aws.String("db.t3.medium"), Engine: aws.String("postgres"), AllocatedStorage: aws.Int32(20),
		MasterUsername: aws.String("root"), MasterUserPassword: aws.String("not-a-secret"), Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String(l.ns)}},
	})
	l.must(err)
	return database{api, name}
}

func (d database) snapshots(l *cloudLab) int {
	l.Helper()
	out, err := d.api.DescribeDBSnapshots(l.ctx, &rds.DescribeDBSnapshotsInput{DBInstanceIdentifier: aws.String(d.name), SnapshotType: aws.String("manual")})
	l.must(err)
	return len(out.DBSnapshots)
}

// is looks at the machine and the database themselves.
func (l *cloudLab) is(d database, machine, db, where string) {
	l.Helper()
	out, err := d.api.DescribeDBInstances(l.ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(d.name)})
	l.must(err)
	if got, gotDB := l.state(), aws.ToString(out.DBInstances[0].DBInstanceStatus); got != machine || gotDB != db {
		l.Errorf("killed at %q: the machine is %s and the database %s, not %s and %s\n%s", where, got, gotDB, machine, db, l.annotationsOf("nights")[annotations.StatusTargets])
	}
}
