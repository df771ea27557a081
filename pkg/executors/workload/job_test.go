package workload

import (
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/workflow"
)

func callOf(change func(*executors.Call)) executors.Call {
	c := executors.Call{Run: "maint-run-orders-abc", Plan: executors.PlanRef{Name: "orders", Namespace: "shop", Account: "maint-runner"}, Path: "migrate", Attempt: 1}
	change(&c)
	return c
}

func TestAJobsNameIsDerived(t *testing.T) {
	base := jobName(callOf(func(*executors.Call) {}))
	if again := jobName(callOf(func(*executors.Call) {})); again != base {
		t.Errorf("the same call gives %s and %s", base, again)
	}
	for name, change := range map[string]func(*executors.Call){
		"another run":     func(c *executors.Call) { c.Run = "maint-run-orders-def" },
		"another step":    func(c *executors.Call) { c.Path = "finally/migrate" },
		"another attempt": func(c *executors.Call) { c.Attempt = 2 },
	} {
		if got := jobName(callOf(change)); got == base {
			t.Errorf("%s has the same Job %s", name, got)
		}
	}
	long := jobName(callOf(func(c *executors.Call) { c.Path = "finally/" + strings.Repeat("a", 44) + "-" + strings.Repeat("b", 18) }))
	if len(long) > 63 || !document.DNSLabel(long) || strings.Contains(long, "a--") {
		t.Errorf("%q (%d) cannot be a pod's label", long, len(long))
	}
}

func TestAJobFromAnImageIsRestricted(t *testing.T) {
	job, err := jobOf(callOf(func(*executors.Call) {}), &plan.JobProperties{Image: "example.org/migrate:1", Command: []string{"migrate"}})
	if err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	if pod.RestartPolicy != corev1.RestartPolicyNever || *job.Spec.BackoffLimit != 0 || *job.Spec.TTLSecondsAfterFinished != keepFinished {
		t.Errorf("it runs more than once, or stays for ever: %+v", job.Spec)
	}
	if pod.ServiceAccountName != "maint-runner" || !*pod.SecurityContext.RunAsNonRoot || *pod.Containers[0].SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("its pod is not as it should be: %+v", pod)
	}
}

func TestATemplateIsTakenAsItIs(t *testing.T) {
	template := map[string]any{
		"backoffLimit": int64(3), "ttlSecondsAfterFinished": int64(5),
		"template": map[string]any{"spec": map[string]any{
			"serviceAccountName": "own", "restartPolicy": "OnFailure",
			"containers": []any{map[string]any{"name": "a", "image": "b"}},
		}},
	}
	job, err := jobOf(callOf(func(*executors.Call) {}), &plan.JobProperties{Template: template})
	if err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	if *job.Spec.BackoffLimit != 3 || *job.Spec.TTLSecondsAfterFinished != 5 || pod.ServiceAccountName != "own" || pod.RestartPolicy != corev1.RestartPolicyOnFailure || pod.SecurityContext != nil {
		t.Errorf("the template was changed: %+v", job.Spec)
	}
	template["parallel"] = int64(2)
	if _, err := jobOf(callOf(func(*executors.Call) {}), &plan.JobProperties{Template: template}); err == nil || !strings.Contains(err.Error(), "parallel") {
		t.Errorf("an unknown field gives %v, want its name", err)
	}
}

func TestTheTailOfALog(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":              {"", ""},
		"less than is kept":    {"abc", "abc"},
		"exactly what is kept": {"abcd", "abcd"},
		"more than is kept":    {"0123456789", "6789"},
		"half a rune in front": {"aäxyz", "\uFFFDxyz"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := tail(strings.NewReader(c.in), 4); err != nil || got != c.want {
				t.Errorf("tail is %q (%v), want %q", got, err, c.want)
			}
		})
	}
}

func TestALogThatAStartingAPIServerRefusesIsReadLater(t *testing.T) {
	ended := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ttl := int32(20)
	for name, c := range map[string]struct {
		allowed func(*authorizationv1.ResourceAttributes) bool
		user    string
		after   time.Duration
		ttl     *int32
		waits   bool
	}{
		"the right is missing":             {func(a *authorizationv1.ResourceAttributes) bool { return a.Resource == "jobs" }, "shop:maint-runner", time.Second, nil, false},
		"nothing is allowed yet":           {func(*authorizationv1.ResourceAttributes) bool { return false }, "shop:maint-runner", time.Second, nil, true},
		"it is allowed by now":             {func(*authorizationv1.ResourceAttributes) bool { return true }, "shop:maint-runner", time.Second, nil, true},
		"the agent may not act as anybody": {func(*authorizationv1.ResourceAttributes) bool { return false }, "maint-system:maint-agent", time.Second, nil, true},
		"it has been so for long":          {func(*authorizationv1.ResourceAttributes) bool { return false }, "shop:maint-runner", time.Minute, nil, false},
		"it has been so until now":         {func(*authorizationv1.ResourceAttributes) bool { return false }, "shop:maint-runner", workflow.RefusalTimeout, nil, true},
		"the Job goes soon":                {func(*authorizationv1.ResourceAttributes) bool { return false }, "shop:maint-runner", 15 * time.Second, &ttl, false},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewSimpleClientset()
			kube.PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `pods is forbidden: User "system:serviceaccount:` + c.user + `" cannot list resource "pods" in API group ""`}}
			})
			kube.PrependReactor("create", "selfsubjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
				review := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
				review.Status.Allowed = c.allowed(review.Spec.ResourceAttributes)
				return true, review, nil
			})
			call := callOf(func(call *executors.Call) { call.Clients.Kube, call.Now = kube, ended.Add(c.after) })
			job := &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "migrate", UID: "u"},
				Spec:       batchv1.JobSpec{TTLSecondsAfterFinished: c.ttl},
				Status:     batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ended)}}},
			}
			out := standing(t.Context(), call, job)
			if waits := out.State == executors.NotYet; waits != c.waits || !waits && (out.State != executors.Done || !strings.Contains(out.Message, "its log is not kept")) {
				t.Errorf("%+v", out)
			}
		})
	}
}

func TestAQuantityThatTakesLongToReadIsRefused(t *testing.T) {
	began := time.Now()
	huge := map[string]any{"requests": map[string]any{"cpu": "12345678901234567890e-60000000"}}
	pod := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i", "resources": huge}}}}
	_, err := jobOf(executors.Call{}, &plan.JobProperties{Template: map[string]any{"template": pod}})
	if err == nil || !strings.Contains(err.Error(), "template.spec.containers[0].resources.requests.cpu is no quantity") {
		t.Errorf("%v", err)
	}
	theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": pod}}}
	if got := units(theirs, 2); got != nil {
		t.Errorf("units %v", got)
	}
	if d := read[appsv1.Deployment](theirs); len(d.Spec.Template.Spec.Containers) != 0 {
		t.Errorf("it is read: %+v", d)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestTheContainerOfAPodThatHasNone(t *testing.T) {
	if got := spoke(corev1.Pod{}); got != "" {
		t.Errorf("it is %q", got)
	}
}
