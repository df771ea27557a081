// Package store holds in memory what the agent knows of documents, plans, runs and their
// ledgers, and reads and writes the ledgers.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/runquota"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/reference"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/pkg/stuck"
	"github.com/kubectl-maint/kubectl-maint/pkg/trigger"
)

// CachedRun is a run that has not ended, with the object it was read from.
type CachedRun struct {
	Object  *corev1.ConfigMap
	Run     run.Run
	Journal run.Journal
	Broken  error // why it cannot be read; such a run is left alone and reported
}

// LiveRun is what is kept of each run that has not ended: its text, and what lists of runs
// look at. The whole of it is read again from the text for whoever acts on it.
type LiveRun struct {
	Object  *corev1.ConfigMap
	Head    run.Run     // without what it does
	Journal run.Journal // without what its steps put out, where that is much
	Loops   bool        // it holds a for-each
	Broken  error

	cordoning []string // paths of its rollouts at work in which a step cordons or drains
}

// Live is the run as lists look at it.
func (l *CachedRun) Live() *LiveRun {
	out := &LiveRun{Object: l.Object, Head: l.Run.Head(), Journal: slim(l.Journal), Loops: l.Run.Tree().Loops(), Broken: l.Broken}
	for _, r := range l.Journal.Rollouts() {
		if l.Run.Cordons(r.Path) {
			out.cordoning = append(out.cordoning, r.Path)
		}
	}
	return out
}

// Cordons says whether a step of a rollout at work is there to cordon or drain its nodes.
func (l *LiveRun) Cordons(rollout string) bool { return slices.Contains(l.cordoning, rollout) }

// slim is a journal without what its steps put out and, where it is long, without what loops
// are through with. A few values stay, for without them all records would have to be copied.
func slim(j run.Journal) run.Journal {
	if weightOfRecords(j) > maxOutline {
		j = j.Outline()
		for i := range j.Steps {
			j.Steps[i].Before = nil // only who acts on the run puts anything back
		}
	}
	values := 0
	for i := range j.Steps {
		values += valuesIn(j.Steps[i].Outputs) - 1
	}
	if values <= maxOutputs {
		return j
	}
	j.Steps = slices.Clone(j.Steps)
	for i := range j.Steps {
		j.Steps[i].Outputs = nil
	}
	return j
}

// whole reads a run again from its text, which was checked when it was taken in. kept is what
// is kept of it in another state; nil: nothing is.
func (l *LiveRun) whole(kept *CachedRun) *CachedRun {
	got := &CachedRun{Object: l.Object, Broken: l.Broken}
	switch {
	case l.Broken != nil:
	case kept != nil && kept.sameRun(l.Object): // it is fixed: only the journal moves
		got.Run, got.Journal, got.Broken = annotations.WithRun(l.Object, kept.Run)
	default:
		got.Run, got.Journal, got.Broken = annotations.ReadRun(l.Object)
	}
	return got
}

// What is kept of runs as they were read (guesses, as for plans). One that is heavier than
// all that is kept stays until another is looked at: a large rollout alone is read once.
const (
	maxParsedRuns       = 2000
	maxParsedRunsWeight = 24 << 20
	perRecord           = 700 // bytes that a step's record takes with what it points to
	perItem             = 150
	maxOutputs          = 100      // values that a run's steps put out and that lists keep
	maxOutline          = 64 << 10 // bytes of records that lists keep, ended or not
)

// weight is about how much memory the run takes as it was read.
func (l *CachedRun) weight() int {
	sum := WeightOf(l.Object.Data[annotations.DataRun]) + weightOfRecords(l.Journal)
	for i := range l.Journal.Steps {
		sum += perMark * valuesIn(l.Journal.Steps[i].Outputs)
	}
	return sum
}

// perRun is about how much memory a run takes beside its texts and the records of its steps.
const perRun = 3 << 10

// RunBytes is about how much memory an active run takes whose texts have so many bytes.
func RunBytes(texts int) int { return perRun + texts }

// bytes is about how much memory is kept of the run while it is active, apart from what is parsed of it:
// that has a bound of its own.
func (l *LiveRun) bytes() int {
	sum := RunBytes(annotations.SizeOf(l.Object)) + weightOfRecords(l.Journal)
	for _, text := range l.Object.Annotations {
		sum += len(text)
	}
	for i := range l.Journal.Steps {
		sum += perMark * valuesIn(l.Journal.Steps[i].Outputs)
	}
	return sum
}

// weightOfRecords is about how much memory records take without what their steps put out.
func weightOfRecords(j run.Journal) (sum int) {
	for i := range j.Steps {
		rec := &j.Steps[i]
		sum += perRecord + len(rec.Before) + len(rec.Memory) + perItem*(len(rec.Items)+len(rec.Changed))
	}
	return sum
}

// valuesIn is how many values stand in what a step put out. Texts are cut before they are
// kept, and count little.
func valuesIn(v any) int {
	sum := 1
	switch v := v.(type) {
	case map[string]any:
		for _, one := range v {
			sum += 1 + valuesIn(one)
		}
	case []any:
		for _, one := range v {
			sum += valuesIn(one)
		}
	case string:
		sum += len(v) / perMark
	}
	return sum
}

// sameRun says whether an object holds the run that was read before, but for its journal.
func (l *CachedRun) sameRun(cm *corev1.ConfigMap) bool {
	was := l.Object
	return l.Broken == nil && was.UID == cm.UID && was.Data[annotations.DataRun] == cm.Data[annotations.DataRun] &&
		was.Labels[annotations.LabelKind] == cm.Labels[annotations.LabelKind] && was.Labels[annotations.LabelPlan] == cm.Labels[annotations.LabelPlan]
}

// Key names the run's object.
func (l *CachedRun) Key() types.NamespacedName { return keyOf(l.Object) }

// Key names the run's object.
func (l *LiveRun) Key() types.NamespacedName { return keyOf(l.Object) }

// PlanKey names its plan.
func (l *CachedRun) PlanKey() types.NamespacedName { return planKeyOf(l.Object) }

// PlanKey names its plan.
func (l *LiveRun) PlanKey() types.NamespacedName { return planKeyOf(l.Object) }

func keyOf(cm *corev1.ConfigMap) types.NamespacedName {
	return types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
}

func planKeyOf(cm *corev1.ConfigMap) types.NamespacedName {
	return types.NamespacedName{Namespace: cm.Namespace, Name: cm.Labels[annotations.LabelPlan]}
}

// ActiveRun is the run as decisions over its plan look at it.
func (l *LiveRun) ActiveRun() trigger.ActiveRun { return trigger.ActiveRunOf(l.Head, l.Journal) }

// Runs are the live runs as last seen or last written by us, whichever is
// newer: the watch's echo of an older state never hides what we wrote.
type Runs struct {
	mu       sync.Mutex
	byKey    map[types.NamespacedName]*LiveRun
	parsed   *Parsed[*CachedRun] // whole runs, each of the object that byKey has
	byPlan   index[types.NamespacedName]
	byTarget index[string]                     // by the UID of the object that a run holds; of no object: those that hold none
	ended    map[types.NamespacedName]uint64   // runs that we ended, until the watch has seen it too
	orphans  map[types.NamespacedName]*LiveRun // runs that vanished without us, until their entries are closed
	Holds    *Holds
	Quota    *runquota.Quota // of those of each namespace, orphans among them
	// recorded are those that stand as Running in the status of their plan.
	recorded  map[types.NamespacedName]bool
	stuck     map[types.NamespacedName]string // what the API server refuses for good of what they would write
	unclaimed map[types.NamespacedName]bool   // those at work without an open entry in their plan's ledger
	keys      *keys.Store
}

// index has the keys of runs by what they share.
type index[K comparable] map[K]map[types.NamespacedName]bool

func (x index[K]) add(shared K, k types.NamespacedName) {
	if x[shared] == nil {
		x[shared] = map[types.NamespacedName]bool{}
	}
	x[shared][k] = true
}

func (x index[K]) remove(shared K, k types.NamespacedName) {
	if delete(x[shared], k); len(x[shared]) == 0 {
		delete(x, shared)
	}
}

// NewRuns knows of none. Those count that are signed with the agent's key.
func NewRuns(signed *keys.Store) *Runs {
	parsed := NewParsed[*CachedRun](maxParsedRuns, maxParsedRunsWeight).KeepHeavy()
	r := &Runs{keys: signed, parsed: parsed, byKey: map[types.NamespacedName]*LiveRun{}, byPlan: index[types.NamespacedName]{}, byTarget: index[string]{}, ended: map[types.NamespacedName]uint64{}, orphans: map[types.NamespacedName]*LiveRun{}, Holds: NewHolds(), Quota: runquota.New(), recorded: map[types.NamespacedName]bool{}, stuck: map[types.NamespacedName]string{}, unclaimed: map[types.NamespacedName]bool{}}
	r.Holds.read = func(cm *corev1.ConfigMap) run.Journal { return r.ReadWhole(&LiveRun{Object: cm}).Journal }
	return r
}

// Observe takes in what the watch delivered, and says whether it is news. What was news
// when it came may be none once it was read: the run has ended meanwhile.
func (r *Runs) Observe(cm *corev1.ConfigMap) bool {
	r.mu.Lock()
	news := r.news(cm)
	if !news {
		r.echoed(cm)
	}
	r.mu.Unlock()
	if !news || !r.take(cm, func() bool { return r.news(cm) }) {
		return false
	}
	if annotations.Recreated(cm) { // whoever took in its plan meanwhile did not find it here yet
		r.Recheck(keyOf(cm))
	}
	return true
}

// echoed takes the object that a watch shows in the place of the one that we wrote, where they say
// the same: the watch keeps it, and so the texts of a run are in memory once.
func (r *Runs) echoed(cm *corev1.ConfigMap) {
	k := keyOf(cm)
	have := r.byKey[k]
	if have == nil || have.Object == cm || informer.VersionOf(have.Object) != informer.VersionOf(cm) || !maps.Equal(have.Object.Data, cm.Data) {
		return
	}
	live := *have
	live.Object, r.byKey[k] = cm, &live
	r.Quota.Set(k, live.bytes())
	if kept, is := r.parsed.Get(k); is && kept.Object == have.Object {
		whole := *kept
		whole.Object = cm
		r.parsed.Keep(k, whole.weight(), &whole)
	}
}

// Recheck reads a run again: what counts as signed may be another. One that has moved on
// meanwhile, or was read by somebody else, is read once more, since that may have come too early.
func (r *Runs) Recheck(k types.NamespacedName) {
	for was := r.Live(k); was != nil; was = r.Live(k) {
		if r.take(was.Object, func() bool { return r.byKey[k] == was }) {
			return
		}
	}
}

// take reads a run, and takes it in if a condition holds then.
func (r *Runs) take(cm *corev1.ConfigMap, holds func() bool) bool {
	l := r.read(cm)
	live, weight := l.Live(), l.weight()
	r.mu.Lock()
	defer r.mu.Unlock()
	is := holds()
	if is {
		r.put(l, live, weight)
	}
	return is
}

// read reads a run that is to be acted on. Of what it does not count for, or could not be
// read, nothing is kept but why.
func (r *Runs) read(cm *corev1.ConfigMap) *CachedRun {
	l := &CachedRun{Object: cm}
	r.mu.Lock()
	was, kept := r.parsed.Get(l.Key())
	r.mu.Unlock()
	if !kept || !was.sameRun(cm) { // it is fixed: only the journal moves
		l.Run, l.Journal, l.Broken = r.Read(cm)
		return l
	}
	if l.Broken = r.keys.Check(cm); l.Broken == nil {
		l.Run, l.Journal, l.Broken = annotations.WithRun(cm, was.Run)
	}
	return l
}

// Read reads a run that is to be acted on: the agent has signed it, and it does what a
// plan may do. The signature comes before anything of it is decoded.
func (r *Runs) Read(cm *corev1.ConfigMap) (run.Run, run.Journal, error) {
	if err := r.keys.Check(cm); err != nil {
		return run.Run{}, run.Journal{}, err
	}
	got, j, err := annotations.ReadRun(cm)
	if err != nil {
		return got, j, err
	}
	if faults := plan.CheckSnapshot(got.Spec, got.Templates); len(faults) > 0 {
		return run.Run{}, run.Journal{}, fmt.Errorf("the plan in run %s/%s is not valid: %s", cm.Namespace, cm.Name, faults[0])
	}
	if faults := reference.CheckConnectors(got.Tree(), got.Connectors); len(faults) > 0 {
		return run.Run{}, run.Journal{}, fmt.Errorf("run %s/%s cannot reach where it works: %s", cm.Namespace, cm.Name, faults[0])
	}
	return got, j, nil
}

// news says whether a state is newer than what is held, and than the end of the run.
func (r *Runs) news(cm *corev1.ConfigMap) bool {
	k, version := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}, informer.VersionOf(cm)
	have := r.byKey[k]
	return version > r.ended[k] && (have == nil || version > informer.VersionOf(have.Object) || version == informer.VersionOf(have.Object) && annotations.IsEmptied(have.Object) && !annotations.IsEmptied(cm))
}

// Put stores a run unless a newer state is there.
func (r *Runs) Put(l *CachedRun) {
	live, weight := l.Live(), l.weight()
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.byKey[l.Key()]; have == nil || informer.VersionOf(have.Object) <= informer.VersionOf(l.Object) {
		r.put(l, live, weight)
	}
}

func (r *Runs) put(l *CachedRun, live *LiveRun, weight int) {
	k := l.Key()
	if was := r.byKey[k]; was != nil {
		r.byTarget.remove(was.Head.TargetUID, k)
	}
	r.byKey[k] = live
	r.byTarget.add(live.Head.TargetUID, k)
	r.byPlan.add(l.PlanKey(), k)
	r.Quota.Set(k, live.bytes())
	r.parsed.Keep(k, weight, l)
	r.Holds.saw(l)
}

// Drop forgets a run that ended, at a version below which echoes are ignored.
func (r *Runs) Drop(k types.NamespacedName, version uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ended) > 10000 { // those whose echo came before our own reply stay behind
		clear(r.ended)
	}
	if version > 0 {
		r.ended[k] = version
	}
	delete(r.orphans, k)
	r.forget(k)
	r.uncount(k)
}

// Gone is the watch's word that a run is no longer live. If we did not end it,
// it is an orphan: from this moment on nobody may create it again.
func (r *Runs) Gone(k types.NamespacedName, version uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ended, k)
	if have := r.byKey[k]; have != nil && version >= informer.VersionOf(have.Object) {
		r.orphan(have)
	}
}

// MarkVanished is a run whose object turned out not to be there.
func (r *Runs) MarkVanished(l *CachedRun) {
	live := l.Live()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orphan(live)
}

func (r *Runs) orphan(l *LiveRun) {
	r.forget(l.Key())
	r.orphans[l.Key()] = l
}

// uncount counts a run no longer of which nothing is kept.
func (r *Runs) uncount(k types.NamespacedName) {
	if r.byKey[k] == nil && r.orphans[k] == nil {
		r.Quota.Remove(k)
	}
}

// OrphansOf are the runs of a plan that vanished without us.
func (r *Runs) OrphansOf(k types.NamespacedName) []*LiveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*LiveRun
	for _, l := range r.orphans {
		if l.PlanKey() == k {
			out = append(out, l)
		}
	}
	return out
}

// IsOrphan says whether a run vanished without us, and its entry is not closed yet.
func (r *Runs) IsOrphan(k types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.orphans[k] != nil
}

// OrphanClosed forgets an orphan whose entry is closed.
func (r *Runs) OrphanClosed(k types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.orphans, k)
	r.uncount(k)
}

func (r *Runs) forget(k types.NamespacedName) {
	have := r.byKey[k]
	if have == nil {
		return
	}
	delete(r.byKey, k)
	r.parsed.Remove(k)
	delete(r.recorded, k)
	delete(r.stuck, k)
	delete(r.unclaimed, k)
	r.byPlan.remove(have.PlanKey(), k)
	r.byTarget.remove(have.Head.TargetUID, k)
}

// MarkRecorded notes that runs stand in the status of their plan, and gives those that
// did not before.
func (r *Runs) MarkRecorded(running []*LiveRun) []*LiveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var news []*LiveRun
	for _, l := range running {
		if k := l.Key(); r.byKey[k] != nil && !r.recorded[k] {
			r.recorded[k] = true
			news = append(news, l)
		}
	}
	return news
}

// MarkStuck notes why a run cannot go on, empty where it can, and says whether that is news.
func (r *Runs) MarkStuck(k types.NamespacedName, why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stuck[k] == why {
		return false
	}
	if r.stuck[k] = why; why == "" {
		delete(r.stuck, k)
	}
	return true
}

// MarkUnclaimed notes whether a run is at work without an open entry in its plan's ledger, and
// says whether that is news.
func (r *Runs) MarkUnclaimed(k types.NamespacedName, is bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unclaimed[k] == is {
		return false
	}
	if r.unclaimed[k] = is; !is {
		delete(r.unclaimed, k)
	}
	return true
}

// Unclaimed says whether a run was found to be at work without an open entry.
func (r *Runs) Unclaimed(k types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unclaimed[k]
}

// StuckOf says which of a plan's runs cannot go on, and why; empty where all can. All that are left
// alone are named, before one that waits: commands know them by this.
func (r *Runs) StuckOf(k types.NamespacedName) string {
	alone, waits := []stuck.Alone{}, ""
	for _, l := range r.OfPlan(k) {
		if l.Broken != nil {
			alone = append(alone, leftAlone(l))
			continue
		}
		r.mu.Lock()
		why := r.stuck[l.Key()]
		r.mu.Unlock()
		if why != "" && waits == "" {
			waits = stuck.CannotGoOn(l.Object.Name, why)
		}
	}
	return stuck.Message(alone, waits)
}

// leftAlone says why a run is left alone, and what helps.
func leftAlone(l *LiveRun) stuck.Alone {
	forged := new(annotations.SignatureError)
	switch {
	case errors.As(l.Broken, &forged):
		return stuck.Unsigned(l.Object.Name, WhyUnsigned(l.Object, forged))
	case errors.Is(l.Broken, annotations.ErrNewer):
		return stuck.Newer(l.Object.Name, l.Broken)
	}
	return stuck.Unread(l.Object.Name, l.Broken)
}

// WhyUnsigned says why the signature of a run does not count, and what helps: a new one, or its label.
func WhyUnsigned(cm *corev1.ConfigMap, why *annotations.SignatureError) string {
	if cm.Labels[annotations.LabelKind] != annotations.KindRun && !annotations.Unsigned(cm) {
		return stuck.WhyUnlabelled(cm.Namespace, cm.Name, annotations.LabelKind, annotations.KindRun, why)
	}
	return stuck.WhyUnsigned(cm.Namespace, cm.Name, why)
}

// IsRecorded says whether a run stands as Running in the status of its plan.
func (r *Runs) IsRecorded(k types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded[k]
}

// Live is what lists look at of a live run; nil where there is none.
func (r *Runs) Live(k types.NamespacedName) *LiveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[k]
}

// Get is a live run as a whole; nil where there is none.
func (r *Runs) Get(k types.NamespacedName) *CachedRun {
	if live := r.Live(k); live != nil {
		return r.ReadWhole(live)
	}
	return nil
}

// ReadWhole reads all of a run in the state that a look at it saw. The object names that state:
// what is kept of another is not used.
func (r *Runs) ReadWhole(live *LiveRun) *CachedRun {
	k := live.Key()
	r.mu.Lock()
	kept, _ := r.parsed.Get(k)
	r.mu.Unlock()
	if kept != nil && kept.Object == live.Object {
		return kept
	}
	got := r.parsed.Read(WeightOf(live.Object.Data[annotations.DataRun])+WeightOf(live.Object.Data[annotations.DataJournal]), func() *CachedRun { return live.whole(kept) })
	weight := got.weight()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.byKey[k]; now != nil && now.Object == got.Object {
		r.parsed.Keep(k, weight, got)
	}
	return got
}

// OfPlan are a plan's live runs, oldest request first.
func (r *Runs) OfPlan(k types.NamespacedName) []*LiveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*LiveRun
	for rk := range r.byPlan[k] {
		out = append(out, r.byKey[rk])
	}
	sortRuns(out)
	return out
}

// InTheWay are the live runs of a run's plan and those that hold its target, oldest request first; itself, too.
func (r *Runs) InTheWay(of *CachedRun) []*LiveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := map[types.NamespacedName]bool{}
	maps.Copy(keys, r.byPlan[of.PlanKey()])
	if of.Run.TargetUID != "" {
		maps.Copy(keys, r.byTarget[of.Run.TargetUID])
	}
	var out []*LiveRun
	for k := range keys {
		out = append(out, r.byKey[k])
	}
	sortRuns(out)
	return out
}

// Filter are the live runs that a condition holds for.
func (r *Runs) Filter(holds func(*LiveRun) bool) []*LiveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*LiveRun
	for _, l := range r.byKey {
		if holds(l) {
			out = append(out, l)
		}
	}
	sortRuns(out)
	return out
}

// Account is whom the steps of a run act as.
func (l *CachedRun) Account() client.Account { return accountOf(l.Object, l.Run) }

// Account is whom the steps of a run act as.
func (l *LiveRun) Account() client.Account { return accountOf(l.Object, l.Head) }

func accountOf(cm *corev1.ConfigMap, r run.Run) client.Account {
	return client.Account{Namespace: cm.Namespace, Name: plan.Account(r.Spec)}
}

// TakesNodes says whether a run is at work that has steps which take nodes.
func (l *LiveRun) TakesNodes() bool {
	return l.Broken == nil && l.Journal.Phase == run.Running && l.Journal.TakesNodes()
}

// RollsOut says whether a run is at a for-each-node.
func (l *CachedRun) RollsOut() bool { return rollsOut(l.Journal) }

// RollsOut says whether a run is at a for-each-node.
func (l *LiveRun) RollsOut() bool { return rollsOut(l.Journal) }

func rollsOut(j run.Journal) bool {
	return slices.ContainsFunc(j.Steps, func(r run.Record) bool { return r.Phase == run.StepRunning && r.Type == plan.TypeForEachNode })
}

// FormatRuns are the runs that were made, each with its phase, as the status of their
// plan says it: an agent that begins tells by it a claim whose run was never made
// from one whose run was taken away while nobody looked.
func FormatRuns(runs []*LiveRun) string {
	var out []string
	for _, l := range runs {
		phase := string(l.Journal.Phase)
		if l.Broken != nil {
			phase = l.Object.Labels[annotations.LabelPhase]
		}
		if len(out) < ledger.MaxOpen {
			out = append(out, l.Object.Name+"="+phase)
		}
	}
	return strings.Join(out, ",")
}

// WasMade says whether a plan bears the trace of a run, and in which phase it was.
func WasMade(cm *corev1.ConfigMap, r string) (phase run.Phase, made bool) {
	for _, one := range strings.Split(cm.Annotations[annotations.StatusRuns], ",") {
		if name, phase, ok := strings.Cut(one, "="); ok && name == r {
			return run.Phase(phase), true
		}
	}
	return "", false
}

func sortRuns(rs []*LiveRun) {
	slices.SortFunc(rs, func(a, b *LiveRun) int { // one that cannot be read may have no name of its own
		return cmp.Or(run.Compare(a.Head, b.Head), strings.Compare(a.Object.Name, b.Object.Name), strings.Compare(a.Object.Namespace, b.Object.Namespace))
	})
}

// StepKey is one step of one run.
type StepKey struct {
	Run        types.NamespacedName
	Path       string
	DriftCheck bool // a look at what the step did, beside the step itself
}

// String names a step as the ranking does: two steps of a plan are two holders.
func (s StepKey) String() string { return s.Run.String() + "/" + s.Path }
