package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/completion"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/print"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// request is a request for a node, in flags.
type request struct {
	requestor      string
	text           string // as the annotation holds it
	reason         string
	priority       int
	shared         bool
	noDrain        bool
	force          bool
	deleteEmptyDir bool
	waitForVolumes bool
	podSelector    string
	onTimeout      string
	gracePeriod    string
	drainTimeout   string
	podTimeout     string
}

func (r *request) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.reason, "reason", "", "why; recorded in the request")
	f.IntVar(&r.priority, "priority", 0, fmt.Sprintf("higher comes first, from %d to %d", -nodes.MaxPriority, nodes.MaxPriority))
	f.BoolVar(&r.shared, "shared", false, "share the node with other requests that are shared")
	f.BoolVar(&r.noDrain, "no-drain", false, "only cordon, and evict no pods")
	f.BoolVar(&r.force, "force", false, "also evict pods without a controller, and pods that autoscalers must not evict")
	f.BoolVar(&r.deleteEmptyDir, "delete-emptydir-data", false, "also evict pods with an emptyDir, whose data is lost")
	f.BoolVar(&r.deleteEmptyDir, "delete-empty-dir", false, "the same")
	_ = f.MarkHidden("delete-empty-dir") // the flag exists
	f.StringVar(&r.gracePeriod, "grace-period", "", "time for pods to shut down, in seconds or like 2m; default: each pod's own")
	f.StringVar(&r.podSelector, "pod-selector", "", "evict only pods with these labels; default: all")
	f.StringVar(&r.drainTimeout, "drain-timeout", "", "after this time --on-timeout applies; 0 means no limit; default 5m")
	f.StringVar(&r.onTimeout, "on-timeout", "", "retry continues, skip leaves the pods, force deletes those that may be evicted, abort removes the cordon; default retry")
	_ = cmd.RegisterFlagCompletionFunc("on-timeout", cobra.FixedCompletions([]string{"retry", "skip", "force", "abort"}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a missing flag: it was added above
	f.StringVar(&r.podTimeout, "pod-timeout", "", "the timeout for one pod, from the first refusal of its eviction; default: none")
	f.BoolVar(&r.waitForVolumes, "wait-for-volumes", false, "wait until the volumes of the pods are detached")
}

// flagOf is the flag for a path in a request.
func flagOf(path string) string {
	flags := map[string]string{"drain.timeout": "--drain-timeout", "drain.podTimeout": "--pod-timeout", "drain.gracePeriod": "--grace-period", "drain.podSelector": "--pod-selector", "drain.onTimeout": "--on-timeout", "priority": "--priority"}
	return cmp.Or(flags[path], path)
}

// options are the drain options that differ from the defaults.
func (r *request) options(f *exit.Faults) drain.Options {
	o := drain.Options{Force: r.force, DeleteEmptyDir: r.deleteEmptyDir, WaitForVolumes: r.waitForVolumes, PodSelector: r.podSelector, OnTimeout: drain.OnTimeout(r.onTimeout)}
	if o.OnTimeout == drain.TimeoutRetry {
		o.OnTimeout = ""
	}
	o.Timeout = span("--drain-timeout", r.drainTimeout, f)
	if o.Timeout.Or(drain.DefaultDrainTimeout) == drain.DefaultDrainTimeout {
		o.Timeout = nil
	}
	o.PodTimeout = span("--pod-timeout", r.podTimeout, f)
	grace := r.gracePeriod
	if n, err := strconv.Atoi(grace); err == nil { // as in kubectl: a negative number means each pod's own
		grace = ""
		if n >= 0 {
			grace = strconv.Itoa(n) + "s"
		}
	}
	o.GracePeriod = span("--grace-period", grace, f)
	return o
}

func span(flag, text string, f *exit.Faults) *document.Duration {
	if text == "" {
		return nil
	}
	d, err := document.ParseDuration(text)
	if err != nil {
		f.Add("%s: %v", flag, err)
		return nil
	}
	return &d
}

// value is the request as the annotation holds it: only what differs from the defaults, so that
// people can read it.
func (r *request) value(f *exit.Faults) string {
	body := struct {
		Reason   string `json:"reason,omitempty"`
		Priority int    `json:"priority,omitempty"`
		Shared   bool   `json:"shared,omitempty"`
		Drain    any    `json:"drain,omitempty"`
	}{Reason: r.reason, Priority: r.priority, Shared: r.shared}
	options := r.options(f)
	switch asked := !reflect.ValueOf(options).IsZero(); {
	case r.noDrain && asked:
		f.Add("--no-drain and what says how to drain exclude each other")
	case r.noDrain:
		body.Drain = false
	case asked:
		body.Drain = options
	}
	text, err := json.Marshal(body)
	f.Check(err)
	return string(text)
}

type drainOptions struct {
	*factory.Factory
	factory.DryRun
	factory.Consent
	watch.Waiting
	request  request
	out      *print.Output
	names    []string
	selector string
	plan     bool
	faults   exit.Faults
}

// NewDrain requests nodes.
func NewDrain(c *factory.Factory) *cobra.Command {
	o := &drainOptions{Factory: c, out: print.NewOutput()}
	cmd := &cobra.Command{
		Use:   "drain NODE... | -l SELECTOR",
		Short: "Request nodes, which are drained and kept out until released",
		Long: `Ask the agent for nodes. It cordons and drains them when their turn comes, within
the limits over all maintenance of nodes, and keeps them out until 'release'. Pods
leave as with kubectl drain --ignore-daemonsets.

--plan asks for nothing: it shows with your own rights which pods would leave, which
stay and why, and what stands in the way. Exit code 0 where the drain is possible,
3 where something must change first.

--wait shows the progress until all nodes are ready, and then exits with 0. The exit
code is 1 if a request cannot be read, or if the drain was given up. The request stays
if you interrupt the command.

If one of several nodes cannot be requested, the others are all the same, and the
command does not end with 0.`,
		Example: `  kubectl maint drain worker-1 worker-2 --reason "new disks" --wait
  kubectl maint drain -l pool=gpu --plan
  kubectl maint drain worker-1 --delete-emptydir-data --on-timeout abort --yes`,
		RunE:              factory.RunE(o),
		ValidArgsFunction: completion.Nodes(c, nil),
	}
	o.DryRun.AddMode(cmd)
	o.Consent.AddFlag(cmd)
	o.request.addFlags(cmd)
	o.out.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "labels of the nodes")
	cmd.Flags().StringVar(&o.request.requestor, "requestor", "", "name of the requestor; default cli.<your name>")
	cmd.Flags().BoolVar(&o.plan, "plan", false, "show what would happen, and request nothing")
	o.Waiting.AddFlags(cmd, "the nodes until all are ready")
	return cmd
}

// Complete takes the names, and makes the request.
func (o *drainOptions) Complete(_ *cobra.Command, args []string) error {
	o.names = args
	o.request.text = o.request.value(&o.faults)
	return nil
}

// Validate checks the flags, and the request by the rules of its reader.
func (o *drainOptions) Validate() error {
	checkNodes(o.names, o.selector, &o.faults)
	o.Waiting.Check(&o.faults)
	checkRequestor(o.request.requestor, &o.faults)
	o.out.Check(&o.faults)
	switch {
	case o.plan && o.Wait:
		o.faults.Add("--plan asks for nothing, so there is nothing to --wait for")
	case !o.plan && o.out.Format() == "wide":
		o.faults.Add("-o wide is for --plan")
	case !o.plan:
		o.DryRun.UseOutput(o.out.Format())
	}
	o.DryRun.Check(&o.faults)
	var found document.Faults
	if _, err := nodes.Parse("cli.me", o.request.text); errors.As(err, &found) {
		for _, fault := range found {
			o.faults.Add("%s: %s", flagOf(fault.Path), fault.Message)
		}
	} else {
		o.faults.Check(err)
	}
	return o.faults.Err()
}

// Run requests the nodes, or shows what would happen.
func (o *drainOptions) Run(ctx context.Context) (err error) {
	ctx, done := watch.WithTimeout(ctx, o.Timeout)
	defer done(&err)
	k, err := o.Connect()
	if err != nil {
		return err
	}
	targets, err := k.NodesNamed(ctx, o.names, o.selector)
	if err != nil {
		return err
	}
	if o.plan {
		return o.preview(ctx, k, targets)
	}
	if o.request.requestor, err = k.Requestor(ctx, o.request.requestor); err != nil {
		return err
	}
	if !o.Client() {
		if err := o.NeedAgent(ctx, k, factory.NothingAsked); err != nil {
			return err
		}
	}
	if err := o.confirm(ctx, targets); err != nil {
		return err
	}
	asked, failed := o.write(ctx, k, targets)
	o.sayClosed(ctx, k, asked)
	if !o.Wait || !o.Kept() || len(asked) == 0 || ctx.Err() != nil {
		return failed
	}
	return goOn(o.Factory, len(targets)-len(asked), len(targets), failed, func() error { return o.waitForNodes(ctx, k, asked) })
}

// confirm asks the person about the changes.
func (o *drainOptions) confirm(ctx context.Context, targets []*corev1.Node) error {
	var names []string
	for _, n := range targets {
		if !o.alreadyAsked(n) {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 || !o.Kept() {
		return nil
	}
	verb := "drain"
	if o.request.noDrain {
		verb = "cordon"
	}
	return o.Confirm(ctx, o.Consent, fmt.Sprintf("%s %s for %s", verb, view.NodeWords(names), o.request.requestor))
}

// alreadyAsked says whether the same request is there already.
func (o *drainOptions) alreadyAsked(n *corev1.Node) bool {
	have, stands := annotations.Requests(n.Annotations)[o.request.requestor]
	return stands && sameRequest(o.request.requestor, have, o.request.text)
}

// sameRequest says whether two values mean the same.
func sameRequest(requestor, a, b string) bool {
	one, err := nodes.Parse(requestor, a)
	if err != nil {
		return false
	}
	other, err := nodes.Parse(requestor, b)
	one.Identity, other.Identity = "", ""
	return err == nil && reflect.DeepEqual(one, other)
}

// write writes the request on each node, and reports what it found there. It returns the nodes that have
// the request now.
func (o *drainOptions) write(ctx context.Context, k *factory.Cluster, targets []*corev1.Node) (asked []*corev1.Node, failed error) {
	failed = each(ctx, o.Factory, targets, func(n *corev1.Node) error {
		words, err := o.ask(ctx, k, n)
		if err != nil {
			return err
		}
		asked = append(asked, n)
		return o.Report(o.IOStreams, o.Wait && o.Kept(), "node/%s %s", n.Name, words)
	})
	return asked, failed
}

// ask writes the request on a node, and says what it found there.
func (o *drainOptions) ask(ctx context.Context, k *factory.Cluster, n *corev1.Node) (words string, err error) {
	_, err = k.AnnotateNode(ctx, n, &o.DryRun, func(n *corev1.Node) (factory.Change, error) {
		have, stands := annotations.Requests(n.Annotations)[o.request.requestor]
		switch {
		case o.alreadyAsked(n):
			words = "unchanged: " + o.request.requestor + " asks for it already" + o.givenUp(n)
			return nil, nil
		case stands:
			words = fmt.Sprintf("requested for %s, instead of %s%s", o.request.requestor, document.Cut(have, 200), o.Mark())
		default:
			words = "requested for " + o.request.requestor + o.Mark()
		}
		return factory.Change{annotations.RequestPrefix + o.request.requestor: factory.Value(o.request.text)}, nil
	})
	return words, err
}

// givenUp says that the agent does not retry an unchanged request.
func (o *drainOptions) givenUp(n *corev1.Node) string {
	a := view.AskedBy(annotations.Node(n), o.request.requestor)
	if a == nil || !view.GivenUp(*a) {
		return ""
	}
	return fmt.Sprintf(", and it was given up: %s (%s, then ask again)", view.RequestReason(*a), releases(o.Suggest(), n.Name, o.request.requestor))
}

// waitForNodes shows the nodes until all are ready.
func (o *drainOptions) waitForNodes(ctx context.Context, k *factory.Cluster, targets []*corev1.Node) error {
	w := newNodeWait(o.Factory, k, o.request.requestor, targets)
	w.settled, w.asked.expected = w.drained, o.request.text
	w.asked.left = fmt.Sprintf("the request of %s stays; %s takes it back", o.request.requestor, releases(o.Suggest(), strings.Join(w.asked.names, " "), o.request.requestor))
	return w.run(ctx)
}

// releases is the command that takes back a request; it names a requestor that is not a person's
// default.
func releases(c remedy.Commands, nodes, requestor string) string {
	if strings.HasPrefix(requestor, view.CLIRequestor) {
		return c.Release(nodes)
	}
	return c.ReleaseFor(nodes, requestor)
}

func namesOf(list []*corev1.Node) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.Name
	}
	slices.Sort(out)
	return out
}
