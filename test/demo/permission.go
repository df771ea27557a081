package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// policyName is the policy of examples/weekends.yaml.
const policyName = "weekends"

// permission shows who says when change may start: a policy, and a person who
// freezes and allows for a while.
func (d *demo) permission(ctx context.Context) error {
	d.screen.chapter("When change is permitted: a policy, and people who overrule it for a while")
	file := filepath.Join(d.root, "examples", "weekends.yaml")
	if out, err := d.kubectl(ctx, "apply", "-n", d.shopNS, "-f", file); err != nil {
		return fmt.Errorf("kubectl apply -f examples/weekends.yaml: %w\n%s", err, out)
	}
	d.screen.line("kubectl apply -f examples/weekends.yaml")
	if err := d.say(ctx, "maint", "next", policyName, "--count", "3"); err != nil {
		return err
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"freeze", policyName, "--for", "1h", "--reason", "go-live"}, 3, "false"},
		{[]string{"allow", policyName, "--for", "30m", "--reason", "an urgent fix"}, 0, "true"},
	} {
		if err := d.say(ctx, append([]string{"maint"}, c.args...)...); err != nil {
			return err
		}
		if err := d.permitted(ctx, c.want); err != nil {
			return err
		}
		if err := d.check(ctx, c.code); err != nil {
			return err
		}
	}
	return nil
}

// permitted waits until the agent publishes what the policy says.
func (d *demo) permitted(ctx context.Context, want string) error {
	return until(ctx, 30*time.Second, "the agent publishes what the policy says", func() (bool, string) {
		cm, err := d.kube.CoreV1().ConfigMaps(d.shopNS).Get(ctx, policyName, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		got := cm.Annotations[annotations.StatusPermitted]
		return got == want, fmt.Sprintf("permitted is %q, %s", got, cm.Annotations[annotations.StatusMessage])
	})
}

// check asks as a runbook does: the exit code is the answer.
func (d *demo) check(ctx context.Context, want int) error {
	err := d.say(ctx, "maint", "check", policyName)
	var ended *exec.ExitError
	code := 0
	if errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		return err
	}
	if code != want {
		return fmt.Errorf("kubectl maint check %s ended with %d, not %d", policyName, code, want)
	}
	d.screen.checked(fmt.Sprintf("a runbook hears it: exit code %d", code))
	return nil
}
