package factory

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// Consent is the flag --yes of commands that end or stop something.
type Consent struct{ yes bool }

// AddFlag adds --yes.
func (y *Consent) AddFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&y.yes, "yes", "y", false, "do not ask")
}

// Confirm asks at the terminal. Without a terminal it requires --yes, so that scripts are explicit.
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
		text, _ := bufio.NewReader(c.In).ReadString('\n') // the end of input is not a yes
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
