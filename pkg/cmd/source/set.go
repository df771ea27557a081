package source

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/intent"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// Set are documents of files, or of a cluster in the same form, for the same core.
type Set struct {
	Plans    []Plan
	Sleepers []HibernatePlan
	// namespaces are those of a cluster that were asked for, also if they have no documents.
	namespaces []string
	policies   []policy.State
	created    map[policy.PolicyRef]time.Time // creation times of policies in a cluster
	Resolver   *policy.Resolver
	Pauses     map[string]schedule.Pause // of namespaces; that of the agent's is of the whole cluster
	agent      string                    // the agent's namespace
	chosen     string                    // the namespace that -n names; empty: it is not given
	// templates are step templates, by namespace/name.
	templates map[string]*plan.Template
	// connectors are documents, by namespace/name.
	connectors map[string]Document
}

// Policies are those of the set, whatever their faults.
func (w Set) Policies() []policy.State { return w.policies }

// NewSet is what documents hold, whatever their faults.
func NewSet(c *factory.Factory, docs []Document) Set {
	w := Set{Resolver: policy.NewResolver(c.OfflineAgent()).OfFiles(), agent: c.OfflineAgent(), chosen: *c.Config.Namespace, Pauses: map[string]schedule.Pause{}, templates: map[string]*plan.Template{}, connectors: map[string]Document{}}
	namespace := c.OfflineNamespace()
	for _, d := range docs {
		w.take(d, namespace)
	}
	return w
}

// Plan is a plan without faults.
type Plan struct {
	Source          Document
	Namespace, Name string
	Spec            plan.Spec // with defaults
	Intent          intent.Intent
	Used            Used // only for files

	past    past           // of a plan in a cluster
	gate    *schedule.Gate // of a plan in a cluster
	gated   bool           // something stands between it and its runs
	stopped string         // why nothing of it begins; empty: nothing is known to stop it
	skipped string         // the annotation by which its target's users skip it
	told    schedule.Pause // what the agent says of the pauses above it that may not be read
}

// PausesAbove are the pauses above the documents of a namespace: its own, and that of the whole
// cluster.
func (w Set) PausesAbove(namespace string) []schedule.Pause {
	if namespace == w.agent {
		return []schedule.Pause{w.Pauses[namespace]}
	}
	return []schedule.Pause{w.Pauses[namespace], w.Pauses[w.agent]}
}

// above is the longest pause above a plan.
func (w Set) above(p Plan) schedule.Pause {
	return schedule.LongestPause(append(w.PausesAbove(p.Namespace), p.told)...)
}

// GateOf is the gate of a plan.
func (w Set) GateOf(p Plan) *schedule.Gate {
	if p.gate != nil {
		return p.gate
	}
	return w.Resolver.Gate(p.Query())
}

// Gated says whether anything stands between a plan and its runs.
func (w Set) Gated(p Plan) bool { return p.gate != nil && p.gated || w.Resolver.Gated(p.Query()) }

// Query is the plan's query for its gates.
func (p Plan) Query() policy.Query {
	return p.Intent.Query(p.Namespace, p.Spec.Policies)
}

// FaultyError is all faults of files, a line each.
type FaultyError []Fault

// Error is a line for each fault.
func (e FaultyError) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// NothingIn says that files contain no document, and what one looks like.
func NothingIn(paths []string) string {
	return fmt.Sprintf("no document was found in %s: one is a ConfigMap with the label %s; 'kubectl maint new' prints a plan", strings.Join(paths, ", "), annotations.LabelKind)
}

// Read reads files, folders and "-". Faults are an error, all at once, except those of calendars,
// which work partly.
func Read(c *factory.Factory, paths []string) (Set, error) {
	docs, broken, err := ReadDocuments(paths, c.In)
	if err != nil {
		return Set{}, err
	}
	if len(docs) == 0 && len(broken) == 0 {
		return Set{}, errors.New(NothingIn(paths))
	}
	for _, d := range docs {
		found := d.Check()
		if d.Kind == annotations.KindCalendar {
			for _, f := range found {
				fmt.Fprintln(c.ErrOut, "warning: "+f.String())
			}
			found = nil
		}
		broken = append(broken, found...)
	}
	w := NewSet(c, docs)
	for i, p := range w.Plans {
		w.Plans[i].Used = w.Use(p, c.OfflineAgent())
		broken = append(broken, w.Plans[i].Used.Faults...)
	}
	if len(broken) > 0 {
		return w, FaultyError(broken)
	}
	return w, nil
}

func (w *Set) take(d Document, namespace string) {
	var notes map[string]string
	if d.Object != nil {
		notes = d.Object.Annotations
		if d.Object.Namespace != "" {
			namespace = d.Object.Namespace
		}
	}
	switch d.Kind {
	case annotations.KindPlan:
		spec, _ := plan.Parse([]byte(d.Text), d.Name)
		w.Plans = append(w.Plans, Plan{Source: d, Namespace: namespace, Name: d.Name, Spec: spec.Defaulted(), Intent: annotations.Intent(notes)})
	case annotations.KindHibernatePlan:
		w.Sleepers = append(w.Sleepers, d.hibernatePlan(namespace, notes))
	case annotations.KindPolicy:
		p := d.policy()
		p.Namespace = namespace
		w.policies = append(w.policies, p)
		w.Resolver.PutPolicy(p)
	case annotations.KindCalendar:
		c, _ := d.calendar()
		w.Resolver.PutCalendar(namespace, d.Name, c)
	case annotations.KindStepTemplate:
		t := d.template()
		w.templates[namespace+"/"+d.Name] = &t
	case annotations.KindConnector:
		w.connectors[namespace+"/"+d.Name] = d
	case KindNamespace:
		w.Resolver.PutNamespace(d.Name, annotations.Stanza(notes))
		of := annotations.NamespaceNamed(d.Name)
		if d.Name == w.agent {
			of = annotations.WholeCluster
		}
		w.Pauses[d.Name] = annotations.PauseOf(of, notes)
	}
}
