package node

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

func claim1(volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
}

func attachment(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + volume + node},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(volume)}},
	}
}

// A drain that waits for volumes ends once those of its pods are detached from its node.
func TestADrainWaitsForTheVolumesOfItsPods(t *testing.T) {
	const still = "Draining: 1 of 1 pods have left; volumes waits: volume pv-1 of pod shop/web-1 is still attached"
	for _, c := range []struct {
		name    string
		options drain.Options
		world   func(*host)
		soon    string // after ten seconds
		want    string // when its time is over
	}{
		{"one that stays attached is waited for, also past its time", drain.Options{}, nil, still, "Draining: late, 1 of 1 pods have left; its time is over, and it goes on; volumes waits: volume pv-1 of pod shop/web-1 is still attached"},
		{"skip leaves it", drain.Options{OnTimeout: drain.TimeoutSkip}, nil, still, "Drained: done, 1 evicted: volumes (volume pv-1 of pod shop/web-1 is still attached)"},
		{"force cannot detach it, and leaves it", drain.Options{OnTimeout: drain.TimeoutForce}, nil, still, "Drained: done, 1 evicted: volumes (volume pv-1 of pod shop/web-1 is still attached)"},
		{"abort gives up", drain.Options{OnTimeout: drain.TimeoutAbort}, nil, still, "TimedOut: aborted, time is over, and the drain is given up: 1 evicted"},
		{"without a limit it waits for ever", drain.Options{Timeout: lasting(0), OnTimeout: drain.TimeoutSkip}, nil, still, still},
		{"one that is attached to another node alone is not waited for", drain.Options{}, func(h *host) {
			h.DeleteAtOnce("volumeattachments", "", "csi-pv-1a")
			h.Put(attachment("pv-1", "b"))
		}, "Drained: done, 1 evicted", "Drained: done, 1 evicted"},
		{"one of nobody's pod is not waited for", drain.Options{}, func(h *host) {
			h.DeleteAtOnce("volumeattachments", "", "csi-pv-1a")
			h.Put(attachment("pv-2", "a"))
		}, "Drained: done, 1 evicted", "Drained: done, 1 evicted"},
		{"a claim that is gone has none", drain.Options{}, func(h *host) { h.DeleteAtOnce("persistentvolumeclaims", "shop", "data") }, "Drained: done, 1 evicted", "Drained: done, 1 evicted"},
		{"a claim that is not bound has none", drain.Options{}, func(h *host) { h.Put(claim1("")) }, "Drained: done, 1 evicted", "Drained: done, 1 evicted"},
		{"attachments that the agent may not list are said to be unknown", drain.Options{OnTimeout: drain.TimeoutSkip}, func(h *host) { h.Deny("", "list", "volumeattachments") }, "Draining: 1 of 1 pods have left; volumes waits: the attached volumes cannot be read: ", "Drained: done, 1 evicted: volumes (the attached volumes cannot be read: "},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := newHost(t, podNamed("web-1", withVolume(corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}})))
			h.Put(claim1("pv-1"), attachment("pv-1", "a"))
			if c.world != nil {
				c.world(h)
			}
			d := h.drainer()
			c.options.WaitForVolumes = true
			order := h.order(c.options)
			d.Ensure(t.Context(), order)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), c.soon) {
				t.Errorf("soon %q", standing(st))
			}
			time.Sleep(drain.DefaultDrainTimeout)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), c.want) {
				t.Errorf("late %q", standing(st))
			}
		})
	}
	inBubble(t, "it ends as soon as the last is detached", func(t *testing.T) {
		h := newHost(t, podNamed("web-1", withVolume(corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}})))
		h.Put(claim1("pv-1"), attachment("pv-1", "a"))
		d := h.drainer()
		order := h.order(drain.Options{WaitForVolumes: true})
		d.Ensure(t.Context(), order)
		time.Sleep(10 * time.Second)
		h.DeleteAtOnce("volumeattachments", "", "csi-pv-1a")
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); standing(st) != "Drained: done, 1 evicted" {
			t.Errorf("%q", standing(st))
		}
	})
	inBubble(t, "a claim that the account may not read holds the eviction back", func(t *testing.T) {
		h := newHost(t, podNamed("web-1", withVolume(corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}})))
		h.Put(claim1("pv-1"), attachment("pv-1", "a"))
		h.Deny("", "get", "persistentvolumeclaims")
		d := h.drainer()
		order := h.order(drain.Options{WaitForVolumes: true})
		d.Ensure(t.Context(), order)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		st := d.Ensure(t.Context(), order)
		if rightSaid(st.Right) != "get persistentvolumeclaims in shop" || len(h.requests()) != 0 {
			t.Errorf("%q, right %q, asked %q", standing(st), rightSaid(st.Right), h.requests())
		}
	})
}

// The agent's own last pod on a node leaves after all others, and only where another
// replica is Ready elsewhere.
func TestTheAgentsOwnPodLeavesLast(t *testing.T) {
	agent := func(name, node string, edits ...func(*corev1.Pod)) *corev1.Pod {
		return podNamed(name, append([]func(*corev1.Pod){on(node), func(p *corev1.Pod) {
			p.Namespace, p.Labels = "maint-system", map[string]string{annotations.AgentLabel: annotations.AgentName}
		}}, edits...)...)
	}
	unready := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	old := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour)) }
	const evicted = "evict maint-system/agent-1"
	for _, c := range []struct {
		name   string
		others func() []metav1.Object
		deny   bool
		asked  []string
		want   string
	}{
		{"another is Ready elsewhere", func() []metav1.Object { return []metav1.Object{agent("agent-2", "b")} }, false, []string{"evict shop/web-1", evicted}, "Drained: done, 2 evicted"},
		{"there is no other", func() []metav1.Object { return nil }, false, []string{"evict shop/web-1"}, "Drained: done, 1 evicted, 1 skipped; maint-system/agent-1: the agent's own pod stays: no other replica of it is Ready on another node"},
		{"the other has not been Ready for an hour", func() []metav1.Object { return []metav1.Object{agent("agent-2", "b", unready, old)} }, false, []string{"evict shop/web-1"}, "Drained: done, 1 evicted, 1 skipped; maint-system/agent-1: the agent's own pod stays: no other replica of it is Ready on another node"},
		{"the others cannot be listed", func() []metav1.Object { return []metav1.Object{agent("agent-2", "b")} }, true, []string{"evict shop/web-1"}, "Drained: done, 1 evicted, 1 skipped; maint-system/agent-1: the agent's own pod stays: whether another replica of it is Ready on another node is not known: "},
		{"a Ready pod of another program in its namespace is none", func() []metav1.Object {
			return []metav1.Object{agent("other", "b", func(p *corev1.Pod) { p.Labels = nil })}
		}, false, []string{"evict shop/web-1"}, "Drained: done, 1 evicted, 1 skipped; maint-system/agent-1: the agent's own pod stays: no other replica of it is Ready on another node"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			h := newHost(t, podNamed("web-1"), agent("agent-1", "a", old))
			h.put(c.others()...)
			if c.deny {
				h.hidden = "maint-system"
			}
			d := h.drainer(func(c *Config) { c.Namespace, c.Pod = "maint-system", "agent-1" })
			order := h.order(drain.Options{})
			d.Ensure(t.Context(), order)
			time.Sleep(time.Minute)
			synctest.Wait()
			if st := d.Ensure(t.Context(), order); !strings.HasPrefix(standing(st), c.want) {
				t.Errorf("%q", standing(st))
			}
			if got := h.requests(); !slices.Equal(got, c.asked) {
				t.Errorf("asked %q", got)
			}
		})
	}
	inBubble(t, "a server that knows no streamed lists is no reason to leave it", func(t *testing.T) {
		h := newHost(t, agent("agent-1", "a"), agent("agent-2", "b"))
		d := h.drainer(func(c *Config) { c.Namespace, c.Pod = "maint-system", "agent-1" })
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); standing(st) != "Drained: done, 1 evicted" {
			t.Errorf("%q", standing(st))
		}
	})
	inBubble(t, "it waits until the other, which starts, is Ready", func(t *testing.T) {
		h := newHost(t, agent("agent-1", "a"), agent("agent-2", "b", unready))
		d := h.drainer(func(c *Config) { c.Namespace, c.Pod = "maint-system", "agent-1" })
		order := h.order(drain.Options{})
		d.Ensure(t.Context(), order)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); st.Done || len(h.requests()) != 0 {
			t.Errorf("%q, asked %q", standing(st), h.requests())
		}
		h.put(agent("agent-2", "b"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if st := d.Ensure(t.Context(), order); standing(st) != "Drained: done, 1 evicted" {
			t.Errorf("%q", standing(st))
		}
	})
}

// What is known of evictions that budgets do not show yet.
func TestClaimsOnABudget(t *testing.T) {
	const key = "shop/web"
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	web := func(version uint64, allowed int, disrupted ...string) drain.Budget {
		b := drain.Budget{Namespace: "shop", Name: "web", Version: version, Allowed: allowed, Disrupted: map[string]time.Time{}}
		for _, name := range disrupted {
			b.Disrupted[name] = at
		}
		return b
	}
	pod := drain.Pod{UID: "u", Name: "web-1"}
	for _, c := range []struct {
		name string
		then func(*budgetCache)
		at   time.Time
		room int
	}{
		{"an eviction takes of it at once", func(*budgetCache) {}, at, 1},
		{"a budget that names the pod has counted it", func(l *budgetCache) { l.set(web(6, 1, "web-1")) }, at, 1},
		{"a budget that names another has not", func(l *budgetCache) { l.set(web(6, 2, "web-2")) }, at, 1},
		{"one that was written after the deletion has counted it", func(l *budgetCache) { l.deleted("u", 7); l.set(web(8, 2)) }, at, 2},
		{"one that was written before the deletion has not", func(l *budgetCache) { l.deleted("u", 7); l.set(web(6, 2)) }, at, 1},
		{"and the deletion that comes later shows it, too", func(l *budgetCache) { l.set(web(9, 2)); l.deleted("u", 7) }, at, 2},
		{"only the first deletion counts", func(l *budgetCache) { l.deleted("u", 7); l.deleted("u", 9); l.set(web(8, 2)) }, at, 2},
		{"a refused one is given back", func(l *budgetCache) { l.unclaim("u") }, at, 2},
		{"a refusal of another gives nothing back", func(l *budgetCache) { l.unclaim("v") }, at, 1},
		{"one that is never seen is forgotten after two minutes", func(*budgetCache) {}, at.Add(claimLife + time.Second), 2},
		{"and not before", func(*budgetCache) {}, at.Add(claimLife), 1},
		{"a budget that is gone has no claims", func(l *budgetCache) { l.remove("shop", key); l.set(web(9, 2)) }, at, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newBudgetCache()
			l.set(web(5, 2))
			l.claim(key, pod, at)
			c.then(&l)
			budgets := l.in(map[string]bool{"shop": true, "other": true})
			if got := l.room(lined("a")[0], budgets, c.at)[key]; got != c.room {
				t.Errorf("room for %d, want %d", got, c.room)
			}
		})
	}
}

// A watch that was lost misses deletions, and the list after it is of a version past the last one of
// the budget: what the budget has counted meanwhile takes nothing of its room again.
func TestEvictionsWhosePodsWentWhileNobodyWatched(t *testing.T) {
	stays := drain.Pod{UID: "v", Namespace: "shop", Name: "web-2", Version: 4}
	gone := drain.Pod{UID: "u", Namespace: "shop", Name: "web-1", Version: 6}
	going := gone
	going.Deleting, going.Version = true, 30
	for _, c := range []struct {
		name   string
		budget uint64 // its version when the pods are listed
		listed []drain.Pod
		room   int
	}{
		{"gone, and counted", 9, []drain.Pod{stays}, 1},
		{"gone, and the budget is as it was", 5, []drain.Pod{stays}, 0},
		{"being deleted, and counted", 9, []drain.Pod{stays, going}, 1},
		{"being deleted, and the budget is as it was", 5, []drain.Pod{stays, going}, 0},
		{"there as before", 9, []drain.Pod{stays, gone}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(New(t.Context(), Config{}), executors.DrainOrder{Node: "a"})
			defer s.life.cancel()
			web := drain.Budget{Namespace: "shop", Name: "web", Version: 5, Allowed: 1}
			s.d.budgets.set(web)
			s.replaced([]drain.Pod{stays, gone})
			s.d.budgets.claim(web.Key(), gone, time.Now())
			web.Version = c.budget
			s.d.budgets.set(web)
			s.replaced(c.listed)
			if room := s.d.budgets.room(s, []drain.Budget{web}, time.Now())[web.Key()]; room != c.room {
				t.Errorf("room for %d, want %d", room, c.room)
			}
		})
	}
}

// Who waits for room keeps its place, and those behind are woken when it wants less.
func TestRoomIsForThoseWhoCameFirst(t *testing.T) {
	const key = "shop/web"
	l, s := newBudgetCache(), lined("a", "b", "c")
	l.set(drain.Budget{Namespace: "shop", Name: "web", Allowed: 3})
	rooms := func(want ...int) {
		t.Helper()
		var got []int
		for _, one := range s {
			got = append(got, l.room(one, l.in(map[string]bool{"shop": true}), time.Now())[key])
		}
		if !slices.Equal(got, want) {
			t.Errorf("room for %v, want %v", got, want)
		}
	}
	wait := func(i, pods int, freed string) {
		t.Helper()
		if got := nodesOfAll(l.wait(s[i], map[string]int{key: pods})); got != freed {
			t.Errorf("freed %q, want %q", got, freed)
		}
	}
	rooms(3, 3, 3)
	wait(0, 2, "")
	rooms(3, 1, 1)
	wait(1, 2, "")
	rooms(3, 1, 0)
	wait(2, 1, "")
	wait(0, 2, "") // as before: nobody is woken
	wait(0, 3, "") // wants more
	rooms(3, 0, 0)
	wait(0, 1, "b c") // wants less
	rooms(3, 2, 0)
	wait(0, 0, "b c") // wants none
	rooms(0, 3, 1)
	wait(2, 0, "")
	wait(1, 0, "")
	if len(l.queues) != 0 {
		t.Errorf("left behind: %v", l.queues)
	}
}
