package agenttest

import (
	"errors"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// When picks requests: an empty field is any, a name may be the beginning of one.
type When struct{ User, Verb, Resource, Name string }

func (w When) match(r Request) bool {
	return (w.User == "" || w.User == r.who()) && (w.Verb == "" || w.Verb == r.Verb) && (w.Resource == "" || w.Resource == r.what()) && strings.HasPrefix(r.Name, w.Name)
}

// fault is what becomes of the next requests that it picks.
type fault struct {
	when    When
	left    int
	refusal *apierrors.StatusError
	away    bool
	lose    bool
	before  func()
	held    chan struct{} // closed when it may go on
}

// endless is how many requests no test needs: a loop in a bubble whose time stands still
// would go on until the memory is full.
const endless = 200_000

// Always is how often a fault comes that does not go away by itself.
const Always = 1 << 30

func (c *Cluster) faultFor(r Request) *fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked = append(c.asked, r); len(c.asked) > endless {
		panic("requests without end: " + r.String())
	}
	for _, f := range c.faults {
		if f.left > 0 && f.when.match(r) {
			f.left--
			return f
		}
	}
	return nil
}

func (c *Cluster) add(f *fault) (mend func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		f.left = 0
	}
}

// Refuse answers the next requests with a status, and does nothing.
func (c *Cluster) Refuse(when When, times, code int, message string) (mend func()) {
	status := apierrors.NewGenericServerResponse(code, when.Verb, schema.GroupResource{Resource: when.Resource}, when.Name, message, 0, true)
	status.ErrStatus.Message = message
	if code == http.StatusUnprocessableEntity {
		status.ErrStatus.Reason = "Invalid"
	}
	return c.add(&fault{when: when, left: times, refusal: status})
}

// RefuseTerminating answers the next requests as an API server does that is asked to create something
// in a namespace that is being deleted.
func (c *Cluster) RefuseTerminating(when When, times int) (mend func()) {
	status := apierrors.NewForbidden(schema.GroupResource{Resource: when.Resource}, when.Name, errors.New("the namespace is being terminated"))
	status.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return c.add(&fault{when: when, left: times, refusal: status})
}

// Fail does not answer the next requests, and does nothing.
func (c *Cluster) Fail(when When, times int) (mend func()) {
	return c.add(&fault{when: when, left: times, away: true})
}

// LoseReply does what the next requests ask, and does not answer.
func (c *Cluster) LoseReply(when When, times int) (mend func()) {
	return c.add(&fault{when: when, left: times, lose: true})
}

// Before has something happen right before the next request: somebody is faster.
func (c *Cluster) Before(when When, happens func()) {
	c.add(&fault{when: when, left: 1, before: happens})
}

// Hold keeps the next requests on their way until they are let go.
func (c *Cluster) Hold(when When, times int) (letGo func()) {
	held := make(chan struct{})
	mend := c.add(&fault{when: when, left: times, held: held})
	return func() {
		mend()
		close(held)
	}
}

// StallWatches has the watches of a resource that are open now say nothing more, as if their
// connections hung.
func (c *Cluster) StallWatches(resource string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watches {
		if w.request.Resource == resource {
			w.hung = true
		}
	}
}

// Asked is how many requests there were, whatever became of them.
func (c *Cluster) Asked(when When) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, r := range c.asked {
		if when.match(r) {
			n++
		}
	}
	return n
}

// DieAt takes the agent's connection away for good at one of its writes, counted from
// zero, which comes or does not.
func (c *Cluster) DieAt(write int, arrives bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.death = &death{left: write, arrives: arrives}
}

// Reconnect gives the connection back.
func (c *Cluster) Reconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.death = nil
}

// death is where an agent's last write stands.
type death struct {
	left    int // writes before it
	arrives bool
	dead    bool
}

// dies says whether a request is not done, or not answered.
func (c *Cluster) dies(r Request) (undone, unheard bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.death
	switch {
	case d == nil:
		return false, false
	case d.dead:
		return true, true
	case r.Verb == "get" || r.Verb == "list" || r.Verb == "watch":
		return false, false
	case d.left > 0:
		d.left--
		return false, false
	}
	d.dead = true
	return !d.arrives, true
}
