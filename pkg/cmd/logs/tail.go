package logs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/watch"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// drainWithin is how long the end of a log is awaited after its job has ended (a guess: a kubelet
// sends the rest at once).
const drainWithin = 10 * time.Second

// logWriter prints the output of several sources, each below its own heading, or for scripts. It
// keeps the first error: nobody reads on.
type logWriter struct {
	mu      sync.Mutex
	out     io.Writer
	entries *entries // nil: for people
	last    string
	err     error
}

func (t *logWriter) say(rec run.Record, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	write := t.lines
	if t.entries != nil {
		write = t.entries.say
	}
	if err := write(t.out, rec, text); err != nil && t.err == nil {
		t.err = err
	}
}

// lines prints a text below the heading of its step.
func (t *logWriter) lines(out io.Writer, rec run.Record, text string) error {
	var b strings.Builder
	head := logHead(rec)
	if head != t.last {
		if t.last != "" {
			b.WriteString("\n")
		}
		b.WriteString(head + "\n")
		t.last = head
	}
	if text != "" {
		b.WriteString(text + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// finish prints what is printed only at the end.
func (t *logWriter) finish() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil || t.err != nil {
		return t.err
	}
	return t.entries.finish(t.out)
}

// warn prints a warning beside the output.
func (t *logWriter) warn(to io.Writer, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(to, "warning: %v\n", err)
}

// startedJob is the record of a job step whose Job exists.
type startedJob struct {
	Job string `json:"job"`
	UID string `json:"uid"`
}

// jobAtWork is the Job of a running job step.
func jobAtWork(rec run.Record) (startedJob, bool) {
	var job startedJob
	if rec.Type != "job" || rec.Phase != run.StepRunning || len(rec.Before) == 0 || json.Unmarshal(rec.Before, &job) != nil {
		return job, false
	}
	return job, job.UID != ""
}

// tail is the log of one Job's pods.
type tail struct {
	attempt  int
	looking  context.CancelFunc // ends the watch for more pods
	reading  context.CancelFunc // ends the reading of logs
	done     chan struct{}
	streamed bool // something was printed; valid once done is closed
}

// tail prints the log of a running job: with -f until its end, else what there is.
func (t *logPrinter) tail(ctx context.Context, r view.Run, rec run.Record, job startedJob) {
	t.endTail(rec) // of an earlier attempt
	reading, stop := context.WithCancel(ctx)
	looking, ignore := context.WithCancel(reading)
	one := &tail{attempt: rec.Attempt, looking: ignore, reading: stop, done: make(chan struct{})}
	t.tails[rec.Path] = one
	p := &podLogs{logPrinter: t, namespace: r.Run.Namespace, job: job, rec: rec}
	go func() {
		defer close(one.done)
		p.read(looking, reading)
		one.streamed = p.shown.Load()
	}()
	if t.follow {
		return
	}
	<-one.done
	if !t.endTail(rec) {
		t.out.say(rec, t.told(rec.Message))
	}
}

// endTail waits for the rest of the log of an ended job, and says whether anything was printed for
// that attempt.
func (t *logPrinter) endTail(rec run.Record) bool {
	r := t.tails[rec.Path]
	if r == nil {
		return false
	}
	delete(t.tails, rec.Path)
	r.looking()
	select {
	case <-r.done:
	case <-time.After(drainWithin):
	}
	r.reading()
	<-r.done
	return r.streamed && r.attempt == rec.Attempt
}

// drain ends the reading of logs.
func (t *logPrinter) drain() {
	for path := range t.tails {
		t.endTail(run.Record{Path: path})
	}
}

// podLogs reads the logs of a Job's pods.
type podLogs struct {
	*logPrinter
	namespace string
	job       startedJob
	rec       run.Record
	shown     atomic.Bool
}

// read prints the log of each container that has started, until looking ends and open logs are
// read.
func (p *podLogs) read(looking, reading context.Context) {
	pods, err := p.pods(looking)
	if err != nil {
		p.note(looking, p.k.Explain("read the pods of Job/"+p.job.Job, err))
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	seen := map[string]bool{}
	for {
		for _, pod := range pods.Pods("") {
			for _, container := range spoke(pod) {
				if key := string(pod.UID) + "/" + container; !seen[key] {
					seen[key] = true
					all.Go(func() { p.stream(reading, pod.Name, container) })
				}
			}
		}
		if !p.follow {
			return
		}
		select {
		case <-looking.Done():
			return
		case <-pods.Changed:
		}
	}
}

// pods is a live picture of a Job's pods.
func (p *podLogs) pods(ctx context.Context) (*watch.Cache, error) {
	return watch.Pods(ctx, p.k, p.namespace, batchv1.ControllerUidLabel+"="+p.job.UID)
}

// spoke are the containers of a pod that have a log: those that have started.
func spoke(pod *corev1.Pod) []string {
	var out []string
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Running != nil || s.State.Terminated != nil {
			out = append(out, s.Name)
		}
	}
	return out
}

// stream prints the log of a container line by line; a very long line is split.
func (p *podLogs) stream(ctx context.Context, pod, container string) {
	body, err := p.k.Kube.CoreV1().Pods(p.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: p.follow}).Stream(ctx)
	if err != nil {
		p.note(ctx, p.k.Explain("read the log of pod "+pod, err))
		return
	}
	defer body.Close()
	lines := bufio.NewReaderSize(body, 64<<10)
	for {
		line, _, err := lines.ReadLine()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			p.note(ctx, fmt.Errorf("read the log of pod %s: %w", pod, err))
			return
		}
		p.out.say(p.rec, string(line))
		p.shown.Store(true)
	}
}

// note prints why a log cannot be shown, unless the reader is gone. The end of a job's log is kept
// in the run, where no right on pods is needed.
func (p *podLogs) note(ctx context.Context, err error) {
	if ctx.Err() == nil {
		p.out.warn(p.env.ErrOut, err)
	}
}
