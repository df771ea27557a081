package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/test/cluster"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// commandPairs is how often a command and kubectl's are timed, in turn.
const commandPairs = 15

// population is a namespace of plans at which commands look.
type population struct {
	name    string
	plans   int
	targets bool // each plan has one
	ours    []string
	beside  []string // kubectl's; nil: there is none
}

func populations() []population {
	status, maps := []string{"status"}, []string{"get", "configmaps"}
	return []population{
		{"few", 10, false, status, maps},
		{"targets", 200, true, status, maps},
		{"many", 10000, false, status, maps},
		{"completion", 5000, false, []string{"__complete", "trigger", ""}, nil},
	}
}

// commands times whole processes of the plugin and of kubectl, in pairs.
func (b *bench) commands(ctx context.Context, out io.Writer) (err error) {
	if b.plugin == "" {
		return errors.New("there is no kubectl-maint beside the agent")
	}
	kubectl, err := cluster.Asset("kubectl")
	if err != nil {
		return err
	}
	if err = b.open(ctx, clusterOptions()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	b.printHead(out, "commands beside kubectl's")
	config, err := b.cluster.KubeconfigFile("commands", b.cluster.AdminConfig())
	if err != nil {
		return err
	}
	a, err := b.startAgent(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.Stop() }()
	for _, c := range populations() {
		if err := b.makePopulation(ctx, c); err != nil {
			return err
		}
		where := []string{"--kubeconfig", config, "-n", c.name}
		programs := []program{{"ours", b.plugin, slices.Insert(slices.Clone(c.ours), 1, where...)}} // what is completed stands last
		if c.beside != nil {
			programs = append(programs, program{"kubectl", kubectl, slices.Insert(slices.Clone(c.beside), 1, where...)})
		}
		samples, err := inPairs(ctx, programs)
		if err != nil {
			return err
		}
		table(out, fmt.Sprintf("%v, %d plans", c.ours, c.plans), samples, []figure{
			{"ours", "ms", "whole process; the best is the first of the span"},
			{"ours-cpu", "ms", "… CPU time"},
			{"kubectl", "ms", fmt.Sprint("kubectl ", c.beside)},
			{"kubectl-cpu", "ms", "… CPU time"},
			{"ratio", "", "of a pair"},
		})
	}
	return nil
}

// program is a command line that is timed.
type program struct {
	key, path string
	args      []string
}

// inPairs times programs in turn, each first as often as the other.
func inPairs(ctx context.Context, programs []program) ([]sample, error) {
	var out []sample
	for range commandPairs {
		s := sample{}
		for _, p := range programs {
			wall, cpu, err := p.timed(ctx)
			if err != nil {
				return nil, err
			}
			s[p.key], s[p.key+"-cpu"] = wall, cpu
		}
		if len(programs) > 1 {
			s["ratio"] = s["ours"] / s["kubectl"]
		}
		out = append(out, s)
		slices.Reverse(programs)
	}
	return out, nil
}

// timed runs a program, and says how many milliseconds it took and used.
func (p program) timed(ctx context.Context) (wall, cpu float64, err error) {
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%s %v: %w", p.path, p.args, err)
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return ms(time.Since(begun)), ms(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()), nil
}

// makePopulation makes a namespace with its plans, and waits until the agent has looked at all of them
// and the cluster is at rest.
func (b *bench) makePopulation(ctx context.Context, c population) error {
	b.say("commands: making %d plans", c.plans)
	if _, err := b.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := harness.Runner(ctx, b.admin, c.name, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "patch"}}); err != nil {
		return err
	}
	maps := b.admin.CoreV1().ConfigMaps(c.name)
	err := each(ctx, c.plans, func(ctx context.Context, i int) error {
		text := "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {triggers: {schedules: [{cron: \"0 2 1 1 *\"}]}, steps: [{name: hold, type: suspend, properties: {duration: 5m}}]}\n"
		if c.targets {
			text = idleText(i)
			if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: targetName(i)}}, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		_, err := maps.Create(ctx, annotations.NewPlan(c.name, planName(i), text, ""), metav1.CreateOptions{})
		return err
	})
	for err == nil {
		list, failed := maps.List(ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindPlan, ResourceVersion: "0"})
		if failed != nil {
			return failed
		}
		if !slices.ContainsFunc(list.Items, func(cm corev1.ConfigMap) bool { return cm.Annotations[annotations.StatusObserved] == "" }) && len(list.Items) == c.plans {
			return atRest(ctx)
		}
		err = until(ctx, time.Now().Add(2*time.Second))
	}
	return err
}

// atRest waits until what we started has used less than a twentieth of one CPU for two seconds, for at most two
// minutes.
func atRest(ctx context.Context) error {
	const look = 2 * time.Second
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		before := cpu()
		if err := until(ctx, time.Now().Add(look)); err != nil {
			return err
		}
		if cpu()-before < look.Seconds()/20 {
			return nil
		}
	}
	return errors.New("the cluster does not come to rest in two minutes")
}
