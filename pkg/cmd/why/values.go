package why

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
)

// kindExplanation is the kind of why's value for scripts.
const kindExplanation = "Explanation"

// explanation says why something does not happen.
type explanation struct {
	Metadata print.Identity    `json:"metadata"`
	Subject  string            `json:"subject"`            // plan, hibernate-plan, policy or node
	Standing []string          `json:"standing,omitempty"` // its state, if that is no obstacle
	InTheWay []print.NeedValue `json:"inTheWay"`           // in the order in which the agent checks
	Next     []string          `json:"next,omitempty"`     // what would make it happen
}

// printWhy prints an answer for scripts.
func (o *whyOptions) printWhy(kind, namespace, name string, standing []string, found []obstacle, next ...string) error {
	body := explanation{Metadata: print.Identity{Namespace: namespace, Name: name}, Subject: kind, Standing: standing, InTheWay: []print.NeedValue{}, Next: next}
	for _, f := range found {
		body.InTheWay = append(body.InTheWay, print.NeedValue{What: f.what, Remedy: f.remedy})
	}
	return o.out.Print(o.Out, print.Value{Kind: kindExplanation, Name: kind + "/" + name, Body: body})
}
