package setup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
)

// completionHelper is an executable named kubectl_complete-maint on the PATH, which kubectl runs to
// complete a plugin's command line.
const completionHelper = `#!/usr/bin/env sh
# Save as kubectl_complete-maint in a folder of your PATH and make it executable.
exec kubectl maint __complete "$@"
`

// NewCompletion prints completion scripts.
func NewCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell", "kubectl"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print completion scripts for shells",
		Long: `Print completion scripts for shells: a script for a shell, or with "kubectl" the
helper that kubectl looks for when it completes 'kubectl maint'.`,
		Example: `  kubectl maint completion kubectl > ~/.local/bin/kubectl_complete-maint
  chmod +x ~/.local/bin/kubectl_complete-maint`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return exit.Errorf(exit.CodeUsage, "name one of %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			_, err := fmt.Fprint(out, completionHelper)
			return err
		},
	}
}
