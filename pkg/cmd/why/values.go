package why

import (
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
)

// kindExplanation is the kind of why's value for scripts.
const kindExplanation = "Explanation"

// explanation says why something does not happen.
type explanation struct {
	Metadata print.Identity  `json:"metadata"`
	Subject  string          `json:"subject"`            // plan, hibernate-plan, policy or node
	Standing []string        `json:"standing,omitempty"` // its state, if that is no obstacle
	InTheWay []obstacleValue `json:"inTheWay"`           // in the order in which the agent checks
	Next     []string        `json:"next,omitempty"`     // what would make it happen
	NextAt   string          `json:"nextAt,omitempty"`   // the next slot of a plan, or the next sleep or waking
}

// obstacleValue is what is in the way.
type obstacleValue struct {
	print.NeedValue

	Until string `json:"until,omitempty"` // when it is over by itself, where that is known
}

// explain is an answer about something without what is in the way.
func explain(kind, namespace, name string, standing []string) explanation {
	return explanation{Metadata: print.Identity{Namespace: namespace, Name: name}, Subject: kind, Standing: standing, InTheWay: []obstacleValue{}}
}

// then adds what would make it happen, and when that is to be.
func (e explanation) then(next []string, at *time.Time) explanation {
	e.Next, e.NextAt = next, instant.UTC(at)
	return e
}

// printWhy prints an answer for scripts.
func (o *whyOptions) printWhy(body explanation, found []obstacle) error {
	for _, f := range found {
		body.InTheWay = append(body.InTheWay, obstacleValue{print.NeedValue{What: f.what, Remedy: f.remedy}, instant.UTC(f.until)})
	}
	return o.out.Print(o.Out, print.Value{Kind: kindExplanation, Name: body.Subject + "/" + body.Metadata.Name, Body: body})
}
