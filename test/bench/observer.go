package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// sight is what one event says: a thing reached a mark, at an instant of its own
// telling.
type sight struct {
	mark, key string
	own       time.Time
}

type seenAt struct{ arrived, own time.Time }

// observer is a client that only watches: it notes when the events came that
// showed each thing at a mark for the first time.
type observer struct {
	stop func()
	mu   sync.Mutex
	seen map[string]map[string]seenAt
	over error
	news chan struct{}
}

type opener func(context.Context, metav1.ListOptions) (watch.Interface, error)

// observe begins a watch. What exists already is seen at once. A watch that the
// API server ends, as it may at any time, is opened again.
func observe(ctx context.Context, open opener, selector string, read func(runtime.Object) []sight) (*observer, error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := open(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch %s: %w", selector, err)
	}
	o := &observer{seen: map[string]map[string]seenAt{}, news: make(chan struct{}, 1), stop: cancel}
	go func() {
		defer func() { w.Stop() }()
		for {
			o.follow(ctx, w, read)
			if ctx.Err() != nil {
				return
			}
			next, err := open(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				o.end(fmt.Errorf("the watch has ended, and cannot be opened again: %w", err))
				return
			}
			w = next
		}
	}()
	return o, nil
}

func (o *observer) follow(ctx context.Context, w watch.Interface, read func(runtime.Object) []sight) {
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-w.ResultChan():
			if !open {
				return
			}
			arrived := time.Now()
			if event.Type == watch.Added || event.Type == watch.Modified {
				o.note(arrived, read(event.Object))
			}
		}
	}
}

func (o *observer) end(why error) {
	o.mu.Lock()
	o.over = why
	o.mu.Unlock()
	o.ring()
}

func (o *observer) note(arrived time.Time, sights []sight) {
	o.mu.Lock()
	for _, s := range sights {
		if o.seen[s.mark] == nil {
			o.seen[s.mark] = map[string]seenAt{}
		}
		if _, before := o.seen[s.mark][s.key]; !before {
			o.seen[s.mark][s.key] = seenAt{arrived, s.own}
		}
	}
	o.mu.Unlock()
	o.ring()
}

func (o *observer) ring() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

func (o *observer) count(mark string) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.seen[mark]), o.over
}

// wait returns when so many things have reached a mark, and fails when that
// takes longer than the limit.
func (o *observer) wait(ctx context.Context, mark string, n int, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		have, over := o.count(mark)
		switch {
		case have >= n:
			return nil
		case over != nil:
			return fmt.Errorf("%d of %d %s: %w", have, n, mark, errors.Join(over, context.Cause(ctx)))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return fmt.Errorf("%d of %d %s within %s", have, n, mark, limit)
		case <-o.news:
		}
	}
}

// arrivals are the instants at which events showed a mark, the first first.
func (o *observer) arrivals(mark string) []time.Time {
	return o.instants(mark, func(s seenAt) time.Time { return s.arrived })
}

// own are the instants that the things themselves give for a mark.
func (o *observer) own(mark string) []time.Time {
	return o.instants(mark, func(s seenAt) time.Time { return s.own })
}

func (o *observer) instants(mark string, of func(seenAt) time.Time) []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]time.Time, 0, len(o.seen[mark]))
	for _, s := range o.seen[mark] {
		out = append(out, of(s))
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}
