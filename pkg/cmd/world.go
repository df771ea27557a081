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
	// templates are step templates, by namespace/name.
	templates map[string]*plan.Template
}

// worldOf is what documents hold, whatever their faults.
func (c *cli) worldOf(docs []sourced) world {
	w := world{book: plan.NewBook(c.offlineAgent()), pauses: map[string]plan.Switch{}, templates: map[string]*plan.Template{}}
	for _, d := range docs {
		w.take(d, c.offlineNamespace())
	}
	return w
}

// filePlan is a plan in a file, without faults.
type filePlan struct {
	source          sourced
	namespace, name string
	spec            plan.Spec // with defaults
	intent          plan.Intent
	used            used // where files were read
}

// question is what is asked of the gates for the plan.
func (p filePlan) question() plan.Question {
	return p.intent.Query(p.namespace, p.spec.Policies)
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
	docs, broken, err := readSources(paths, c.In)
	if err != nil {
		return world{}, err
	}
	if len(docs) == 0 && len(broken) == 0 {
		return world{}, errors.New("no document of ours was found in " + strings.Join(paths, ", "))
	}
	for _, d := range docs {
		found := d.check()
		if d.kind == annotations.KindCalendar {
			for _, f := range found {
				fmt.Fprintln(c.ErrOut, "warning: "+f.String())
			}
			found = nil
		}
		broken = append(broken, found...)
	}
	w := c.worldOf(docs)
	for i, p := range w.plans {
		w.plans[i].used = w.use(p, c.offlineAgent())
		broken = append(broken, w.plans[i].used.faults...)
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
	case annotations.KindStepTemplate:
		t := d.template()
		w.templates[namespace+"/"+d.name] = &t
	case kindNamespace:
		in := annotations.Intent(notes)
		w.book.PutNamespace(d.name, in.Stanza)
		w.pauses[d.name] = in.Pause
	}
}
