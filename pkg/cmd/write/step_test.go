package write

import (
	"encoding/json"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
)

func TestStepsInTheirShortForm(t *testing.T) {
	for text, want := range map[string]string{
		"roll=restart,resource=Deployment/orders":           `{"name":"roll","type":"restart","properties":{"resource":{"apiVersion":"apps/v1","kind":"Deployment","name":"orders"}}}`,
		"ask=approval,message=switch?,timeout=2h":           `{"name":"ask","type":"approval","properties":{"message":"switch?","timeout":"2h"}}`,
		"ok=health-check,selector=app=orders,timeout=5m":    `{"name":"ok","type":"health-check","timeout":"5m0s","properties":{"selector":{"matchLabels":{"app":"orders"}}}}`,
		"ok=health-check,all=true":                          `{"name":"ok","type":"health-check","properties":{"all":true}}`,
		"tell=template/notify,resource=a/b,times=3,if=true": `{"name":"tell","type":"template/notify","if":"true","properties":{"resource":"a/b","times":3}}`,
	} {
		o := &scheduleOptions{Factory: &factory.Factory{}}
		step, err := o.parseStep(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := json.Marshal(step); err != nil || string(got) != want {
			t.Errorf("%s is\n%s, want\n%s, %v", text, got, want, err)
		}
	}
	o := &scheduleOptions{Factory: &factory.Factory{}}
	if _, err := o.parseStep("ok=health-check,selector=orders"); err == nil {
		t.Error("a selector without a value was taken")
	}
}
