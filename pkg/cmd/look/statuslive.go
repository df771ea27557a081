package look

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/live"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/stream"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
)

// live redraws the picture whenever something changes.
func (o *statusOptions) live(ctx context.Context, k *factory.Cluster) error {
	v := live.View{Title: strings.Join(append([]string{"status"}, o.names...), " "), Ends: true, Short: len(o.names) == 0}
	return live.Run(ctx, o.Factory, k, v, o.follow)
}

// watched are the kinds of the status that are watched; everything else is read again after some
// seconds.
func watched() []string {
	return []string{annotations.KindPlan, annotations.KindHibernatePlan, annotations.KindPolicy, annotations.KindRun, annotations.KindLedger}
}

// watchAll watches what the status is made of.
func (o *statusOptions) watchAll(ctx context.Context, k *factory.Cluster) (*watch.Cache, error) {
	w, err := watch.ConfigMaps(ctx, k, k.Whole(o.everywhere).Namespace, watch.ByLabel(annotations.LabelKind+" in ("+strings.Join(watched(), ",")+")"))
	if err != nil {
		return nil, watch.NotFollowed(ctx, "", err)
	}
	o.watchNodes(ctx, k, w)
	o.agent = o.FollowAgent(ctx, k.Whole(o.everywhere), w.Changed)
	return w, nil
}

// agentNow is the state of the agent, as followed or read now.
func (o *statusOptions) agentNow(ctx context.Context, k *factory.Cluster) (factory.AgentState, error) {
	if o.agent != nil {
		return o.agent.State()
	}
	return o.Agent(ctx, k.Whole(o.everywhere))
}

// stream prints for scripts what has changed, and what is gone.
func (o *statusOptions) stream(ctx context.Context, k *factory.Cluster) error {
	w, err := o.watchAll(ctx, k)
	if err != nil {
		return err
	}
	timeout, items, unread := watch.AnswerTimeout{Patient: true}, []print.Value(nil), stream.Unread{}
	for changes := stream.New(o.out); ; o.begun = true {
		err := timeout.Within(ctx, func(ctx context.Context) (err error) {
			items, unread, err = o.values(ctx, k)
			return err
		})
		switch {
		case ctx.Err() != nil:
		case err != nil && !o.begun:
			return err
		case err != nil: // what was printed was true; the next look may succeed
			o.failed(err)
		default:
			o.failed(nil)
			if err := changes.Print(o.Out, items, unread); err != nil {
				return err
			}
		}
		if _, goesOn := o.news(ctx, w, o.retry(), func() {}); !goesOn {
			return &exit.Error{Code: exit.CodeInterrupted}
		}
	}
}

// trouble is what was told of an API server that does not answer, or refuses.
type trouble struct {
	outage bool
	unread string // why the last look failed; empty: it did not
}

// failed warns once that the status could not be read again, and why; nil: it could.
func (o *statusOptions) failed(err error) {
	was := o.trouble.unread
	o.trouble.unread = ""
	switch {
	case err == nil && was != "":
		fmt.Fprintln(o.ErrOut, "warning: what is shown is current again")
	case err == nil || o.trouble.outage && was == "": // that is told
	default:
		if was == "" {
			fmt.Fprintf(o.ErrOut, "warning: %v; what is shown may be old\n", err) // each time: Warn says a text once
		}
		o.trouble.unread = err.Error()
	}
}

// retryAfter is when a look that failed is made again: what it was to show may not change once more (a guess).
const retryAfter = 2 * time.Second

// retry is when the last look is to be made again; nil: it succeeded.
func (o *statusOptions) retry() <-chan time.Time {
	if o.trouble == (trouble{}) {
		return nil
	}
	return time.After(retryAfter)
}

// news waits for a change, or until it is time to look again, and warns of an outage meanwhile, after which
// it calls warned; goesOn is false when ctx has ended.
func (o *statusOptions) news(ctx context.Context, w *watch.Cache, again <-chan time.Time, warned func()) (changed, goesOn bool) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, false
		case <-again:
			return false, true
		case <-w.Changed:
			return true, true
		case <-tick.C:
		}
		if o.trouble.unread != "" {
			continue
		}
		if is := o.agent.WarnOfOutage(); is != o.trouble.outage {
			o.trouble.outage = is
			warned()
		}
	}
}

func (o *statusOptions) follow(ctx context.Context, k *factory.Cluster, show func([]view.Line)) error {
	w, err := o.watchAll(ctx, k)
	if err != nil {
		return err
	}
	if show != nil { // lines are written only after a change, and then everything is current
		k = w.Reader(k, k.Whole(o.everywhere).Namespace, watched()...)
	}
	screen, timeout := watch.Screen{Env: o.Env, Live: show, Fit: true}, watch.AnswerTimeout{Patient: show == nil}
	for {
		begun := time.Now()
		lines, said, err := o.look(ctx, k, &timeout)
		switch {
		case ctx.Err() != nil:
		case err != nil && screen.Empty() && !watch.Unanswered(err):
			return err
		case err != nil && k.Broken != nil:
			k.Broken(err)
		case err != nil: // the screen was true; say why it is not renewed
			o.failed(err)
			screen.Leave()
		default:
			o.failed(nil)
			screen.ShowOf(lines, said)
		}
		took := time.Since(begun)
		if err != nil { // that says nothing of how long pictures take
			took = 0
		}
		if !o.pause(ctx, w, &screen, took) {
			return &exit.Error{Code: exit.CodeInterrupted}
		}
	}
}

// look makes the present picture. A silent server is reported, and not waited for.
func (o *statusOptions) look(ctx context.Context, k *factory.Cluster, timeout *watch.AnswerTimeout) (lines []view.Line, said []print.Update, err error) {
	err = timeout.Within(ctx, func(ctx context.Context) error {
		lines, said, err = o.picture(ctx, k)
		return err
	})
	return lines, said, err
}

// pause waits for a change, on a screen no longer than until the ages change; false: ctx has ended.
// Then it waits for further changes, so that a status of thousands of plans does not use all of the
// CPU.
func (o *statusOptions) pause(ctx context.Context, w *watch.Cache, screen *watch.Screen, took time.Duration) bool {
	drawn, again := screen.Live != nil, o.retry()
	if drawn || o.OutTerminal {
		tick := time.NewTimer(min(max(time.Second, 10*took), mostAge))
		defer tick.Stop()
		again = tick.C
	}
	changed, goesOn := o.news(ctx, w, again, screen.Leave)
	switch {
	case !changed:
		return goesOn
	case !drawn:
		return took <= slowRead || gathered(ctx, took)
	}
	return gathered(ctx, min(max(100*time.Millisecond, 4*took), mostGathered))
}

// How old a picture gets where reading takes long, without and with changes (guesses).
const mostAge, mostGathered = 10 * time.Second, 5 * time.Second

// slowRead is from when on reads are not made back to back (a guess: that of some hundred plans is
// faster).
const slowRead = 500 * time.Millisecond

// gathered waits for further changes; false: ctx has ended.
func gathered(ctx context.Context, pause time.Duration) bool {
	gather := time.NewTimer(pause)
	defer gather.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-gather.C:
		return true
	}
}

// watchNodes redraws the status on changes of nodes, too, and of the runs that may have them: of all
// nodes where all are shown, else of those that are named. Where nodes may not be read, it does nothing.
func (o *statusOptions) watchNodes(ctx context.Context, k *factory.Cluster, w *watch.Cache) {
	var names []string
	for i, name := range o.names {
		found, err := o.find(ctx, k, name)
		switch {
		case err != nil:
		case found.Node != nil:
			names = append(names, found.Node.Name)
			o.names[i] = factory.KindNode + "/" + found.Node.Name
		default: // once found, it is not looked up among nodes again
			o.names[i] = found.Document.Labels[annotations.LabelKind] + "/" + found.Document.Name
		}
	}
	if len(o.names) > 0 && len(names) == 0 {
		return
	}
	seen, err := watch.Nodes(ctx, k, w.Changed, names...)
	if err == nil && !o.everywhere {
		w.WatchActiveRuns(ctx, k)
	}
	if err == nil && len(o.names) == 0 {
		o.seen = seen
	}
}
