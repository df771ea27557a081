package executors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/conformance"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// backupCRD is as much of somebody else's kind as a backup step has to do with.
const backupCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[2]s
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s, singular: %[4]s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func snapshotsGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
}

func backupsGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "velero.io", Version: "v1", Resource: "backups"}
}

// newVault is a house whose cluster serves what backups are made with, and
// nobody there who makes them but the test.
func newVault(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	crds := h.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for gvr, kind := range map[schema.GroupVersionResource]string{snapshotsGVR(): "VolumeSnapshot", backupsGVR(): "Backup"} {
		_, err := crds.Create(t.Context(), object(t, fmt.Sprintf(backupCRD, gvr.Resource, gvr.Group, kind, strings.ToLower(kind))), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		eventually(t, kind+"s are served", func(ctx context.Context) (bool, error) {
			_, err := h.dynamic.Resource(gvr).Namespace(h.ns).List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
	}
	eventually(t, "they are discovered", func(context.Context) (bool, error) {
		groups, err := restmapper.GetAPIGroupResources(h.kube.Discovery())
		if err != nil {
			return false, err
		}
		h.mapper = restmapper.NewDiscoveryRESTMapper(groups)
		for kind, gvr := range map[string]schema.GroupVersionResource{"VolumeSnapshot": snapshotsGVR(), "Backup": backupsGVR()} {
			if _, err := h.mapper.RESTMapping(schema.GroupKind{Group: gvr.Group, Kind: kind}, "v1"); meta.IsNoMatchError(err) {
				return false, nil
			}
		}
		return true, nil
	})
	return h
}

func (h *house) claim(t *testing.T, name string, labels string) {
	t.Helper()
	u := object(t, fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s, labels: %s}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}`, name, labels))
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	if _, err := h.dynamic.Resource(gvr).Namespace(h.ns).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// backupsOf are what a call's run made, whatever of.
func (h *house) backupsOf(t *testing.T, gvr schema.GroupVersionResource, call executors.Call) []unstructured.Unstructured {
	t.Helper()
	list, err := h.dynamic.Resource(gvr).Namespace(h.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		return !strings.HasPrefix(u.GetAnnotations()[annotations.BackupOf], call.Run+"/")
	})
}

// play writes the status of all that a call's run made.
func (h *house) play(t *testing.T, gvr schema.GroupVersionResource, call executors.Call, status string) {
	t.Helper()
	for _, u := range h.backupsOf(t, gvr, call) {
		th := &thing{h: h, name: u.GetName(), in: h.dynamic.Resource(gvr).Namespace(h.ns)}
		th.merge(`{status: `+status+`}`, "status")(t)
	}
}

func snapshotRights() []conformance.Right {
	return append(rights("snapshot.storage.k8s.io", "volumesnapshots", "list", "watch", "create", "delete"), rights("", "persistentvolumeclaims", "list")...)
}

func TestVolumeSnapshotsConform(t *testing.T) {
	h := newVault(t)
	for _, name := range []string{"data-db-0", "data-db-1"} {
		h.claim(t, name, "{tier: db}")
	}
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "backup"), Rights: snapshotRights(),
		New: func(t *testing.T) conformance.Backend {
			call := h.call(properties[plan.BackupProperties](t, `{method: volume-snapshot, selector: {matchLabels: {tier: db}}, retain: 24h}`))
			call.Plan.Name = call.Run // worlds are not each other's past
			count := func(t *testing.T) int { return len(h.backupsOf(t, snapshotsGVR(), call)) }
			return conformance.Backend{
				Call: call, Connect: h.connect,
				State:   func(t *testing.T) string { return fmt.Sprintf("%d snapshots", count(t)) },
				Effects: func(t *testing.T) int { return count(t) / 2 },
				Settle:  func(t *testing.T, _ *executors.Call) { h.play(t, snapshotsGVR(), call, "{readyToUse: true}") },
			}
		},
	})
}

func TestVeleroConforms(t *testing.T) {
	h := newVault(t)
	conformance.Run(t, conformance.Case{
		Executor: executor(t, "backup"), Rights: rights("velero.io", "backups", "get", "list", "watch", "create"),
		New: func(t *testing.T) conformance.Backend {
			call := h.call(properties[plan.BackupProperties](t, `{method: velero, veleroNamespace: `+h.ns+`, retain: 24h}`))
			count := func(t *testing.T) int { return len(h.backupsOf(t, backupsGVR(), call)) }
			return conformance.Backend{
				Call: call, Connect: h.connect, Effects: count,
				State:  func(t *testing.T) string { return fmt.Sprintf("%d backups", count(t)) },
				Settle: func(t *testing.T, _ *executors.Call) { h.play(t, backupsGVR(), call, "{phase: Completed}") },
			}
		},
	})
}

// componentRights are what finding a component's claims takes besides.
func componentRights() []conformance.Right {
	granted := append(snapshotRights(), rights("apps", "statefulsets", "get")...)
	return append(append(granted, rights("apps", "deployments", "get")...), rights("", "persistentvolumeclaims", "get")...)
}

func TestWhichClaimsAreBackedUp(t *testing.T) {
	h := newVault(t)
	for _, name := range []string{"data-db-0", "data-db-1", "data-db-x", "data-other-0", "shared", "web-data"} {
		h.claim(t, name, "{app: "+name+"}")
	}
	named := func(gvr schema.GroupVersionResource, name, text string) {
		u := object(t, text)
		u.SetName(name)
		if _, err := h.dynamic.Resource(gvr).Namespace(h.ns).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod := func(claim string) string {
		return `{metadata: {labels: {a: b}}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: ` + claim + `}}], containers: [{name: a, image: "example.org/a:1"}]}}`
	}
	named(appsOf("statefulsets"), "db", `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 0, serviceName: x, selector: {matchLabels: {a: b}}, template: `+pod("shared")+`, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}]}}`)
	named(appsOf("deployments"), "web", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: `+pod("web-data")+`}}`)
	for name, c := range map[string]struct {
		properties string
		want       []string
	}{
		"a StatefulSet that is scaled to zero": {"component: db", []string{"data-db-0", "data-db-1", "shared"}},
		"a Deployment":                         {"component: web", []string{"web-data"}},
		"a claim":                              {"component: data-other-0", []string{"data-other-0"}},
		"a selector":                           {"selector: {matchExpressions: [{key: app, operator: In, values: [shared, data-db-x]}]}", []string{"data-db-x", "shared"}},
	} {
		t.Run(name, func(t *testing.T) {
			call := h.as(t, h.call(properties[plan.BackupProperties](t, `{method: volume-snapshot, volumeSnapshotClass: fast, `+c.properties+`}`)), componentRights())
			out := pass(t, "backup", &call)
			want := executors.Watch{Resource: snapshotsGVR(), Namespace: h.ns, Selector: "maint.dev/plan=orders,maint.dev/step=work"}
			if out.State != executors.NotYet || out.Watch == nil || *out.Watch != want || !strings.Contains(out.Message, "stays when the run ends") {
				t.Fatalf("%+v, want a watch on %+v", out, want)
			}
			var got []string
			for _, u := range h.backupsOf(t, snapshotsGVR(), call) {
				claim, _, _ := unstructured.NestedString(u.Object, "spec", "source", "persistentVolumeClaimName")
				class, _, _ := unstructured.NestedString(u.Object, "spec", "volumeSnapshotClassName")
				got = append(got, claim)
				if class != "fast" || len(u.GetName()) > 63 {
					t.Errorf("%s is of class %q", u.GetName(), class)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("backs up %v, want %v", got, c.want)
			}
			h.play(t, snapshotsGVR(), call, "{readyToUse: true}")
			out = pass(t, "backup", &call)
			if names, _ := out.Outputs["snapshots"].([]any); out.State != executors.Done || len(names) != len(c.want) || len(out.Changed) != len(c.want) {
				t.Errorf("%+v", out)
			}
		})
	}
	none := h.as(t, h.call(properties[plan.BackupProperties](t, `{method: volume-snapshot, component: nobody}`)), componentRights())
	refused(t, pass(t, "backup", &none), true, executors.ReasonNotFound, "StatefulSet, Deployment or PersistentVolumeClaim", `"nobody"`)
	empty := h.as(t, h.call(properties[plan.BackupProperties](t, `{method: volume-snapshot, selector: {matchLabels: {app: nobody}}}`)), componentRights())
	refused(t, pass(t, "backup", &empty), true, executors.ReasonNotFound, "app=nobody")
}

func TestSnapshotsThatFail(t *testing.T) {
	h := newVault(t)
	h.claim(t, "data", "{app: db}")
	call := h.as(t, h.call(properties[plan.BackupProperties](t, `{method: volume-snapshot, selector: {matchLabels: {app: db}}}`)), snapshotRights())
	if out := pass(t, "backup", &call); out.State != executors.NotYet {
		t.Fatalf("%+v", out)
	}
	h.play(t, snapshotsGVR(), call, `{readyToUse: false, error: {message: no driver}}`)
	refused(t, pass(t, "backup", &call), false, "SnapshotFailed", "claim data", "no driver")
	call.Attempt = 2
	if out := pass(t, "backup", &call); out.State != executors.NotYet || len(h.backupsOf(t, snapshotsGVR(), call)) != 2 {
		t.Errorf("another attempt takes no other snapshot: %+v", out)
	}
	taken := h.backupsOf(t, snapshotsGVR(), call)[0]
	strip := &thing{h: h, name: taken.GetName(), in: h.dynamic.Resource(snapshotsGVR()).Namespace(h.ns)}
	strip.merge(`{metadata: {annotations: {maint.dev/backup-of: another}}}`)(t)
	call.Attempt = 1
	if strings.HasSuffix(taken.GetAnnotations()[annotations.BackupOf], "#2/data") {
		call.Attempt = 2
	}
	refused(t, pass(t, "backup", &call), true, "NotOurs", taken.GetName())
}

func TestOldSnapshotsOfTheStepGo(t *testing.T) {
	h := newVault(t)
	h.claim(t, "data", "{app: db}")
	backup := func(change func(*executors.Call)) executors.Call {
		call := h.as(t, h.call(properties[plan.BackupProperties](t, `{method: volume-snapshot, selector: {matchLabels: {app: db}}, retain: 1h}`)), snapshotRights())
		call.Now = time.Now()
		change(&call)
		if out := pass(t, "backup", &call); out.State != executors.NotYet {
			t.Fatalf("%+v", out)
		}
		h.play(t, snapshotsGVR(), call, "{readyToUse: true}")
		return call
	}
	old := backup(func(*executors.Call) {})
	others := map[string]executors.Call{
		"another plan's":               backup(func(c *executors.Call) { c.Plan.Name = "billing" }),
		"another step's":               backup(func(c *executors.Call) { c.Path = "other" }),
		"a step's of the same name":    backup(func(c *executors.Call) { c.Path = "finally/work" }),
		"what bears labels by mistake": backup(func(*executors.Call) {}),
	}
	strip := &thing{h: h, name: h.backupsOf(t, snapshotsGVR(), others["what bears labels by mistake"])[0].GetName(), in: h.dynamic.Resource(snapshotsGVR()).Namespace(h.ns)}
	strip.merge(`{metadata: {annotations: {maint.dev/backup-step: null}}}`)(t)

	recent := backup(func(*executors.Call) {})
	if out := pass(t, "backup", &recent); out.State != executors.Done || len(h.backupsOf(t, snapshotsGVR(), old)) != 1 {
		t.Fatalf("what is younger than retain went: %+v", out)
	}
	late := backup(func(c *executors.Call) { c.Now = c.Now.Add(2 * time.Hour) })
	out := pass(t, "backup", &late)
	if out.State != executors.Done || !strings.Contains(out.Message, "2 older snapshots were deleted") || len(out.Changed) != 3 {
		t.Errorf("%+v", out)
	}
	for name, want := range map[string]struct {
		call  executors.Call
		count int
	}{"the oldest": {old, 0}, "the one before": {recent, 0}, "the new one": {late, 1}} {
		if n := len(h.backupsOf(t, snapshotsGVR(), want.call)); n != want.count {
			t.Errorf("of %s %d are left, want %d", name, n, want.count)
		}
	}
	for name, call := range others {
		if n := len(h.backupsOf(t, snapshotsGVR(), call)); n != 1 {
			t.Errorf("%s went", name)
		}
	}
}

func TestWhatVeleroIsAsked(t *testing.T) {
	h := newVault(t)
	granted := rights("velero.io", "backups", "get", "list", "watch", "create")
	text := `{method: velero, veleroNamespace: ` + h.ns + `, retain: 72h, selector: {matchLabels: {app: db}, matchExpressions: [{key: tier, operator: In, values: [gold]}]}}`
	call := h.as(t, h.call(properties[plan.BackupProperties](t, text)), granted)
	if out := pass(t, "backup", &call); out.State != executors.NotYet || out.Watch == nil || out.Watch.Name == "" {
		t.Fatalf("%+v", out)
	}
	made := h.backupsOf(t, backupsGVR(), call)[0]
	got := yamlOf(t, made.Object["spec"])
	want := `{"includedNamespaces":["` + h.ns + `"],"labelSelector":{"matchExpressions":[{"key":"tier","operator":"In","values":["gold"]}],"matchLabels":{"app":"db"}},"ttl":"72h0m0s"}`
	if got != want {
		t.Errorf("asks for %s, want %s", got, want)
	}
	for status, words := range map[string][]string{
		`{phase: FailedValidation, validationErrors: [no location]}`:  {"BackupFailedValidation", "no location"},
		`{phase: PartiallyFailed, errors: 3, validationErrors: null}`: {"BackupPartiallyFailed", "3 errors; see velero backup logs " + made.GetName()},
		`{phase: Failed, failureReason: gone}`:                        {"BackupFailed", "gone"},
	} {
		h.play(t, backupsGVR(), call, status)
		refused(t, pass(t, "backup", &call), false, words[0], words[1:]...)
	}
	for _, phase := range []string{"InProgress", "Finalizing", "WaitingForPluginOperations"} {
		h.play(t, backupsGVR(), call, `{phase: `+phase+`}`)
		if out := pass(t, "backup", &call); out.State != executors.NotYet || !strings.Contains(out.Message, phase) {
			t.Errorf("%s is %+v", phase, out)
		}
	}
	h.play(t, backupsGVR(), call, `{phase: Completed}`)
	if out := pass(t, "backup", &call); out.State != executors.Done || out.Outputs["backup"] != made.GetName() {
		t.Errorf("%+v", out)
	}
}

func TestBackupsWithoutTheirKindsSaySo(t *testing.T) {
	h := newHouse(t)
	groups, err := restmapper.GetAPIGroupResources(h.kube.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	// The cluster may serve them by now, for another test.
	h.mapper = restmapper.NewDiscoveryRESTMapper(slices.DeleteFunc(groups, func(g *restmapper.APIGroupResources) bool {
		return g.Group.Name == snapshotsGVR().Group || g.Group.Name == backupsGVR().Group
	}))
	for method, kind := range map[string]string{"volume-snapshot": "VolumeSnapshot", "velero": "Backup"} {
		call := h.as(t, h.call(&plan.BackupProperties{Method: method, Component: "db"}), nil)
		refused(t, pass(t, "backup", &call), true, executors.ReasonUnknownKind, "kind "+kind, "CRD installed")
	}
}
