package restore_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

const office = "schedule: {offHours: [{start: '20:00', end: '06:00'}]}"

// keyed is the agent's key, and the ring that it makes.
func keyed(t *testing.T) (*corev1.Secret, annotations.Keyring) {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: annotations.DefaultNamespace, Name: annotations.KeyName}, Data: map[string][]byte{annotations.DataKey: annotations.NewKey()}}
	ring, err := annotations.ReadKeyring(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, ring
}

func recordOf(target string, resources ...hibernate.Resource) hibernate.Record {
	return cmdtest.Slept("office", target, resources...)
}

func asleep(id, before string) hibernate.Resource {
	return hibernate.Resource{ID: id, UID: "u-" + id, Before: json.RawMessage(before), CapturedAt: *cmdtest.Before(4 * time.Hour), AsleepAt: cmdtest.Before(3 * time.Hour)}
}

func web() hibernate.Record {
	theirs := asleep("Deployment/shop/theirs", `{"replicas":2}`)
	theirs.Left = "somebody changed it while it slept"
	return recordOf("apps", asleep("Deployment/shop/web", `{"replicas":3}`), theirs)
}

// stored is restore data as the agent signed it.
func stored(t *testing.T, ring annotations.Keyring, r hibernate.Record) *corev1.ConfigMap {
	t.Helper()
	cm, err := annotations.RestoreObject("shop", r)
	if err != nil {
		t.Fatal(err)
	}
	cm.UID, cm.ResourceVersion = "u-restore", "1"
	if !ring.Empty() {
		if err := ring.Sign(cm); err != nil {
			t.Fatal(err)
		}
	}
	return cm
}

// What was copied out of a namespace that was deleted can be listed and shown where it is.
func TestACopyOutOfADeletedNamespaceIsShown(t *testing.T) {
	_, ring := keyed(t)
	slept := stored(t, ring, web())
	slept.Name, slept.Labels = annotations.RescuedName("till", web()), map[string]string{annotations.LabelKind: annotations.KindRestore}
	world := []runtime.Object{cmdtest.Agent(), slept}
	const gone = "its namespace was deleted while this slept: nothing wakes from this copy, and it can be deleted when nobody needs it"
	list := cmdtest.NewCluster(t, cmd.Run, world...).Maint("restore", "list", "--no-headers")
	if want := "office apps workload Asleep 1 1 4h its namespace was deleted while this slept: nothing wakes…"; strings.Join(strings.Fields(list.Out), " ") != want {
		t.Errorf("listed is %q, want %q", list.Out, want)
	}
	const shown = "RESOURCE                 TARGET   STATE                                      BEFORE\nDeployment/shop/web      apps     asleep                                     {\"replicas\":3}\nDeployment/shop/theirs   apps     left: somebody changed it while it slept   {\"replicas\":2}\n"
	for _, line := range []string{"restore show office", "restore show office apps"} {
		cmdtest.NewCluster(t, cmd.Run, world...).Maint(strings.Fields(line)...).Is(t, cmdtest.Printed{Out: shown, Err: "warning: restore data " + slept.Name + " does not count: " + gone + "\n"})
	}
	for _, line := range []string{"restore show office db", "restore show nights", "restore show policy/office", "restore edit office apps"} {
		if got := cmdtest.NewCluster(t, cmd.Run, world...).Maint(strings.Fields(line)...); got.Code != 1 {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// What a controller put back does not sleep until it is put to sleep again.
func TestWhatIsPutBackIsShownAwake(t *testing.T) {
	_, ring := keyed(t)
	back := asleep("Deployment/shop/web", `{"replicas":3}`)
	back.Revived, back.RevivedBy, back.AwakeAt = 1, "kustomize-controller", cmdtest.Before(time.Hour)
	world := []runtime.Object{cmdtest.Agent(), cmdtest.Sleeper("office", office), stored(t, ring, recordOf("apps", back, asleep("Deployment/shop/till", `{"replicas":2}`)))}
	list := cmdtest.NewCluster(t, cmd.Run, world...).Maint("restore", "list", "--no-headers")
	if want := "office apps workload Asleep 1 0 4h <none>"; strings.Join(strings.Fields(list.Out), " ") != want {
		t.Errorf("listed is %q, want %q", list.Out, want)
	}
	const shown = "RESOURCE               TARGET   STATE                                      BEFORE\nDeployment/shop/web    apps     awake: kustomize-controller puts it back   {\"replicas\":3}\nDeployment/shop/till   apps     asleep                                     {\"replicas\":2}\n"
	cmdtest.NewCluster(t, cmd.Run, world...).Maint("restore", "show", "office").Is(t, cmdtest.Printed{Out: shown})
	at := cmdtest.NewCluster(t, cmd.Run, world...).Maint("restore", "show", "office", "-o", "jsonpath={.items[0].sleeping} {.items[0].resources[0].awakeAt}")
	at.Is(t, cmdtest.Printed{Out: "1 " + cmdtest.Before(time.Hour).UTC().Format(time.RFC3339)})
}

// Why something does not wake is said by its restore data, too: its plan may be gone.
func TestWhyATargetDoesNotWakeIsShown(t *testing.T) {
	_, ring := keyed(t)
	failed := recordOf("apps", asleep("Deployment/shop/web", `{"replicas":3}`))
	failed.Operation, failed.State, failed.Message, failed.NotBefore = hibernate.Wake, hibernate.Failed, "the ServiceAccount maint-runner does not exist", cmdtest.Before(-time.Minute)
	world := []runtime.Object{cmdtest.Agent(), stored(t, ring, failed)}
	const begins = "office apps workload Failed 1 0 4h "
	for line, want := range map[string]string{
		"restore list --no-headers":         begins + "its plan is gone, and the agent tries again and again to …",
		"restore list --no-headers -o wide": begins + annotations.RestoreName("office", "apps") + " its plan is gone, and the agent tries again and again to … its plan is gone, and the agent tries again and again to wake what sleeps: the ServiceAccount maint-runner does not exist",
	} {
		if list := cmdtest.NewCluster(t, cmd.Run, world...).Line(line); strings.Join(strings.Fields(list.Out), " ") != want {
			t.Errorf("%s: %q, want %q", line, list.Out, want)
		}
	}
	const shown = "RESOURCE              TARGET   STATE    BEFORE\nDeployment/shop/web   apps     asleep   {\"replicas\":3}\n"
	cmdtest.NewCluster(t, cmd.Run, world...).Maint("restore", "show", "office").Is(t, cmdtest.Printed{Out: shown, Err: "warning: restore data " + annotations.RestoreName("office", "apps") + ": its plan is gone, and the agent tries again and again to wake what sleeps: the ServiceAccount maint-runner does not exist\n"})
	for _, line := range []string{"restore list", "restore show office"} {
		got := cmdtest.NewCluster(t, cmd.Run, world...).Line(line + " -o jsonpath={.items[0].planGone}:{.items[0].message}")
		if want := "true:the ServiceAccount maint-runner does not exist"; got.Code != 0 || got.Out != want {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
	kept := cmdtest.NewCluster(t, cmd.Run, append(world, cmdtest.Sleeper("office", office))...)
	kept.Maint("restore", "show", "office").Is(t, cmdtest.Printed{Out: shown, Err: "warning: target apps is Failed: the ServiceAccount maint-runner does not exist\n"})
	if got := kept.Maint("restore", "list", "-o", "json"); strings.Contains(got.Out, "planGone") {
		t.Errorf("of a plan that is there: %s", got.Out)
	}
}

func TestListAndShow(t *testing.T) {
	_, ring := keyed(t)
	unsigned := stored(t, annotations.Keyring{}, recordOf("db", asleep("StatefulSet/shop/db", `{"replicas":1}`)))
	broken := stored(t, ring, recordOf("odd"))
	broken.Data[annotations.DataRestore] = "{"
	world := []runtime.Object{cmdtest.Agent(), cmdtest.Sleeper("office", office), cmdtest.Sleeper("awake", office), stored(t, ring, web()), unsigned, broken}
	name := func(target string) string { return annotations.RestoreName("office", target) }
	const noSignature = "it carries no signature of the agent's"
	for _, c := range []struct {
		line string
		want cmdtest.Printed
	}{
		{"restore list --no-headers", cmdtest.Printed{}},
		{"restore list -o jsonpath={.kind}{range.items[*]}{\"\\n\"}{.plan}/{.target}:{.state}:{.sleeping}:{.left}:{.resources[*].before.replicas}:{.fault}{end}", cmdtest.Printed{}},
		{"restore list -o name", cmdtest.Printed{}},
		{"restore show office apps", cmdtest.Printed{Out: "RESOURCE                 TARGET   STATE                                      BEFORE\nDeployment/shop/web      apps     asleep                                     {\"replicas\":3}\nDeployment/shop/theirs   apps     left: somebody changed it while it slept   {\"replicas\":2}\n"}},
		{"restore show office db", cmdtest.Printed{Out: "RESOURCE              TARGET   STATE    BEFORE\nStatefulSet/shop/db   db       asleep   {\"replicas\":1}\n", Err: "warning: restore data " + name("db") + " does not count: " + noSignature + "\n"}},
		{"restore show hibernate-plan/office apps -o jsonpath={.items[0].resources[0].before.replicas}", cmdtest.Printed{Out: "3"}},
		{"restore show office ghost", cmdtest.Printed{Code: 1}},
		{"restore show awake", cmdtest.Printed{Code: 3, Err: "error: plan awake has no restore data: nothing of it sleeps\n"}},
		{"restore show ghost", cmdtest.Printed{Code: 1, Err: "error: there is no HibernatePlan \"ghost\" in namespace shop; see 'kubectl maint list'\n"}},
		{"restore show", cmdtest.Printed{Code: 2, Err: "error: give a PLAN, and a TARGET if you want one alone\n"}},
		{"restore", cmdtest.Printed{Code: 2, Err: "error: say what: list, show or edit\n"}},
	} {
		t.Run(c.line, func(t *testing.T) {
			got := cmdtest.NewCluster(t, cmd.Run, world...).Maint(strings.Fields(c.line)...)
			switch c.line {
			case "restore list --no-headers":
				for _, words := range []string{"office apps workload Asleep 1 1 4h <none>", "office db workload Asleep 1 0 4h " + noSignature, "office <none> <none> <none> 0 0 <unknown> it is not ours: restore.json"} {
					if !strings.Contains(strings.Join(strings.Fields(got.Out), " "), words) {
						t.Errorf("no %q in\n%s", words, got.Out)
					}
				}
			case "restore list -o name":
				if len(strings.Fields(got.Out)) != 3 || !strings.Contains(got.Out, "configmap/"+name("apps")+"\n") {
					t.Errorf("%+v", got)
				}
			case "restore show office ghost":
				if got.Code != 1 || !strings.Contains(got.Err, "plan office has no restore data of a target \"ghost\"; it has that of") {
					t.Errorf("%+v", got)
				}
			default:
				if strings.HasPrefix(c.line, "restore list -o json") {
					for _, words := range []string{"RestoreList\n", "office/apps:Asleep:1:1:3 2:", "office/db:Asleep:1:0:1:" + noSignature} {
						if !strings.Contains(got.Out, words) {
							t.Errorf("no %q in\n%s%s", words, got.Out, got.Err)
						}
					}
					return
				}
				got.Is(t, c.want)
			}
		})
	}
	nothing := []runtime.Object{cmdtest.Agent(), cmdtest.Sleeper("office", office), stored(t, ring, recordOf("apps"))}
	cmdtest.NewCluster(t, cmd.Run, nothing...).Maint("restore", "show", "office").Is(t, cmdtest.Printed{Err: "No resources found in shop namespace.\nnothing is recorded of plan office: no resource was put to sleep\n"})
	cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent()).Maint("restore", "list", "-A").Is(t, cmdtest.Printed{Err: "No resources found\n"})
}

// edits has the editor be a script that writes its own text in place of the file's.
func edits(t *testing.T, script string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	t.Setenv("KUBE_EDITOR", file)
	t.Setenv("TMPDIR", t.TempDir())
}

func leftFiles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "maint-restore-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEdit(t *testing.T) {
	const seven = `sed -i 's/replicas: 3/replicas: 7/' "$1"`
	object := annotations.RestoreName("office", "apps")
	for _, c := range []struct {
		name, editor string
		flags        []string
		before       func(o *cmdtest.Cluster, ring annotations.Keyring)
		code         int
		out, err     string // the beginning of it
		replicas     string // that are put back of web then
		kept         bool
	}{
		{name: "another number is signed and written", editor: seven, out: "configmap/" + object + " edited: Deployment/shop/web\n", replicas: `{"replicas":7}`},
		{name: "a trial", editor: seven, flags: []string{"--dry-run"}, out: "configmap/" + object + " edited: Deployment/shop/web (dry run)\n", replicas: `{"replicas":3}`},
		{name: "nothing", editor: "true", err: "nothing was changed\n", replicas: `{"replicas":3}`},
		{name: "an empty file", editor: `: > "$1"`, err: "nothing was changed\n", replicas: `{"replicas":3}`},
		{name: "an editor that fails", editor: "exit 3", code: 1, err: "error: the editor: ", replicas: `{"replicas":3}`, kept: true},
		{name: "a number below nothing, again and again", editor: `sed -i 's/replicas: 3/replicas: -3/' "$1"`, code: 1, err: "error: [0]: before of Deployment/shop/web .replicas must not be negative\nerror: nothing was written; your text is kept in ", replicas: `{"replicas":3}`, kept: true},
		{name: "a fault that is mended at the second try", editor: `if grep -q 'It was not taken' "$1"; then sed -i 's/replicas: -3/replicas: 4/' "$1"; else sed -i 's/replicas: 3/replicas: -3/' "$1"; fi`, out: "configmap/" + object + " edited: Deployment/shop/web\n", replicas: `{"replicas":4}`},
		{name: "what is left alone", editor: `sed -i 's/replicas: 2/replicas: 5/' "$1"`, code: 1, err: "error: [1]: Deployment/shop/theirs is not put back in this cycle: somebody changed it while it slept\n", replicas: `{"replicas":3}`, kept: true},
		{name: "who may not read the key is told before", editor: "exit 9", before: func(o *cmdtest.Cluster, _ annotations.Keyring) { o.Forbids("get", "secrets", "") }, code: 1, err: "Error from server (Forbidden): read the agent's key: ", replicas: `{"replicas":3}`},
		{name: "what does not count is not edited", editor: "exit 9", before: func(o *cmdtest.Cluster, _ annotations.Keyring) {
			o.Stores("configmaps", stored(o.T, annotations.Keyring{}, web()))
		}, code: 1, err: "error: the restore shop/" + object + " does not count: it carries no signature of the agent's\nerror: if it is the agent's own, sign it first: 'kubectl maint adopt " + object + "'\n", replicas: `{"replicas":3}`},
		{name: "who may not write loses nothing", editor: seven, before: func(o *cmdtest.Cluster, _ annotations.Keyring) { o.Forbids("update", "configmaps", "") }, code: 1, err: "Error from server (Forbidden): write configmap/" + object + ": configmaps is forbidden: not for you; the ClusterRole edit in namespace shop would let you; 'kubectl -n shop auth can-i --list' shows what you may\nerror: nothing was written; your text is kept in ", replicas: `{"replicas":3}`, kept: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			edits(t, c.editor)
			secret, ring := keyed(t)
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Sleeper("office", office), secret, stored(t, ring, web()))
			if c.before != nil {
				c.before(o, ring)
			}
			got := o.Maint(append([]string{"restore", "edit", "office", "apps"}, c.flags...)...)
			if got.Code != c.code || got.Out != c.out || !strings.HasPrefix(got.Err, c.err) {
				t.Errorf("%+v", got)
			}
			r, counts := dataOf(o, ring)
			if diff := cmp.Diff(c.replicas, string(r.Resources[0].Before)); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(c.name, "count") && !counts {
				t.Error("the agent would not count it")
			}
			if files := leftFiles(t); (len(files) == 1) != c.kept {
				t.Errorf("left behind: %v", files)
			}
		})
	}
}

// An editor that leaves other nonsense each time ends with the command that somebody ends.
func TestAnEditEndsWhereSomebodyEndsTheCommand(t *testing.T) {
	edits(t, `echo "- {id: another}" >> "$1"`)
	secret, ring := keyed(t)
	o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Sleeper("office", office), secret, stored(t, ring, web()))
	ctx, cancel := context.WithCancel(t.Context())
	o.Ctx = ctx
	time.AfterFunc(200*time.Millisecond, cancel)
	got := o.Maint("restore", "edit", "office", "apps")
	if got.Code != 130 || !strings.Contains(got.Err, "nothing was written; your text is kept in ") || len(leftFiles(t)) != 1 {
		t.Errorf("%+v", got)
	}
}

// dataOf is the restore data of target apps, and whether the agent counts it.
func dataOf(o *cmdtest.Cluster, ring annotations.Keyring) (hibernate.Record, bool) {
	o.Helper()
	cm, err := o.Kube.CoreV1().ConfigMaps("shop").Get(o.Ctx, annotations.RestoreName("office", "apps"), metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	r, err := annotations.ReadRestore(cm)
	if err != nil {
		o.Fatal(err)
	}
	return r, ring.Check(cm) == nil
}

// Somebody else who writes in between loses nothing either.
func TestEditsBesideOthers(t *testing.T) {
	secret, ring := keyed(t)
	for name, c := range map[string]struct {
		meanwhile func(r *hibernate.Record)
		code      int
		err       string
		want      []string
	}{
		"the agent notes that another one is gone": {func(r *hibernate.Record) { r.Resources[1].Left = "it is gone" }, 0, "", []string{`{"replicas":7}`, `{"replicas":2}`}},
		"the agent records one more": {func(r *hibernate.Record) {
			r.Resources = append(r.Resources, asleep("Deployment/shop/new", `{"replicas":1}`))
		}, 0, "", []string{`{"replicas":7}`, `{"replicas":2}`, `{"replicas":1}`}},
		"somebody edits the same":      {func(r *hibernate.Record) { r.Resources[0].Before = json.RawMessage(`{"replicas":4}`) }, 1, "error: the restore data of Deployment/shop/web has changed meanwhile: look at it again\n", []string{`{"replicas":4}`, `{"replicas":2}`}},
		"it has woken and sleeps anew": {func(r *hibernate.Record) { r.Cycle = "another" }, 1, "error: the target has woken and fallen asleep again meanwhile: look at it again\n", []string{`{"replicas":3}`, `{"replicas":2}`}},
		"it is awake meanwhile":        {func(r *hibernate.Record) { r.Resources[0].RestoredAt = cmdtest.Before(0) }, 1, "error: [0]: Deployment/shop/web is awake again: what it was is put back already\n", []string{`{"replicas":3}`, `{"replicas":2}`}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			edits(t, `sed -i 's/replicas: 3/replicas: 7/' "$1"; : > `+dir+`/edited`)
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Sleeper("office", office), secret, stored(t, ring, web()))
			once := false
			o.Kube.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				if _, err := os.Stat(filepath.Join(dir, "edited")); err == nil && !once {
					r := web()
					c.meanwhile(&r)
					o.Stores("configmaps", stored(t, ring, r))
					once = true
				}
				return false, nil, nil
			})
			got := o.Maint("restore", "edit", "office", "apps")
			if got.Code != c.code || !strings.HasPrefix(got.Err, c.err) {
				t.Errorf("%+v", got)
			}
			r, counts := dataOf(o, ring)
			var is []string
			for _, res := range r.Resources {
				is = append(is, string(res.Before))
			}
			if diff := cmp.Diff(c.want, is); diff != "" || !counts {
				t.Errorf("counts: %v\n%s", counts, diff)
			}
		})
	}
}

// An agent at work on the target writes the same object again and again: with a pause after each
// conflict, the edit comes between two of its writes.
func TestAnEditWaitsForThePausesOfOthers(t *testing.T) {
	secret, ring := keyed(t)
	for name, c := range map[string]struct {
		conflicts, code int
		err             string
	}{
		"six conflicts":     {6, 0, ""},
		"nothing but those": {100, 1, "error: configmap/" + stored(t, ring, web()).Name + " keeps changing, because the agent is working on the target: try again when it has finished\n"},
	} {
		t.Run(name, func(t *testing.T) {
			edits(t, `sed -i 's/replicas: 3/replicas: 7/' "$1"`)
			o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Sleeper("office", office), secret, stored(t, ring, web()))
			left := c.conflicts
			o.Kube.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if left--; left < 0 {
					return false, nil, nil
				}
				return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), "it", errors.New("it has been modified"))
			})
			if got := o.Maint("restore", "edit", "office", "apps"); got.Code != c.code || !strings.HasPrefix(got.Err, c.err) {
				t.Errorf("%+v", got)
			}
		})
	}
}
