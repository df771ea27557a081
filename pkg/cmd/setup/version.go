package setup

import (
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
	Agent    *factory.AgentState `json:"agent,omitempty"` // nil: not asked, not known, or there is none
}

// Run prints the versions. What can be said is said first. That there is no agent is an
// answer; that nobody could be asked is an error.
func (o *versionOptions) Run(ctx context.Context) error {
	v := versions{Client: o.Version, ZoneData: schedule.ZoneVersion()}
	var unknown error
	missing := ""
	var others []string
	if !o.client {
		v.Agent, missing, others, unknown = o.askAgent(ctx)
	}
	if !o.out.Lines() {
		if err := o.out.Print(o.Out, print.Value{Kind: "Versions", Name: v.Client, Body: v}); err != nil {
			return err
		}
		return unknown
	}
	fmt.Fprintf(o.Out, "client:    %s\nzone data: %s\n", v.Client, v.ZoneData)
	if v.Agent != nil {
		fmt.Fprintf(o.Out, "agent:     %s in namespace %s, seen %s ago\n", v.Agent.Called(), v.Agent.Namespace, instant.Approximate(o.Now().Sub(v.Agent.Heartbeat)))
	}
	if missing != "" {
		fmt.Fprintf(o.Out, "agent:     none: %s\n", missing)
	}
	for _, namespace := range others {
		fmt.Fprintf(o.Out, "agent:     another one is installed in namespace %s; there can be one in a cluster\n", namespace)
	}
	return unknown
}

// askAgent finds the agent, or says why there is none at work, and where there are others.
func (o *versionOptions) askAgent(ctx context.Context) (state *factory.AgentState, missing string, others []string, err error) {
	k, err := o.Connect()
	if err != nil {
		return nil, "", nil, err
	}
	found, err := o.Agent(ctx, k)
	if err != nil {
		return nil, "", nil, factory.Explain("ask for the agent", err)
	}
	if found.Missing != "" {
		return nil, found.Missing, k.OtherAgents(ctx, found.Namespace), nil
	}
	return &found, "", k.OtherAgents(ctx, found.Namespace), nil
}
