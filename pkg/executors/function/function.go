// Package function executes the step type function: it is a client of Crossplane's
// FunctionRunnerService v1, and runs functions as operations do. A function sees what it requires
// and returns desired objects, which are applied with the rights of the plan's account and no
// others.
package function

import (
	"context"
	"fmt"
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
// credentials and tls, get or list on what the function requires, and get, patch and create on what
// it desires.
//
// A call itself leaves no trace in the cluster. After a crash before its outcome was journaled, and
// after a pass that the API server cut short, the function is called again from the beginning, with
// the same tag if it sees the same objects; applying the same objects twice changes nothing.
type Runner struct{}

// TakesRequired is executors.Requirer's: the function gets the objects themselves.
func (Runner) TakesRequired() {}

// Pass calls the function, up to MaxRounds times, and applies what it desires.
func (Runner) Pass(ctx context.Context, call executors.Call) executors.Outcome {
	p, err := api.PropertiesAs[plan.FunctionProperties](call)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	if call.DryRun {
		return executors.Outcome{State: executors.Done, Message: fmt.Sprintf("dry run: would call function at %s; it was not called", p.Endpoint)}
	}
	c, err := newConversation(ctx, call, p)
	if err != nil {
		return api.Outcome(ctx, call, err)
	}
	out := c.hold(ctx)
	out.Message = document.Cut(c.mask.Text(out.Message), document.MaxMessage)
	return out
}

// conversation is the exchange with one function.
type conversation struct {
	call    executors.Call
	props   *plan.FunctionProperties
	mask    mask.Mask
	request *fnv1.RunFunctionRequest
	given   map[string]*fnv1.Resources // what it sees without asking
}

// hold runs the whole conversation and returns its outcome.
func (c *conversation) hold(ctx context.Context) executors.Outcome {
	line, err := c.connect(ctx)
	if err != nil {
		return api.Outcome(ctx, c.call, err)
	}
	defer line.close()
	response, err := c.ask(ctx, line)
	if err != nil {
		return api.Outcome(ctx, c.call, err)
	}
	a := c.read(response)
	if a.fatal != "" {
		out := executors.Fail("FunctionFatal", "%s failed: %s", c, a.fatal)
		out.Outputs = a.outputs
		return out
	}
	wanted, err := c.wanted(response.GetDesired())
	if err != nil {
		return api.Outcome(ctx, c.call, err)
	}
	return c.apply(ctx, wanted, a)
}

func (c *conversation) String() string { return "function at " + c.props.Endpoint }

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
