package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// watched is a live picture of some objects.
type watched struct {
	store   cache.Store
	changed chan struct{} // a change since it was last read
}

func (w *watched) get(namespace, name string) *corev1.ConfigMap {
	o, found, err := w.store.GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return nil
	}
	return o.(*corev1.ConfigMap)
}

func byName(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
}

func byLabel(selector string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.LabelSelector = selector }
}

// watch keeps a live picture until ctx ends. It asks once first, so that what
// may not be read is an error and not an empty screen.
func (k *cluster) watch(ctx context.Context, namespace string, tweak func(*metav1.ListOptions)) (*watched, error) {
	probe := metav1.ListOptions{Limit: 1}
	tweak(&probe)
	if _, err := k.maps(namespace).List(ctx, probe); err != nil {
		return nil, plain("watch ConfigMaps", err)
	}
	return live(ctx, v1.NewFilteredConfigMapInformer(k.kube, namespace, 0, cache.Indexers{}, tweak))
}

// live runs an informer until ctx ends.
func live(ctx context.Context, informer cache.SharedIndexInformer) (*watched, error) {
	return liveInto(ctx, informer, make(chan struct{}, 1), func(_, _ any) bool { return true })
}

// liveInto rings a bell that others ring too, for changes that are news.
func liveInto(ctx context.Context, informer cache.SharedIndexInformer, bell chan struct{}, news func(was, is any) bool) (*watched, error) {
	w := &watched{store: informer.GetStore(), changed: bell}
	ring := func(any) {
		select {
		case w.changed <- struct{}{}:
		default: // a change is already told
		}
	}
	update := func(was, is any) {
		if news(was, is) {
			ring(is)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: ring, UpdateFunc: update, DeleteFunc: ring}); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return w, nil
}

// screen shows lines that change: redrawn in place on a terminal, else each new
// line once.
type screen struct {
	env   Env
	drawn int
	told  map[string]string
}

// show takes the whole picture, and the same as plain lines by what they speak
// of, in order.
func (s *screen) show(picture []string, lines []line) {
	if s.env.OutTerminal {
		if s.drawn > 0 {
			fmt.Fprintf(s.env.Out, "\x1b[%dA\x1b[J", s.drawn)
		}
		for _, l := range picture {
			fmt.Fprintln(s.env.Out, cutLine(l, s.env.Width))
		}
		s.drawn = len(picture)
		return
	}
	if s.told == nil {
		s.told = map[string]string{}
	}
	for _, l := range lines {
		if s.told[l.of] != l.text {
			s.told[l.of] = l.text
			fmt.Fprintf(s.env.Out, "%s %s\n", s.env.Now().UTC().Format(time.RFC3339), l.text)
		}
	}
}

// empty says whether nothing is on the screen yet.
func (s *screen) empty() bool { return s.drawn == 0 }

// leave lets stand what is drawn: something else was printed below it.
func (s *screen) leave() { s.drawn = 0 }

// line is one thing said of something.
type line struct{ of, text string }

// runLines are a run as plain lines: what it is at, and each step that has begun.
func runLines(r aRun) []line {
	j := r.journal
	out := []line{{of: r.run.Name, text: fmt.Sprintf("run %s: %s%s", r.run.Name, j.Phase, colon(waitingWords(j)))}}
	for _, s := range j.Steps {
		if s.Phase == plan.StepPending {
			continue
		}
		text := fmt.Sprintf("step %s: %s", s.Path, s.Phase)
		if s.Attempt > 1 {
			text += fmt.Sprintf(" (attempt %d)", s.Attempt)
		}
		switch {
		case s.Phase == plan.StepFailed:
			text += colon(s.Message)
		case s.Type == plan.TypeApproval && s.Message != "":
			text += colon(s.Message)
		case s.Phase == plan.StepRunning:
			text += colon(loopCount(s))
		}
		if s.Restored == plan.RestoreFailed {
			text += ", " + restoredWords()[s.Restored] + colon(s.RestoreMessage)
		}
		out = append(out, line{of: r.run.Name + "/" + s.Path, text: text})
	}
	if j.Phase.Ended() { // the end is the last word
		return append(out[1:], out[0])
	}
	return out
}

func waitingWords(j plan.Journal) string {
	if j.Phase == plan.RunPending && j.Waiting != "" {
		if strings.HasPrefix(j.Message, "waits for ") { // it says so itself
			return j.Message
		}
		return "waits for " + j.Waiting + colon(j.Message)
	}
	if j.RetryAt != nil {
		return j.Message
	}
	if j.Phase.Ended() {
		return j.Message
	}
	return ""
}

// errTimeout is why a wait ended that was given a --timeout.
var errTimeout = errors.New("--timeout passed") //nolint:gochecknoglobals // a sentinel for errors.Is

func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, errTimeout)
}

// waited tells why a wait ended before what it waited for.
func waited(ctx context.Context, what string) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return exit(CodeTimeout, "--timeout passed: %s", what)
	}
	return exit(CodeInterrupted, "interrupted: %s", what)
}

// followRun shows a run live until it ends, and answers with the exit code that
// its end has.
func (c *cli) followRun(ctx context.Context, k *cluster, cm *corev1.ConfigMap, name string) error {
	runs, err := k.watch(ctx, cm.Namespace, byName(name))
	if err != nil {
		return c.notFollowed(ctx, name, err)
	}
	plans, err := k.watch(ctx, cm.Namespace, byName(cm.Name))
	if err != nil {
		return c.notFollowed(ctx, name, err)
	}
	f := follower{cli: c, k: k, plan: cm, name: name, runs: runs, plans: plans, screen: screen{env: c.Env}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		over, err := f.look(ctx)
		if over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return waited(ctx, fmt.Sprintf("run %s goes on without you; see '%s status %s', or end it with '%s abort %s'", name, c.Name, name, c.Name, name))
		case <-runs.changed:
		case <-plans.changed:
		case <-tick.C: // the clock runs on; and a run taken away without a start is told by the ledger alone
		}
	}
}

func (c *cli) notFollowed(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return waited(ctx, "run "+name+" goes on without you")
	}
	return err
}

type follower struct {
	*cli
	k           *cluster
	plan        *corev1.ConfigMap
	name        string
	runs, plans *watched
	screen      screen
	lastLedger  time.Time
}

func (f *follower) look(ctx context.Context) (over bool, err error) {
	if cm := f.runs.get(f.plan.Namespace, f.name); cm != nil {
		r, err := readRun(cm)
		if err != nil {
			return true, err
		}
		v := f.view(zoneOf(r.run.Spec, f.Zone))
		picture := append([]string{v.bold(r.run.Name) + "  " + v.runHead(r)}, indent(v.stepLines(r))...)
		f.screen.show(picture, runLines(r))
		return r.journal.Phase.Ended(), runEnd(r)
	}
	cm := f.plans.get(f.plan.Namespace, f.plan.Name)
	if cm == nil || cm.UID != f.plan.UID {
		return true, exit(CodeNotNow, "plan %s was deleted before run %s began", f.plan.Name, f.name)
	}
	message := cm.Annotations[annotations.StatusMessage]
	text := fmt.Sprintf("waiting for run %s%s", f.name, colon(message))
	f.screen.show([]string{text}, []line{{of: "wait", text: text}})
	return f.endedUnseen(ctx)
}

// endedUnseen looks into the ledger for a run that is not there: it may have
// ended, and been cleaned up, or may never have started.
func (f *follower) endedUnseen(ctx context.Context) (bool, error) {
	if f.Now().Sub(f.lastLedger) < 3*time.Second {
		return false, nil
	}
	f.lastLedger = f.Now()
	ledger, old, err := f.k.ledger(ctx, f.plan)
	if err != nil || ledger == nil {
		return false, nil //nolint:nilerr // the next look may read it
	}
	for _, e := range append(old, ledger.Recent...) {
		if e.Run != f.name {
			continue
		}
		if e.Result == plan.Ran {
			return true, exit(CodeError, "run %s has ended and is no longer kept: see '%s history %s'", f.name, f.Name, f.plan.Name)
		}
		return true, exit(CodeNotNow, "run %s did not start: %s (%s)", f.name, e.Result, e.Reason)
	}
	return false, nil
}

// runEnd is a run's end as scripts see it.
func runEnd(r aRun) error {
	j := r.journal
	switch {
	case !j.Phase.Ended():
		return nil
	case len(notPutBack(r)) > 0:
		return exit(CodeRunFailed, "run %s ended %s and left something behind%s", r.run.Name, j.Phase, colon(strings.Join(notPutBack(r), "; ")))
	case j.Phase == plan.RunSucceeded:
		return nil
	case j.StartedAt == nil:
		return exit(CodeNotNow, "run %s did not start%s", r.run.Name, colon(j.Message))
	}
	return exit(CodeRunFailed, "run %s ended %s%s", r.run.Name, j.Phase, colon(j.Message))
}
