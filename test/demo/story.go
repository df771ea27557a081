package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
	"github.com/kubectl-maint/kubectl-maint/test/harness"
)

// asPlanned is the story as everybody hopes for it.
func (d *demo) asPlanned(ctx context.Context) error {
	d.screen.chapter("Maintenance, asked for by a label: announce, mark, scale down, hold")
	heard := len(d.receiver.Deliveries())
	r, err := d.untilHold(ctx, "now")
	if err != nil {
		return err
	}
	if err := d.say(ctx, "maint", "status"); err != nil {
		return err
	}
	d.screen.breathe(ctx)
	d.screen.chapter("The database is upgraded; somebody says go on: unmark, report, and everything as before")
	end, err := d.resume(ctx, r)
	if err != nil {
		return err
	}
	if end.Phase != run.Succeeded {
		return fmt.Errorf("run %s ended %s, not Succeeded: %s", r, end.Phase, end.Message)
	}
	d.screen.checked("the run Succeeded")
	if err := d.asBefore(ctx); err != nil {
		return err
	}
	return d.delivered(heard, `"outcome":"Succeeded"`)
}

// withFailure is the same, but the ticket system refuses the report.
func (d *demo) withFailure(ctx context.Context) error {
	d.screen.chapter("Once more, with a failure: the ticket system answers 400 to /end")
	d.screen.line("the steps cannot end well; what they changed must come back all the same (restoreAfter),")
	d.screen.line("and the ticket system must hear that it is over (finally)")
	d.refuse.Store(true)
	heard := len(d.receiver.Deliveries())
	r, err := d.untilHold(ctx, "once-more")
	if err != nil {
		return err
	}
	end, err := d.resume(ctx, r)
	if err != nil {
		return err
	}
	if end.Phase != run.Failed || end.End == nil || end.End.Step != "report" {
		return fmt.Errorf("run %s ended %s at %v, not Failed at step report: %s", r, end.Phase, end.End, end.Message)
	}
	d.screen.checked("the run Failed at step report; 400 is a no, so it was not sent again")
	if err := d.asBefore(ctx); err != nil {
		return err
	}
	return d.delivered(heard, `"outcome":"Failed"`)
}

// lookBack shows the books: what is, what was, and one run in full.
func (d *demo) lookBack(ctx context.Context) error {
	d.screen.chapter("What everybody can see afterwards")
	runs, err := d.runs(ctx)
	if err != nil {
		return err
	}
	if len(runs) != 2 {
		return fmt.Errorf("there are %d runs, not the two of the story", len(runs))
	}
	for _, args := range [][]string{{"status"}, {"history", planName}, {"describe", d.lastRun}} {
		if err := d.say(ctx, append([]string{"maint"}, args...)...); err != nil {
			return err
		}
	}
	return d.counted(ctx)
}

// untilHold asks for maintenance by the label and waits until the run holds,
// with the application down.
func (d *demo) untilHold(ctx context.Context, value string) (string, error) {
	d.screen.clock()
	if err := d.say(ctx, "label", "deployment", workload, triggerLabel+"="+value); err != nil {
		return "", err
	}
	name := ""
	err := until(ctx, 30*time.Second, "a run holds with the application down", func() (bool, string) {
		cm, err := d.holding(ctx)
		if err != nil {
			return false, err.Error()
		}
		name = cm.Name
		pods, err := d.pods(ctx)
		return err == nil && pods == 0, fmt.Sprintf("%d pods are left, %v", pods, err)
	})
	if err != nil {
		return "", err
	}
	o, err := d.orders(ctx)
	if err != nil {
		return "", err
	}
	if *o.Spec.Replicas != 0 || o.Labels[pausedLabel] != "true" {
		return "", fmt.Errorf("while it holds, deployment/orders has %d replicas and the labels %v; 0 and %s=true were told", *o.Spec.Replicas, o.Labels, pausedLabel)
	}
	d.screen.checked("it holds: marked as paused, no replica wanted, no pod left")
	d.lastRun = name
	return name, nil
}

// holding is the live run that waits at its suspend.
func (d *demo) holding(ctx context.Context) (*corev1.ConfigMap, error) {
	runs, err := d.runs(ctx)
	if err != nil {
		return nil, err
	}
	for _, cm := range runs {
		_, j, err := annotations.ReadRun(&cm)
		if err != nil {
			return nil, err
		}
		for _, r := range j.Steps {
			if r.Type == "suspend" && r.Phase == run.StepRunning && r.ResumeAt != nil {
				return &cm, nil
			}
		}
	}
	return nil, fmt.Errorf("none of %d runs holds", len(runs))
}

// runs are those of the plan.
func (d *demo) runs(ctx context.Context) ([]corev1.ConfigMap, error) {
	list, err := d.kube.CoreV1().ConfigMaps(d.shopNS).List(ctx, metav1.ListOptions{
		LabelSelector: annotations.LabelKind + "=" + annotations.KindRun + "," + annotations.LabelPlan + "=" + planName,
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// resume ends the hold and waits for the end of the run.
func (d *demo) resume(ctx context.Context, r string) (run.Journal, error) {
	d.screen.clock()
	var end run.Journal
	if err := d.say(ctx, "maint", "resume", r); err != nil {
		return end, err
	}
	err := until(ctx, 30*time.Second, "run "+r+" ends", func() (bool, string) {
		cm, err := d.kube.CoreV1().ConfigMaps(d.shopNS).Get(ctx, r, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		if _, end, err = annotations.ReadRun(cm); err != nil {
			return false, err.Error()
		}
		return end.Phase.Ended() && len(cm.Finalizers) == 0, fmt.Sprintf("it is %s %s", end.Phase, end.Message)
	})
	return end, err
}

// delivered checks the webhooks since the first `before` of them: one of each,
// in order, each with a key of its own.
func (d *demo) delivered(before int, outcome string) error {
	got := d.receiver.Deliveries()[before:]
	var paths, keys []string
	for _, g := range got {
		paths, keys = append(paths, g.Path), append(keys, g.Key)
	}
	if !slices.Equal(paths, []string{"/start", "/end", "/over"}) {
		return fmt.Errorf("the webhooks were sent to %v, not once each to /start, /end and /over", paths)
	}
	if slices.Sort(keys); len(slices.Compact(keys)) != len(got) {
		return fmt.Errorf("the webhooks carried the Idempotency-Keys %v, not one each", keys)
	}
	if last := got[len(got)-1]; !strings.Contains(compact(last), outcome) {
		return fmt.Errorf("the last webhook said %s, not %s", last.Body, outcome)
	}
	d.screen.checked("the ticket system heard /start, /end and /over, each once; the last said " + outcome)
	return nil
}

func compact(h harness.Delivery) string { return strings.ReplaceAll(h.Body, " ", "") }

// counted checks the ledger: both runs are in it, and nothing is open.
func (d *demo) counted(ctx context.Context) error {
	cm, err := d.kube.CoreV1().ConfigMaps(d.shopNS).Get(ctx, planName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	object, err := d.kube.CoreV1().ConfigMaps(d.shopNS).Get(ctx, annotations.LedgerName(planName, string(cm.UID)), metav1.GetOptions{})
	if err != nil {
		return err
	}
	ledger, err := annotations.ReadLedger(object, string(cm.UID))
	if err != nil {
		return err
	}
	if len(ledger.Open) != 0 || ledger.Totals[run.Ran] != 2 {
		return fmt.Errorf("the ledger has %d open entries and counts %v; none open and two Ran were told", len(ledger.Open), ledger.Totals)
	}
	d.screen.checked("the ledger has an end for each of the two, and nothing open")
	return nil
}
