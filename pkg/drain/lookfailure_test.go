package drain

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestWhyALookAtPodsFailed(t *testing.T) {
	refused := errors.New("pods is forbidden:\nno")
	for want, got := range map[string]string{
		"its pods could not be read before its drain: pods is forbidden:; no": LookFailed(refused, 0, false),
		"its pods could not be read during its drain: pods is forbidden:; no": LookFailed(refused, 0, true),
		"its pods could not be read within 10s before its drain":              LookFailed(refused, 10*time.Second, false),
		"its pods could not be read within 10s during its drain":              LookFailed(refused, 10*time.Second, true),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := LookFailed(errors.New(strings.Repeat("x", 1000)), 0, false); len(got) > maxCause+100 {
		t.Errorf("it takes %d bytes", len(got))
	}
}

func TestTheNamespacesOfPods(t *testing.T) {
	pods := []Pod{{Namespace: "shop"}, {Namespace: "db"}, {Namespace: "shop"}}
	if got := NamespacesOf(pods); !maps.Equal(got, map[string]bool{"shop": true, "db": true}) {
		t.Errorf("%v", got)
	}
}
