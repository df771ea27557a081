package annotations_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func TestNamesAreDerivedAndDistinct(t *testing.T) {
	slot := instant("2026-12-05T02:00:00Z")
	requests := map[string]run.Request{
		"slot":                  {Kind: run.BySchedule, Slot: &slot, Local: "2026-12-05T02:00:00Z[UTC]"},
		"slot in another zone":  {Kind: run.BySchedule, Slot: &slot, Local: "2026-12-05T02:00:00Z[Etc/UTC]"},
		"label":                 {Kind: run.ByLabel, Label: "a/b", TargetUID: "t", Ordinal: 1},
		"label again":           {Kind: run.ByLabel, Label: "a/b", TargetUID: "t", Ordinal: 2},
		"another label":         {Kind: run.ByLabel, Label: "a/c", TargetUID: "t", Ordinal: 1},
		"another target":        {Kind: run.ByLabel, Label: "a/b", TargetUID: "t2", Ordinal: 1},
		"token":                 {Kind: run.ByToken, Token: "1"},
		"another token":         {Kind: run.ByToken, Token: "2"},
		"creation":              {Kind: run.ByCreation},
		"a token that pretends": {Kind: run.ByToken, Token: "x|schedule|2026-12-05T02:00:00Z[UTC]"},
	}
	names := map[string]string{}
	for what, r := range requests {
		name := annotations.RunName("orders", "uid-1", r)
		if first, twice := names[name]; twice {
			t.Errorf("%s and %s are one run", what, first)
		}
		names[name] = what
		r.At, r.Reason, r.Actor, r.Value, r.DryRun = slot, "why", "who", "v", true
		if again := annotations.RunName("orders", "uid-1", r); again != name {
			t.Errorf("%s: what was said beside it changes its name", what)
		}
		if annotations.RunName("orders", "uid-2", r) == name || annotations.RunName("others", "uid-1", r) == name {
			t.Errorf("%s: two plans share a run's name", what)
		}
	}
	if got := annotations.RunName("orders", "uid-1", requests["token"]); got != "maint-run-orders-gv6qsuhlss" && !strings.HasPrefix(got, "maint-run-orders-") {
		t.Error(got)
	}
}

func TestNamesFitWhateverTheirParts(t *testing.T) {
	long := strings.Repeat("p", 63)
	key := strings.Repeat("k", 253) + "/" + strings.Repeat("n", 63)
	for _, name := range []string{annotations.RunName(long, long, run.Request{Kind: run.ByLabel, Label: key}), annotations.LedgerName(long, long), annotations.ArchiveName(long, long)} {
		if len(name) > 253 || strings.ToLower(name) != name {
			t.Error(name)
		}
	}
	handled := annotations.Handled(key)
	if _, name, _ := strings.Cut(handled, "/"); len(name) > 63 {
		t.Error(handled)
	}
	if annotations.Handled("a/b") == annotations.Handled("a/c") {
		t.Error("two labels share a number")
	}
	if annotations.Hash10("a", "b") == annotations.Hash10("ab") || annotations.LedgerName("a", "u") == annotations.ArchiveName("a", "u") {
		t.Error("hashes join their parts")
	}
}

func newRun() (run.Run, run.Journal) {
	spec := plan.Spec{
		Target: &plan.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "orders"},
		Steps: []plan.Step{{Name: "hook", Type: "webhook", Properties: map[string]any{
			"url": "https://example.org", "body": map[string]any{"n": "n", "on": "on", "ten": "010", "yes": true, "id": int64(1234567890123456789), "part": 0.5, "null": nil, "list": []any{int64(1), "two"}, "text": "a\n# b\n---\n'c\": ${run.name}"},
		}}},
	}
	r := run.Run{
		APIVersion: document.APIVersion, Kind: "Run", Namespace: "shop", Plan: "orders", PlanUID: "uid-1", TargetUID: "t",
		Request: run.Request{Kind: run.ByToken, Token: "on", At: instant("2026-12-05T02:00:00Z"), Parameters: map[string]string{"y": "no"}}, Spec: spec.Defaulted(),
	}
	r.Name = annotations.RunName(r.Plan, r.PlanUID, r.Request)
	j := workflow.NewJournal(r).Start(instant("2026-12-05T02:00:01Z"))
	j.Steps[0].Before, j.Steps[0].Outputs = json.RawMessage(`{"a":1}`), map[string]any{"id": int64(9007199254740993), "ratio": 0.25}
	return r, j
}

func TestARunSurvivesItsObject(t *testing.T) {
	r, j := newRun()
	cm, err := annotations.RunObject(r, j)
	if err != nil {
		t.Fatal(err)
	}
	again, journal, err := annotations.ReadRun(cm)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(j, journal); diff != "" {
		t.Error(diff)
	}
	if cm.Finalizers[0] != annotations.Finalizer || len(cm.OwnerReferences) != 0 {
		t.Error("a live run has a finalizer and no owner")
	}
	ended := cm.DeepCopy()
	ended.Finalizers = append(ended.Finalizers, "example.org/theirs")
	annotations.Retire(ended, r)
	if diff := cmp.Diff([]string{"example.org/theirs"}, ended.Finalizers); diff != "" || ended.OwnerReferences[0].UID != "uid-1" {
		t.Errorf("%s %v", diff, ended.OwnerReferences)
	}
	if cm.Labels[annotations.LabelPhase] != "Running" || ended.Labels[annotations.LabelKind] != annotations.KindRun {
		t.Error(cm.Labels)
	}
}

func TestForeignObjectsAreRefused(t *testing.T) {
	r, j := newRun()
	for name, spoil := range map[string]func(*corev1.ConfigMap){
		"no label":         func(cm *corev1.ConfigMap) { delete(cm.Labels, annotations.LabelKind) },
		"another kind":     func(cm *corev1.ConfigMap) { cm.Labels[annotations.LabelKind] = annotations.KindPlan },
		"another name":     func(cm *corev1.ConfigMap) { cm.Name = "other" },
		"another place":    func(cm *corev1.ConfigMap) { cm.Namespace = "other" },
		"no run":           func(cm *corev1.ConfigMap) { delete(cm.Data, annotations.DataRun) },
		"no journal":       func(cm *corev1.ConfigMap) { delete(cm.Data, annotations.DataJournal) },
		"a broken journal": func(cm *corev1.ConfigMap) { cm.Data[annotations.DataJournal] = "{" },
		"a broken run":     func(cm *corev1.ConfigMap) { cm.Data[annotations.DataRun] = "{" },
		"another plan":     func(cm *corev1.ConfigMap) { cm.Labels[annotations.LabelPlan] = "payments" },
		"a run that is too large": func(cm *corev1.ConfigMap) {
			cm.Data[annotations.DataRun] += "# " + strings.Repeat("x", 1_000_000)
		},
		"a journal of a million objects": func(cm *corev1.ConfigMap) {
			cm.Data[annotations.DataJournal] = `{"phase":"Running","steps":[{}` + strings.Repeat(",{}", 300_000) + `]}`
		},
	} {
		cm, err := annotations.RunObject(r, j)
		if err != nil {
			t.Fatal(err)
		}
		spoil(cm)
		if got, journal, err := annotations.ReadRun(cm); err == nil || got.Name != "" || len(journal.Steps) > 0 {
			t.Errorf("%s: was taken for the run: %v, %d steps, %v", name, got.Name, len(journal.Steps), err)
		}
	}
}

// Whoever may write ConfigMaps writes a run as they like: it names another plan, or
// does what no plan may do.
func TestARunThatNoPlanCouldHaveMadeIsRefused(t *testing.T) {
	loop := plan.Step{Name: "again", Type: "template/a"}
	for _, c := range []struct {
		name  string
		forge func(*run.Run)
		says  string
	}{
		{"of another plan", func(r *run.Run) { r.Plan = "payments" }, "its label"},
		{"with a template that holds itself", func(r *run.Run) {
			r.Spec.Steps = append(r.Spec.Steps, loop)
			r.Templates = map[string]plan.TemplateSpec{"a": {Steps: []plan.Step{loop}}}
		}, `template "a" stands for itself`},
		{"with templates that hold each other", func(r *run.Run) {
			r.Spec.Steps = append(r.Spec.Steps, loop)
			r.Templates = map[string]plan.TemplateSpec{"a": {Steps: []plan.Step{{Name: "b", Type: "template/b"}}}, "b": {Steps: []plan.Step{loop}}}
		}, "stands for itself"},
		{"with a template that is not there", func(r *run.Run) { r.Spec.Steps = append(r.Spec.Steps, loop) }, `there is no step template "a"`},
		{"with properties nested without end", func(r *run.Run) {
			deep := any("x")
			for range 300 {
				deep = map[string]any{"a": deep}
			}
			r.Spec.Steps[0].Properties["body"] = deep
		}, "nested too deep"},
		{"with more steps than a plan may have", func(r *run.Run) {
			for i := range 200 {
				more := r.Spec.Steps[0]
				more.Name = fmt.Sprintf("hook-%d", i)
				r.Spec.Finally = append(r.Spec.Finally, more)
			}
		}, "at most 200 are run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, j := newRun()
			cm, err := annotations.RunObject(r, j)
			if err != nil {
				t.Fatal(err)
			}
			c.forge(&r)
			forged, err := annotations.RunObject(r, j)
			if err != nil {
				t.Fatal(err)
			}
			cm.Data[annotations.DataRun] = forged.Data[annotations.DataRun]
			if _, _, err = annotations.ReadRun(cm); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; it should say %q", err, c.says)
			}
		})
	}
}

func TestALedgerSurvivesItsObject(t *testing.T) {
	at := instant("2026-12-05T02:00:00Z")
	l := ledger.Ledger{PlanUID: "uid-1", Watermark: at, Tokens: []string{"a"}, Labels: map[string]ledger.LabelState{"k": {TargetUID: "t", Claimed: 3}}, Paused: &schedule.Pause{On: true, Until: &at}, NextUsed: true}
	l = l.Claim("run-1", run.Request{Kind: run.ByToken, Token: "a", At: at}, "t").Close("run-1", run.Ran, "", &at, at)
	l = l.End(run.Request{Kind: run.BySchedule, Slot: &at}, run.Missed, run.ReasonDeadline, ledger.Cause{}, at)
	cm, err := annotations.LedgerObject("shop", "orders", l)
	if err != nil {
		t.Fatal(err)
	}
	again, err := annotations.ReadLedger(cm, "uid-1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, again, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if _, err := annotations.ReadLedger(cm, "uid-2"); !errors.Is(err, annotations.ErrForeign) {
		t.Errorf("of another plan: %v", err)
	}
	if !annotations.IsLedger(cm) {
		t.Error("it says that it is no ledger")
	}
	cm.Labels = nil
	if _, err := annotations.ReadLedger(cm, "uid-1"); !errors.Is(err, annotations.ErrForeign) || annotations.IsLedger(cm) {
		t.Errorf("without our label: %v, a ledger: %t", err, annotations.IsLedger(cm))
	}
}

func TestDocumentsStandUnderTheirKeyAlone(t *testing.T) {
	const text = "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: a, type: suspend}]}\n"
	for name, c := range map[string]struct {
		edit func(*corev1.ConfigMap)
		want string
	}{
		"a plan":      {func(*corev1.ConfigMap) {}, ""},
		"no data":     {func(cm *corev1.ConfigMap) { cm.Data = nil }, "data: the key plan.yaml is missing: the document stands there"},
		"another key": {func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"plan.yml": text} }, "data: the key plan.yaml is missing; found plan.yml"},
		"another too": {func(cm *corev1.ConfigMap) { cm.Data["b"] = "" }, "data: holds b, plan.yaml; a ConfigMap of this kind holds plan.yaml alone"},
		"another's account without its label": {func(cm *corev1.ConfigMap) {
			cm.Data["plan.yaml"] = strings.Replace(text, "{steps", "{serviceAccountName: dba, steps", 1)
		}, "metadata.labels: needs the label maint.dev/service-account: dba, since it runs as that account, and admission policies see labels only"},
		"a long name": {func(cm *corev1.ConfigMap) { cm.Name = strings.Repeat("a", 64) }, "line 1: metadata.name: \"" + strings.Repeat("a", 64) + "\" cannot name a plan: at most 63 characters of a-z, 0-9 and '-'"},
	} {
		cm := annotations.NewPlan("shop", "orders", text, "")
		c.edit(cm)
		_, faults := annotations.Plan(cm)
		if got := faults.Error(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func managed(manager string, operation metav1.ManagedFieldsOperationType, at time.Time, fields string) metav1.ManagedFieldsEntry {
	stamp := metav1.NewTime(at)
	owned := &metav1.FieldsV1{}
	owned.SetRawBytes([]byte(fields))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Time: &stamp, FieldsV1: owned}
}

// An edit is a write of the document, not of an annotation beside it.
func TestEditedAtIsTheLastWriteOfTheDocument(t *testing.T) {
	created, edited, later := instant("2026-01-01T00:00:00Z"), instant("2026-01-02T00:00:00Z"), instant("2026-01-03T00:00:00Z")
	o := metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created), ManagedFields: []metav1.ManagedFieldsEntry{
		managed("kubectl-create", metav1.ManagedFieldsOperationUpdate, created, `{"f:data":{".":{},"f:plan.yaml":{}}}`),
		managed("kustomize-controller", metav1.ManagedFieldsOperationApply, edited, `{"f:data":{"f:plan.yaml":{}}}`),
		managed("maint-cli", metav1.ManagedFieldsOperationUpdate, later, `{"f:metadata":{"f:annotations":{"f:maint.dev/pause":{}}}}`),
		managed("maint-agent", metav1.ManagedFieldsOperationUpdate, later, `{"f:data":{},"f:metadata":{"f:annotations":{}}}`),
	}}
	if got := annotations.EditedAt(&o); !got.Equal(edited) {
		t.Error(got)
	}
	annotations.KeepEdits(&o)
	if got := annotations.EditedAt(&o); !got.Equal(edited) || len(o.ManagedFields) != 2 || o.ManagedFields[0].FieldsV1 != nil {
		t.Errorf("after KeepEdits: %s %v", got, o.ManagedFields)
	}
	o.ManagedFields = nil
	if got := annotations.EditedAt(&o); !got.Equal(created) {
		t.Error(got)
	}
}

func TestDeclaredByKnowsWhoBringsALabelBack(t *testing.T) {
	const key = "example.org/upgrade"
	own := `{"f:metadata":{"f:annotations":{},"f:labels":{".":{},"f:example.org/upgrade":{}}},"f:spec":{}}`
	for name, c := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  string
	}{
		"kubectl label":                     {managed("kubectl-label", metav1.ManagedFieldsOperationUpdate, time.Time{}, own), ""},
		"a controller by update":            {managed("my-operator", metav1.ManagedFieldsOperationUpdate, time.Time{}, own), ""},
		"any server-side apply":             {managed("ci", metav1.ManagedFieldsOperationApply, time.Time{}, own), "ci"},
		"Argo CD by update":                 {managed("argocd-controller", metav1.ManagedFieldsOperationUpdate, time.Time{}, own), "argocd-controller"},
		"helm, whatever its case":           {managed("Helm", metav1.ManagedFieldsOperationUpdate, time.Time{}, own), "Helm"},
		"an apply of other labels":          {managed("ci", metav1.ManagedFieldsOperationApply, time.Time{}, `{"f:metadata":{"f:labels":{"f:example.org/upgrades":{}}}}`), ""},
		"an apply of an annotation":         {managed("ci", metav1.ManagedFieldsOperationApply, time.Time{}, `{"f:metadata":{"f:annotations":{"f:example.org/upgrade":{}}}}`), ""},
		"an apply of the pods' labels only": {managed("ci", metav1.ManagedFieldsOperationApply, time.Time{}, `{"f:spec":{"f:template":{"f:metadata":{"f:labels":{"f:example.org/upgrade":{}}}}}}`), ""},
		"both":                              {managed("ci", metav1.ManagedFieldsOperationApply, time.Time{}, `{"f:metadata":{"f:labels":{"f:example.org/upgrade":{}}},"f:spec":{"f:template":{"f:metadata":{"f:labels":{"f:a":{}}}}}}`), "ci"},
		"fields that cannot be read":        {managed("ci", metav1.ManagedFieldsOperationApply, time.Time{}, `{"f:metadata":{"f:labels":{"f:example.org/upgrade"`), ""},
	} {
		o := metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "empty"}, c.entry}}
		if got := annotations.DeclaredBy(&o, key); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
		asAnnotation := ""
		if name == "an apply of an annotation" {
			asAnnotation = "ci"
		}
		if got := annotations.AnnotationDeclaredBy(&o, key); got != asAnnotation {
			t.Errorf("%s, as an annotation: %q", name, got)
		}
	}
}
