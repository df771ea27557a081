package write

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

type newOptions struct {
	*scheduleOptions
	lines *bufio.Reader
}

// NewNew asks questions and makes a plan.
func NewNew(c *factory.Factory) *cobra.Command {
	o := &newOptions{scheduleOptions: &scheduleOptions{Factory: c}}
	o.Mode = "client"
	o.UseOutput("yaml")
	return &cobra.Command{
		Use:   "new",
		Short: "Create a valid plan by answering questions, and print it",
		Long: `Ask for what a plan needs, one question at a time, and print the plan as a manifest on
standard output. If an answer is not valid, the command says why and asks again. Questions
go to standard error; no cluster is asked, and nothing is written.`,
		Example: "  kubectl maint new > orders-weekly.yaml",
		Args:    factory.NoNames,
		RunE:    factory.RunE(o),
	}
}

// Complete has nothing to look up.
func (o *newOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate prepares the output; there are no flags to check.
func (o *newOptions) Validate() error {
	o.DryRun.Check(&o.faults)
	return o.faults.Err()
}

// Run asks, and prints the plan.
func (o *newOptions) Run(ctx context.Context) error {
	o.lines = bufio.NewReader(o.In)
	for _, question := range []func(context.Context) error{o.askName, o.askWhen, o.askTarget, o.askPolicy, o.askSteps} {
		if err := question(ctx); err != nil {
			return err
		}
	}
	if err := o.build(); err != nil {
		return err
	}
	if err := o.report(o.object(*o.Config.Namespace), "written"); err != nil {
		return err
	}
	fmt.Fprintf(o.ErrOut, "\nsave it to a file, and then:\n"+
		"  %[1]s next -f FILE                 shows when it is due\n"+
		"  %[1]s rbac -n NAMESPACE -f FILE    prints what its account needs\n"+
		"  kubectl apply -n NAMESPACE -f FILE\n"+
		"  %[1]s doctor -n NAMESPACE %[2]s\n", o.Name, o.flags.name)
	return nil
}

// build makes the plan from the answers so far, and returns its faults.
func (o *newOptions) build() error {
	o.faults = exit.Faults{}
	if err := o.fromFlags(); err != nil {
		return err
	}
	return o.checkPlan()
}

// ask repeats a question until check accepts the answer; otherwise is the meaning of an empty one.
func (o *newOptions) ask(ctx context.Context, question, otherwise string, check func(answer string) error) error {
	for {
		hint := ""
		if otherwise != "" {
			hint = " [" + otherwise + "]"
		}
		fmt.Fprintf(o.ErrOut, "%s%s: ", question, hint)
		answer, err := o.line(ctx)
		if err != nil {
			return err
		}
		err = check(answer)
		if ended := new(unanswered); errors.As(err, &ended) {
			return err
		}
		if err != nil {
			for part := range strings.SplitSeq(err.Error(), "\n") {
				for _, line := range view.Filled(strings.Fields(part), answerWidth) {
					fmt.Fprintln(o.ErrOut, "  "+line)
				}
			}
			continue
		}
		return nil
	}
}

// unanswered is a question that nobody answers any more.
type unanswered struct{ error }

func (u *unanswered) Unwrap() error { return u.error }

// answerWidth is the width of a complaint, so that an ordinary terminal breaks no word.
const answerWidth = 76

// line reads an answer. The end of the input is not one.
func (o *newOptions) line(ctx context.Context) (string, error) {
	type read struct {
		text string
		err  error
	}
	answer := make(chan read, 1)
	go func() {
		text, err := o.lines.ReadString('\n')
		answer <- read{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(o.ErrOut)
		return "", &unanswered{exit.Errorf(exit.CodeInterrupted, "interrupted: nothing was printed")}
	case r := <-answer:
		if errors.Is(r.err, io.EOF) && strings.TrimSpace(r.text) == "" {
			fmt.Fprintln(o.ErrOut)
			return "", &unanswered{exit.Errorf(exit.CodeUsage, "the input ended before the plan was whole: nothing was printed")}
		}
		if !o.InTerminal { // where the answer and its line break are not echoed
			fmt.Fprintln(o.ErrOut, strings.TrimSpace(r.text))
		}
		return strings.TrimSpace(r.text), nil
	}
}

func (o *newOptions) askName(ctx context.Context) error {
	return o.ask(ctx, "name of the plan", "", func(answer string) error {
		if !document.DNSLabel(answer) {
			return fmt.Errorf("%q is no name: write lower case letters, digits and dashes, like orders-weekly", answer)
		}
		o.flags.name = answer
		return nil
	})
}

func (o *newOptions) askWhen(ctx context.Context) error {
	err := o.ask(ctx, "when: a cron expression like '0 2 * * 6', or a time", "when somebody asks", func(answer string) error {
		o.flags.cron, o.flags.at = "", ""
		if len(strings.Fields(answer)) >= 5 {
			o.flags.cron = answer
			_, err := schedule.Parse(schedule.Spec{Cron: answer})
			return err
		}
		if o.flags.at = answer; answer == "" {
			return nil
		}
		at, err := instant.Parse(answer, o.Now(), o.Zone)
		switch {
		case err != nil:
			return fmt.Errorf("%q is neither a cron expression, which has five fields, nor a time: %s", answer, instant.Forms)
		case !at.After(o.Now()):
			return fmt.Errorf("%s has passed", instant.Both(at, o.Zone))
		}
		fmt.Fprintf(o.ErrOut, "once at %s\n", instant.Both(at, o.Zone))
		return nil
	})
	if err != nil || o.flags.cron == "" {
		return err
	}
	return o.ask(ctx, "in which time zone", o.Zone, func(answer string) error {
		if o.flags.timezone = answer; answer == "" {
			o.flags.timezone = o.Zone
		}
		if _, err := time.LoadLocation(o.flags.timezone); err != nil {
			return fmt.Errorf("%w: write it like Europe/Berlin", err)
		}
		return nil
	})
}

func (o *newOptions) askTarget(ctx context.Context) error {
	err := o.ask(ctx, "what it maintains, such as Deployment/orders", "nothing in particular", func(answer string) error {
		if o.flags.target = answer; answer == "" {
			return nil
		}
		_, err := o.resource(answer)
		return err
	})
	if err != nil || o.flags.target == "" {
		return err
	}
	return o.ask(ctx, "a label that asks for a run when it is put on "+o.flags.target, "none", func(answer string) error {
		if o.flags.labels = nil; answer == "" {
			return nil
		}
		o.flags.labels = []string{answer}
		if len(validation.IsQualifiedName(answer)) > 0 {
			return fmt.Errorf("%q is no name of a label: write it like company.org/upgrade", answer)
		}
		return nil
	})
}

func (o *newOptions) askPolicy(ctx context.Context) error {
	return o.ask(ctx, "a policy that has to permit it", "none", func(answer string) error {
		if o.flags.policies = nil; answer == "" {
			return nil
		}
		o.flags.policies = []string{answer}
		namespace, name, found := strings.Cut(answer, "/")
		if !found {
			namespace, name = "default", answer
		}
		if !document.DNSLabel(namespace) || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("%q is no name of a policy: write [NAMESPACE/]NAME in lower case letters, digits and dashes, like weekends", answer)
		}
		return nil
	})
}

// askSteps asks for steps until there is at least one, and no more are wanted.
func (o *newOptions) askSteps(ctx context.Context) error {
	for {
		done := false
		before := slices.Clone(o.flags.steps)
		otherwise := ""
		if len(before) > 0 {
			otherwise = "no more"
		}
		err := o.ask(ctx, fmt.Sprintf("step %d: its type (? lists them), or NAME=TYPE,key=value,…", len(before)+1), otherwise, func(answer string) error {
			switch {
			case answer == "" && len(before) > 0:
				done = true
				return nil
			case answer == "" || answer == "?":
				return errors.New(strings.Join(typeNames(), ", ") + "; 'kubectl maint explain plan.spec.steps.TYPE' says what each takes")
			}
			text, err := o.stepText(ctx, answer)
			if err != nil {
				return err
			}
			o.flags.steps = append(slices.Clone(before), text)
			if err := o.build(); err != nil {
				o.flags.steps = before
				return o.ofStep(err, len(before))
			}
			return nil
		})
		if err != nil || done {
			return err
		}
	}
}

// ofStep is what is wrong with a step, without the place that it would have in the plan.
func (o *newOptions) ofStep(err error, at int) error {
	text := strings.TrimPrefix(err.Error(), "the plan is not valid, nothing was written\n")
	path := fmt.Sprintf("spec.steps[%d].", at)
	return errors.New(strings.NewReplacer("--step ", "", path+"properties.", "", path+"properties: ", "", path, "").Replace(text))
}

func stepName(kind string, before int) string {
	if before == 0 {
		return kind
	}
	return fmt.Sprintf("%s-%d", kind, before+1)
}

func typeNames() []string {
	var out []string
	for _, t := range plan.StepTypes() {
		out = append(out, t.Name)
	}
	return out
}
