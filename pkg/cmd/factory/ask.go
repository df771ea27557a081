package factory

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// Consent is the --yes of commands that end or stop something.
type Consent struct{ yes bool }

// AddFlag adds --yes.
func (y *Consent) AddFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&y.yes, "yes", "y", false, "do not ask")
}

// Confirm asks the person at the terminal. Without one, and without --yes, it
// refuses: a script that stops things says so.
func (c *Factory) Confirm(ctx context.Context, y Consent, question string) error {
	if y.yes {
		return nil
	}
	if !c.InTerminal {
		return exit.Errorf(exit.CodeUsage, "%s: give --yes, since nobody can be asked here", question)
	}
	fmt.Fprintf(c.ErrOut, "%s? [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(c.In).ReadString('\n') // the end of input is no yes
		answer <- text
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(c.ErrOut)
		return exit.Errorf(exit.CodeInterrupted, "interrupted: nothing was done")
	case text := <-answer:
		if a := strings.ToLower(strings.TrimSpace(text)); a == "y" || a == "yes" {
			return nil
		}
	}
	return exit.Errorf(exit.CodeError, "nothing was done")
}
