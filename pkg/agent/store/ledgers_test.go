package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const planUID = "plan-uid"

func pk() types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: "nightly"} }

func ledgerName() string { return annotations.LedgerName("nightly", planUID) }

// ledgers are those of one agent, in a cluster where the plan's ledger knows a token.
func ledgers(t *testing.T) (*agenttest.Cluster, *Ledgers) {
	t.Helper()
	c := agenttest.New(t)
	cm, err := annotations.LedgerObject("shop", "nightly", ledger.Ledger{PlanUID: planUID}.WithToken("first"))
	if err != nil {
		t.Fatal(err)
	}
	c.Put(agenttest.Signed(t, cm))
	conn, _ := c.Connect()
	return c, NewLedgers(conn.Kube, agenttest.Keys(), func(types.NamespacedName, error) {})
}

// stored is the ledger as it stands in the cluster.
func stored(t *testing.T, c *agenttest.Cluster) ledger.Ledger {
	t.Helper()
	led, err := annotations.ReadLedger(c.ConfigMap("shop", ledgerName()), planUID)
	if err != nil {
		t.Fatal(err)
	}
	return led
}

// somebodyAdds has another agent write a token.
func somebodyAdds(t *testing.T, c *agenttest.Cluster, token string) {
	t.Helper()
	cm, err := annotations.WithLedger(c.ConfigMap("shop", ledgerName()), stored(t, c).WithToken(token))
	if err != nil {
		t.Fatal(err)
	}
	c.Put(agenttest.Signed(t, cm))
}

func onLedger(verb string) agenttest.When {
	return agenttest.When{Verb: verb, Resource: "configmaps", Name: ledgerName()}
}

func token(text string) func(ledger.Ledger) ledger.Ledger {
	return func(l ledger.Ledger) ledger.Ledger { return l.WithToken(text) }
}

func TestALedgerIsChangedInOnePiece(t *testing.T) {
	for name, c := range map[string]struct {
		given func(c *agenttest.Cluster)
		want  string // the tokens in the end
		fails error
		any   bool
	}{
		"nobody else writes": {want: "first mine"},
		"somebody wrote since it was read": {
			given: func(c *agenttest.Cluster) {
				c.Before(onLedger("update"), func() { somebodyAdds(t, c, "theirs") })
			}, want: "first theirs mine",
		},
		"somebody writes all the time": {
			given: func(c *agenttest.Cluster) {
				for _, one := range []string{"a", "b", "c"} {
					c.Before(onLedger("update"), func() { somebodyAdds(t, c, one) })
				}
			}, want: "first a b c", fails: queue.ErrConflict,
		},
		"the API server is away": {given: func(c *agenttest.Cluster) { c.Fail(onLedger("update"), 1) }, want: "first", any: true},
		"it is refused":          {given: func(c *agenttest.Cluster) { c.Refuse(onLedger("update"), 1, 403, "quota") }, want: "first", any: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, l := ledgers(t)
			if _, err := l.Get(t.Context(), pk(), planUID); err != nil {
				t.Fatal(err)
			}
			if c.given != nil {
				c.given(cluster)
			}
			err := l.Edit(t.Context(), pk(), planUID, token("mine"))
			if c.fails != nil && !errors.Is(err, c.fails) || c.fails == nil && (err != nil) != c.any {
				t.Errorf("it said %v", err)
			}
			if got := strings.Join(stored(t, cluster).Tokens, " "); got != c.want {
				t.Errorf("it knows %q, want %q", got, c.want)
			}
			if got, err := l.Get(t.Context(), pk(), planUID); err != nil || strings.Join(got.Tokens, " ") != c.want {
				t.Errorf("in memory it knows %+v, %v", got, err)
			}
		})
	}
}

// A write whose reply is lost is found by reading, and not made twice.
func TestALedgerWhoseReplyWasLostIsReadAgain(t *testing.T) {
	cluster, l := ledgers(t)
	cluster.LoseReply(onLedger("update"), 1)
	if err := l.Edit(t.Context(), pk(), planUID, token("mine")); err == nil {
		t.Fatal("a lost reply is no success")
	}
	if led, err := l.Get(t.Context(), pk(), planUID); err != nil || !led.KnowsToken("mine") {
		t.Errorf("it is %+v, %v", led, err)
	}
}

func TestALedgerIsReadOnceUntilItIsDoubted(t *testing.T) {
	cluster, l := ledgers(t)
	get := func() *ledger.Ledger {
		t.Helper()
		led, err := l.Get(t.Context(), pk(), planUID)
		if err != nil {
			t.Fatal(err)
		}
		return led
	}
	get()
	somebodyAdds(t, cluster, "theirs")
	if get().KnowsToken("theirs") || cluster.Asked(onLedger("get")) != 1 {
		t.Errorf("read %d times", cluster.Asked(onLedger("get")))
	}
	l.Invalidate(pk(), planUID)
	if !get().KnowsToken("theirs") {
		t.Error("a doubted one was believed")
	}
	somebodyAdds(t, cluster, "more")
	l.Forget()
	if !get().KnowsToken("more") {
		t.Error("a new leader believed what it held")
	}
	l.Invalidate(pk(), "another")
}

func TestADecisionIsWrittenOnlyOnTheLedgerThatItWasMadeOn(t *testing.T) {
	for name, c := range map[string]struct {
		given func(t *testing.T, c *agenttest.Cluster, l *Ledgers)
		uid   string
		none  bool // it was made where there was no ledger
		fails error
		any   bool
	}{
		"it stands as it was": {},
		"it moved on in memory": {given: func(t *testing.T, _ *agenttest.Cluster, l *Ledgers) {
			if err := l.Edit(t.Context(), pk(), planUID, token("run")); err != nil {
				t.Fatal(err)
			}
		}, fails: queue.ErrConflict},
		"it moved on in the cluster":     {given: func(t *testing.T, c *agenttest.Cluster, _ *Ledgers) { somebodyAdds(t, c, "theirs") }, fails: queue.ErrConflict},
		"there was none, and now is one": {none: true, fails: queue.ErrConflict},
		"there was one, and now is none": {given: func(_ *testing.T, c *agenttest.Cluster, _ *Ledgers) {
			c.DeleteAtOnce("configmaps", "shop", ledgerName())
		}, fails: queue.ErrConflict},
		"there is none yet": {uid: "another-uid", none: true},
		"somebody makes the first meanwhile": {uid: "another-uid", none: true, given: func(_ *testing.T, c *agenttest.Cluster, _ *Ledgers) {
			name := annotations.LedgerName("nightly", "another-uid")
			c.Before(agenttest.When{Verb: "create"}, func() { c.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}) })
		}, fails: queue.ErrConflict},
		"an object of its name is not ours": {uid: "another-uid", none: true, given: func(_ *testing.T, c *agenttest.Cluster, _ *Ledgers) {
			c.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: annotations.LedgerName("nightly", "another-uid")}})
		}, fails: annotations.ErrForeign},
		"it cannot be read": {uid: "another-uid", none: true, given: func(_ *testing.T, c *agenttest.Cluster, _ *Ledgers) {
			c.Refuse(agenttest.When{Verb: "get"}, 1, 403, "no")
		}, any: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, l := ledgers(t)
			uid := planUID
			if c.uid != "" {
				uid = c.uid
			}
			var was *ledger.Ledger
			if !c.none {
				var err error
				if was, err = l.Get(t.Context(), pk(), uid); err != nil {
					t.Fatal(err)
				}
			}
			if c.given != nil {
				c.given(t, cluster, l)
			}
			next := ledger.Ledger{PlanUID: uid}
			if was != nil {
				next = *was
			}
			err := l.Put(t.Context(), pk(), uid, was, next.WithToken("decided"))
			if c.fails != nil && !errors.Is(err, c.fails) || c.fails == nil && (err != nil) != c.any {
				t.Fatalf("it said %v, want %v", err, c.fails)
			}
			if err != nil {
				return
			}
			if led, err := l.Get(t.Context(), pk(), uid); err != nil || !led.KnowsToken("decided") {
				t.Errorf("it is %+v, %v", led, err)
			}
		})
	}
}

func TestEntriesThatAreManyGoToTheArchiveFirst(t *testing.T) {
	cluster, l := ledgers(t)
	end := func(i int) func(ledger.Ledger) ledger.Ledger {
		return func(led ledger.Ledger) ledger.Ledger {
			at := time.Unix(int64(i)*3600, 0).UTC()
			reason := run.ReasonBusy
			if i%2 == 0 { // those that are alike fold
				reason = run.ReasonPaused
			}
			return led.End(run.Request{Kind: run.BySchedule, Slot: &at, At: at}, run.Skipped, reason, ledger.Cause{}, at)
		}
	}
	archive := annotations.ArchiveName("nightly", planUID)
	n := 2*ledger.MaxRecent + 5
	for i := range n {
		if i == ledger.MaxRecent { // it is full, and the archive cannot be written
			cluster.Refuse(agenttest.When{Verb: "create", Resource: "configmaps"}, 1, 403, "quota")
			if err := l.Edit(t.Context(), pk(), planUID, end(i)); err == nil || !strings.Contains(err.Error(), "archive entries of plan shop/nightly") {
				t.Fatalf("it said %v", err)
			}
		}
		if err := l.Edit(t.Context(), pk(), planUID, end(i)); err != nil {
			t.Fatal(i, err)
		}
	}
	cm := cluster.ConfigMap("shop", archive)
	if cm == nil {
		t.Fatal("there is no archive")
	}
	old, err := annotations.ReadLedger(cm, planUID)
	if err != nil {
		t.Fatal(err)
	}
	led := stored(t, cluster)
	if len(old.Recent)+len(led.Recent) != n || led.Totals[run.Skipped] != int64(n) {
		t.Errorf("%d entries in the archive and %d beside the head, of %d", len(old.Recent), len(led.Recent), led.Totals[run.Skipped])
	}
}

func TestTheMarksOfAPlanStandInShards(t *testing.T) {
	cluster, l := ledgers(t)
	started := func(led ledger.Ledger) ledger.Ledger { return led.WithStarted("rule") }
	if err := l.Edit(t.Context(), pk(), planUID, started); err != nil {
		t.Fatal(err)
	}
	led, err := l.Get(t.Context(), pk(), planUID)
	if err != nil {
		t.Fatal(err)
	}
	seen := []ledger.ObjectCheckpoint{{Rule: "rule", UID: "u1", Checkpoint: ledger.Checkpoint{Digest: "d1", Name: "one"}}, {Rule: "gone", UID: "u2"}}
	if err := l.MergeCheckpoints(t.Context(), pk(), planUID, led, led.Kept, seen, nil); err != nil || led.Shards != 1 {
		t.Fatalf("%d shards, %v", led.Shards, err)
	}
	if err := l.Edit(t.Context(), pk(), planUID, func(was ledger.Ledger) ledger.Ledger { was.Shards = led.Shards; return was }); err != nil {
		t.Fatal(err)
	}
	if marks, lost, err := l.Checkpoints(t.Context(), pk(), planUID, *led); err != nil || lost || marks["rule"]["u1"].Digest != "d1" || len(marks) != 1 {
		t.Errorf("it knows %v, lost %t, %v", marks, lost, err)
	}
	name := annotations.ShardName("nightly", planUID, 0)
	cluster.Before(agenttest.When{Verb: "update", Name: name}, func() { cluster.Annotate("shop", name, "a", "b") })
	more := []ledger.ObjectCheckpoint{{Rule: "rule", UID: "u1", Checkpoint: ledger.Checkpoint{Digest: "d2"}}}
	if err := l.MergeCheckpoints(t.Context(), pk(), planUID, led, led.Kept, more, nil); !errors.Is(err, queue.ErrConflict) {
		t.Errorf("a conflict said %v", err)
	}
	cluster.DeleteAtOnce("configmaps", "shop", name)
	if err := l.MergeCheckpoints(t.Context(), pk(), planUID, led, led.Kept, more, nil); !errors.Is(err, queue.ErrConflict) {
		t.Errorf("a shard that is gone said %v", err)
	}
	if _, lost, err := l.Checkpoints(t.Context(), pk(), planUID, *led); err != nil || !lost {
		t.Errorf("lost: %t, %v", lost, err)
	}
	if led := stored(t, cluster); led.Shards != 0 || len(led.Rules) != 0 {
		t.Errorf("it does not begin anew: %+v", led)
	}
}

// A shard that the ledger does not count is of an agent that died before it could tell.
func TestAShardThatNobodyCountsIsWrittenOver(t *testing.T) {
	cluster, l := ledgers(t)
	left, err := annotations.ShardObject("shop", "nightly", planUID, 0, ledger.Shard{})
	if err != nil {
		t.Fatal(err)
	}
	cluster.Put(left)
	led := ledger.Ledger{PlanUID: planUID}.WithStarted("rule")
	if err := l.MergeCheckpoints(t.Context(), pk(), planUID, &led, led.Kept, []ledger.ObjectCheckpoint{{Rule: "rule", UID: "u1", Checkpoint: ledger.Checkpoint{Digest: "d"}}}, nil); err != nil || led.Shards != 1 {
		t.Fatalf("%d shards, %v", led.Shards, err)
	}
	if marks, _, err := l.Checkpoints(t.Context(), pk(), planUID, led); err != nil || marks["rule"]["u1"].Digest != "d" {
		t.Errorf("it knows %v, %v", marks, err)
	}
}

func TestTheTurnsOfNodes(t *testing.T) {
	at := time.Unix(1000, 0).UTC()
	turns := func(name string) run.NodeTurns {
		return run.Journal{Steps: []run.Record{{Type: "for-each-node", ItemKind: "Node", Items: []run.Item{{Name: name, Phase: run.StepSucceeded, At: &at}}}}}.Turns(at)
	}
	if len(turns("n1")) != 1 {
		t.Fatalf("a rollout gives %v", turns("n1"))
	}
	none := func(run.NodeTurns) map[string]bool { return nil }
	object := annotations.NodeTurnsName("nightly", planUID)
	for name, c := range map[string]struct {
		given func(c *agenttest.Cluster)
		gone  map[string]bool
		want  int
		fails error
	}{
		"are added to those that are known": {want: 2},
		"are forgotten with their node":     {gone: map[string]bool{"n1": true}, want: 1},
		"are read again after a conflict": {given: func(c *agenttest.Cluster) {
			c.Before(agenttest.When{Verb: "update", Name: object}, func() { c.Annotate("shop", object, "a", "b") })
		}, want: 1, fails: queue.ErrConflict},
		"are not written over what is not ours": {given: func(c *agenttest.Cluster) {
			c.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: object}})
		}, fails: annotations.ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, l := ledgers(t)
			if have, err := l.NodeTurns(t.Context(), pk(), planUID); err != nil || len(have) != 0 {
				t.Fatalf("a plan without rollouts has %v, %v", have, err)
			}
			if err := l.NoteTurns(t.Context(), pk(), planUID, turns("n1"), none); err != nil {
				t.Fatal(err)
			}
			if c.given != nil {
				c.given(cluster)
			}
			err := l.NoteTurns(t.Context(), pk(), planUID, turns("n2"), func(run.NodeTurns) map[string]bool { return c.gone })
			if !errors.Is(err, c.fails) {
				t.Errorf("it said %v", err)
			}
			if have, err := l.NodeTurns(context.Background(), pk(), planUID); err != nil || len(have) != c.want {
				t.Errorf("it knows %v, %v", have, err)
			}
		})
	}
}

// Somebody who may write ConfigMaps in the namespace wrote a ledger.
func TestALedgerThatTheAgentDidNotSignCountsAsLost(t *testing.T) {
	forge := func(c *agenttest.Cluster) {
		cm, err := annotations.WithLedger(c.ConfigMap("shop", ledgerName()), stored(t, c).WithToken("forged"))
		if err != nil {
			t.Fatal(err)
		}
		cm.Finalizers = []string{"example.org/stays"}
		c.Put(cm)
	}
	for name, c := range map[string]struct {
		act  func(t *testing.T, l *Ledgers) error
		want string // the tokens of what the agent signed; none: it wrote nothing
	}{
		"it is read as none": {act: func(t *testing.T, l *Ledgers) error {
			led, err := l.Get(t.Context(), pk(), planUID)
			if lost, err := l.Lost(t.Context(), pk(), planUID); led != nil || !lost || err != nil {
				t.Errorf("it reads %+v, lost: %t, %v", led, lost, err)
			}
			return err
		}},
		"a change of it changes nothing": {act: func(t *testing.T, l *Ledgers) error { return l.Edit(t.Context(), pk(), planUID, token("mine")) }},
		"it is made anew in its place": {act: func(t *testing.T, l *Ledgers) error {
			err := l.Put(t.Context(), pk(), planUID, nil, ledger.Ledger{PlanUID: planUID}.WithToken("anew"))
			if lost, err := l.Lost(t.Context(), pk(), planUID); lost || err != nil {
				t.Error("it is still lost")
			}
			return err
		}, want: "anew"},
		"what was decided on it is not written": {act: func(t *testing.T, l *Ledgers) error {
			err := l.Put(t.Context(), pk(), planUID, &ledger.Ledger{PlanUID: planUID}, ledger.Ledger{PlanUID: planUID})
			if !errors.Is(err, queue.ErrConflict) {
				t.Errorf("it said %v", err)
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, l := ledgers(t)
			told := 0
			l.forged = func(types.NamespacedName, error) { told++ }
			forge(cluster)
			if err := c.act(t, l); err != nil {
				t.Fatal(err)
			}
			cm := cluster.ConfigMap("shop", ledgerName())
			if signed := agenttest.Keys().Check(cm) == nil; signed != (c.want != "") {
				t.Errorf("signed: %t", signed)
			}
			if got := strings.Join(stored(t, cluster).Tokens, " "); c.want != "" && (got != c.want || len(cm.Finalizers) > 0) {
				t.Errorf("it knows %q, with finalizers %q", got, cm.Finalizers)
			}
			if told == 0 {
				t.Error("nobody was told")
			}
		})
	}
}

// Who made a ledger anew in place of one that is gone says so; a plan's first takes nobody's place.
func TestALedgerThatIsGoneIsTold(t *testing.T) {
	for what, begun := range map[string]*time.Time{"the first": nil, "anew": new(time.Unix(1, 0))} {
		conn, _ := agenttest.New(t).Connect()
		var told []error
		l := NewLedgers(conn.Kube, agenttest.Keys(), func(_ types.NamespacedName, why error) { told = append(told, why) })
		if err := l.Put(t.Context(), pk(), planUID, nil, ledger.Ledger{PlanUID: planUID, BegunAnew: begun}); err != nil {
			t.Fatal(err)
		}
		if begun == nil && len(told) > 0 || begun != nil && (len(told) != 1 || !errors.Is(told[0], ledger.ErrGone)) {
			t.Errorf("%s: told %v", what, told)
		}
	}
}

// A backup is signed as it was; what the agent itself wrote since stays done.
func TestALedgerThatIsPutBackFromABackupIsToldAndTakesNothingBack(t *testing.T) {
	cluster, l := ledgers(t)
	backup := cluster.ConfigMap("shop", ledgerName())
	if err := l.Edit(t.Context(), pk(), planUID, func(l ledger.Ledger) ledger.Ledger {
		l.Watermark = time.Unix(1000, 0).UTC()
		return l.WithToken("second")
	}); err != nil {
		t.Fatal(err)
	}
	var told []error
	l.forged = func(_ types.NamespacedName, why error) { told = append(told, why) }
	backup.ResourceVersion = ""
	cluster.Put(backup)
	l.Invalidate(pk(), planUID)
	for range 2 { // once is enough
		led, err := l.Get(t.Context(), pk(), planUID)
		if err != nil || !led.Watermark.Equal(time.Unix(1000, 0)) || !led.KnowsToken("second") {
			t.Errorf("it reads %+v, %v", led, err)
		}
		l.Invalidate(pk(), planUID)
	}
	if got := stored(t, cluster); !got.Watermark.Equal(time.Unix(1000, 0)) || !got.KnowsToken("second") {
		t.Errorf("there stands %+v", got)
	}
	if len(told) != 1 || !errors.Is(told[0], ledger.ErrOlder) {
		t.Errorf("told %v", told)
	}
}

// Somebody writes it while the agent holds it in memory.
func TestALedgerThatIsForgedMeanwhileIsNotBelieved(t *testing.T) {
	cluster, l := ledgers(t)
	was, err := l.Get(t.Context(), pk(), planUID)
	if err != nil {
		t.Fatal(err)
	}
	cm, err := annotations.WithLedger(cluster.ConfigMap("shop", ledgerName()), stored(t, cluster).WithToken("forged"))
	if err != nil {
		t.Fatal(err)
	}
	cluster.Put(cm)
	if err := l.Put(t.Context(), pk(), planUID, was, was.WithToken("mine")); !errors.Is(err, queue.ErrConflict) {
		t.Errorf("it said %v", err)
	}
	if led, err := l.Get(t.Context(), pk(), planUID); err != nil || led != nil {
		t.Errorf("it reads %+v, %v", led, err)
	}
}

func TestPartsOfALedgerThatTheAgentDidNotSign(t *testing.T) {
	marks := []ledger.ObjectCheckpoint{{Rule: "rule", UID: "u1", Checkpoint: ledger.Checkpoint{Digest: "d"}}}
	t.Run("marks begin anew", func(t *testing.T) {
		cluster, l := ledgers(t)
		led := ledger.Ledger{PlanUID: planUID}.WithStarted("rule")
		if err := l.MergeCheckpoints(t.Context(), pk(), planUID, &led, led.Kept, marks, nil); err != nil {
			t.Fatal(err)
		}
		forged := cluster.ConfigMap("shop", annotations.ShardName("nightly", planUID, 0))
		forged.Data[annotations.DataSeen] += " "
		cluster.Put(forged)
		if known, anew, err := l.Checkpoints(t.Context(), pk(), planUID, led); err != nil || !anew || known != nil {
			t.Errorf("it knows %v, anew: %t, %v", known, anew, err)
		}
	})
	t.Run("the archive begins anew", func(t *testing.T) {
		cluster, l := ledgers(t)
		old, err := annotations.ArchiveObject("shop", "nightly", planUID, []ledger.Entry{{Run: "forged"}})
		if err != nil {
			t.Fatal(err)
		}
		cluster.Put(old)
		if err := l.archive(t.Context(), pk(), planUID, []ledger.Entry{{Run: "mine"}}); err != nil {
			t.Fatal(err)
		}
		cm := cluster.ConfigMap("shop", annotations.ArchiveName("nightly", planUID))
		led, err := annotations.ReadLedger(cm, planUID)
		if err != nil || len(led.Recent) != 1 || led.Recent[0].Run != "mine" || agenttest.Keys().Check(cm) != nil {
			t.Errorf("it holds %+v, %v", led.Recent, err)
		}
	})
	t.Run("turns of nodes begin anew", func(t *testing.T) {
		cluster, l := ledgers(t)
		at := time.Now().Unix()
		forged, err := annotations.NodeTurnsObject("shop", "nightly", planUID, run.NodeTurns{"n1": {Last: at}})
		if err != nil {
			t.Fatal(err)
		}
		cluster.Put(forged)
		if turns, err := l.NodeTurns(t.Context(), pk(), planUID); err != nil || len(turns) > 0 {
			t.Errorf("it knows %v, %v", turns, err)
		}
		if err := l.NoteTurns(t.Context(), pk(), planUID, run.NodeTurns{"n2": {Last: at}}, func(run.NodeTurns) map[string]bool { return nil }); err != nil {
			t.Fatal(err)
		}
		if turns, err := l.NodeTurns(t.Context(), pk(), planUID); err != nil || len(turns) != 1 {
			t.Errorf("it knows %v, %v", turns, err)
		}
	})
}
