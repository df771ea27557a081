// Package function executes the step types function and pipeline: it is a client of Crossplane's
// FunctionRunnerService v1, and of v1beta1 where only that is served. It runs functions as operations
// do, and those of a pipeline one after another as a Composition does. A function sees what it
// requires and returns desired objects, which are applied with the rights of the plan's account and
// no others.
package function

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/mask"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// MaxRounds is how often a function that keeps requiring more is called.
const MaxRounds = 5

// Runner executes the step type function. As the plan's account it needs get on the Secrets of
// credentials and tls, list on FunctionRevisions for a functionRef, get or list on what the function
// requires, and get, patch and create on what it desires.
//
// A call itself leaves no trace in the cluster. After a crash before its outcome was journaled, and
// after a pass that the API server cut short, the function is called again from the beginning, with
// the same tag if it sees the same objects; applying the same objects twice changes nothing.
type Runner struct {
	Answers *Answers // nil: no limit
}

// TakesRequired is executors.Requirer's: the function gets the objects themselves.
func (Runner) TakesRequired() {}

// Pass calls the function, up to MaxRounds times, and applies what it desires.
func (r Runner) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.FunctionProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	return chain{functions: []*conversation{{call: call, props: p}}, force: p.Force, answers: r.Answers}.pass(ctx, call)
}

// conversation is the exchange with one function.
type conversation struct {
	call    executors.Call
	name    string // in a pipeline
	props   *plan.FunctionProperties
	mask    mask.Mask
	secrets []string // that the mask is made of
	request *fnv1.RunFunctionRequest
	given   map[string]*fnv1.Resources // what it sees without asking, as all of its step do
	room    *room                      // for the answers of the pass
}

// answered runs the whole conversation. What was asked is forgotten with it: it may hold the answer of
// the function before.
func (c *conversation) answered(ctx context.Context) (*fnv1.RunFunctionResponse, error) {
	line, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer line.close()
	defer func() { c.request, c.given = nil, nil }()
	return c.ask(ctx, line)
}

func (c *conversation) String() string {
	out := "function"
	if c.name != "" {
		out += " " + c.name
	} else if ref := c.props.FunctionRef; ref != nil {
		out += " " + ref.Name
	}
	if c.props.Endpoint != "" {
		out += " at " + c.props.Endpoint
	}
	return out
}

// ask calls the function until it fails, or requires nothing that it has not seen.
func (c *conversation) ask(ctx context.Context, line *line) (*fnv1.RunFunctionResponse, error) {
	var seen selectors
	for round := 0; ; round++ {
		response, err := c.once(ctx, line)
		if err != nil {
			return nil, err
		}
		wants := selectorsOf(response.GetRequirements())
		if len(wants) == 0 || wants.equal(seen) || fatal(response) {
			return response, nil
		}
		if round == MaxRounds {
			return nil, api.Refuse("RequirementsUnstable", "%s was called %d times and required something else each time, at last %s; a function has to require the same twice, or nothing", c, MaxRounds+1, wants.names())
		}
		found, err := c.fetch(ctx, wants)
		if err != nil {
			return nil, err
		}
		c.show(found)
		c.request.Context = response.GetContext()
		seen = wants
	}
}

// selectors are the requirements of a function, by name.
type selectors map[string]*fnv1.ResourceSelector

// selectorsOf reads both field names; the newer one wins.
func selectorsOf(r *fnv1.Requirements) selectors {
	out := selectors{}
	maps.Copy(out, r.GetExtraResources()) // older functions know only this field
	maps.Copy(out, r.GetResources())
	return out
}

func (s selectors) equal(other selectors) bool {
	return maps.EqualFunc(s, other, func(a, b *fnv1.ResourceSelector) bool { return proto.Equal(a, b) })
}

func (s selectors) sorted() []string { return slices.Sorted(maps.Keys(s)) }

func (s selectors) names() string { return document.Cut(strings.Join(s.sorted(), ", "), 300) }
