package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Bounds of what controllers ask other clusters beside their steps (guesses). Such a cluster
// may be anybody's, and hold each request for as long as it likes: it is not to take the
// workers of the others.
const (
	askedWithin = 5 * time.Second  // far API servers answer within one second
	mostAsked   = 4                // questions to one cluster at once, those included that nobody waits for any more
	leftAlone   = 15 * time.Second // a cluster that did not answer
)

// UnavailableError is another cluster that does not answer, or is asked enough just now.
type UnavailableError struct {
	Cluster string
	Err     error
}

func (e *UnavailableError) Error() string { return fmt.Sprintf("K8SCluster %s: %s", e.Cluster, e.Err) }

// Unwrap is what was the matter.
func (e *UnavailableError) Unwrap() error { return e.Err }

var (
	errSilent = fmt.Errorf("it did not answer within %s", askedWithin) //nolint:gochecknoglobals // a sentinel for errors.Is
	errBusy   = errors.New("it is asked for other plans just now")     //nolint:gochecknoglobals // as above
)

// Ask asks a question of the cluster that an account's plan is about; nil is the plan's own.
// Another cluster has a few seconds for its answer: a question that takes longer goes on by
// itself, and nobody hears of its answer. One that did not answer is left alone for a while.
func Ask[T any](ctx context.Context, a *Impersonator, w Account, run string, on *Cluster, question func(context.Context, ClusterAccess) (T, error)) (T, error) {
	reached := func(ctx context.Context) (out T, err error) {
		from, err := a.Access(ctx, w, run, on)
		if err != nil {
			return out, err
		}
		return question(ctx, from)
	}
	if on == nil {
		return reached(ctx)
	}
	var none T
	at := remoteCluster{namespace: w.Namespace, cluster: on.Name}
	if err := a.distances.begin(at, a.now()); err != nil {
		return none, &UnavailableError{on.Name, err}
	}
	within, cancel := context.WithTimeout(ctx, askedWithin)
	defer cancel()
	got := make(chan answer[T], 1)
	go func() {
		what, err := reached(within)
		if err != nil && errors.Is(within.Err(), context.DeadlineExceeded) {
			err = errSilent
		}
		a.distances.end(at, err, a.now())
		got <- answer[T]{what, err}
	}()
	select {
	case one := <-got:
		return one.what, away(on.Name, one.err)
	case <-within.Done():
		if err := ctx.Err(); err != nil {
			return none, err
		}
		a.distances.silent(at, a.now())
		return none, &UnavailableError{on.Name, errSilent}
	}
}

// answer is what became of a question.
type answer[T any] struct {
	what T
	err  error
}

func away(cluster string, err error) error {
	if errors.Is(err, errSilent) || Unreachable(err) {
		return &UnavailableError{cluster, err}
	}
	return err
}

// remoteCluster is another cluster as a namespace's connector names it.
type remoteCluster struct{ namespace, cluster string }

// remoteClusters are the clusters that are asked, or that did not answer of late.
type remoteClusters struct {
	mu   sync.Mutex
	open map[remoteCluster]*asking
}

type asking struct {
	questions int
	away      error
	until     time.Time
}

func newDistances() *remoteClusters { return &remoteClusters{open: map[remoteCluster]*asking{}} }

// begin says why a cluster is not to be asked now.
func (d *remoteClusters) begin(at remoteCluster, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.open[at]
	switch {
	case one == nil:
		one = &asking{}
		d.open[at] = one
	case now.Before(one.until):
		return one.away
	case one.questions >= mostAsked:
		return errBusy
	}
	one.questions++
	return nil
}

// end is an answer. A cluster that gave one is not away, whatever it says.
func (d *remoteClusters) end(at remoteCluster, err error, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.open[at]
	one.questions--
	if errors.Is(err, errSilent) || Unreachable(err) {
		one.away, one.until = err, now.Add(leftAlone)
	} else if one.until = (time.Time{}); one.questions == 0 {
		delete(d.open, at)
	}
}

func (d *remoteClusters) silent(at remoteCluster, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one := d.open[at]; one != nil {
		one.away, one.until = errSilent, now.Add(leftAlone)
	}
}
