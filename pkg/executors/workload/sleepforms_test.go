package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// looks are an observation in short: whether it sleeps, is awake, is ready, and what is to
// be put back.
func looks(o hibernate.Observation) string {
	return fmt.Sprintf("asleep %t, awake %t, ready %t, before %s", o.Asleep, o.Awake, o.Ready, o.Before)
}

func TestHowADaemonSetIs(t *testing.T) {
	const head = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: logs, generation: 2}, "
	const banished = "spec: {template: {spec: {nodeSelector: {maint.dev/asleep: nights}}}}, "
	for name, c := range map[string]struct{ object, want string }{
		"at work": {
			head + "spec: {}, status: {observedGeneration: 2, currentNumberScheduled: 3, desiredNumberScheduled: 3, numberReady: 3}}",
			`asleep false, awake true, ready true, before {"nodeSelector":{"value":null}}`,
		},
		"not all of it is ready": {
			head + "spec: {}, status: {observedGeneration: 2, currentNumberScheduled: 3, desiredNumberScheduled: 3, numberReady: 2}}",
			`asleep false, awake true, ready false, before {"nodeSelector":{"value":null}}`,
		},
		"its status is of before": {
			head + "spec: {}, status: {observedGeneration: 1, numberReady: 3}}",
			`asleep false, awake true, ready false, before {"nodeSelector":{"value":null}}`,
		},
		"on its way": {
			head + banished + "status: {observedGeneration: 2, numberMisscheduled: 1}}",
			`asleep false, awake false, ready false, before {"nodeSelector":{"value":"nights"}}`,
		},
		"on its way, and some pods are misplaced": {
			head + banished + "status: {observedGeneration: 2, currentNumberScheduled: 1, numberMisscheduled: 1}}",
			`asleep false, awake false, ready false, before {"nodeSelector":{"value":"nights"}}`,
		},
		"told, and not heard yet": {
			head + banished + "status: {observedGeneration: 1}}",
			`asleep false, awake false, ready false, before {"nodeSelector":{"value":"nights"}}`,
		},
		"asleep": {
			head + banished + "status: {observedGeneration: 2}}",
			`asleep true, awake false, ready false, before {"nodeSelector":{"value":"nights"}}`,
		},
	} {
		if got := looks(banishment(agenttest.Object(t, c.object), hibernate.Observation{})); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestHowACronJobIs(t *testing.T) {
	for spec, want := range map[string]string{
		"{}":               `asleep false, awake true, ready true, before {"suspend":false}`,
		"{suspend: false}": `asleep false, awake true, ready true, before {"suspend":false}`,
		"{suspend: true}":  `asleep true, awake false, ready false, before {"suspend":true}`,
	} {
		o, err := suspension(agenttest.Object(t, "{apiVersion: batch/v1, kind: CronJob, metadata: {name: report}, spec: "+spec+"}"), hibernate.Observation{})
		if got := looks(o); got != want || err != nil {
			t.Errorf("%s: %s (%v)", spec, got, err)
		}
	}
}

// A kind is known by its group and its resource, not by one of the two.
func TestHowKindsFallAsleep(t *testing.T) {
	for of, want := range map[string]form{
		"cronjobs.batch": bySuspend, "jobs.batch": byScale, "cronjobs.example.org": byScale,
		"scaledobjects.keda.sh": byPause, "scaledjobs.keda.sh": byScale, "scaledobjects.example.org": byScale,
		"daemonsets.apps": byNodeSelector, "daemonsets.example.org": byScale,
		"deployments.apps": byReplicas, "statefulsets.apps": byReplicas, "deployments.example.org": byScale,
	} {
		if got := formOf(schema.ParseGroupResource(of)); got != want {
			t.Errorf("%s is put to sleep by %d, want %d", of, got, want)
		}
	}
}

func TestHowAScaledObjectIs(t *testing.T) {
	const head = "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web, annotations: "
	for name, c := range map[string]struct {
		annotations string
		floor       int64
		want        string
	}{
		"it scales":              {"{}", 0, `asleep false, awake true, ready true, before {"paused":{"value":null}}`},
		"it is paused elsewhere": {`{autoscaling.keda.sh/paused-replicas: "4"}`, 0, `asleep false, awake true, ready true, before {"paused":{"value":"4"}}`},
		"it is paused at none":   {`{autoscaling.keda.sh/paused-replicas: "0"}`, 0, `asleep true, awake false, ready false, before {"paused":{"value":"0"}}`},
		"at the floor":           {`{autoscaling.keda.sh/paused-replicas: "2"}`, 2, `asleep true, awake false, ready false, before {"paused":{"value":"2"}}`},
		"below the floor":        {`{autoscaling.keda.sh/paused-replicas: "0"}`, 2, `asleep false, awake true, ready true, before {"paused":{"value":"0"}}`},
	} {
		s := &sleep{floor: c.floor}
		if got := looks(s.pausing(agenttest.Object(t, head+c.annotations+"}}"), hibernate.Observation{})); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What Git says of a ScaledObject is put back by its controller, and by nobody else.
func TestWhoPausesAScaledObject(t *testing.T) {
	for manager, want := range map[string]string{"kustomize-controller": "kustomize-controller", "kubectl-annotate": ""} {
		u := agenttest.Object(t, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web, annotations: {autoscaling.keda.sh/paused-replicas: "4"}}}`)
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:autoscaling.keda.sh/paused-replicas":{}}}}`)}})
		if o := (&sleep{}).pausing(u, hibernate.Observation{}); o.RevivedBy != want {
			t.Errorf("%s: %q", manager, o.RevivedBy)
		}
	}
}

func TestWhatIsWrittenOfAWorkload(t *testing.T) {
	d := hibernate.Due{Resource: hibernate.Resource{UID: "u"}, Seen: hibernate.Observation{Version: "7"}}
	for name, c := range map[string]struct {
		to   before
		want string
	}{
		"replicas":                  {before{Replicas: new(int64(3))}, `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"replicas":3}} [scale]`},
		"none":                      {before{Replicas: new(int64(0))}, `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"replicas":0}} [scale]`},
		"a CronJob":                 {before{Suspend: new(false)}, `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"suspend":false}} []`},
		"a pause":                   {before{Paused: &field{new("0")}}, `{"metadata":{"annotations":{"autoscaling.keda.sh/paused-replicas":"0"},"resourceVersion":"7","uid":"u"}} []`},
		"the end of a pause":        {before{Paused: &field{}}, `{"metadata":{"annotations":{"autoscaling.keda.sh/paused-replicas":null},"resourceVersion":"7","uid":"u"}} []`},
		"a node selector taken off": {before{Selector: &field{}}, `{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"template":{"spec":{"nodeSelector":{"maint.dev/asleep":null}}}}} []`},
	} {
		body, subresource := patchOf(d, c.to)
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %v", text, subresource); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What scales others is paused before they sleep, and goes on before they wake.
func TestWhoseTurnItIs(t *testing.T) {
	kindOf := func(group, resource string) sleepKind {
		of := schema.GroupResource{Group: group, Resource: resource}
		return sleepKind{resource: of.WithVersion("v1"), form: formOf(of)}
	}
	kinds := []sleepKind{kindOf("batch", "cronjobs"), kindOf("apps", "deployments"), kindOf("apps", "statefulsets"), kindOf("keda.sh", "scaledobjects")}
	due := []string{"statefulsets.apps/shop/db", "deployments.apps/shop/web", "scaledobjects.keda.sh/shop/web", "cronjobs.batch/shop/report"}
	for op, want := range map[hibernate.Operation][]string{
		hibernate.Shutdown: {"scaledobjects.keda.sh", "cronjobs.batch", "deployments.apps", "statefulsets.apps"},
		hibernate.Wake:     {"scaledobjects.keda.sh", "statefulsets.apps", "deployments.apps", "cronjobs.batch"},
	} {
		s := &sleep{kinds: kinds, call: executors.SleepCall{Operation: op}}
		left := map[string]bool{}
		for _, id := range due {
			left[id] = true
		}
		var got []string
		for len(left) > 0 && len(got) < len(due) {
			var list []hibernate.Due
			for id := range left {
				list = append(list, hibernate.Due{Resource: hibernate.Resource{ID: id}})
			}
			turn := s.turn(list)
			got = append(got, turn)
			for id := range left {
				if of, _, _, _ := parts(id); of == turn {
					delete(left, id)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", op, diff)
		}
	}
	s := &sleep{kinds: kinds}
	if got := s.turn([]hibernate.Due{{Resource: hibernate.Resource{ID: "rollouts.example.org/shop/web"}}}); got != "rollouts.example.org" {
		t.Errorf("of a kind that the plan does not name any more it is %q", got)
	}
}

func TestRestoreDataOfAWorkloadThatIsNonsenseIsNotPutBack(t *testing.T) {
	for text, want := range map[string]string{
		`{"replicas":3}`:      "",
		`{"suspend":false}`:   "",
		`{"paused":{}}`:       "",
		`{"nodeSelector":{}}`: "",
		`{}`:                  "the restore data of deployments.apps/shop/web does not say what it was",
		`null`:                "the restore data of deployments.apps/shop/web does not say what it was",
		`{"min":1}`:           "the restore data of deployments.apps/shop/web does not say what it was",
		`{"replicas":"many"}`: "the restore data of deployments.apps/shop/web: json: cannot unmarshal string",
		`3`:                   "the restore data of deployments.apps/shop/web: json: cannot unmarshal number",
	} {
		_, err := recorded(hibernate.Due{Resource: hibernate.Resource{ID: "deployments.apps/shop/web", Before: []byte(text)}})
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
