package hibernation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/queue"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// A right that is missing is said with whom it is missing and the command that grants it.
func TestAMissingRightIsSaidWithTheCommandThatGrantsIt(t *testing.T) {
	const grant = "'kubectl maint rbac -f FILE | kubectl apply -f -', with the plan's file, grants all that it needs, and 'kubectl maint -n shop doctor nights' checks it"
	for name, c := range map[string]struct {
		verb string
		says string
	}{
		"to look":         {"list", "Error: apps failed: deployments.apps is forbidden: User \"" + runner + "\" cannot list resource \"deployments\""},
		"to put to sleep": {"patch", "Error: apps failed: deployments.apps \"orders\" is forbidden: User \"" + runner + "\" cannot patch resource \"deployments\""},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+"behavior: {retries: 0}\n"+apps, func(w *world) {
				w.api.Deny(runner, c.verb, "deployments")
				w.until("01:10")
				if got := w.phase(); !strings.HasPrefix(got, c.says) || !strings.HasSuffix(got, "; if ServiceAccount shop/maint-runner lacks that right, "+grant) {
					t.Errorf("the plan says %q", got)
				}
			})
		})
	}
}

// What else went wrong is said as it is, and no message grows beyond its bound.
func TestWhatIsSaidOfAFault(t *testing.T) {
	call := executors.SleepCall{Plan: executors.PlanRef{Name: "nights", Namespace: "shop", Account: "maint-runner"}}
	elsewhere := call
	elsewhere.Clients.Connection = "c"
	denied := fmt.Errorf("web: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("no")))
	long := strings.Repeat("x", 2*document.MaxMessage)
	for name, c := range map[string]struct {
		call   executors.SleepCall
		text   string
		faults []error
		begins string
		ends   string
	}{
		"no right is missing":     {call, "not now", []error{errors.New("not now")}, "not now", "not now"},
		"one of several is":       {call, "a; b", []error{errors.New("a"), denied}, "a; b; if ServiceAccount", "checks it"},
		"a long one":              {call, long, []error{denied}, "xxx", "checks it"},
		"in another cluster":      {elsewhere, "web", []error{denied}, "web; grant that in the other cluster", "'kubectl maint -n shop doctor nights' names all rights that it needs there"},
		"nothing but its message": {call, long, nil, "xxx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := said(c.call, c.text, c.faults...)
			if !strings.HasPrefix(got, c.begins) || !strings.HasSuffix(got, c.ends) || len(got) > document.MaxMessage {
				t.Errorf("%d bytes: %q", len(got), got)
			}
		})
	}
}

// A quota, a policy or a webhook may not take restore data: nothing falls asleep then, and the
// plan says why.
// Every resource that was refused is named, and none twice.
func TestWhatWasRefusedIsNamedOnce(t *testing.T) {
	list := errors.New("list deployments.apps in namespace sl: forbidden")
	get := func(name string) executors.SleepResult {
		return executors.SleepResult{ID: name, Err: errors.New("get " + name + ": forbidden")}
	}
	for name, c := range map[string]struct {
		results []executors.SleepResult
		want    string
		faults  int
	}{
		"none":              {[]executors.SleepResult{{ID: "api"}}, "", 0},
		"each by its cause": {[]executors.SleepResult{get("api"), {ID: "db"}, get("web")}, "get api: forbidden; get web: forbidden", 2},
		"one cause of two":  {[]executors.SleepResult{{ID: "web", Err: list}, {ID: "api", Err: list}}, "api, web: list deployments.apps in namespace sl: forbidden", 2},
		"many causes":       {[]executors.SleepResult{get("a"), get("b"), get("c"), get("e"), get("d")}, "get a: forbidden; get b: forbidden; get c: forbidden; and 2 more: d, e", 5},
	} {
		t.Run(name, func(t *testing.T) {
			if got, faults := refusals(c.results); got != c.want || len(faults) != c.faults {
				t.Errorf("%q of %d, want %q of %d", got, len(faults), c.want, c.faults)
			}
		})
	}
}

func TestRestoreDataThatIsNotTakenIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		says string
		want bool
	}{
		"a quota":                     {403, `configmaps "maint-restore" is forbidden: exceeded quota: q, requested: count/configmaps=1`, true},
		"a policy":                    {422, "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no", true},
		"a webhook":                   {400, `admission webhook "w" denied the request: no`, true},
		"a webhook that is not there": {500, `failed calling webhook "w": no endpoints available`, true},
		"an API server that starts":   {403, `configmaps is forbidden: User "agent" cannot create resource "configmaps"`, false},
		"one that is ill":             {500, "etcdserver: no leader", false},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+apps, func(w *world) {
				mend := w.api.Refuse(agenttest.When{Verb: "create", Resource: "configmaps"}, agenttest.Always, c.code, c.says)
				w.until("01:05")
				w.awake()
				if got := w.phase(); strings.HasPrefix(got, "Error: its restore data cannot be written: ") != c.want || strings.Contains(got, c.says) != c.want {
					t.Errorf("the plan says %q", got)
				}
				mend()
				w.until("02:00")
				w.sleeps()
				w.is("Hibernated: ")
				w.until("03:01")
				w.awake()
				w.closed()
			})
		})
	}
}

// What sleeps wakes though nothing can be written of it, whether or not an agent dies meanwhile:
// the webhook that refuses may be what sleeps.
func TestWhatSleepsWakesThoughItsRestoreDataIsNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		says string
		dies bool
	}{
		"a policy":                    {422, "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no", false},
		"a webhook that is not there": {500, `failed calling webhook "w": no endpoints available`, false},
		"and the agent dies":          {500, `failed calling webhook "w": no endpoints available`, true},
	} {
		t.Run(name, func(t *testing.T) {
			night(t, oneToThree+appsAndDB, func(w *world) {
				w.deployment("data", "db", 1)
				w.until("02:00")
				w.has("data 0, orders 0, web 0")
				mend := w.api.Refuse(agenttest.When{Verb: "update", Resource: "configmaps"}, agenttest.Always, c.code, c.says)
				also := w.api.Refuse(agenttest.When{Verb: "patch", Resource: "configmaps"}, agenttest.Always, c.code, c.says)
				w.until("03:05")
				w.has("data 1, orders 3, web 2")
				w.wantEvent("Warning RestoreDataRefused nights: Target apps wakes, though its restore data cannot be written: ")
				if c.dies {
					w.begins()
					w.until("03:10")
				}
				w.scale("web", 5)
				mend()
				also()
				w.until("04:30")
				w.has("data 1, orders 3, web 5")
				w.is("Active: ")
				w.closed()
			})
		})
	}
}

// Restore data that somebody wrote meanwhile is taken in first.
func TestARecordIsHeldOnlyOnTopOfWhatStands(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("02:00")
		name := annotations.RestoreName("nights", "apps")
		from := w.agent.records.get(types.NamespacedName{Namespace: shop, Name: name})
		w.agent.stop()
		w.api.Annotate(shop, name, "who", "somebody")
		if _, err := w.agent.records.hold(w.Context(), from, from.record); !errors.Is(err, queue.ErrConflict) {
			t.Errorf("it answers %v", err)
		}
		w.begins()
	})
}

// Somebody else's object may have the name of restore data: it is not written over, and that is
// said, as long as it is there.
func TestAnObjectOfTheNameOfRestoreDataIsSaid(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		name := annotations.RestoreName("nights", "apps")
		w.api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}})
		w.until("01:30")
		w.awake()
		w.is("Error: its restore data cannot be written: restore data shop/" + name + " is not written over: ")
		w.api.Delete("configmaps", shop, name)
		w.until("02:30")
		w.sleeps()
		w.is("Hibernated: ")
		w.until("03:01")
		w.awake()
		w.closed()
	})
}

// What sleeps wakes though restore data that somebody deletes cannot be written anew.
func TestWhatSleepsWakesThoughItsRestoreDataCannotBeRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		hinder func(w *world) (mend func())
	}{
		"a quota": {func(w *world) func() {
			return w.api.Refuse(agenttest.When{Verb: "create", Resource: "configmaps"}, agenttest.Always, 403, `configmaps "maint-restore" is forbidden: exceeded quota: q, requested: count/configmaps=1`)
		}},
		"an object of the name of its copy": {func(w *world) func() {
			w.api.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: annotations.RestoreCopyName("nights", "apps")}})
			return func() { w.api.Delete("configmaps", shop, annotations.RestoreCopyName("nights", "apps")) }
		}},
	} {
		for _, immutable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, immutable %v", name, immutable), func(t *testing.T) {
				night(t, oneToThree+apps, func(w *world) {
					w.until("02:00")
					mend := c.hinder(w)
					restore := annotations.RestoreName("nights", "apps")
					if immutable {
						w.api.Edit("configmaps", shop, restore, func(u *unstructured.Unstructured) { u.Object["immutable"] = true })
					} else {
						w.api.Delete("configmaps", shop, restore)
					}
					w.until("03:30")
					w.awake()
					mend()
					w.until("05:00")
					w.awake()
					w.is("Active: ")
					w.closed()
				})
			})
		}
	}
}

// Restore data of which there is only the copy is not told as gone.
func TestRestoreDataThatIsCopiedIsNotGone(t *testing.T) {
	night(t, oneToThree+apps, func(w *world) {
		w.until("02:00")
		var mend func()
		w.api.Before(agenttest.When{Verb: "delete", Resource: "configmaps"}, func() {
			mend = w.api.Refuse(agenttest.When{Verb: "create", Resource: "configmaps"}, agenttest.Always, 403, `configmaps "maint-restore" is forbidden: exceeded quota: q`)
		})
		w.api.Edit("configmaps", shop, annotations.RestoreName("nights", "apps"), func(u *unstructured.Unstructured) { u.Object["immutable"] = true })
		w.until("02:30")
		if w.api.ConfigMap(shop, annotations.RestoreCopyName("nights", "apps")) == nil || w.record("apps") != nil {
			t.Fatal("it is not in its copy alone")
		}
		w.is("Hibernated: ")
		mend()
		w.until("04:00")
		w.awake()
		w.closed()
	})
}
