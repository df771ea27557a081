package agent_test

import (
	"os/exec"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// sits begins a command line at a terminal of a size.
func (l *lab) sits(columns, rows int, args ...string) *cmdtest.Person {
	l.Helper()
	return cmdtest.AtTerminal(l.T, exec.CommandContext(l.ctx, world.plugin, append([]string{"--kubeconfig", world.config, "-n", l.ns}, args...)...), columns, rows)
}

func TestStatusIsWatchedAtATerminal(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("holds", holding)
	l.seen("holds")
	l.trigger("holds", "1")
	name := l.running("holds", "hold").run.Name

	p := l.sits(80, 24, "status", "-w")
	p.Sees(">   holds", "run "+name+" is suspended", "▶ hold", "suspend", "Running", "PLAN", "q quit")
	p.TakesTheScreen()
	p.Types("/no such thing")
	p.Sees("/no such thing")
	p.Sees("!suspend")
	p.Types("\x1b")
	p.Sees("▶ hold")
	p.Types("\r")
	p.Sees("Plan:", "holds in namespace", "esc back", "▶ hold")
	p.Types("s")
	p.Reads("skip holds --next 1'? [y/N]")
	p.Types("n")
	p.Sees("nothing was done")
	p.Types("r")
	p.Reads("resume run/" + name + "'? [y/N]") // what waits is the run
	p.Types("n")
	p.Sees("nothing was done")
	p.Resizes(20, 8)
	p.Sees("Plan:")
	p.Resizes(120, 30)
	p.Sees("Plan:", "r resume")
	p.Types("\x1b")
	p.Sees(">   holds", "PLAN")
	p.Types("q")
	p.Ends(0, "is suspended", "PLAN")

	p = l.sits(80, 24, "status", name, "-w")
	p.Sees("▶ hold")
	p.Types("r")
	p.Reads("resume run/" + name + "'? [y/N]")
	p.Types("y")
	p.Sees("run/"+name+" resumed", "Succeeded")
	p.Types("\x03")
	p.Ends(130)
	if r := l.ended("holds", 1)[0]; r.journal.Phase != run.Succeeded {
		t.Errorf("%s: %s", r.journal.Phase, r.journal.Message)
	}
}

func TestARunIsWaitedForAtATerminal(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("rests", "steps: [{name: rest, type: suspend}]\n")
	l.plan("holds", holding)
	l.seen("rests")
	l.seen("holds")

	p := l.sits(80, 24, "trigger", "rests", "--wait")
	p.Sees("▶ rest", "Running")
	p.TakesTheScreen()
	name := l.runs("rests")[0].run.Name
	l.expect(l.maint("resume", name), 0, "resumed")
	p.Ends(0, name, "Succeeded after", "✓ rest")

	p = l.sits(80, 24, "trigger", "holds", "--wait")
	p.Sees("▶ hold")
	p.Types("q")
	p.Ends(130)
	l.expect(said{err: p.Stderr.String()}, 0, "run "+l.runs("holds")[0].run.Name+" goes on without you")
	p.IsBack("▶ hold")
}

func TestARunIsApprovedByAKey(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("asks", "requiresApproval: true\nsteps: [{name: rest, type: suspend, properties: {duration: 1s}}]\n")
	l.seen("asks")
	p := l.sits(80, 24, "trigger", "asks", "--wait")
	p.Sees("waits for approval")
	name := l.runs("asks")[0].run.Name
	p.Types("a")
	p.Reads("approve " + name + "'? [y/N]")
	p.Types("x")
	p.Sees("nothing was done")
	if r := l.runs("asks")[0]; r.journal.Approved != nil || r.journal.Phase != run.Pending {
		t.Fatalf("a no approved it: %+v", r.journal)
	}
	p.Types("ay")
	p.Ends(0, "Succeeded after", "✓ rest")
	l.expect(said{err: p.Stderr.String()}, 0, " approve "+name+": run/"+name+" approved")
}

func TestAnApprovedRunIsWaitedForAtATerminal(t *testing.T) {
	l := newLab(t)
	l.runner()
	l.plan("asks", "requiresApproval: true\nsteps: [{name: rest, type: suspend}]\n")
	l.seen("asks")
	l.trigger("asks", "1")
	l.eventually("the run asks", func() (bool, string) {
		runs := l.runs("asks")
		return len(runs) == 1 && runs[0].journal.Phase == run.Pending, describeRuns(runs)
	})
	p := l.sits(80, 24, "approve", "asks", "--wait")
	p.Sees("▶ rest", "Running")
	p.TakesTheScreen()
	name := l.runs("asks")[0].run.Name
	l.expect(l.maint("resume", name), 0, "resumed")
	p.Ends(0, name, "Succeeded after", "✓ rest")
}
