package live

import (
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// command is the command line of a key.
type command struct {
	namespace string
	args      []string // as shown, and as executed
}

// line is the command as a person would type it.
func (c command) line(name string) string { return name + " " + strings.Join(c.args, " ") }

// commandFor is the command of a key for a resource, or why there is none.
func commandFor(key string, of view.Resource, home string) (c command, whyNot string) {
	kind, isRun, isPlan := of.Kind, of.Kind == annotations.KindRun, of.Kind == annotations.KindPlan
	switch {
	case kind == "":
		return command{}, "no run, plan or node is on this line"
	case key == "enter":
		return onto(of, home, "status", kind+"/"+of.Name, "-w"), ""
	case key == "r" && of.Resumes == "":
		return command{}, "nothing of it waits to be resumed"
	case key == "r":
		return onto(of, home, "resume", of.Resumes), ""
	case key == "a" && of.Question != "":
		return onto(of, home, "approve", of.Question), ""
	case key == "a" && (isRun || isPlan):
		return command{}, "nothing of it waits for approval"
	case key == "l" && (isRun || isPlan):
		return onto(of, home, "logs", of.Name, "-f"), ""
	case key == "s" && isRun && of.Plan != "":
		return onto(of, home, "skip", of.Plan, "--next", "1"), ""
	case key == "s" && (isPlan || kind == annotations.KindHibernatePlan):
		return onto(of, home, "skip", of.Name, "--next", "1"), ""
	}
	return command{}, "a " + view.KindWord(kind) + " has nothing to " + map[string]string{"a": "approve", "l": "log", "s": "skip"}[key]
}

// onto adds the namespace where it is not that of the view.
func onto(of view.Resource, home string, args ...string) command {
	c := command{namespace: of.Namespace, args: args}
	if of.Namespace != "" && of.Namespace != home {
		c.args = append([]string{"-n", of.Namespace}, args...)
	}
	return c
}
