package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// crowd is how many plans are watched at once.
const crowd = 2000

// A screen is redrawn where it changed, and a pipe gets a line for each change, however many plans there are.
func TestStatusOfThousandsOfPlansIsWatched(t *testing.T) {
	l := newLabFor(t, 10*time.Minute) // three quarters of a minute alone; a guess for a busy machine
	l.runner()
	l.crowd()
	screen := l.sits(80, 24, "status", "-w")
	screen.Sees("PLAN", "many-0000", "q quit")
	l.still("the screen", screen.Drawn)
	lines, stop := l.follows("status", "-w")
	l.eventually("all plans go through a pipe", func() (bool, string) { return lines() >= crowd, fmt.Sprint(lines(), " lines") })
	l.still("what goes through a pipe", lines)
	if n := lines(); n > crowd+10 {
		t.Errorf("%d lines before anything changed", n)
	}
	for _, name := range []string{"many-0000", fmt.Sprintf("many-%04d", crowd-1)} {
		bytesBefore, linesBefore := screen.Drawn(), lines()
		l.annotate(name, map[string]string{annotations.Pause: "true"})
		screen.Sees(name + "  is paused")
		l.eventually("a line says that "+name+" is paused", func() (bool, string) { return lines() > linesBefore, "no line" })
		l.still("the screen", screen.Drawn)
		l.still("what goes through a pipe", lines)
		if n := screen.Drawn() - bytesBefore; n > 64<<10 { // some twenty screens of 80 by 24, with their colours
			t.Errorf("one change of %s drew %d bytes", name, n)
		}
		if n := lines() - linesBefore; n > 10 {
			t.Errorf("one change of %s wrote %d lines", name, n)
		}
	}
	stop()
	screen.Types("q")
	screen.Ends(0)
}

// crowd makes plans, and waits until the agent has looked at all of them.
func (l *lab) crowd() {
	l.Helper()
	var all sync.WaitGroup
	errs := make(chan error, crowd)
	turns := make(chan struct{}, 16)
	for i := range crowd {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			cm := annotations.NewPlan(l.ns, fmt.Sprintf("many-%04d", i), "apiVersion: maint.dev/v1alpha1\nkind: Plan\nspec: {steps: [{name: hold, type: suspend}]}\n", "")
			_, err := l.admin.CoreV1().ConfigMaps(l.ns).Create(l.ctx, cm, metav1.CreateOptions{})
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		l.must(err)
	}
	eventuallyWithin(l.T, l.ctx, 3*time.Minute, "the agent looks at all plans", func() (bool, string) {
		list, err := l.admin.CoreV1().ConfigMaps(l.ns).List(l.ctx, metav1.ListOptions{LabelSelector: annotations.LabelKind + "=" + annotations.KindPlan, ResourceVersion: "0"})
		l.must(err)
		seen := 0
		for _, cm := range list.Items {
			if cm.Annotations[annotations.StatusObserved] != "" {
				seen++
			}
		}
		return seen == crowd, fmt.Sprintf("%d of %d", seen, crowd)
	})
}

// still waits until a count has not changed for two seconds.
func (l *lab) still(what string, count func() int) {
	l.Helper()
	last, since := -1, time.Now()
	l.eventually(what+" comes to rest", func() (bool, string) {
		if now := count(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second, fmt.Sprint(last)
	})
}

// follows runs a command whose output goes through a pipe, and counts its lines.
func (l *lab) follows(args ...string) (lines func() int, stop func()) {
	l.Helper()
	ctx, cancel := context.WithCancel(l.ctx)
	out := &counter{}
	cmd := exec.CommandContext(ctx, world.plugin, append([]string{"--kubeconfig", world.config, "-n", l.ns}, args...)...)
	cmd.Stdout = out
	l.must(cmd.Start())
	stop = sync.OnceFunc(func() {
		cancel()
		_ = cmd.Wait() // it is killed
	})
	l.Cleanup(stop)
	return out.lines, stop
}

// counter counts the lines that are written to it.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += bytes.Count(p, []byte{'\n'})
	return len(p), nil
}

func (c *counter) lines() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
