package keys_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

const home = annotations.DefaultNamespace

// world is a cluster and the key of one agent in it.
type world struct {
	*testing.T
	cluster *agenttest.Cluster
	changes atomic.Int64
}

func inWorld(t *testing.T, story func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, cluster: agenttest.New(t)}
		w.cluster.Put(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		)
		story(w)
	})
}

// agent is a process that has just begun.
func (w *world) agent() *keys.Store { return w.agentOf(home, "") }

// agentOf is one that stands in a namespace, and watches one; empty: all.
func (w *world) agentOf(namespace, watches string) *keys.Store {
	conn, _ := w.cluster.Connect()
	return keys.New(keys.Config{
		Kube: conn.Kube, Meta: conn.Meta, Namespace: namespace, WatchNamespace: watches, Now: time.Now, Log: slog.New(slog.DiscardHandler), Changed: func() { w.changes.Add(1) },
	})
}

// leads is an agent that leads, and what it waited for.
func (w *world) leads(s *keys.Store) (signed bool, waited []string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	signed = s.Begin(ctx, func(err error) { waited = append(waited, err.Error()) })
	return signed, waited
}

func key(letter string) []byte { return bytes.Repeat([]byte(letter), 32) }

func (w *world) secret(data map[string][]byte) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: annotations.KeyName}, Data: data}
	w.cluster.Put(s)
	return s
}

// heartbeat is what an agent before has left of itself.
func (w *world) heartbeat(key string) { w.heartbeatIn(home, key) }

func (w *world) heartbeatIn(namespace, key string) {
	data := map[string]string{"version": "v0"}
	if key != "" {
		data[annotations.HeartbeatKey] = key
	}
	w.cluster.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: annotations.HeartbeatName}, Data: data})
}

func (w *world) ledger(name string) *corev1.ConfigMap {
	cm, err := annotations.LedgerObject("shop", name, ledger.Ledger{PlanUID: "uid-" + name})
	if err != nil {
		w.Fatal(err)
	}
	cm.UID = types.UID("u-" + name)
	return cm
}

func (w *world) stored(name string) *corev1.ConfigMap {
	return w.cluster.ConfigMap("shop", annotations.LedgerName(name, "uid-"+name))
}

func keyringOf(t *testing.T, data map[string][]byte) annotations.Keyring {
	t.Helper()
	ring, err := annotations.ReadKeyring(&corev1.Secret{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestTheFirstLeaderMakesTheKeyAndTheNextFindsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.agent()
		if err := first.Read(w.Context()); err != nil || first.ID() != "" || first.Usable() != nil {
			w.Errorf("before: %v, %q, %v", err, first.ID(), first.Usable())
		}
		if err := first.Sign(w.ledger("a")); err == nil {
			w.Error("signed without a key")
		}
		if signed, waited := w.leads(first); signed || len(waited) > 0 {
			w.Errorf("signed %t, waited for %q", signed, waited)
		}
		cm := w.ledger("a")
		if err := first.Sign(cm); err != nil {
			w.Fatal(err)
		}
		next := w.agent()
		if err := next.Read(w.Context()); err != nil || next.Check(cm) != nil || !next.IsOurs(cm) || next.ID() != first.ID() {
			w.Errorf("the next: %v, %v", err, next.Check(cm))
		}
		if c := next.Condition(); c != nil {
			w.Errorf("it says %v", c)
		}
	})
}

func TestTwoLeadersMakeOneKey(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cluster.LoseReply(agenttest.When{Verb: "create", Resource: "secrets"}, 1)
		one := w.agent()
		if _, waited := w.leads(one); one.ID() == "" {
			w.Errorf("after a lost reply it has no key: %q", waited)
		}
		if n := len(w.cluster.Names("secrets")); n != 1 {
			w.Errorf("%d Secrets", n)
		}
	})
}

// An agent of a version that signed nothing ran before: what it left is its own.
func TestWhatAnAgentFromBeforeSignaturesLeftIsSigned(t *testing.T) {
	for name, c := range map[string]struct {
		beat  func(w *world)
		signs bool
	}{
		"its heartbeat names no key":          {beat: func(w *world) { w.heartbeat("") }, signs: true},
		"somebody took the key out of it":     {beat: func(w *world) { w.heartbeat(""); w.secret(map[string][]byte{annotations.DataKey: key("n")}) }},
		"no agent ran before":                 {beat: func(*world) {}},
		"the agent before signed, with a key": {beat: func(w *world) { w.heartbeat("abc") }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				c.beat(w)
				stale := w.ledger("stale") // of a version back and forth
				if err := keyringOf(t, map[string][]byte{annotations.DataKey: key("x")}).Sign(stale); err != nil {
					t.Fatal(err)
				}
				w.cluster.Put(w.ledger("a"), stale, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plain"}, Data: map[string]string{"a": "b"}})
				s := w.agent()
				if signed, waited := w.leads(s); signed != c.signs || len(waited) > 0 {
					w.Errorf("signed %t, waited for %q", signed, waited)
				}
				for _, name := range []string{"a", "stale"} {
					if got := s.Check(w.stored(name)) == nil; got != c.signs {
						w.Errorf("%s counts: %t", name, got)
					}
				}
				if said := s.Condition(); c.signs && said != nil {
					w.Errorf("it says %v", said)
				}
				if !annotations.Unsigned(w.cluster.ConfigMap("shop", "plain")) {
					w.Error("somebody's ConfigMap was signed")
				}
			})
		})
	}
}

// The heartbeat of an agent of one namespace is a ConfigMap of those whose plans it runs: that it
// names no key has nothing signed, and where something stands there that the agent might have
// written, the key is said to be lost.
func TestAHeartbeatThatTenantsMayWriteHasNothingSigned(t *testing.T) {
	signed := func(w *world) *corev1.ConfigMap {
		cm := w.ledger("signed")
		if err := keyringOf(w.T, map[string][]byte{annotations.DataKey: key("x")}).Sign(cm); err != nil {
			w.Fatal(err)
		}
		return cm
	}
	for name, c := range map[string]struct {
		holds func(w *world) []*corev1.ConfigMap
		says  string // in the condition; empty: there is none
	}{
		"what somebody wrote":                      {func(w *world) []*corev1.ConfigMap { return []*corev1.ConfigMap{w.ledger("forged")} }, "the key was found to be gone"},
		"and what a key signed that is not there":  {func(w *world) []*corev1.ConfigMap { return []*corev1.ConfigMap{w.ledger("forged"), signed(w)} }, "says that key"},
		"no object at all, as after a first start": {func(*world) []*corev1.ConfigMap { return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.heartbeatIn("shop", "")
				for _, cm := range c.holds(w) {
					w.cluster.Put(cm)
				}
				s := w.agentOf("shop", "shop")
				if signed, waited := w.leads(s); signed || len(waited) > 0 || s.ID() == "" {
					w.Errorf("signed %t, waited for %q, key %q", signed, waited, s.ID())
				}
				for _, cm := range c.holds(w) {
					if s.Check(w.cluster.ConfigMap("shop", cm.Name)) == nil {
						w.Errorf("%s counts", cm.Name)
					}
				}
				said := s.Condition()
				if c.says == "" && said != nil || c.says != "" && (len(said) != 1 || said[0].Reason != "Lost" || !strings.Contains(said[0].Message, c.says)) {
					w.Errorf("it says %v, not %q", said, c.says)
				}
			})
		})
	}
	t.Run("one that stands elsewhere is believed", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.heartbeat("")
			w.cluster.Put(w.ledger("a"))
			s := w.agentOf(home, "shop")
			if signed, _ := w.leads(s); !signed || s.Check(w.stored("a")) != nil {
				w.Errorf("signed %t", signed)
			}
		})
	})
}

func TestSigningThatWasCutOffGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.heartbeat("")
		w.cluster.Put(w.ledger("a"), w.ledger("b"), w.ledger("c"))
		mend := w.cluster.Refuse(agenttest.When{Verb: "update", Resource: "configmaps", Name: w.stored("b").Name}, 2, 500, "etcd is away")
		defer mend()
		s := w.agent()
		if _, waited := w.leads(s); len(waited) == 0 || !strings.Contains(waited[0], "sign shop/") {
			w.Errorf("waited for %q", waited)
		}
		for _, name := range []string{"a", "b", "c"} {
			if err := s.Check(w.stored(name)); err != nil {
				w.Error(err)
			}
		}
	})
}

// The leader dies before all is signed: there is no Secret yet, and the next signs all of it.
func TestSigningThatEndsWithTheLeaderBeginsAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		w.heartbeat("")
		w.cluster.Put(w.ledger("a"), w.ledger("b"), w.ledger("c"))
		mend := w.cluster.Refuse(agenttest.When{Verb: "update", Resource: "configmaps", Name: w.stored("b").Name}, 1000, 500, "etcd is away")
		if _, waited := w.leads(w.agent()); len(waited) == 0 {
			t.Fatal("it did not wait")
		}
		if names := w.cluster.Names("secrets"); len(names) > 0 {
			t.Errorf("there is %v although not all is signed", names)
		}
		mend()
		next := w.agent()
		if signed, waited := w.leads(next); !signed || len(waited) > 0 {
			t.Errorf("signed %t, waited for %q", signed, waited)
		}
		for _, name := range []string{"a", "b", "c"} {
			if err := next.Check(w.stored(name)); err != nil {
				w.Error(err)
			}
		}
		w.heartbeat("") // somebody takes its key out, and writes a ledger
		w.cluster.Put(w.ledger("forged"))
		if signed, _ := w.leads(w.agent()); signed || next.Check(w.stored("forged")) == nil {
			t.Error("what somebody wrote was signed")
		}
	})
}

// An object of one tenant that cannot be signed keeps nobody's agent from beginning.
func TestWhatCannotBeSignedIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		code    int
		message string
	}{
		"a policy refuses it":          {422, `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'maint-agent-configmaps' with binding 'maint-agent-configmaps' denied request: not in kube-system`},
		"a webhook refuses it":         {403, `admission webhook "x.example.org" denied the request: never`},
		"somebody writes all the time": {409, `Operation cannot be fulfilled on configmaps "x": the object has been modified`},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.heartbeat("")
				w.cluster.Put(w.ledger("a"), w.ledger("b"), w.ledger("c"))
				mend := w.cluster.Refuse(agenttest.When{Verb: "update", Resource: "configmaps", Name: w.stored("b").Name}, 1000, c.code, c.message)
				defer mend()
				s := w.agent()
				if signed, waited := w.leads(s); !signed || len(waited) > 0 {
					w.Errorf("signed %t, waited for %q", signed, waited)
				}
				for _, name := range []string{"a", "b", "c"} {
					if counts := s.Check(w.stored(name)) == nil; counts != (name != "b") {
						w.Errorf("%s counts: %t", name, counts)
					}
				}
			})
		})
	}
}

func TestAKeyThatIsGone(t *testing.T) {
	t.Run("under an agent that holds it: it is made again", func(t *testing.T) {
		inWorld(t, func(w *world) {
			s := w.agent()
			w.leads(s)
			was := s.ID()
			ctx, cancel := context.WithCancel(w.Context())
			go s.Run(ctx)
			w.cluster.Delete("secrets", home, annotations.KeyName)
			s.Lost(nil)
			time.Sleep(time.Second)
			next := w.agent()
			if err := next.Read(ctx); err != nil || next.ID() != was {
				w.Errorf("the next reads %q, not %q: %v", next.ID(), was, err)
			}
			cancel()
			synctest.Wait()
		})
	})
	t.Run("and nobody holds it: a new one is made, and that is said", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.heartbeat("0a1b")
			s := w.agent()
			w.leads(s)
			c := s.Condition()
			if len(c) != 1 || c[0].Reason != "Lost" || !strings.Contains(c[0].Message, "adopt") || s.Usable() != nil {
				w.Errorf("it says %v, %v", c, s.Usable())
			}
			next := w.agent()
			if err := next.Read(w.Context()); err != nil || len(next.Condition()) != 1 {
				w.Errorf("the next says %v, %v", next.Condition(), err)
			}
		})
	})
}

// uninstall takes the heartbeat away, and whoever deletes the namespace takes the key too. A
// tenant can write such a signature as well, so what was seen is told, and where.
func TestWhatAnotherKeySignedTellsThatItIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		objects []string
		says    string // in the condition; empty: there is none
	}{
		"a ledger that another key signed":   {objects: []string{"a"}, says: "but ConfigMap shop/maint-ledger-a-%s says that key %s signed it. If an agent was installed before, its key is lost: "},
		"two of them":                        {objects: []string{"a", "b"}, says: "but ConfigMap shop/maint-ledger-a-%s says that key %s signed it, and 2 in all say so of a key, in namespaces shop. If an agent"},
		"a ledger that carries no signature": {},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.cluster.Put(w.ledger("plain"))
				other := keyringOf(t, map[string][]byte{annotations.DataKey: key("x")})
				for _, name := range c.objects {
					cm := w.ledger(name)
					if err := other.Sign(cm); err != nil {
						t.Fatal(err)
					}
					w.cluster.Put(cm)
				}
				s := w.agent()
				w.leads(s)
				if c.says == "" {
					if got := s.Condition(); got != nil {
						w.Errorf("it says %v", got)
					}
					return
				}
				want := fmt.Sprintf(c.says, strings.TrimPrefix(annotations.LedgerName("a", "uid-a"), "maint-ledger-a-"), other.ID())
				next := w.agent()
				if err := next.Read(w.Context()); err != nil {
					t.Fatal(err)
				}
				for _, got := range [][]metav1.Condition{s.Condition(), next.Condition()} {
					if len(got) != 1 || got[0].Reason != "Lost" || !strings.Contains(got[0].Message, want) || !strings.Contains(got[0].Message, "If there never was one, somebody made these signatures up") {
						w.Errorf("it says %v, without %q", got, want)
					}
				}
			})
		})
	}
}

// However much a tenant writes, what is told of it stays short.
func TestManySignaturesOfAnotherKeyAreToldInShort(t *testing.T) {
	inWorld(t, func(w *world) {
		other := keyringOf(t, map[string][]byte{annotations.DataKey: key("x")})
		for i := range 20 {
			cm := w.ledger("a")
			cm.Namespace, cm.UID = fmt.Sprintf("tenant-%02d", i), types.UID(fmt.Sprint("u", i))
			w.cluster.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cm.Namespace}})
			if err := other.Sign(cm); err != nil {
				t.Fatal(err)
			}
			w.cluster.Put(cm)
		}
		s := w.agent()
		w.leads(s)
		got := s.Condition()
		if len(got) != 1 || !strings.Contains(got[0].Message, "and 20 in all say so of a key, in namespaces tenant-00, tenant-01, tenant-02, tenant-03, tenant-04 and 15 more. If") {
			w.Errorf("it says %v", got)
		}
	})
}

func TestAKeyThatIsBroken(t *testing.T) {
	broken := map[string]map[string][]byte{"an empty Secret": nil, "an empty key": {annotations.DataKey: {}}, "a short key": {annotations.DataKey: []byte("short")}}
	for name, data := range broken {
		t.Run(name+" at the start", func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.secret(data)
				s := w.agent()
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				var waited atomic.Int64
				done := make(chan struct{})
				go func() { s.Begin(ctx, func(error) { waited.Add(1) }); close(done) }()
				time.Sleep(29 * time.Second)
				if c := s.Condition(); s.Usable() == nil || len(c) != 1 || c[0].Reason != "Broken" || !strings.Contains(c[0].Message, "nothing is done") || waited.Load() == 0 || waited.Load() > 2 {
					w.Errorf("it says %v, %v; waited %d times", c, s.Usable(), waited.Load())
				}
				w.secret(map[string][]byte{annotations.DataKey: key("n")})
				s.Observe(w.secret(map[string][]byte{annotations.DataKey: key("n")}))
				<-done
				if s.Usable() != nil || s.Condition() != nil || s.ID() == "" {
					w.Errorf("mended: %v, %v", s.Usable(), s.Condition())
				}
			})
		})
		t.Run(name+" under an agent that holds one", func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.agent()
				w.leads(s)
				was := s.ID()
				s.Observe(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: annotations.KeyName}, Data: data})
				if c := s.Condition(); s.Usable() != nil || s.ID() != was || len(c) != 1 || !strings.Contains(c[0].Message, "stays in force") {
					w.Errorf("it says %v, %v; signs with %q, not %q", c, s.Usable(), s.ID(), was)
				}
			})
		})
	}
}

func TestAKeyThatIsReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		old := keyringOf(t, map[string][]byte{annotations.DataKey: key("o")})
		s := w.agent()
		w.secret(old.KeyData())
		w.leads(s)
		mine, touched := w.ledger("a"), w.ledger("touched")
		for _, cm := range []*corev1.ConfigMap{mine, touched} {
			if err := s.Sign(cm); err != nil {
				t.Fatal(err)
			}
		}
		touched.Data["more"] = "by somebody"
		w.cluster.Put(mine, touched, w.ledger("never"))
		changes := w.changes.Load()
		ctx, cancel := context.WithCancel(w.Context())
		go s.Run(ctx)
		synctest.Wait()
		s.Observe(w.secret(map[string][]byte{annotations.DataKey: key("n"), annotations.DataPreviousKey: key("o")}))
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		fresh := keyringOf(t, map[string][]byte{annotations.DataKey: key("n")})
		if err := fresh.Check(w.stored("a")); err != nil {
			w.Errorf("with the new key alone: %v", err)
		}
		if fresh.Check(w.stored("touched")) == nil || fresh.Check(w.stored("never")) == nil {
			w.Error("what did not count before counts now")
		}
		if w.changes.Load() == changes {
			w.Error("nobody heard that the key is another")
		}
	})
}

// A key that is replaced and not kept under "previous" takes with it what it signed. That is
// told by the agent that used it, and by one that starts after the exchange.
func TestAKeyThatIsReplacedAndNotKept(t *testing.T) {
	inWorld(t, func(w *world) {
		old, fresh := map[string][]byte{annotations.DataKey: key("o")}, map[string][]byte{annotations.DataKey: key("n")}
		s := w.agent()
		w.secret(old)
		w.leads(s)
		was := s.ID()
		s.Observe(w.secret(fresh))
		w.told(s, "Replaced", was)
		s.Observe(w.secret(map[string][]byte{annotations.DataKey: key("n"), annotations.DataPreviousKey: key("o")}))
		w.told(s, "", "")
		s.Observe(w.secret(fresh)) // as operations.md says, when all is signed with the new one
		w.told(s, "", "")
		s.Observe(w.secret(old)) // what the new key signed meanwhile does not count
		w.told(s, "Replaced", keyringOf(t, fresh).ID())
	})
	inWorld(t, func(w *world) { // a lost key comes back, without the one that took its place
		w.heartbeat("0a1b")
		s := w.agent()
		w.leads(s)
		was := s.ID()
		w.told(s, "Lost", "")
		s.Observe(w.secret(map[string][]byte{annotations.DataKey: key("o")}))
		w.told(s, "Replaced", was)
	})
	inWorld(t, func(w *world) {
		w.heartbeat("0a1b")
		w.secret(map[string][]byte{annotations.DataKey: key("n")})
		s := w.agent()
		w.leads(s)
		w.told(s, "Replaced", "0a1b")
	})
	inWorld(t, func(w *world) {
		ring := keyringOf(t, map[string][]byte{annotations.DataKey: key("n"), annotations.DataPreviousKey: key("o")})
		w.heartbeat(keyringOf(t, map[string][]byte{annotations.DataKey: key("o")}).ID())
		w.secret(ring.KeyData())
		s := w.agent()
		w.leads(s)
		w.told(s, "", "")
	})
}

// told checks the condition's reason, and the ID of the key that its message names.
func (w *world) told(s *keys.Store, reason, id string) {
	w.Helper()
	c := s.Condition()
	if reason == "" && len(c) == 0 {
		return
	}
	if len(c) != 1 || c[0].Reason != reason || id != "" && !strings.Contains(c[0].Message, "key "+id) {
		w.Errorf("it says %v, not %q of key %q", c, reason, id)
	}
}

func TestARightThatIsMissingIsSaid(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cluster.Deny("", "get", "secrets")
		if err := w.agent().Read(w.Context()); err == nil || !strings.Contains(err.Error(), "install --apply") {
			w.Errorf("%v", err)
		}
	})
}
