package status

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAConditionTakesOneLine(t *testing.T) {
	got := Read(Conditions("", []metav1.Condition{{Type: "Valid", Message: "a\nb\r\n c"}}, time.Unix(0, 0)))
	if len(got) != 1 || got[0].Message != "a; b; c" {
		t.Errorf("%+v", got)
	}
}
