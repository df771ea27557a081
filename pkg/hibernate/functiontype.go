package hibernate

import (
	"maps"
	"slices"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// FunctionParameters say which function puts what to sleep. It is called as a step of type
// function calls one.
type FunctionParameters struct {
	Endpoint    string                    `json:"endpoint"` // host:port
	Input       map[string]any            `json:"input,omitempty"`
	Credentials []plan.FunctionCredential `json:"credentials,omitempty"`
	TLS         *plan.FunctionTLS         `json:"tls,omitempty"` // default: verified by the system's authorities
	Timeout     *document.Duration        `json:"timeout,omitempty"`
}

func (p *FunctionParameters) timeout() *document.Duration { return p.Timeout }

// OwnInput are the fields of a function's input that the agent writes.
func OwnInput() []string { return []string{"operation", "hibernation"} }

func checkFunction(params any, at document.Reporter) {
	p := params.(*FunctionParameters)
	plan.CheckEndpoint(p.Endpoint, at)
	plan.CheckFunction(p.Credentials, p.TLS, at)
	if expr.IsTemplate(p.Endpoint) {
		at("endpoint", "is taken as it stands: there is no ${…} in a HibernatePlan")
	}
	for _, field := range slices.Sorted(maps.Keys(p.Input)) {
		if slices.Contains(OwnInput(), field) {
			at("input."+field, "is written by the agent, to tell the function what to do")
		}
	}
	checkTimeout(p.Timeout, at)
}
