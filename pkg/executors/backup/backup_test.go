package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// vault is a cluster with claims and whoever backs them up, and a step of plan shop/save.
type vault struct {
	*agenttest.Cluster
	*testing.T
	call executors.Call
}

func newVault(t *testing.T, p *plan.BackupProperties, objects ...string) *vault {
	v := &vault{Cluster: agenttest.New(t), T: t}
	v.Serve(
		agenttest.Kind{Group: "apps", Version: "v1", Kind: "StatefulSet", Resource: "statefulsets", Namespaced: true},
		agenttest.Kind{Version: "v1", Kind: "PersistentVolumeClaim", Resource: "persistentvolumeclaims", Namespaced: true},
		agenttest.Kind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot", Resource: "volumesnapshots", Namespaced: true},
		agenttest.Kind{Group: "velero.io", Version: "v1", Kind: "Backup", Resource: "backups", Namespaced: true},
	)
	v.call = executors.Call{
		Run: "run-a", Plan: executors.PlanRef{Name: "save", Namespace: "shop", Account: "saver", Manager: "maint-plan-x"}, Path: "snap", Attempt: 1,
		Properties: p, Now: time.Now(), Clients: v.Clients(),
	}
	for _, text := range objects {
		v.Put(agenttest.Object(v.T, text))
	}
	return v
}

func (v *vault) pass() executors.Outcome {
	v.Helper()
	return Backups{}.Pass(v.Context(), v.call)
}

// made are the objects of a resource that the step made.
func (v *vault) made(resource string) []string {
	var out []string
	for _, name := range v.Names(resource) {
		_, name, _ = strings.Cut(name, "/")
		out = append(out, name)
	}
	return out
}

// says has whoever makes a backup write of it how it stands.
func (v *vault) says(resource, namespace, name, status string) {
	v.Helper()
	v.Edit(resource, namespace, name, func(u *unstructured.Unstructured) {
		var s map[string]any
		if err := yaml.Unmarshal([]byte(status), &s); err != nil {
			v.Fatal(err)
		}
		u.Object["status"] = s
	})
}

func outcome(o executors.Outcome) string {
	word := map[executors.State]string{executors.NotYet: "not yet", executors.Record: "record", executors.Done: "done", executors.Failed: "failed"}[o.State]
	if o.Permanent {
		word += " for good"
	}
	return strings.TrimSpace(word+" "+o.Reason) + ": " + o.Message
}

func claimNamed(name, labels string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: %s, labels: {%s}}}`, name, labels)
}

func snapshotsOf(component string) *plan.BackupProperties {
	return &plan.BackupProperties{Method: plan.MethodVolumeSnapshot, Component: component}
}

const (
	stateful   = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: db}, spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {volumes: [{name: extra, persistentVolumeClaim: {claimName: shared}}, {name: tmp, emptyDir: {}}]}}}}`
	deployed   = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {template: {spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: uploads}}]}}}}`
	stateless  = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: api}, spec: {template: {spec: {}}}}`
	setWithout = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: plain}, spec: {template: {spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: shared}}]}}}}`
)

// Which claims a step means: each once, also those of replicas that are scaled away.
func TestWhichClaimsAreBackedUp(t *testing.T) {
	picks := func(labels map[string]string) *plan.BackupProperties {
		return &plan.BackupProperties{Method: plan.MethodVolumeSnapshot, Selector: &selector.LabelSelector{MatchLabels: labels}}
	}
	all := []string{
		stateful, deployed, stateless, setWithout,
		claimNamed("data-db-0", "tier: db"), claimNamed("data-db-10", "tier: db"), claimNamed("data-db-x", "tier: other"), claimNamed("data-db-", "tier: other"),
		claimNamed("data-dbother-0", "tier: other"), claimNamed("shared", "tier: db"), claimNamed("uploads", "tier: web"), claimNamed("lone", "tier: web"),
	}
	for _, c := range []struct {
		name  string
		props *plan.BackupProperties
		deny  string
		want  string
	}{
		{"of a StatefulSet those of its templates and its pods", snapshotsOf("db"), "", "done: dry run: would snapshot data-db-0, data-db-10, shared"},
		{"of one without templates those of its pods", snapshotsOf("plain"), "", "done: dry run: would snapshot shared"},
		{"of a Deployment those of its pods", snapshotsOf("web"), "", "done: dry run: would snapshot uploads"},
		{"of a claim itself", snapshotsOf("lone"), "", "done: dry run: would snapshot lone"},
		{"those that a selector picks", picks(map[string]string{"tier": "db"}), "", "done: dry run: would snapshot data-db-0, data-db-10, shared"},
		{"a Deployment without any is no backup", snapshotsOf("api"), "", "failed for good NotFound: nothing is there to back up: component api has no claim in namespace shop"},
		{"a selector that picks none is no backup", picks(map[string]string{"tier": "ghost"}), "", "failed for good NotFound: nothing is there to back up: selector tier=ghost has no claim in namespace shop"},
		{"a component that is not there", snapshotsOf("ghost"), "", `failed for good NotFound: component: namespace shop has no StatefulSet, Deployment or PersistentVolumeClaim named "ghost"`},
		{"without the right to read StatefulSets nobody guesses", snapshotsOf("web"), "statefulsets", `not yet Forbidden: get statefulsets.apps "web" in namespace shop was denied to serviceaccount shop/saver: `},
		{"nor without that to Deployments", snapshotsOf("lone"), "deployments", `not yet Forbidden: get deployments.apps "lone" in namespace shop was denied to serviceaccount shop/saver: `},
		{"nor without that to claims", snapshotsOf("lone"), "persistentvolumeclaims", `not yet Forbidden: get persistentvolumeclaims "lone" in namespace shop was denied to serviceaccount shop/saver: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVault(t, c.props, all...)
			v.call.DryRun = true
			if c.deny != "" {
				v.Deny("", "get", c.deny)
			}
			if got := outcome(v.pass()); !strings.HasPrefix(got, c.want) || c.deny == "" && got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if made := v.made("volumesnapshots"); len(made) != 0 {
				t.Errorf("a dry run made %q", made)
			}
		})
	}
}

// A backup of volumes is done when all snapshots can be used, and only then.
func TestSnapshotsAreWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		status string // of the second; the first is ready
		edit   func(*unstructured.Unstructured)
		want   string
	}{
		{"both are ready", "{readyToUse: true}", nil, "done: data-db-0, data-db-1 can be restored from"},
		{"one says nothing yet", "{}", nil, "not yet Waiting: 1 of 2 snapshots are not usable yet: VolumeSnapshot/%s of claim data-db-1; what is begun stays when the run ends before it"},
		{"one is not ready", "{readyToUse: false}", nil, "not yet Waiting: 1 of 2 snapshots are not usable yet: VolumeSnapshot/%s of claim data-db-1; what is begun stays when the run ends before it"},
		{"one failed", "{readyToUse: false, error: {message: no space}}", nil, "failed SnapshotFailed: VolumeSnapshot/%s of claim data-db-1: no space"},
		{"one failed at first, and is ready now", "{readyToUse: true, error: {message: no space}}", nil, "done: data-db-0, data-db-1 can be restored from"},
		{"one is being deleted", "{readyToUse: true}", func(u *unstructured.Unstructured) {
			u.SetDeletionTimestamp(new(metav1.Now()))
			u.SetFinalizers([]string{"x"})
		}, "failed Deleted: VolumeSnapshot/%s of claim data-db-1 is being deleted"},
		{"one is somebody else's", "{readyToUse: true}", func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{annotations.BackupOf: "run-b/snap#1/data-db-1"})
		}, "failed for good NotOurs: VolumeSnapshot/%s in namespace shop was not created by this step; delete or rename it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVault(t, snapshotsOf("db"), `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: shop, name: db}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}`, claimNamed("data-db-0", ""), claimNamed("data-db-1", ""))
			out := v.pass()
			if out.State != executors.NotYet || out.Watch == nil || out.Watch.Resource.Resource != "volumesnapshots" || out.Watch.Selector != "maint.dev/plan=save,maint.dev/step=snap" {
				t.Fatalf("%+v", out)
			}
			if n := len(v.made("volumesnapshots")); n != 2 {
				t.Fatalf("%d were made", n)
			}
			first, second := snapshotName(v.call, "data-db-0"), snapshotName(v.call, "data-db-1")
			v.says("volumesnapshots", "shop", first, "{readyToUse: true}")
			v.says("volumesnapshots", "shop", second, c.status)
			if c.edit != nil {
				v.Edit("volumesnapshots", "shop", second, c.edit)
			}
			want := c.want
			if strings.Contains(want, "%s") {
				want = fmt.Sprintf(want, second)
			}
			out = v.pass()
			if got := outcome(out); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			if n := v.Asked(agenttest.When{Verb: "create", Resource: "volumesnapshots"}); n != 2 {
				t.Errorf("asked for %d", n)
			}
			if out.State == executors.Done {
				if diff := cmp.Diff(map[string]any{"snapshots": []any{first, second}}, out.Outputs); diff != "" || len(out.Changed) != 2 {
					t.Errorf("changed %v, outputs (-want +got):\n%s", out.Changed, diff)
				}
			}
		})
	}
}

// What is made names its claim, its class and its step, so that a pass after a crash finds
// it, and another attempt makes others.
func TestASnapshotSaysWhoseItIs(t *testing.T) {
	p := snapshotsOf("lone")
	p.VolumeSnapshotClass = "fast"
	v := newVault(t, p, claimNamed("lone", ""))
	v.LoseReply(agenttest.When{Verb: "create", Resource: "volumesnapshots"}, 1)
	if got := outcome(v.pass()); !strings.HasPrefix(got, "not yet Unavailable: ") {
		t.Errorf("without an answer: %s", got)
	}
	v.pass()
	made := v.made("volumesnapshots")
	if len(made) != 1 {
		t.Fatalf("made %q", made)
	}
	u := v.Get("volumesnapshots", "shop", made[0])
	want := map[string]any{"source": map[string]any{"persistentVolumeClaimName": "lone"}, "volumeSnapshotClassName": "fast"}
	if diff := cmp.Diff(want, u.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{annotations.BackupOf: "run-a/snap#1/lone", annotations.BackupStep: "shop/save/snap"}, u.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	v.call.Attempt = 2
	v.pass()
	if n := len(v.made("volumesnapshots")); n != 2 {
		t.Errorf("after another attempt there are %d", n)
	}
}

// What a step cannot make is told before anything is made.
func TestSnapshotsThatCannotBeMade(t *testing.T) {
	for _, c := range []struct {
		name   string
		retain bool
		deny   string
		world  func(*vault)
		want   string
	}{
		{"without the right to watch", false, "watch", nil, "failed for good Forbidden: serviceaccount shop/saver may not watch volumesnapshots.snapshot.storage.k8s.io in namespace shop: grant watch on"},
		{"without the right to create", false, "create", nil, "failed for good Forbidden: serviceaccount shop/saver may not create volumesnapshots.snapshot.storage.k8s.io in namespace shop: grant create on"},
		{"without the right to delete, which retain needs", true, "delete", nil, "failed for good Forbidden: serviceaccount shop/saver may not delete volumesnapshots.snapshot.storage.k8s.io in namespace shop: grant delete on"},
		{"without the right to delete, which nothing needs", false, "delete", nil, "not yet Waiting: "},
		{"somebody else's stands under the name", false, "", func(v *vault) {
			v.Put(agenttest.Object(v.T, fmt.Sprintf(`{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {namespace: shop, name: %s}}`, snapshotName(v.call, "lone"))))
		}, "failed for good NotOurs: "},
		{"the controller is not installed", false, "", func(v *vault) { v.call.Clients.Mapper = meta.NewDefaultRESTMapper(nil) }, "failed for good UnknownKind: VolumeSnapshot: the cluster serves no kind VolumeSnapshot in snapshot.storage.k8s.io/v1; is its CRD installed?"},
		{"the API server is away", false, "", func(v *vault) {
			v.Refuse(agenttest.When{Verb: "create", Resource: "volumesnapshots"}, 1, http.StatusServiceUnavailable, "no leader")
		}, "not yet Unavailable: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := snapshotsOf("lone")
			if c.retain {
				p.Retain = &document.Duration{Duration: time.Hour}
			}
			v := newVault(t, p, claimNamed("lone", ""))
			if c.deny != "" {
				v.Deny("", c.deny, "volumesnapshots")
			}
			if c.world != nil {
				c.world(v)
			}
			if got := outcome(v.pass()); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// What retain deletes: what this step made longer ago, and nothing else.
func TestWhichSnapshotsAreDeleted(t *testing.T) {
	const old, young = "2026-01-01T00:00:00Z", "2026-01-02T12:00:00Z"
	for _, c := range []struct {
		name, created, step, more string
		retain                    bool
		gone                      bool
	}{
		{"one that is old enough", old, "shop/save/snap", "", true, true},
		{"without retain none", old, "shop/save/snap", "", false, false},
		{"not one that is younger", young, "shop/save/snap", "", true, false},
		{"not one that is just as old", "2026-01-02T00:00:00Z", "shop/save/snap", "", true, false},
		{"not that of another step", old, "shop/save/other/snap", "", true, false},
		{"not that of nobody's", old, "", "", true, false},
		{"not one that is being deleted already", old, "shop/save/snap", `, deletionTimestamp: "2026-01-02T00:00:00Z", finalizers: [x]`, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := snapshotsOf("lone")
			if c.retain {
				p.Retain = &document.Duration{Duration: 24 * time.Hour}
			}
			v := newVault(t, p, claimNamed("lone", ""), fmt.Sprintf(`{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {namespace: shop, name: before, creationTimestamp: %q, labels: {maint.dev/plan: save, maint.dev/step: snap}, annotations: {%s: %q}%s}}`, c.created, annotations.BackupStep, c.step, c.more))
			v.call.Now = time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
			v.pass()
			mine := snapshotName(v.call, "lone")
			if v.Get("volumesnapshots", "shop", "before") == nil {
				t.Fatal("deleted before the new one can be used")
			}
			v.Edit("volumesnapshots", "shop", mine, func(u *unstructured.Unstructured) { // as old as the other, and this attempt's
				u.Object["status"] = map[string]any{"readyToUse": true}
				_ = unstructured.SetNestedField(u.Object, old, "metadata", "creationTimestamp")
			})
			out := v.pass()
			want := "done: lone can be restored from"
			if c.gone {
				want += "; 1 older snapshots were deleted"
			}
			if got := outcome(out); got != want || slices.ContainsFunc(out.Changed, func(ch run.Change) bool { return ch.Name == "before" && ch.What == "deleted" }) != c.gone {
				t.Errorf("%s, changed %v", got, out.Changed)
			}
			if gone := v.Asked(agenttest.When{Verb: "delete", Resource: "volumesnapshots"}) == 1; gone != c.gone || v.Get("volumesnapshots", "shop", mine) == nil {
				t.Errorf("deleted: %t, there are %q", gone, v.made("volumesnapshots"))
			}
		})
	}
}

// What Velero says of its Backup, and what it means for the step.
func TestHowABackupOfVeleroStands(t *testing.T) {
	for _, c := range []struct {
		name, status string
		edit         func(*unstructured.Unstructured)
		want         string // %s is the object
		waits        bool
	}{
		{"it has not looked yet", "{}", nil, "not yet Waiting: %s in namespace velero is New; what is begun stays when the run ends before it", true},
		{"it is at work", "{phase: InProgress}", nil, "not yet Waiting: %s in namespace velero is InProgress; what is begun stays when the run ends before it", true},
		{"a phase that we do not know is on the way", "{phase: Finalizing}", nil, "not yet Waiting: %s in namespace velero is Finalizing; what is begun stays when the run ends before it", true},
		{"it is complete", "{phase: Completed}", nil, "done: %s in namespace velero is complete", false},
		{"it failed", "{phase: Failed, failureReason: no bucket}", nil, "failed BackupFailed: %s in namespace velero: Failed: no bucket", false},
		{"it failed in parts", "{phase: PartiallyFailed, errors: 3}", nil, "failed BackupPartiallyFailed: %s in namespace velero: PartiallyFailed: 3 errors; see velero backup logs NAME", false},
		{"it was written wrongly", "{phase: FailedValidation, validationErrors: [no location, bad ttl]}", nil, "failed BackupFailedValidation: %s in namespace velero: FailedValidation: no location; bad ttl", false},
		{"it failed without a word", "{phase: Failed}", nil, "failed BackupFailed: %s in namespace velero: Failed", false},
		{"it is being deleted, says Velero", "{phase: Deleting}", nil, "failed Deleted: %s in namespace velero is being deleted before its end", false},
		{"it is being deleted, says the API server", "{phase: InProgress}", func(u *unstructured.Unstructured) {
			u.SetDeletionTimestamp(new(metav1.Now()))
			u.SetFinalizers([]string{"x"})
		}, "failed Deleted: %s in namespace velero is being deleted before its end", false},
		{"it is of another run", "{phase: Completed}", func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{annotations.BackupOf: "run-b/snap#1/shop"})
		}, "failed for good NotOurs: %s in namespace velero was not created by this step; delete or rename it", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVault(t, &plan.BackupProperties{Method: plan.MethodVelero})
			v.pass()
			names := v.made("backups")
			if len(names) != 1 {
				t.Fatalf("made %q", names)
			}
			v.says("backups", "velero", names[0], c.status)
			if c.edit != nil {
				v.Edit("backups", "velero", names[0], c.edit)
			}
			out := v.pass()
			want := strings.ReplaceAll(fmt.Sprintf(c.want, "Backup/"+names[0]), "NAME", names[0])
			if got := outcome(out); got != want || (out.Watch != nil) != c.waits {
				t.Errorf("%s, watch %v\nwant %s", got, out.Watch, want)
			}
			if n := v.Asked(agenttest.When{Verb: "create", Resource: "backups"}); n != 1 {
				t.Errorf("asked for %d times", n)
			}
		})
	}
}

// What Velero is asked for.
func TestWhatVeleroIsAskedFor(t *testing.T) {
	day := &document.Duration{Duration: 24 * time.Hour}
	for _, c := range []struct {
		name      string
		props     plan.BackupProperties
		namespace string
		want      string
	}{
		{"all of the namespace", plan.BackupProperties{}, "velero", `{"includedNamespaces":["shop"]}`},
		{"with an end", plan.BackupProperties{Retain: day}, "velero", `{"includedNamespaces":["shop"],"ttl":"24h0m0s"}`},
		{"in another namespace of Velero's", plan.BackupProperties{VeleroNamespace: "backup"}, "backup", `{"includedNamespaces":["shop"]}`},
		{
			"what a selector picks",
			plan.BackupProperties{Selector: &selector.LabelSelector{MatchLabels: map[string]string{"a": "b"}, MatchExpressions: []selector.SelectorRequirement{{Key: "c", Operator: "In", Values: []string{"d", "e"}}, {Key: "f", Operator: "Exists"}}}},
			"velero",
			`{"includedNamespaces":["shop"],"labelSelector":{"matchExpressions":[{"key":"c","operator":"In","values":["d","e"]},{"key":"f","operator":"Exists"}],"matchLabels":{"a":"b"}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.props.Method = plan.MethodVelero
			v := newVault(t, &c.props)
			v.LoseReply(agenttest.When{Verb: "create", Resource: "backups"}, 1)
			v.pass()
			v.pass()
			names := v.Names("backups")
			if len(names) != 1 || !strings.HasPrefix(names[0], c.namespace+"/maint-save-") {
				t.Fatalf("made %q", names)
			}
			_, name, _ := strings.Cut(names[0], "/")
			got, err := json.Marshal(v.Get("backups", c.namespace, name).Object["spec"])
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// A dry run asks for nothing, and a missing right is told before anything is made.
func TestABackupOfVeleroThatIsNotMade(t *testing.T) {
	for _, c := range []struct {
		name   string
		dryRun bool
		deny   string
		want   string
	}{
		{"a dry run", true, "", "done: dry run: would have Velero back up namespace shop"},
		{"without the right to watch", false, "watch", "failed for good Forbidden: serviceaccount shop/saver may not watch backups.velero.io "},
		{"without the right to get", false, "get", "not yet Forbidden: get backups.velero.io "},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVault(t, &plan.BackupProperties{Method: plan.MethodVelero})
			v.call.DryRun = c.dryRun
			if c.deny != "" {
				v.Deny("", c.deny, "backups")
			}
			if got := outcome(v.pass()); !strings.HasPrefix(got, c.want) || len(v.Names("backups")) != 0 {
				t.Errorf("%s, made %q", got, v.Names("backups"))
			}
		})
	}
}

type databases struct{}

func (databases) Pass(context.Context, executors.Call) executors.Outcome {
	return executors.Outcome{State: executors.Done, Message: "a database was saved"}
}

// A method that is another world's is handed to it, where the agent has one.
func TestWhoMakesABackup(t *testing.T) {
	for _, c := range []struct {
		name  string
		b     Backups
		props any
		want  string
	}{
		{"a database", Backups{Databases: databases{}}, &plan.BackupProperties{Method: plan.MethodRDSSnapshot}, "done: a database was saved"},
		{"a database, without anybody who could", Backups{}, &plan.BackupProperties{Method: plan.MethodRDSSnapshot}, `failed for good Invalid: this agent has no backup by method "rds-snapshot"`},
		{"volumes are not the databases' affair", Backups{Databases: databases{}}, snapshotsOf("ghost"), "failed for good NotFound: component: namespace shop has no "},
		{"a method that nobody knows", Backups{Databases: databases{}}, &plan.BackupProperties{Method: "tape"}, `failed for good Invalid: this agent has no backup by method "tape"`},
		{"properties of another type", Backups{Databases: databases{}}, &plan.ScaleProperties{}, "failed for good Invalid: step snap: properties are "},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVault(t, nil)
			v.call.Properties = c.props
			if got := outcome(c.b.Pass(t.Context(), v.call)); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s", got)
			}
		})
	}
}

// Of many that are waited for three are named.
func TestOfManySnapshotsThreeAreNamed(t *testing.T) {
	for want, items := range map[string][]string{"a, b, c": {"a", "b", "c"}, "a, b, c, …": {"a", "b", "c", "d"}, "a": {"a"}} {
		if got := first(items); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
