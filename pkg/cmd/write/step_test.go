package write

import (
	"encoding/json"
	"slices"
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

func TestCompletionOfAStep(t *testing.T) {
	for word, want := range map[string][]string{
		"":                                nil,
		"roll":                            nil,
		"roll=re":                         {"roll=restart"},
		"roll=nothing":                    nil,
		"roll=restart,":                   {"roll=restart,resource="},
		"roll=restart,timeout=5m,":        {"roll=restart,timeout=5m,resource="},
		"down=scale,resource=a/b,re":      {"down=scale,resource=a/b,replicas="},
		"down=scale,resource=a/b,timeo":   nil,
		"roll=restart,resource=a/b,":      nil,
		"hold=suspend,":                   nil,
		"x=cord":                          {"x=cordon"},
		"x=nothing,":                      nil,
		`{"name":"x","type":"webhook",`:   nil,
		"x=template/notify,channel=ops,t": nil,
	} {
		if got, _ := completeStep(nil, nil, word); !slices.Equal(got, want) {
			t.Errorf("%q is completed by %q, want %q", word, got, want)
		}
	}
}
