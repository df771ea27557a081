package admission_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

const quickText = `apiVersion: maint.dev/v1alpha1
kind: Plan
spec:
  successfulRunsHistoryLimit: 100
  steps:
  - {name: note, type: annotate, properties: {object: {apiVersion: v1, kind: ConfigMap, name: app}, operation: add, annotations: {example.org/by: "${run.name}"}}}
`

// Who triggered a run is known once the policy that refuses false actors has stood for a
// minute before the agent's eyes, with the one that leaves records to the agent, and no more
// when either is gone.
func TestWhoAskedIsVerifiedWhereFalseActorsAreRefused(t *testing.T) {
	w := newTown(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	w.ctx = ctx
	w.Cleanup(func() {
		if err := world.switchOn(context.WithoutCancel(ctx)); err != nil {
			w.Fatal(err)
		}
	})
	maps := world.as(editor()).CoreV1().ConfigMaps(w.ns)
	_, err := maps.Create(w.ctx, plain("app"), metav1.CreateOptions{})
	w.must(err)
	_, err = maps.Create(w.ctx, annotations.NewPlan(w.ns, "orders", quickText, ""), metav1.CreateOptions{})
	w.must(err)

	w.until("an agent leads", func() error {
		beat, err := world.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(w.ctx, annotations.HeartbeatName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if at, err := time.Parse(time.RFC3339, beat.Data["heartbeat"]); err != nil || time.Since(at) > 10*time.Second {
			return fmt.Errorf("the last one was heard of at %q", beat.Data["heartbeat"]) // another test's
		}
		return nil
	})
	began := time.Now()
	if w.triggers() {
		t.Errorf("whoever asked in the agent's first moments is verified, after %s", time.Since(began))
	}
	verified := false
	for !verified {
		select {
		case <-ctx.Done():
			t.Fatalf("nobody is verified after %s", time.Since(began))
		case <-time.After(5 * time.Second): // each is a run
			verified = w.triggers()
		}
	}
	if took := time.Since(began); took < 50*time.Second {
		t.Errorf("verified after %s, want it after a minute", took)
	}
	if !w.triggers() {
		t.Error("the next one is not")
	}
	w.must(world.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(w.ctx, annotations.RecordsPolicyName, metav1.DeleteOptions{}))
	w.until("the agent knows that anybody may write what it records", func() error {
		beat, err := world.admin.CoreV1().ConfigMaps(annotations.DefaultNamespace).Get(w.ctx, annotations.HeartbeatName, metav1.GetOptions{})
		if err == nil && beat.Data[annotations.HeartbeatActors] != annotations.ActorsUnverified {
			err = fmt.Errorf("of actors it says %q", beat.Data[annotations.HeartbeatActors])
		}
		return err
	})
	if w.triggers() {
		t.Error("who asked is verified, though anybody may write what is recorded of it")
	}
	w.must(world.switchOff(w.ctx))
	w.until("the agent knows that anybody may be named", func() error {
		if w.triggers() {
			return errors.New("who asked is verified")
		}
		return nil
	})
}

// triggers has the editor ask for a run, waits until it has ended, and returns whether the
// agent knows that the editor asked.
func (w *town) triggers() bool {
	w.Helper()
	before := w.runs()
	w.does(editor(), "trigger", "orders", "--reason", "again")
	name := w.new(before)
	w.until(name+" ends", func() error {
		if phase := w.runs()[name].Phase; !phase.Ended() {
			return errors.New(string(phase))
		}
		return nil
	})
	asked := w.request(name)
	if asked.Actor != "eddy" {
		w.Errorf("the run was asked for by %q", asked.Actor)
	}
	return asked.Verified
}
