package node

import (
	"context"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/follow"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// attachments are the volumes that are attached to nodes. They cannot be selected by node, so all
// are watched, once for all drains, and only while one waits for volumes.
type attachments struct {
	stop   context.CancelFunc
	synced bool
	err    error
	on     map[string]attached // by name of the VolumeAttachment
}

type attached struct{ name, node, volume string }

func attachedBy(a *storagev1.VolumeAttachment) attached {
	at := attached{name: a.Name, node: a.Spec.NodeName}
	if a.Spec.Source.PersistentVolumeName != nil {
		at.volume = *a.Spec.Source.PersistentVolumeName
	}
	return at
}

func (d *Drainer) watchVolumes() {
	if d.volumes != nil {
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	v := &attachments{stop: cancel, on: map[string]attached{}}
	d.volumes = v
	change := func(f func()) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		f()
		for _, s := range d.sessions {
			if s.order.Options.WaitForVolumes {
				s.wake()
			}
		}
	}
	heard := func(err error) { change(func() { v.err = err }) }
	set := func(a attached) { change(func() { v.on[a.name] = a }) }
	gone := func(a attached) { change(func() { delete(v.on, a.name) }) }
	replace := func(all []attached) {
		change(func() {
			v.on = map[string]attached{}
			for _, a := range all {
				v.on[a.name] = a
			}
			v.synced = true
		})
	}
	key := func(a attached) string { return a.name + a.node + a.volume }
	kept := follow.Kept[*storagev1.VolumeAttachment, attached]{Turn: attachedBy, Key: key, Set: set, Gone: gone, Replaced: replace}
	go follow.Keep(ctx, d.config.Elsewhere, allAttachments(d.config.Reads, heard), kept)
}

// noteVolumes remembers the volumes of a pod that is leaving.
func (s *session) noteVolumes(ctx context.Context, kube kube.Interface, p drain.Pod) error {
	for _, name := range p.Claims {
		claim, err := kube.CoreV1().PersistentVolumeClaims(p.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look up the volume of claim %s: %w", name, err)
		}
		if volume := claim.Spec.VolumeName; volume != "" {
			s.alive(func() { s.pending[volume] = p.String() })
		}
	}
	return nil
}

// awaitVolumes delays the end of a drain while volumes of evicted pods are attached, until its time
// is over.
func (s *session) awaitVolumes(dec *drain.Decision, now time.Time) {
	if !s.order.Options.WaitForVolumes || len(s.pending) == 0 {
		return
	}
	why := ""
	switch v := s.d.volumes; {
	case v == nil || !v.synced && v.err == nil:
		why = "the attached volumes are not known yet"
	case !v.synced:
		why = "the attached volumes cannot be read: " + document.Cut(v.err.Error(), 200)
	default:
		for _, a := range v.on {
			if pod, ours := s.pending[a.volume]; ours && a.node == s.order.Node {
				why = fmt.Sprintf("volume %s of pod %s is still attached", a.volume, pod)
			}
		}
	}
	deadline, limited := drain.Deadline(s.order.Options, s.order.Since)
	over := limited && !now.Before(deadline)
	onTimeout := s.order.Options.OnTimeout
	switch {
	case why == "":
		return
	case over && (onTimeout == drain.TimeoutSkip || onTimeout == drain.TimeoutForce):
		dec.Left = append(dec.Left, drain.RemainingPod{Pod: drain.Volumes, Why: why})
		return
	case over && onTimeout == drain.TimeoutAbort:
		dec.Done, dec.Aborted = false, true
		return
	}
	dec.Done, dec.Moving, dec.Late = false, true, over
	dec.Pods = append(dec.Pods, drain.Progress{Pod: drain.Volumes, State: drain.Waiting, Why: why})
	if limited && !over {
		dec.Wake = deadline
	}
}
