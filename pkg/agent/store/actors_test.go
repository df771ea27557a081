package store

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

func asked(notes ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{}}}
	for i := 0; i < len(notes); i += 2 {
		cm.Annotations[notes[i]] = notes[i+1]
	}
	return cm
}

// What stood there before false actors were refused may name anybody.
func TestWhoIsKnownToHaveAsked(t *testing.T) {
	by := annotations.Actor
	paused := func(who, until string) *corev1.ConfigMap {
		return asked(annotations.Pause, until, by(annotations.Pause), who)
	}
	skipped := func(who, slots string) *corev1.ConfigMap {
		return asked(annotations.Skip, slots, by(annotations.Skip), who)
	}
	approved := asked(annotations.Approve, "r", by(annotations.Approve), "ann")
	nothing := asked()
	for _, c := range []struct {
		name   string
		before []*corev1.ConfigMap // while anything could be written
		since  []*corev1.ConfigMap // while false actors are refused
		after  []*corev1.ConfigMap // when that is over
		asks   *corev1.ConfigMap
		what   string
		want   bool
	}{
		{name: "what appears while false ones are refused", before: []*corev1.ConfigMap{nothing}, since: []*corev1.ConfigMap{approved}, asks: approved, what: "approve", want: true},
		{name: "also on a document that is new", since: []*corev1.ConfigMap{approved}, asks: approved, what: "approve", want: true},
		{name: "what was there before does not", before: []*corev1.ConfigMap{approved}, since: []*corev1.ConfigMap{approved}, asks: approved, what: "approve"},
		{name: "nor a skip of which the agent takes away what is over", before: []*corev1.ConfigMap{skipped("ann", "2027-01-01T00:00:00Z,2027-01-02T00:00:00Z")}, since: []*corev1.ConfigMap{skipped("ann", "2027-01-02T00:00:00Z")}, asks: skipped("ann", "2027-01-02T00:00:00Z"), what: "skip"},
		{name: "but when its value changes: whoever changes another's is refused that name", before: []*corev1.ConfigMap{paused("ann", "true")}, since: []*corev1.ConfigMap{paused("ann", "2027-01-01T00:00:00Z")}, asks: paused("ann", "2027-01-01T00:00:00Z"), what: "pause", want: true},
		{name: "or when somebody else changes it", before: []*corev1.ConfigMap{paused("ann", "true")}, since: []*corev1.ConfigMap{paused("joe", "true")}, asks: paused("joe", "true"), what: "pause", want: true},
		{name: "or when it went and came back", before: []*corev1.ConfigMap{approved}, since: []*corev1.ConfigMap{nothing, approved}, asks: approved, what: "approve", want: true},
		{name: "it stays known when the policy goes", since: []*corev1.ConfigMap{approved}, after: []*corev1.ConfigMap{approved}, asks: approved, what: "approve", want: true},
		{name: "what comes then is not", since: []*corev1.ConfigMap{approved}, after: []*corev1.ConfigMap{paused("ann", "true")}, asks: paused("ann", "true"), what: "pause"},
		{name: "what was read live and not seen yet is not", since: []*corev1.ConfigMap{paused("ann", "true")}, asks: paused("joe", "true"), what: "pause"},
		{name: "nor is the same actor of another value", since: []*corev1.ConfigMap{approved}, asks: asked(annotations.Approve, "other", by(annotations.Approve), "ann"), what: "approve"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &Documents{Actors: newActors()}
			for i, seen := range [][]*corev1.ConfigMap{c.before, c.since, c.after} {
				d.Actors.SetVerified(i == 1)
				for _, cm := range seen {
					d.Actors.Seen(cm)
				}
			}
			in := d.Intent(c.asks)
			if got := in.Actors[c.what]; got.Verified != c.want || got.Name == "" {
				t.Errorf("%s is by %+v, want verified %t", c.what, got, c.want)
			}
		})
	}
}

func TestADocumentThatIsGoneIsForgotten(t *testing.T) {
	d := &Documents{Actors: newActors()}
	d.Actors.SetVerified(true)
	cm := asked(annotations.Abort, "r", annotations.Actor(annotations.Abort), "ann")
	d.Actors.Seen(cm)
	d.Actors.Gone(cm.UID)
	if len(d.Actors.seen) != 0 || d.Intent(cm).Actors["abort"].Verified {
		t.Error("it is remembered")
	}
}
