package workload

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// halfMapper cannot tell of one API group.
type halfMapper struct {
	meta.RESTMapper
	group string
}

func (m halfMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Group == m.group {
		return nil, errors.New("the group does not answer")
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

func (m halfMapper) ResourceFor(of schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	if of.Group == m.group {
		return of, &meta.NoResourceMatchError{PartialResource: of}
	}
	return m.RESTMapper.ResourceFor(of)
}

// What cannot be looked at on waking is said, and keeps nothing else asleep. Nothing falls
// asleep by half a look.
func TestWhatCannotBeLookedAtOnWakingKeepsNothingElseAsleep(t *testing.T) {
	far := strings.Replace(deploymentOf("far", 3, ""), "namespace: shop", "namespace: mall", 1)
	db := strings.Replace(deploymentOf("db", 1, ""), "kind: Deployment", "kind: StatefulSet", 1)
	const scaled = `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: mall, name: far, uid: uid-far}, spec: {scaleTargetRef: {name: far}}}`
	gets := func(resource, name string, code int) func(*night) {
		return func(n *night) {
			n.Refuse(agenttest.When{Verb: "get", Resource: resource, Name: name}, agenttest.Always, code, "no answer")
		}
	}
	for _, c := range []struct {
		name    string
		objects []string
		happens func(*night)
		unseen  []string
	}{
		{"of one namespace", []string{far}, gets("deployments", "far", http.StatusForbidden), []string{"deployments.apps/mall/far"}},
		{"one kind", []string{db}, gets("statefulsets", "", http.StatusInternalServerError), []string{"statefulsets.apps/shop/db"}},
		{"one kind's group", []string{far, scaled}, func(n *night) { n.call.Clients.Mapper = halfMapper{n.call.Clients.Mapper, "keda.sh"} }, []string{"scaledobjects.keda.sh/mall/far"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNight(t, hibernate.WorkloadParameters{Namespaces: []string{"shop", "mall"}, Kinds: []any{"Deployment", "StatefulSet", "ScaledObject"}}, append(c.objects, deploymentOf("web", 3, ""))...)
			for range 4 {
				n.sleepRest()
			}
			if got := n.spec("deployments", "web"); got != `{"replicas":0}` {
				t.Fatalf("it does not sleep: %s", got)
			}
			c.happens(n)
			n.call.Operation = hibernate.Wake
			var unseen []string
			for _, o := range n.observe() {
				if o.Unseen != nil {
					unseen = append(unseen, o.ID)
				} else if o.Gone {
					t.Errorf("%s is gone", o.ID)
				}
			}
			if diff := cmp.Diff(c.unseen, unseen); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			said := results(n.wake())
			if failed := said[len(said)-1]; !strings.HasPrefix(failed, "error: ") || !strings.Contains(failed, "answer") {
				t.Errorf("it says %q", said)
			}
			if got := n.spec("deployments", "web"); got != `{"replicas":3}` {
				t.Errorf("all else is %s", got)
			}
		})
	}
}

// Of several that are asked for one by one each is said with its own cause.
func TestEachWorkloadThatCannotBeLookedAtOnWakingIsNamed(t *testing.T) {
	n := newNight(t, only("Deployment"), deploymentOf("api", 1, ""), deploymentOf("web", 3, ""))
	n.sleepRest()
	n.sleepRest()
	n.Deny("", "get", "deployments")
	n.call.Operation = hibernate.Wake
	said := map[string]string{}
	for _, r := range n.wake() {
		if r.Err != nil {
			said[r.ID] = r.Err.Error()
		}
	}
	for _, id := range []string{"deployments.apps/shop/api", "deployments.apps/shop/web"} {
		if !strings.HasPrefix(said[id], "get "+id+" in namespace shop: ") {
			t.Errorf("of %s it says %q", id, said[id])
		}
	}
}

// Of many that are listed at once, too: and a right that is missing is one still.
func TestALackingRightToListOnWakingIsSaidAsSuch(t *testing.T) {
	objects := []string{strings.Replace(deploymentOf("db", 1, ""), "kind: Deployment", "kind: StatefulSet", 1)}
	for i := range fewToList + 1 {
		objects = append(objects, deploymentOf(fmt.Sprint("web-", i), 1, ""))
	}
	n := newNight(t, only("Deployment", "StatefulSet"), objects...)
	n.sleepRest()
	n.sleepRest()
	n.Deny("", "list", "deployments")
	denied := 0
	for _, r := range n.wake() {
		if apierrors.IsForbidden(r.Err) {
			denied++
		} else if r.Err != nil {
			t.Error(r.Err)
		}
	}
	if got := n.spec("statefulsets", "db"); got != `{"replicas":1}` || denied != fewToList+1 {
		t.Errorf("the other kind is %s, and %d say which right is missing", got, denied)
	}
}

func TestNothingFallsAsleepByHalfALook(t *testing.T) {
	n := newNight(t, only("Deployment", "StatefulSet"), deploymentOf("web", 3, ""))
	n.Deny("", "list", "statefulsets")
	if seen, err := (Sleeps{}).Observe(t.Context(), n.call); err == nil {
		t.Errorf("it sees %+v", seen)
	}
}

// What the API server certainly did not do, and what was not asked of it, is told apart from
// what it may have done.
func TestWhatIsUntouchedForCertain(t *testing.T) {
	web := agenttest.When{Verb: "patch", Resource: "deployments"}
	for name, c := range map[string]struct {
		happens func(*night)
		want    bool
	}{
		"it is done":           {func(*night) {}, false},
		"a right is missing":   {func(n *night) { n.Deny("", "patch", "deployments") }, true},
		"it is not valid":      {func(n *night) { n.Refuse(web, 1, http.StatusUnprocessableEntity, "no") }, true},
		"the reply is lost":    {func(n *night) { n.LoseReply(web, 1) }, false},
		"the server is broken": {func(n *night) { n.Refuse(web, 1, http.StatusInternalServerError, "no") }, false},
		"it is too slow":       {func(n *night) { n.Refuse(web, 1, http.StatusGatewayTimeout, "no") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNight(t, only("Deployment", "StatefulSet"), deploymentOf("web", 3, ""), strings.Replace(deploymentOf("db", 1, ""), "kind: Deployment", "kind: StatefulSet", 1))
			c.happens(n)
			got := map[string]bool{}
			for _, r := range n.sleep() {
				got[r.ID] = r.Untouched
			}
			if diff := cmp.Diff(map[string]bool{"deployments.apps/shop/web": c.want, "statefulsets.apps/shop/db": true}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
