package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// demo is everything that the story takes place on.
type demo struct {
	options
	screen *screen
	root   string // of the repository
	dir    string // for kubeconfigs, removed at the end

	own   *cluster.Cluster // nil on somebody's cluster
	admin *rest.Config
	kube  kubernetes.Interface

	kubeconfig string // of the person who watches
	agentNS    string
	shopNS     string
	suffix     string // of what has no namespace, on somebody's cluster
	touched    bool   // something was created that has to go again
	lastRun    string

	cloud         *cloud    // of the story of a night
	sleeps, wakes time.Time // of its plan

	agent    *harness.Process
	receiver *harness.Receiver
	refuse   atomic.Bool // the receiver answers 400 to /end
	stopped  context.CancelFunc
}

func newDemo(o options, s *screen) (*demo, error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	d := &demo{options: o, screen: s, root: root, agentNS: annotations.DefaultNamespace, shopNS: "shop"}
	if o.story == "night" {
		d.shopNS = "staging"
	}
	if o.cluster == "existing" {
		// One namespace for both: whatever else runs there is not looked at.
		d.suffix = "-" + rand.String(5)
		d.agentNS = "maint-demo" + d.suffix
		d.shopNS = d.agentNS
	}
	for _, name := range []string{"agent", "kubectl-maint", "kubectl"} {
		if _, err := os.Stat(filepath.Join(root, "bin", name)); err != nil {
			return nil, fmt.Errorf("no %s in bin/: run `make demo`, which builds what is missing", name)
		}
	}
	d.dir, err = os.MkdirTemp("", "maint-demo-")
	return d, err
}

// stayOpen leaves everything up until Ctrl-C, and says how to use it.
func (d *demo) stayOpen(ctx context.Context) {
	namespace := ""
	if d.own == nil {
		namespace = " -n " + d.shopNS
	}
	d.screen.chapter("It stays up until Ctrl-C; what arrives and changes is shown here")
	d.screen.print(fmt.Sprintf(`
   In another terminal:

     export KUBECONFIG=%[1]s PATH=%[2]s:$PATH
     kubectl maint status%[3]s -w
     kubectl label deployment orders%[3]s maintenance.company.org/database-upgrade=again
     kubectl maint resume RUN%[3]s                    # RUN as status shows it
     kubectl maint trigger orders-weekly%[3]s --reason "because I can"
     kubectl maint abort RUN%[3]s                     # what was changed comes back
     kubectl maint skip orders-weekly%[3]s --next 1   # the next Saturday off
     kubectl maint history orders-weekly%[3]s
`, d.kubeconfig, filepath.Join(d.root, "bin"), namespace))
	d.refuse.Store(false)
	d.screen.clock()
	<-ctx.Done()
	d.screen.line("")
}

// explain shows what a person would look at first when something is not as told.
func (d *demo) explain(ctx context.Context) {
	if d.agent == nil || ctx.Err() != nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(d.agent.Log()), "\n")
	d.screen.line("")
	d.screen.line("the agent's last words:")
	for _, line := range lines[max(0, len(lines)-15):] {
		d.screen.line("  %s", line)
	}
}

// cleanUp takes away what the demo brought. It does so after Ctrl-C as well,
// and therefore has a time of its own.
func (d *demo) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	d.screen.chapter("Cleaning up")
	var errs []error
	if d.stopped != nil {
		d.stopped()
	}
	if d.own == nil && d.touched {
		d.screen.line("deleting namespace %s and what was installed for it", d.agentNS)
		errs = append(errs, d.remove(ctx))
	}
	if d.agent != nil {
		errs = append(errs, d.agent.Stop())
	}
	if d.receiver != nil {
		d.receiver.Close()
	}
	if d.cloud != nil {
		d.cloud.server.Stop()
	}
	if d.own != nil {
		d.screen.line("stopping the cluster")
		errs = append(errs, d.own.Stop())
	}
	errs = append(errs, os.RemoveAll(d.dir))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	d.screen.line("done: nothing is left behind")
	return nil
}
