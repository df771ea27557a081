package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// world is what files hold, as a cluster would show it: the same documents, and
// the same answers of the same core.
type world struct {
	plans    []filePlan
	policies []plan.PolicyState
	book     *plan.Book
	pauses   map[string]plan.Switch // of namespaces
}

// filePlan is a plan in a file, without faults.
type filePlan struct {
	source          sourced
	namespace, name string
	spec            plan.Spec // with defaults
	intent          plan.Intent
}

// question is what is asked of the gates for the plan.
func (p filePlan) question() plan.Question {
	return plan.Asked(p.namespace, p.intent, p.spec.Policies)
}

// errFaulty says that files hold faults; they are its text, a line each.
type errFaulty []fileFault

func (e errFaulty) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// readWorld reads files, folders and "-". Documents with faults are an error,
// all at once, but for calendars, of which the rest works.
func (c *cli) readWorld(paths []string) (world, error) {
	namespace, stdin, warn := c.offlineNamespace(), c.In, c.ErrOut
	w := world{book: plan.NewBook(c.offlineAgent()), pauses: map[string]plan.Switch{}}
	docs, broken, err := readSources(paths, stdin)
	if err != nil {
		return w, err
	}
	if len(docs) == 0 && len(broken) == 0 {
		return w, errors.New("no document of ours was found in " + strings.Join(paths, ", "))
	}
	for _, d := range docs {
		found := d.check()
		if d.kind == annotations.KindCalendar {
			for _, f := range found {
				fmt.Fprintln(warn, "warning: "+f.String())
			}
			found = nil
		}
		broken = append(broken, found...)
		w.take(d, namespace)
	}
	if len(broken) > 0 {
		return w, errFaulty(broken)
	}
	return w, nil
}

func (w *world) take(d sourced, namespace string) {
	var notes map[string]string
	if d.object != nil {
		notes = d.object.Annotations
		if d.object.Namespace != "" {
			namespace = d.object.Namespace
		}
	}
	switch d.kind {
	case annotations.KindPlan:
		spec, _ := plan.Parse([]byte(d.text), d.name)
		w.plans = append(w.plans, filePlan{source: d, namespace: namespace, name: d.name, spec: spec.Defaulted(), intent: annotations.Intent(notes)})
	case annotations.KindPolicy:
		p := d.policy()
		p.Namespace = namespace
		w.policies = append(w.policies, p)
		w.book.PutPolicy(p)
	case annotations.KindCalendar:
		c, _ := d.calendar()
		w.book.PutCalendar(namespace, d.name, c)
	case kindNamespace:
		in := annotations.Intent(notes)
		w.book.PutNamespace(d.name, in.Stanza)
		w.pauses[d.name] = in.Pause
	}
}
