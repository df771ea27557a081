package doctor_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
)

// Whoever why sends to doctor for an obstacle is not sent back for the same one.
func TestDoctorAndWhyDoNotPointAtEachOther(t *testing.T) {
	noted := func(notes ...string) func(string) *corev1.ConfigMap {
		return func(name string) *corev1.ConfigMap {
			cm := cmdtest.Plan(name, "")
			if strings.HasPrefix(name, "night") {
				cm = cmdtest.Sleeper(name, "schedule: {offHours: [{start: '20:00', end: '06:00'}]}")
			}
			cmdtest.Noting(append(notes, annotations.StatusObserved, annotations.Observed(cm))...)(cm)
			return cm
		}
	}
	notReady := noted(annotations.StatusConditions, `[{"type":"Ready","status":"False","reason":"NotReady","message":"policy night is not there"}]`)
	for name, object := range map[string]runtime.Object{
		"a plan that is not ready":          notReady("orders"),
		"a HibernatePlan that is not ready": notReady("nights"),
		"a plan that the agent rejects":     noted(annotations.StatusConditions, `[{"type":"Valid","status":"False","message":"no template hush"}]`)("orders"),
		"a target that failed":              noted(annotations.StatusTargets, `[{"target":"apps","state":"Failed","attempts":3,"message":"no answer"}]`, annotations.StatusPhase, "Error")("nights"),
		"a target that is tried again":      noted(annotations.StatusTargets, `[{"target":"apps","state":"Running","attempts":1,"message":"no answer"}]`, annotations.StatusPhase, "Hibernating")("nights"),
	} {
		t.Run(name, func(t *testing.T) {
			o := cmdtest.NewCluster(t, cmd.Run, installed(object)...)
			plan := object.(*corev1.ConfigMap).Name
			why, doctor := o.Maint("why", plan), o.Maint("doctor", plan)
			if why.Code != 3 || doctor.Code != 1 {
				t.Fatalf("why: %+v\ndoctor: %+v", why, doctor)
			}
			if strings.Contains(why.Out, "'kubectl maint doctor "+plan) && strings.Contains(doctor.Out, "'kubectl maint why "+plan) {
				t.Errorf("why says\n%sand doctor\n%s", why.Out, doctor.Out)
			}
		})
	}
}
