package setup

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

type versionOptions struct {
	*factory.Factory
	client bool
	out    *print.Values
	faults exit.Faults
}

// NewVersion prints versions.
func NewVersion(c *factory.Factory) *cobra.Command {
	o := &versionOptions{Factory: c, out: print.NewValues()}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Versions of the plugin, the agent and the zone data",
		Args:  factory.NoNames,
		RunE:  factory.RunE(o),
	}
	cmd.Flags().BoolVar(&o.client, "client", false, "only the version of the plugin; no cluster is asked")
	o.out.AddFlags(cmd)
	return cmd
}

// Complete has nothing to look up.
func (o *versionOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate checks the flags.
func (o *versionOptions) Validate() error {
	o.out.Check(&o.faults)
	return o.faults.Err()
}

// versions is what -o prints.
type versions struct {
	Client   string              `json:"client"`
	ZoneData string              `json:"zoneData"`
	Agent    *factory.AgentState `json:"agent,omitempty"` // nil: not asked, not known, or none
	Invalid  string              `json:"invalidConfiguration,omitempty"`
}

// installation is what is known of the agents of a cluster.
type installation struct {
	agent   *factory.AgentState // nil: none is running
	missing string              // why
	others  []string            // namespaces of other agents
	invalid string              // why the configuration is invalid
}

// Run prints the versions that are known, before any error. A missing agent is an answer; a cluster
// that cannot be asked is an error.
func (o *versionOptions) Run(ctx context.Context) error {
	v := versions{Client: o.Version, ZoneData: schedule.ZoneVersion()}
	var unknown error
	var found installation
	if !o.client {
		found, unknown = o.askAgent(ctx)
		v.Agent, v.Invalid = found.agent, found.invalid
	}
	if !o.out.Lines() {
		if err := o.out.Print(o.Out, print.Value{Kind: "Versions", Name: v.Client, Body: v}); err != nil {
			return err
		}
		return unknown
	}
	fmt.Fprintf(o.Out, "client:    %s\nzone data: %s\n", v.Client, v.ZoneData)
	if v.Agent != nil {
		fmt.Fprintf(o.Out, "agent:     %s in namespace %s, seen %s ago\n", v.Agent.VersionText(), v.Agent.Namespace, instant.Approximate(o.Now().Sub(v.Agent.Heartbeat)))
	}
	if found.missing != "" {
		none := "none: "
		if v.Agent != nil {
			none = ""
		}
		fmt.Fprintf(o.Out, "agent:     %s%s\n", none, found.missing)
	}
	if found.invalid != "" {
		fmt.Fprintf(o.Out, "agent:     %s\n", found.invalid)
	}
	for _, namespace := range found.others {
		fmt.Fprintf(o.Out, "agent:     another one is installed in namespace %s; there can be one in a cluster\n", namespace)
	}
	return unknown
}

// askAgent finds the agent, or says why none is running, and what else is wrong with it.
func (o *versionOptions) askAgent(ctx context.Context) (installation, error) {
	k, err := o.Connect()
	if err != nil {
		return installation{}, err
	}
	found, err := o.Agent(ctx, k)
	if err != nil {
		return installation{}, k.Explain("ask for the agent", err)
	}
	out := installation{missing: found.Missing, others: k.OtherAgents(ctx, found.Namespace), invalid: cmp.Or(k.InvalidConfiguration(ctx, found.Namespace), found.Unconfigured)}
	if found.Missing == "" || found.Elsewhere {
		out.agent = &found
	}
	return out, nil
}
