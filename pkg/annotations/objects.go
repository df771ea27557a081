package annotations

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// dataKey is the one data key a document of a kind has.
func dataKey(kind string) string {
	switch kind {
	case KindPlan, KindHibernatePlan:
		return DataPlan
	case KindPolicy:
		return DataPolicy
	case KindCalendar:
		return DataICS
	case KindStepTemplate:
		return DataTemplate
	case KindConnector:
		return DataConnector
	case KindAgentConfig:
		return DataConfig
	case KindPrices:
		return DataPrices
	}
	return ""
}

// textKey is the data key under which the document in a ConfigMap stands: a calendar
// may have either of two.
func textKey(cm *corev1.ConfigMap) string {
	key := dataKey(cm.Labels[LabelKind])
	if _, yaml := cm.Data[DataDates]; yaml && key == DataICS {
		return DataDates
	}
	return key
}

// DocumentText is the document in a ConfigMap of ours, or the fault of having
// none: a wrong or missing data key, or more than one.
func DocumentText(cm *corev1.ConfigMap) (string, *document.Fault) {
	want := textKey(cm)
	text, ok := cm.Data[want]
	switch {
	case !ok && len(cm.Data) == 0:
		return "", &document.Fault{Path: "data", Message: fmt.Sprintf("the key %s is missing: the document stands there", want)}
	case !ok:
		return "", &document.Fault{Path: "data", Message: fmt.Sprintf("the key %s is missing; found %s", want, document.Cut(keysOf(cm.Data), 200))}
	case len(cm.Data) > 1:
		return "", &document.Fault{Path: "data", Message: fmt.Sprintf("holds %s; a ConfigMap of this kind holds %s alone", document.Cut(keysOf(cm.Data), 200), want)}
	}
	return text, nil
}

// Plan reads the plan in a ConfigMap and reports everything wrong with it. A
// plan with faults is returned as far as it could be read.
func Plan(cm *corev1.ConfigMap) (plan.Spec, document.Faults) {
	text, fault := DocumentText(cm)
	if fault != nil {
		return plan.Spec{}, document.Faults{*fault}
	}
	spec, faults := plan.Parse([]byte(text), cm.Name)
	if fault := accountLabel(cm, plan.Account(spec)); fault != nil && len(faults) == 0 {
		faults = append(faults, *fault)
	}
	return spec, faults
}

// StepTemplate reads the step template in a ConfigMap.
func StepTemplate(cm *corev1.ConfigMap) plan.Template {
	text, fault := DocumentText(cm)
	if fault != nil {
		return plan.Template{Faults: document.Faults{*fault}}
	}
	var t plan.Template
	t.Spec, t.Faults = plan.ParseTemplate([]byte(text), cm.Name)
	for _, word := range strings.Split(cm.Annotations[PermittedContexts], ",") {
		switch word = strings.TrimSpace(word); word {
		case "":
		case plan.ContextMaintenance, plan.ContextInteractive:
			t.Contexts = append(t.Contexts, word)
		default:
			t.Faults = append(t.Faults, document.Fault{Path: PermittedContexts, Message: fmt.Sprintf("must be maintenance, interactive or both with a comma, is %q", document.Cut(word, 80))})
		}
	}
	return t
}

// NewPlan is the ConfigMap that holds a plan's text.
func NewPlan(namespace, name, text string, account string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{LabelKind: KindPlan}},
		Data:       map[string]string{DataPlan: text},
	}
	if account != "" && account != policy.DefaultServiceAccount {
		cm.Labels[LabelServiceAccount] = account
	}
	return cm
}

// RunObject is the ConfigMap of a live run: with a finalizer and no owner, so
// that nothing collects it before its finally ran.
func RunObject(r run.Run, j run.Journal) (*corev1.ConfigMap, error) {
	text, err := runText(r)
	if err != nil {
		return nil, fmt.Errorf("write run %s/%s: %w", r.Namespace, r.Name, err)
	}
	cm := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name, Finalizers: []string{Finalizer},
			Labels: map[string]string{LabelKind: KindRun, LabelPlan: r.Plan},
		},
		Data: map[string]string{DataRun: string(text)},
	}
	if r.Request.DryRun {
		cm.Annotations = map[string]string{StatusDryRun: "true"}
	}
	return WithJournal(cm, j)
}

// WithJournal is the run's ConfigMap with another journal, and with the label
// and status that follow from it.
func WithJournal(cm *corev1.ConfigMap, j run.Journal) (*corev1.ConfigMap, error) {
	out := cm.DeepCopy()
	if err := putJournal(out, j); err != nil {
		return nil, fmt.Errorf("write journal of %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	out.Labels[LabelPhase] = string(j.Phase)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[StatusPhase] = string(j.Phase)
	out.Annotations[StatusMessage] = document.Cut(j.Notice(), document.MaxMessage)
	progress, err := json.Marshal(run.ProgressOf(j))
	if err != nil {
		return nil, fmt.Errorf("write progress of %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	out.Annotations[StatusProgress] = string(progress)
	conditions, err := runConditions(cm.CreationTimestamp.Time, j)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", cm.Namespace, cm.Name, err)
	}
	if delete(out.Annotations, StatusConditions); conditions != "" {
		out.Annotations[StatusConditions] = conditions
	}
	return out, nil
}

// ReadRun reads a run and its journal. Whoever may write ConfigMaps in a namespace can write one.
// So its name, namespace, label and plan have to belong together, and its tree of steps is limited
// in size. With an error nothing is returned. Whoever acts on the run has to call
// plan.CheckSnapshot as well.
func ReadRun(cm *corev1.ConfigMap) (run.Run, run.Journal, error) {
	if cm.Labels[LabelKind] != KindRun {
		return run.Run{}, run.Journal{}, fmt.Errorf("%s/%s is no run: it lacks the label %s: %s", cm.Namespace, cm.Name, LabelKind, KindRun)
	}
	if err := understood(cm); err != nil {
		return run.Run{}, run.Journal{}, err
	}
	r, err := readRun(cm)
	if err != nil {
		return run.Run{}, run.Journal{}, err
	}
	return WithRun(cm, r)
}

// WithRun reads the journal of a run whose fixed part is known. Its format may be newer by now.
func WithRun(cm *corev1.ConfigMap, r run.Run) (run.Run, run.Journal, error) {
	if err := understood(cm); err != nil {
		return run.Run{}, run.Journal{}, err
	}
	j, err := journalOf(cm)
	if err != nil {
		return run.Run{}, run.Journal{}, fmt.Errorf("read journal of %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	return r, j, nil
}

func readRun(cm *corev1.ConfigMap) (run.Run, error) {
	var r run.Run
	switch text, there := cm.Data[DataRun]; {
	case !there:
		return r, fmt.Errorf("read run %s/%s: the key %s is missing", cm.Namespace, cm.Name, DataRun)
	case len(text) > maxRun:
		return r, fmt.Errorf("read run %s/%s: %s has %d bytes; at most %d are read", cm.Namespace, cm.Name, DataRun, len(text), maxRun)
	case strings.Contains(text, "&") && document.MayHaveAliases([]byte(text)): // without an anchor an alias is no YAML, and nothing is parsed twice
		return r, fmt.Errorf("read run %s/%s: %s has YAML aliases, which no agent writes", cm.Namespace, cm.Name, DataRun)
	}
	if err := yaml.Unmarshal([]byte(cm.Data[DataRun]), &r); err != nil {
		return r, fmt.Errorf("read run %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	switch {
	case r.Name != cm.Name || r.Namespace != cm.Namespace:
		return r, fmt.Errorf("run %s/%s holds the run %s/%s", cm.Namespace, cm.Name, document.Cut(r.Namespace, 100), document.Cut(r.Name, 100))
	case r.Plan != cm.Labels[LabelPlan]:
		return r, fmt.Errorf("run %s/%s is of plan %q, and its label %s says %q", cm.Namespace, cm.Name, document.Cut(r.Plan, 100), LabelPlan, cm.Labels[LabelPlan])
	}
	if faults := reference.CheckTree(r.Spec, r.Templates); len(faults) > 0 {
		return r, fmt.Errorf("run %s/%s is not valid: %s", cm.Namespace, cm.Name, faults[0])
	}
	return r, nil
}

// PlanOfRun is the UID of the plan that a run is of, where nothing else of it is to be read; empty:
// it does not say.
func PlanOfRun(cm *corev1.ConfigMap) string {
	var of struct {
		PlanUID string `json:"planUID"`
	}
	if text := cm.Data[DataRun]; len(text) > maxRun || strings.Contains(text, "&") && document.MayHaveAliases([]byte(text)) || yaml.Unmarshal([]byte(text), &of) != nil {
		return ""
	}
	return of.PlanUID
}

// ErrForeign says that an object of one of our names is not ours.
var ErrForeign = errors.New("is not ours") //nolint:gochecknoglobals // a sentinel for errors.Is

// LedgerObject is the ConfigMap of a ledger, collected with its plan.
func LedgerObject(namespace, planName string, l ledger.Ledger) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: LedgerName(planName, l.PlanUID),
			Labels:          map[string]string{LabelKind: KindLedger, LabelPlan: planName},
			OwnerReferences: []metav1.OwnerReference{PlanOwner(planName, l.PlanUID)},
		},
	}
	return WithLedger(cm, l)
}

// WithLedger is the ledger's ConfigMap with other content.
func WithLedger(cm *corev1.ConfigMap, l ledger.Ledger) (*corev1.ConfigMap, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("write ledger %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	out := cm.DeepCopy()
	out.Data = map[string]string{DataLedger: string(b)}
	return out, nil
}

// IsLedger says whether an object says of itself that it is a ledger, or a part of one.
func IsLedger(cm *corev1.ConfigMap) bool { return cm.Labels[LabelKind] == KindLedger }

// ReadLedger reads a ledger and makes sure that it is the plan's own.
func ReadLedger(cm *corev1.ConfigMap, planUID string) (ledger.Ledger, error) {
	var l ledger.Ledger
	if cm.Labels[LabelKind] != KindLedger {
		return l, fmt.Errorf("%s/%s %w: it lacks the label %s: %s; delete or rename it", cm.Namespace, cm.Name, ErrForeign, LabelKind, KindLedger)
	}
	if err := understood(cm); err != nil {
		return l, err
	}
	if err := json.Unmarshal([]byte(cm.Data[DataLedger]), &l); err != nil {
		return l, fmt.Errorf("read ledger %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	if l.PlanUID != planUID {
		return l, fmt.Errorf("%s/%s %w: it belongs to a plan of uid %q; delete or rename it", cm.Namespace, cm.Name, ErrForeign, l.PlanUID)
	}
	return l, nil
}

// ArchiveObject is the ConfigMap of a ledger's older closed entries.
func ArchiveObject(namespace, planName, planUID string, entries []ledger.Entry) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: ArchiveName(planName, planUID),
			Labels:          map[string]string{LabelKind: KindLedger, LabelPlan: planName},
			OwnerReferences: []metav1.OwnerReference{PlanOwner(planName, planUID)},
		},
	}
	return WithLedger(cm, ledger.Ledger{PlanUID: planUID, Recent: entries})
}

// PlanOwner is the owner reference by which ledgers and ended runs are deleted with their plan.
func PlanOwner(planName, planUID string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: planName, UID: uid(planUID)}
}

// EditedAt is when a ConfigMap's data was last written, by its managedFields,
// and never before its creation. Who wrote annotations alone (a pause, a
// trigger) edited nothing. Entries without their fields count: see KeepEdits.
func EditedAt(o *metav1.ObjectMeta) time.Time {
	at := o.CreationTimestamp.Time
	for _, m := range o.ManagedFields {
		if m.Time != nil && m.Time.After(at) && wroteData(m) {
			at = m.Time.Time
		}
	}
	return at
}

func wroteData(m metav1.ManagedFieldsEntry) bool {
	if m.Manager == ManagerAgent {
		return false
	}
	if m.FieldsV1 == nil {
		return true
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) // what cannot be read owns nothing we know
	_, data := fields["f:data"]
	return data
}

// KeepEdits drops from managedFields all that EditedAt does not need, for caches.
func KeepEdits(o *metav1.ObjectMeta) {
	o.ManagedFields = slices.DeleteFunc(slices.Clone(o.ManagedFields), func(m metav1.ManagedFieldsEntry) bool { return !wroteData(m) })
	for i := range o.ManagedFields {
		o.ManagedFields[i].FieldsV1 = nil
	}
}

// Retire makes a live run's ConfigMap one of history: it loses its finalizer and
// from now on goes with its plan.
func Retire(cm *corev1.ConfigMap, r run.Run) {
	cm.Finalizers = slices.DeleteFunc(slices.Clone(cm.Finalizers), func(f string) bool { return f == Finalizer })
	if r.PlanUID != "" {
		cm.OwnerReferences = []metav1.OwnerReference{PlanOwner(r.Plan, r.PlanUID)}
	}
}

// Observed is the mark by which a status says which text it speaks of:
// ConfigMaps have no generation.
func Observed(cm *corev1.ConfigMap) string {
	if mark, shortened := cm.BinaryData[shortenedKey]; shortened {
		return string(mark)
	}
	return Hash10(cm.Data[textKey(cm)])
}

// SizeOf is how many bytes an object holds, its metadata aside.
func SizeOf(cm *corev1.ConfigMap) int {
	size := 0
	for _, text := range cm.Data {
		size += len(text)
	}
	for _, b := range cm.BinaryData {
		size += len(b)
	}
	return size
}

// shortenedKey holds what Observed is of a document whose text is not kept. No object of
// a cluster has such a key.
const shortenedKey = "\x00observed"

// Shorten takes the texts out of a document that is too large to be read: whoever reads
// it finds the same faults, by its keys and by the length of its text, and Observed is
// the same. blank gives a text of a length that costs nothing.
func Shorten(cm *corev1.ConfigMap, blank func(length int) string) {
	if SizeOf(cm) <= document.MaxDocumentBytes {
		return
	}
	mark, own := Observed(cm), dataKey(cm.Labels[LabelKind])
	for key, text := range cm.Data {
		switch {
		case len(text) > document.MaxDocumentBytes:
			cm.Data[key] = blank(len(text))
		case key != own && key != DataDates:
			cm.Data[key] = ""
		}
	}
	cm.BinaryData = map[string][]byte{shortenedKey: []byte(mark)}
}
