package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

type configMaps = typedcorev1.ConfigMapInterface

// runPrefix begins the name of every run; people may leave it out.
const runPrefix = "maint-run-"

// document finds what a name on the command line means: a plan, or a run, also
// without the first letters of its name. PLAN may be written plan/PLAN and
// configmap/PLAN, as the lists print it.
func (k *cluster) document(ctx context.Context, name string, kinds ...string) (*corev1.ConfigMap, error) {
	bare := bareName(name)
	what := strings.Join(words(kinds), " or ")
	for _, candidate := range []string{bare, runPrefix + bare} {
		if candidate != bare && !slices.Contains(kinds, annotations.KindRun) {
			break
		}
		cm, err := k.maps(k.namespace).Get(ctx, candidate, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, plain("read "+what+" "+bare, err)
		}
		if !slices.Contains(kinds, cm.Labels[annotations.LabelKind]) {
			return nil, wrongKind(cm, what)
		}
		return cm, nil
	}
	return nil, noDocument(fmt.Sprintf("there is no %s %q in namespace %s%s", what, bare, k.namespace, k.instead(ctx, bare, kinds)))
}

// noDocument says that there is no object of a name.
type noDocument string

// Error is error's.
func (e noDocument) Error() string { return string(e) }

func bareName(name string) string {
	for _, prefix := range []string{"plan/", "policy/", "run/", "configmap/", "cm/"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}

func words(kinds []string) []string {
	out := slices.Clone(kinds)
	for i, kind := range out {
		out[i] = strings.ReplaceAll(kind, "-", " ")
	}
	return out
}

func wrongKind(cm *corev1.ConfigMap, what string) error {
	kind := cm.Labels[annotations.LabelKind]
	if kind == "" {
		return fmt.Errorf("the ConfigMap %s/%s is no %s: it lacks the label %s", cm.Namespace, cm.Name, what, annotations.LabelKind)
	}
	return fmt.Errorf("%s/%s is a %s and no %s", cm.Namespace, cm.Name, kind, what)
}

// instead says where to look for what was not found: the name that was probably
// meant, or the list.
func (k *cluster) instead(ctx context.Context, name string, kinds []string) string {
	list, err := k.maps(k.namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + " in (" + strings.Join(kinds, ",") + ")", Limit: 500})
	if err != nil {
		return ""
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	if len(names) == 0 {
		return "; the namespace has none: choose another with -n, or see all with 'kubectl maint list -A'"
	}
	if near, ok := nearest(name, names); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; see 'kubectl maint list'"
}

// nearest is the candidate that contains the word or shares its beginning.
func nearest(word string, names []string) (string, bool) {
	for _, n := range names {
		if word != "" && (strings.Contains(n, word) || strings.Contains(word, n)) {
			return n, true
		}
	}
	for _, n := range names {
		if len(word) > 3 && len(n) > 3 && n[:3] == word[:3] {
			return n, true
		}
	}
	return "", false
}

func (k *cluster) plan(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return k.document(ctx, name, annotations.KindPlan)
}

// aRun is a run as it stands in the cluster.
type aRun struct {
	object  *corev1.ConfigMap
	run     plan.Run
	journal plan.Journal
}

func readRun(cm *corev1.ConfigMap) (aRun, error) {
	r, j, err := annotations.ReadRun(cm)
	return aRun{object: cm, run: r, journal: j}, err
}

func (k *cluster) run(ctx context.Context, name string) (aRun, error) {
	cm, err := k.document(ctx, name, annotations.KindRun)
	if err != nil {
		return aRun{}, err
	}
	return readRun(cm)
}

// runsOf are the runs of a plan, or of all plans of a namespace, oldest first.
// One that cannot be read is left out: describe says what is wrong with it.
func (k *cluster) runsOf(ctx context.Context, namespace, planName string, more ...string) ([]aRun, error) {
	selector := annotations.LabelKind + "=" + annotations.KindRun
	if planName != "" {
		selector += "," + annotations.LabelPlan + "=" + planName
	}
	list, err := k.maps(namespace).List(ctx, metav1.ListOptions{LabelSelector: strings.Join(append([]string{selector}, more...), ",")})
	if err != nil {
		return nil, plain("list runs", err)
	}
	var out []aRun
	for i := range list.Items {
		if r, err := readRun(&list.Items[i]); err == nil {
			out = append(out, r)
		}
	}
	sortRuns(out)
	return out, nil
}

// liveOnly selects runs that have not ended.
const liveOnly = annotations.LabelPhase + " in (Pending,Running)"

func sortRuns(runs []aRun) {
	slices.SortFunc(runs, func(a, b aRun) int {
		if c := a.run.Request.At.Compare(b.run.Request.At); c != 0 {
			return c
		}
		return strings.Compare(a.run.Name, b.run.Name)
	})
}

// ledger reads a plan's ledger and the archive of its older entries; nil where
// there is none yet.
func (k *cluster) ledger(ctx context.Context, cm *corev1.ConfigMap) (*plan.Ledger, []plan.Entry, error) {
	head, err := k.readLedger(ctx, cm, annotations.LedgerName(cm.Name, string(cm.UID)))
	if err != nil || head == nil {
		return nil, nil, err
	}
	archive, err := k.readLedger(ctx, cm, annotations.ArchiveName(cm.Name, string(cm.UID)))
	if err != nil {
		return nil, nil, err
	}
	var old []plan.Entry
	if archive != nil {
		old = archive.Recent
	}
	return head, old, nil
}

func (k *cluster) readLedger(ctx context.Context, cm *corev1.ConfigMap, name string) (*plan.Ledger, error) {
	object, err := k.maps(cm.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, plain("read the ledger of "+cm.Name, err)
	}
	l, err := annotations.ReadLedger(object, string(cm.UID))
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// plansIn are the plans of a namespace, by name.
func (k *cluster) plansIn(ctx context.Context, namespace, selector string) ([]*corev1.ConfigMap, error) {
	full := annotations.LabelKind + "=" + annotations.KindPlan
	if selector != "" {
		full += "," + selector
	}
	list, err := k.maps(namespace).List(ctx, metav1.ListOptions{LabelSelector: full})
	if err != nil {
		return nil, plain("list plans", err)
	}
	out := make([]*corev1.ConfigMap, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// ledgersIn are the ledgers of a namespace, by namespace/name.
func (k *cluster) ledgersIn(ctx context.Context, namespace string) (map[string]*plan.Ledger, error) {
	list, err := k.maps(namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindLedger})
	if err != nil {
		return nil, plain("list ledgers", err)
	}
	out := map[string]*plan.Ledger{}
	for i := range list.Items {
		cm := &list.Items[i]
		if l, err := annotations.ReadLedger(cm, ownerUID(cm)); err == nil { // a foreign one is no ledger of these plans
			out[cm.Namespace+"/"+cm.Name] = &l
		}
	}
	return out, nil
}

// leftBy is an ended run of the namespace whose object is gone and of which a plan's
// ledger still says what it did not put back; nil where there is none.
func (k *cluster) leftBy(ctx context.Context, name string) (*aRun, error) {
	list, err := k.maps(k.namespace).List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindLedger})
	if err != nil {
		return nil, plain("look for run "+name+" in the plans' ledgers", err)
	}
	for i := range list.Items {
		cm := &list.Items[i]
		l, err := annotations.ReadLedger(cm, ownerUID(cm))
		planName := cm.Labels[annotations.LabelPlan]
		if err != nil || cm.Name != annotations.LedgerName(planName, l.PlanUID) { // no plan's ledger
			continue
		}
		for _, candidate := range []string{name, runPrefix + name} {
			if slices.ContainsFunc(l.Left, func(o plan.Leftover) bool { return o.Run == candidate }) {
				return &aRun{run: plan.Run{Namespace: cm.Namespace, Name: candidate, Plan: planName, PlanUID: l.PlanUID}}, nil
			}
		}
	}
	return nil, nil
}

func ownerUID(cm *corev1.ConfigMap) string {
	for _, o := range cm.OwnerReferences {
		return string(o.UID)
	}
	return ""
}
