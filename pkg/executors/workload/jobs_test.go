package workload

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// shift is a cluster in which a step of type job runs.
type shift struct {
	*testing.T
	kube    *fake.Clientset
	call    executors.Call
	created int
	loses   bool // the answer to the next creation
	lacks   string
}

func newShift(t *testing.T, objects ...runtime.Object) *shift {
	s := &shift{T: t, kube: fake.NewClientset(objects...)}
	s.call = callOf(func(c *executors.Call) {
		c.Properties, c.Clients.Kube = &plan.JobProperties{Image: "example.org/migrate:1"}, s.kube
		c.Now = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	})
	s.kube.PrependReactor("create", "jobs", func(a k8stesting.Action) (bool, runtime.Object, error) {
		job := a.(k8stesting.CreateAction).GetObject().(*batchv1.Job)
		job.UID = "uid-1"
		done, o, err := k8stesting.ObjectReaction(s.kube.Tracker())(a)
		if err == nil {
			s.created++
		}
		if s.loses {
			s.loses = false
			return true, nil, io.ErrUnexpectedEOF
		}
		return done, o, err
	})
	s.kube.PrependReactor("create", "selfsubjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		right := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).Spec.ResourceAttributes
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: right.Verb != s.lacks}}, nil
	})
	return s
}

// pass is one; what it asks to be recorded is, the first time.
func (s *shift) pass() executors.Outcome {
	out := Jobs{}.Pass(s.Context(), s.call)
	if out.State == executors.Record && s.call.Recorded.Before == nil {
		s.call.Recorded.Before = out.Before
	}
	return out
}

func (s *shift) says(want string) {
	s.Helper()
	out := s.pass()
	word := map[executors.State]string{executors.NotYet: "not yet", executors.Record: "record", executors.Done: "done", executors.Failed: "failed"}[out.State]
	if out.Permanent {
		word += " for good"
	}
	if got := strings.ReplaceAll(word+" "+out.Reason+": "+out.Message, jobName(s.call), "JOB"); got != want {
		s.Errorf("%s\nwant %s", got, want)
	}
}

func (s *shift) job() *batchv1.Job {
	s.Helper()
	o, err := s.kube.Tracker().Get(batchv1.SchemeGroupVersion.WithResource("jobs"), "shop", jobName(s.call))
	if err != nil {
		s.Fatal(err)
	}
	return o.(*batchv1.Job).DeepCopy()
}

func (s *shift) edit(change func(*batchv1.Job)) {
	s.Helper()
	job := s.job()
	change(job)
	if err := s.kube.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, "shop"); err != nil {
		s.Fatal(err)
	}
}

func (s *shift) remove() {
	s.Helper()
	if err := s.kube.Tracker().Delete(batchv1.SchemeGroupVersion.WithResource("jobs"), "shop", jobName(s.call)); err != nil {
		s.Fatal(err)
	}
}

func condition(kind batchv1.JobConditionType, status corev1.ConditionStatus) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: status, Reason: "BackoffLimitExceeded", Message: "it failed once"})
	}
}

const running = "not yet Running: Job/JOB: 0 active, 0 succeeded, 0 failed"

// A Job is created once, whatever is lost, and its end is what the step's is.
func TestAJobRunsOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		loses bool
		then  func(*shift)
		want  string
	}{
		{"it runs", false, func(*shift) {}, running},
		{"the answer to its creation was lost", true, func(*shift) {}, running},
		{"it succeeded", false, func(s *shift) { s.edit(condition(batchv1.JobComplete, corev1.ConditionTrue)) }, "done : Job/JOB succeeded; its log is not kept: its pods are gone"},
		{"it failed", false, func(s *shift) { s.edit(condition(batchv1.JobFailed, corev1.ConditionTrue)) }, "failed JobFailed: Job/JOB failed: BackoffLimitExceeded: it failed once; its log is not kept: its pods are gone"},
		{"a condition that is not so says nothing", false, func(s *shift) { s.edit(condition(batchv1.JobComplete, corev1.ConditionFalse)) }, running},
		{"it is about to fail: its last pod is there still", false, func(s *shift) { s.edit(condition(batchv1.JobFailureTarget, corev1.ConditionTrue)) }, running},
		{"somebody deletes it, and its pods end first", false, func(s *shift) {
			s.edit(func(job *batchv1.Job) { job.DeletionTimestamp = new(metav1.Now()) })
		}, "failed Deleted: Job/JOB is being deleted before its end"},
		{"somebody deletes it after it succeeded", false, func(s *shift) {
			s.edit(condition(batchv1.JobComplete, corev1.ConditionTrue))
			s.edit(func(job *batchv1.Job) { job.DeletionTimestamp = new(metav1.Now()) })
		}, "done : Job/JOB succeeded; its log is not kept: its pods are gone"},
		{"it is gone before its end was seen: it does not run again", false, func(s *shift) { s.remove() }, "failed Deleted: Job/JOB was deleted before its end was seen; whether it did its work is not known"},
		{"another of its name stands there", false, func(s *shift) { s.edit(func(job *batchv1.Job) { job.UID = "uid-2" }) }, "failed Deleted: Job/JOB was deleted before its end was seen; whether it did its work is not known"},
		{"what stands there was not made by the step", false, func(s *shift) {
			s.edit(func(job *batchv1.Job) { job.Annotations = nil })
		}, "failed for good NotOurs: Job/JOB in namespace shop was not created by this step; delete or rename it"},
		{"what was recorded cannot be read", false, func(s *shift) { s.call.Recorded.Before = []byte(`[`) }, "failed for good Invalid: step migrate: what it recorded is not readable: unexpected end of JSON input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShift(t)
			if s.loses = c.loses; c.loses {
				if out := s.pass(); out.State != executors.NotYet || out.Reason != executors.ReasonUnavailable {
					t.Errorf("without an answer: %+v", out)
				}
			}
			s.says("record : Job/JOB is created")
			c.then(s)
			s.says(c.want)
			s.says(c.want) // as after a crash
			if s.created != 1 {
				t.Errorf("created %d times", s.created)
			}
		})
	}
}

// Another attempt is another Job, also where the first was recorded.
func TestAnotherAttemptIsAnotherJob(t *testing.T) {
	s := newShift(t)
	s.says("record : Job/JOB is created")
	s.call.Attempt = 2
	s.says(running)
	s.remove() // of this attempt nothing is recorded
	s.says(running)
	if s.created != 3 {
		t.Errorf("created %d times", s.created)
	}
}

// Who creates the Job between our look and our creation: we did, or somebody else.
func TestAJobThatIsThereByNow(t *testing.T) {
	for _, c := range []struct{ name, of, want string }{
		{"an earlier pass's", "maint-run-orders-abc/migrate#1", "record : Job/JOB is created"},
		{"somebody else's", "", "failed for good NotOurs: Job/JOB in namespace shop was not created by this step; delete or rename it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShift(t)
			s.kube.PrependReactor("create", "jobs", func(a k8stesting.Action) (bool, runtime.Object, error) {
				job := a.(k8stesting.CreateAction).GetObject().(*batchv1.Job).DeepCopy()
				job.Annotations = map[string]string{annotations.JobOf: c.of}
				if err := s.kube.Tracker().Add(job); err != nil {
					s.Fatal(err)
				}
				return true, nil, apierrors.NewAlreadyExists(batchv1.Resource("jobs"), job.Name)
			})
			s.says(c.want)
		})
	}
}

// What a step cannot follow to its end is not begun.
func TestAJobIsNotBegunBlindly(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*shift)
		want string
	}{
		{"without the right to watch", func(s *shift) { s.lacks = "watch" }, `failed for good Forbidden: serviceaccount shop/maint-runner may not watch jobs.batch "JOB" in namespace shop: grant watch on jobs.batch to it`},
		{"in a dry run", func(s *shift) { s.call.DryRun = true }, "done : dry run: would run a Job; none was created"},
		{"without an image", func(s *shift) { s.call.Properties = &plan.JobProperties{} }, "failed for good Invalid: image is missing, and there is no template"},
		{"with a template that is none", func(s *shift) {
			s.call.Properties = &plan.JobProperties{Template: map[string]any{"containers": []any{}}}
		}, `failed for good Invalid: template: is no Job's spec: strict decoding error: unknown field "containers"`},
		{"with properties of another type", func(s *shift) { s.call.Properties = &plan.ScaleProperties{} }, "failed for good Invalid: step migrate: properties are *plan.ScaleProperties, not *plan.JobProperties"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShift(t)
			c.edit(s)
			s.says(c.want)
			if s.created != 0 {
				t.Errorf("created %d times", s.created)
			}
		})
	}
}

// As whom and where the pods of a Job run.
func TestWhereTheSpecOfAJobIsSilent(t *testing.T) {
	with := func(spec map[string]any) *plan.JobProperties {
		spec["containers"] = []any{map[string]any{"name": "a", "image": "b"}}
		return &plan.JobProperties{Template: map[string]any{"template": map[string]any{"spec": spec}}}
	}
	for _, c := range []struct {
		name          string
		props         *plan.JobProperties
		node, cluster string
		account, on   string
	}{
		{"as the plan's account", with(map[string]any{}), "", "", "maint-runner", ""},
		{"as its own account", with(map[string]any{"serviceAccountName": "own"}), "", "", "own", ""},
		{"in another cluster as nobody's", with(map[string]any{}), "", "edge", "", ""},
		{"on the node of its rollout, past the cordon", with(map[string]any{}), "a", "", "maint-runner", "a"},
		{"on its own node", with(map[string]any{"nodeName": "b"}), "a", "", "maint-runner", "b"},
		{"on a node that it selects", with(map[string]any{"nodeSelector": map[string]any{"disk": "ssd"}}), "a", "", "maint-runner", ""},
		{"on a node that it has an affinity to", with(map[string]any{"affinity": map[string]any{}}), "a", "", "maint-runner", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			job, err := jobOf(callOf(func(call *executors.Call) { call.Nodes.Current, call.Clients.Cluster = c.node, c.cluster }), c.props)
			if err != nil {
				t.Fatal(err)
			}
			pod := job.Spec.Template.Spec
			if pod.ServiceAccountName != c.account || pod.NodeName != c.on || pod.RestartPolicy != corev1.RestartPolicyNever || *job.Spec.TTLSecondsAfterFinished != keepFinished {
				t.Errorf("%+v", pod)
			}
		})
	}
}

// Of the pods of a Job the newest speaks, and in it the container that failed.
func TestTheLogOfAJob(t *testing.T) {
	at := func(name string, minute int) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{batchv1.ControllerUidLabel: "uid-1"}, CreationTimestamp: metav1.Date(2026, 11, 21, 0, minute, 0, 0, time.UTC)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "first"}, {Name: "second"}}},
		}
	}
	s := newShift(t, at("old", 1), at("new", 3), at("older", 2))
	var read []string
	s.kube.PrependReactor("get", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if log, is := a.(k8stesting.GenericActionImpl); is && log.Subresource == "log" {
			read = append(read, log.Value.(*corev1.PodLogOptions).Container)
		}
		return false, nil, nil
	})
	s.pass()
	s.edit(condition(batchv1.JobComplete, corev1.ConditionTrue))
	s.edit(func(job *batchv1.Job) { job.Status.Succeeded = 1 })
	out := s.pass()
	if diff := cmp.Diff(map[string]any{"job": jobName(s.call), "succeeded": int64(1), "failed": int64(0), "log": "fake logs"}, out.Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if got := newest([]corev1.Pod{*at("old", 1), *at("new", 3), *at("older", 2)}).Name; got != "new" {
		t.Errorf("the newest is %s", got)
	}
	exited := func(codes ...int32) corev1.Pod {
		p := *at("x", 1)
		for i, code := range codes {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: []string{"first", "second"}[i], State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}})
		}
		return p
	}
	for want, p := range map[string]corev1.Pod{"second": exited(0, 1), "first": exited(0, 0)} {
		if got := spoke(p); got != want {
			t.Errorf("%s spoke, want %s", got, want)
		}
	}
	if got := spoke(*at("x", 1)); got != "first" {
		t.Errorf("of one that did not end: %s", got)
	}
}

// A Job is stopped with its pods, and no other of its name.
func TestAJobThatIsStopped(t *testing.T) {
	gone := apierrors.NewNotFound(batchv1.Resource("jobs"), "x")
	for _, c := range []struct {
		name   string
		begun  bool
		edit   func(*shift)
		answer error
		want   string
		asked  bool
	}{
		{"it runs", true, nil, nil, "", true},
		{"it was never begun", false, nil, nil, "", false},
		{"it goes meanwhile", true, nil, gone, "", true},
		{"it is not this step's", true, func(s *shift) { s.edit(func(job *batchv1.Job) { job.Annotations = nil }) }, nil, "stop step migrate: Job/JOB in namespace shop was not created by this step; delete or rename it", false},
		{"the API server is away", true, nil, apierrors.NewInternalError(errors.New("etcd is away")), `stop step migrate: delete jobs.batch "JOB" in namespace shop: Internal error occurred: etcd is away`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShift(t)
			if c.begun {
				s.pass()
			}
			if c.edit != nil {
				c.edit(s)
			}
			asked := false
			s.kube.PrependReactor("delete", "jobs", func(a k8stesting.Action) (bool, runtime.Object, error) {
				asked = true
				o := a.(k8stesting.DeleteActionImpl).DeleteOptions
				if *o.PropagationPolicy != metav1.DeletePropagationBackground || *o.Preconditions.UID != "uid-1" {
					t.Errorf("%+v", o)
				}
				return true, nil, c.answer
			})
			err := Jobs{}.Stop(t.Context(), s.call)
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), jobName(s.call), "JOB")
			}
			if got != c.want || asked != c.asked {
				t.Errorf("%q, asked %t", got, asked)
			}
		})
	}
}

// What is recorded of a Job names it whole.
func TestWhatIsRecordedOfAJob(t *testing.T) {
	s := newShift(t)
	out := s.pass()
	var got created
	if err := json.Unmarshal(out.Before, &got); err != nil || got.Job != jobName(s.call) || got.UID != "uid-1" {
		t.Errorf("%+v, %v", got, err)
	}
	job := s.job()
	if job.Annotations[annotations.JobOf] != api.Identity(s.call) || job.Labels[annotations.LabelPlan] != "orders" || job.Labels[annotations.LabelStep] != "migrate" {
		t.Errorf("it is marked %v %v", job.Annotations, job.Labels)
	}
	if len(out.Changed) != 1 || out.Changed[0].Kind != "Job" || out.Changed[0].What != "created" {
		t.Errorf("changed %v", out.Changed)
	}
	if w := s.pass().Watch; w == nil || w.Resource.Resource != "jobs" || w.Namespace != "shop" || w.Name != jobName(s.call) {
		t.Errorf("watched %+v", w)
	}
}
