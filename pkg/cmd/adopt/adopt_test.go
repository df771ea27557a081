package adopt_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

// toAdopt is the agent's key, and restore data that nobody has signed.
func toAdopt(t *testing.T) (*corev1.Secret, annotations.Keyring, *corev1.ConfigMap) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: annotations.NewKey()}}
	ring, err := annotations.ReadKeyring(secret)
	if err != nil {
		t.Fatal(err)
	}
	cm, err := annotations.RestoreObject("shop", cmdtest.Slept("office", "apps", hibernate.Resource{ID: "Deployment/shop/web", Before: json.RawMessage(`{"replicas":3}`)}))
	if err != nil {
		t.Fatal(err)
	}
	return secret, ring, cm
}

func TestRestoreDataIsAdopted(t *testing.T) {
	secret, ring, cm := toAdopt(t)
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), secret, cm)
	const contents = ": restore data of target apps of plan office, 1 resource, as ServiceAccount maint-runner: Deployment/shop/web {\"replicas\":3}\n"
	o.Maint("adopt", "--all").Is(t, cmdtest.Printed{Code: 2, Err: cm.Name + contents + "error: sign 1 object in namespace shop, so that the agent acts on it: give --yes, since nobody can be asked here\n"})
	o.Maint("adopt", cm.Name, "--yes").Is(t, cmdtest.Printed{Out: "configmap/" + cm.Name + " signed\n", Err: cm.Name + contents})
	got, err := o.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), cm.Name, metav1.GetOptions{})
	if err != nil || ring.Check(got) != nil {
		t.Errorf("%v: %v", err, ring.Check(got))
	}
	o.Maint("adopt", "--all").Is(t, cmdtest.Printed{Out: "nothing is to be signed: everything counts\n"})
	got.Data[annotations.DataRestore] = "{"
	o.Stores("configmaps", got)
	if again := o.Maint("adopt", cm.Name, "--yes"); again.Code != 1 {
		t.Errorf("what cannot be read is signed: %+v", again)
	}
}

func TestWhatCannotBeAdoptedIsToldWithTheNextCommand(t *testing.T) {
	secret, _, cm := toAdopt(t)
	const lacking = "; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\n"
	for name, c := range map[string]struct {
		object string
		forbid []string // a verb and a resource
		err    string
	}{
		"a name that is misspelt":       {object: strings.Replace(cm.Name, "office", "ofice", 1), err: "there is no ConfigMap " + strings.Replace(cm.Name, "office", "ofice", 1) + " in namespace shop; did you mean \"" + cm.Name + "\"?\n"},
		"a name that is like no other":  {object: "x", err: "there is no ConfigMap x in namespace shop; 'kubectl maint adopt --all --dry-run=client' shows which records of the agent have no valid signature\n"},
		"who may not read the key":      {object: cm.Name, forbid: []string{"get", "secrets"}, err: "read the agent's key: secrets is forbidden: not for you; a Role with get on secrets in namespace maint-system would let you; 'kubectl -n maint-system auth can-i --list' shows what you may\n"},
		"who may not write the records": {object: cm.Name, forbid: []string{"update", "configmaps"}, err: "sign configmap/" + cm.Name + ": configmaps is forbidden: not for you" + lacking},
	} {
		t.Run(name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), secret.DeepCopy(), cm.DeepCopy())
			if c.forbid != nil {
				o.Forbids(c.forbid[0], c.forbid[1], "")
			}
			if got := o.Maint("adopt", c.object, "--yes"); got.Code != 1 || !strings.HasSuffix(got.Err, ": "+c.err) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// What one tenant wrote keeps nobody else's records from being signed; copies from deleted namespaces
// wake nothing, and are signed by the agent where they count.
func TestAllAreAdoptedButThoseThatCannotBeRead(t *testing.T) {
	secret, ring, cm := toAdopt(t)
	copied := cm.DeepCopy()
	copied.Name = annotations.RescuedName("gone", cmdtest.Slept("office", "apps"))
	delete(copied.Labels, annotations.LabelPlan)
	broken := cmdtest.Map(annotations.KindGate, "maint-gate-broken", "gate.json", "{")
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), secret, cm, copied)
	if got := o.Maint("adopt", "--all", "--yes"); got.Code != 0 || got.Out != "configmap/"+cm.Name+" signed\n" {
		t.Errorf("beside a copy: %+v", got)
	}
	o.Maint("adopt", "--all").Is(t, cmdtest.Printed{Out: "nothing is to be signed: everything counts\n"})

	o = cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), secret, cm, broken)
	got := o.Maint("adopt", "--all", "--yes")
	if got.Code != 1 || got.Out != "configmap/"+cm.Name+" signed\n" || !strings.HasPrefix(got.Err, "warning: configmap/maint-gate-broken is not signed: ") || !strings.HasSuffix(got.Err, "error: 1 object not signed\n") {
		t.Errorf("beside one that cannot be read: %+v", got)
	}
	signed, err := o.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), cm.Name, metav1.GetOptions{})
	if err != nil || ring.Check(signed) != nil {
		t.Errorf("%v: %v", err, ring.Check(signed))
	}
	if got := o.Maint("adopt", "--all"); got.Code != 1 || got.Out != "" || !strings.HasSuffix(got.Err, "error: 1 object not signed\n") {
		t.Errorf("again: %+v", got)
	}
	if got := o.Maint("adopt", cm.Name, broken.Name, "--yes"); got.Code != 1 || got.Out != "" {
		t.Errorf("by their names: %+v", got)
	}
}

// Restore data of an earlier sleep is signed already, and counts for the present one once somebody
// has named it.
func TestRestoreDataOfAnEarlierSleepIsAdoptedByItsName(t *testing.T) {
	secret, ring, cm := toAdopt(t)
	if err := ring.Sign(cm); err != nil {
		t.Fatal(err)
	}
	plan := cmdtest.Sleeper("office", "schedule: {offHours: [{start: '20:00', end: '06:00'}]}")
	last := ledger.LastSleep{BeganAt: *cmdtest.Before(time.Hour)}
	slots := cmdtest.LedgerOf("office", ledger.Ledger{LastSleep: &last})
	if err := ring.Sign(slots); err != nil {
		t.Fatal(err)
	}
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), secret, cm, plan, slots)
	o.Maint("adopt", "--all").Is(t, cmdtest.Printed{Out: "nothing is to be signed: everything counts\n"})
	if got := o.Maint("adopt", cm.Name, "--yes"); got.Code != 0 || !strings.Contains(got.Err, cm.Name+": it is of an earlier sleep, which began ") {
		t.Errorf("%+v", got)
	}
	got, err := o.Kube.CoreV1().ConfigMaps("shop").Get(t.Context(), cm.Name, metav1.GetOptions{})
	if err != nil || ring.Check(got) != nil {
		t.Fatalf("%v: %v", err, ring.Check(got))
	}
	if r, err := annotations.ReadRestore(got); err != nil || !r.Snapshot.BeganAt.Equal(last.BeganAt) || string(r.Resources[0].Before) != `{"replicas":3}` {
		t.Errorf("%v: it holds %+v", err, r)
	}
	o.Maint("adopt", cm.Name).Is(t, cmdtest.Printed{Out: "nothing is to be signed: everything counts\n"})
}

// Whoever signs a ledger is shown what it keeps from running, and what it lets begin.
func TestALedgerIsShownBeforeItIsAdopted(t *testing.T) {
	secret, _, _ := toAdopt(t)
	forged := cmdtest.LedgerOf("orders", ledger.Ledger{Watermark: time.Date(2076, 1, 2, 3, 4, 5, 0, time.UTC), Open: []ledger.Entry{{Run: "maint-run-x"}}, Recent: []ledger.Entry{{}}})
	archive, err := annotations.ArchiveObject("shop", "orders", "uid-orders", []ledger.Entry{{}, {}})
	if err != nil {
		t.Fatal(err)
	}
	broken := forged.DeepCopy()
	broken.Name, broken.Data[annotations.DataLedger] = "maint-ledger-broken", "{"
	foreign := forged.DeepCopy()
	foreign.Name, foreign.OwnerReferences[0].UID = "maint-ledger-foreign", "uid-other"
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), secret, forged, archive, broken, foreign)
	for name, want := range map[string]cmdtest.Printed{
		forged.Name: {
			Out: "configmap/" + forged.Name + " signed\n",
			Err: forged.Name + ": the ledger of plan orders: slots up to Thu 2076-01-02 04:04:05 CET (2076-01-02T03:04:05Z) count as done, 1 entry, open: maint-run-x\n",
		},
		archive.Name: {Out: "configmap/" + archive.Name + " signed\n", Err: archive.Name + ": older entries of the ledger of plan orders: 2 entries\n"},
	} {
		o.Maint("adopt", name, "--yes").Is(t, want)
	}
	for _, cm := range []*corev1.ConfigMap{broken, foreign} {
		if got := o.Maint("adopt", cm.Name, "--yes"); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, "configmap/"+cm.Name+" is not signed: ") {
			t.Errorf("%+v", got)
		}
	}
}
