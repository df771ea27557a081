package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// watch tells what changes on the cluster, as it changes, until ctx ends. It
// looks at the objects themselves and takes nobody's word for it.
func (d *demo) watch(ctx context.Context) error {
	things := informers.NewSharedInformerFactoryWithOptions(d.kube, 0, informers.WithNamespace(d.shopNS))
	runs := informers.NewSharedInformerFactoryWithOptions(d.kube, 0, informers.WithNamespace(d.shopNS), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = annotations.LabelKind + "=" + annotations.KindRun
	}))
	informed := map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		things.Apps().V1().Deployments().Informer(): {UpdateFunc: func(was, is any) { d.sawDeployment(was.(*appsv1.Deployment), is.(*appsv1.Deployment)) }},
		runs.Core().V1().ConfigMaps().Informer(): {
			AddFunc:    func(is any) { d.sawRun(nil, is.(*corev1.ConfigMap)) },
			UpdateFunc: func(was, is any) { d.sawRun(was.(*corev1.ConfigMap), is.(*corev1.ConfigMap)) },
		},
	}
	for informer, handlers := range informed {
		if _, err := informer.AddEventHandler(handlers); err != nil {
			return err
		}
		go informer.Run(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return errors.New("the watches did not begin")
		}
	}
	return nil
}

func (d *demo) sawDeployment(was, is *appsv1.Deployment) {
	for _, key := range []string{triggerLabel, pausedLabel} {
		before, had := was.Labels[key]
		after, has := is.Labels[key]
		switch {
		case has && (!had || before != after):
			d.screen.saw(workload, "label %s=%s", key, after)
		case had && !has:
			d.screen.saw(workload, "label %s is gone", key)
		}
	}
	if *was.Spec.Replicas != *is.Spec.Replicas {
		d.screen.saw(workload, "replicas %d → %d", *was.Spec.Replicas, *is.Spec.Replicas)
	}
	if was.Status.ReadyReplicas != is.Status.ReadyReplicas {
		d.screen.saw(workload, "%s", podsWord(is))
	}
}

// sawRun tells the journal's news: what began, what ended, what was put back.
func (d *demo) sawRun(was, is *corev1.ConfigMap) {
	_, now, err := annotations.ReadRun(is)
	if err != nil {
		return
	}
	before := run.Journal{}
	if was != nil {
		if _, before, err = annotations.ReadRun(was); err != nil {
			return
		}
	} else if now.Phase.Ended() {
		return // history, from before we looked
	}
	known := map[string]run.Record{}
	for _, r := range before.Steps {
		known[r.Path] = r
	}
	for _, r := range now.Steps {
		d.sawStep(known[r.Path], r)
	}
	if now.Phase != before.Phase && now.Phase != run.Pending {
		text := string(now.Phase)
		if now.Message != "" {
			text += ": " + now.Message
		}
		d.screen.saw("run", "%s", text)
	}
}

func (d *demo) sawStep(was, is run.Record) {
	switch {
	case is.Restored != was.Restored:
		d.screen.saw("step", "restoreAfter of %s: %s", is.Path, restoredWords()[is.Restored])
	case is.Phase == was.Phase || is.Phase == run.StepPending:
	case is.Phase == run.StepRunning:
		d.screen.saw("step", "%s begins", is.Path)
	case is.Phase == run.StepFailed:
		d.screen.saw("step", "%s: %s", d.screen.paint(red, is.Path+" failed"), is.Message)
	default:
		d.screen.saw("step", "%s %s", is.Path, phaseWord(is.Phase))
	}
}

func phaseWord(p run.StepPhase) string {
	if p == run.StepSucceeded {
		return "done"
	}
	return fmt.Sprintf("is %s", p)
}

func restoredWords() map[string]string {
	return map[string]string{
		run.RestoreDone: "as it was before", run.RestoreChanged: "left alone, somebody changed it meanwhile",
		run.RestoreGone: "there is nothing left to put back into", run.RestoreFailed: "failed",
	}
}

func podsWord(o *appsv1.Deployment) string {
	if o.Status.ReadyReplicas == 0 && *o.Spec.Replicas == 0 {
		return "no pod is Ready, and none is wanted"
	}
	return fmt.Sprintf("%d of %d pods Ready", o.Status.ReadyReplicas, *o.Spec.Replicas)
}
