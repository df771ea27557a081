package setup

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

type versionOptions struct {
	*factory.Factory
	client bool
	format string
	faults exit.Faults
}

// NewVersion prints versions.
func NewVersion(c *factory.Factory) *cobra.Command {
	o := &versionOptions{Factory: c}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Versions of the plugin, the agent and the zone data",
		Args:  cobra.NoArgs,
		RunE:  factory.RunE(o),
	}
	cmd.Flags().BoolVar(&o.client, "client", false, "of the plugin alone; no cluster is asked")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "json, or nothing for text")
	return cmd
}

// Complete has nothing to look up.
func (o *versionOptions) Complete(*cobra.Command, []string) error { return nil }

// Validate checks the flags.
func (o *versionOptions) Validate() error {
	if o.format != "" && o.format != "json" {
		o.faults.Add("-o must be json, is %q", o.format)
	}
	return o.faults.Err()
}

// versions is what -o json prints.
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
	if !o.client {
		v.Agent, missing, unknown = o.askAgent(ctx)
	}
	if o.format == "json" {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintln(o.Out, string(b))
		return unknown
	}
	fmt.Fprintf(o.Out, "client:    %s\nzone data: %s\n", v.Client, v.ZoneData)
	if v.Agent != nil {
		fmt.Fprintf(o.Out, "agent:     %s in namespace %s, seen %s ago\n", v.Agent.Version, v.Agent.Namespace, instant.Roughly(o.Now().Sub(v.Agent.Heartbeat)))
	}
	if missing != "" {
		fmt.Fprintf(o.Out, "agent:     none: %s\n", missing)
	}
	return unknown
}

// askAgent finds the agent, or says why there is none at work.
func (o *versionOptions) askAgent(ctx context.Context) (state *factory.AgentState, missing string, err error) {
	k, err := o.Connect()
	if err != nil {
		return nil, "", err
	}
	found, err := o.Agent(ctx, k)
	if err != nil {
		return nil, "", factory.Explain("ask for the agent", err)
	}
	if found.Missing != "" {
		return nil, found.Missing, nil
	}
	return &found, "", nil
}
