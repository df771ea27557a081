package annotations

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

func TestWhoIsNamedByWhichIntent(t *testing.T) {
	got := Stamps(map[string]string{Trigger: "1", Actor(Trigger): "jane", Pause: "true", Actor(Pause): "joe", Abort: "yes", Actor(Retry): "jim"})
	want := map[string]Stamp{"trigger": {"1", "jane"}, "pause": {"true", "joe"}, "retry": {"", "jim"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Stamps(map[string]string{Trigger: "1"}); got != nil {
		t.Errorf("nobody is named, and it says %v", got)
	}
}

// The account of a plan is a label, so that it is found by it; the default needs none.
func TestTheAccountOfANewPlan(t *testing.T) {
	for account, want := range map[string]string{"": "", policy.DefaultServiceAccount: "", "deployer": "deployer"} {
		got, labelled := NewPlan("shop", "nightly", "text", account).Labels[LabelServiceAccount]
		if got != want || labelled != (want != "") {
			t.Errorf("of the account %q the label is %q, %t", account, got, labelled)
		}
	}
}

func TestWhichKeyAnObjectSaysItWasSignedWith(t *testing.T) {
	ring := keyringOf(t, map[string]string{DataKey: longKey("k")})
	signed := signedLedger(t, ring).Annotations[StatusSignature]
	part := func(i int, text string) string {
		parts := strings.Split(signed, ".")
		parts[i] = text
		return strings.Join(parts, ".")
	}
	for name, c := range map[string]struct{ signature, want string }{
		"as it was signed":           {signed, ring.ID()},
		"none":                       {"", ""},
		"another version":            {part(0, "v0"), ""},
		"another key":                {part(1, "0123456789"), "0123456789"},
		"a key of a byte less":       {part(1, "01234567"), ""},
		"a key of a byte more":       {part(1, "012345678901"), ""},
		"a key that is no number":    {part(1, "xxxxxxxxxx"), ""},
		"a digest that is none":      {part(2, "!"), ""},
		"a sum that is none":         {part(3, "!"), ""},
		"a part more than there are": {signed + ".x", ""},
	} {
		cm := signedLedger(t, ring)
		cm.Annotations[StatusSignature] = c.signature
		if got := SignedWith(cm); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What is too much is refused before anything is made of it, and the most that is read is not.
func TestAJournalIsWeighedAtItsBounds(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		fits bool
	}{
		"objects":           {strings.Repeat("{}", maxObjects), true},
		"an object more":    {strings.Repeat("{}", maxObjects+1), false},
		"values":            {"[" + strings.Repeat(",", maxValues) + "]", true},
		"a value more":      {"[" + strings.Repeat(",", maxValues+1) + "]", false},
		"values in a text":  {`["` + strings.Repeat(",", maxValues+1) + `"]`, true},
		"a quote in a text": {`["\"` + strings.Repeat(",", maxValues+1) + `"]`, true},
	} {
		if _, err := weigh([]byte(c.text)); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w, _ := weigh([]byte(`{"steps":[{"name":"a","outputs":{"b":{}}},{"name":"c"}],"more":{"d":1}}`)); w.objects != 6 || w.items != 1 || w.values != 3 {
		t.Errorf("it weighs %+v", w)
	}
}

func TestAJournalOfAsManyObjectsAsAreReadIsRead(t *testing.T) {
	for objects, fits := range map[int]bool{maxRecords: true, maxRecords + 1: false} {
		cm := &corev1.ConfigMap{Data: map[string]string{DataJournal: `{"other":[{}` + strings.Repeat(",{}", objects-2) + `]}`}}
		if _, err := journalOf(cm); (err == nil) != fits {
			t.Errorf("of %d objects: %v", objects, err)
		}
	}
}

// What just fits is written, also where it does so only without what waking does not need.
func TestRestoreDataThatJustFits(t *testing.T) {
	record := hibernate.Record{Resources: []hibernate.Resource{}}
	empty, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	said := hibernate.Record{Resources: []hibernate.Resource{}, Message: "x"}
	more, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	room := largestRestore - len(empty) - (len(more) - len(empty) - 1) // beside the name of the field
	for name, c := range map[string]struct {
		message int
		leftOut []string
		fits    bool
	}{
		"to the last byte":                      {room, nil, true},
		"a byte more":                           {room + 1, nil, false},
		"without what was left out":             {room, []string{"web: a spot instance"}, true},
		"a byte more, without what it left out": {room + 1, []string{"web: a spot instance"}, false},
	} {
		r := record
		r.Message, r.LeftOut = strings.Repeat("x", c.message), c.leftOut
		text, err := restoreText(r)
		if (err == nil) != c.fits || c.fits && len(text) != largestRestore {
			t.Errorf("%s: %d bytes of %d, %v", name, len(text), largestRestore, err)
		}
	}
}

// The copy in the agent's own namespace is named by its plan, as far as that can be a name.
func TestTheNameOfRescuedRestoreData(t *testing.T) {
	for plan, want := range map[string]string{"nights": "nights", "Nights/..": "unknown", "": "unknown"} {
		name := RescuedName("shop", hibernate.Record{Plan: plan, Target: "apps"})
		if !strings.Contains(name, want) || want == "unknown" && plan != "" && strings.Contains(name, plan) {
			t.Errorf("of the plan %q it is %s", plan, name)
		}
	}
	one, other := RescuedName("shop", hibernate.Record{Plan: "nights", Cycle: "1"}), RescuedName("shop", hibernate.Record{Plan: "nights", Cycle: "2"})
	if one == other {
		t.Errorf("two cycles have one name, %s", one)
	}
}

func TestKeyringsThatHoldTheSame(t *testing.T) {
	both := map[string]string{DataKey: longKey("k"), DataPreviousKey: longKey("p")}
	for name, c := range map[string]struct {
		other     map[string]string
		same      bool
		replacing bool
	}{
		"the same":              {both, true, true},
		"another key":           {map[string]string{DataKey: longKey("n"), DataPreviousKey: longKey("p")}, false, true},
		"another one before it": {map[string]string{DataKey: longKey("k"), DataPreviousKey: longKey("q")}, false, true},
		"none before it":        {map[string]string{DataKey: longKey("k")}, false, false},
	} {
		other := keyringOf(t, c.other)
		if got := keyringOf(t, both).Equal(other); got != c.same || other.Replacing() != c.replacing || len(other.KeyData()) != len(c.other) {
			t.Errorf("%s: equal %t, replacing %t, %d keys", name, got, other.Replacing(), len(other.KeyData()))
		}
	}
}

// Who wrote the text last tells when it was edited: no annotation counts, nothing of the agent's,
// and nothing from before the object.
func TestWhenATextWasEdited(t *testing.T) {
	made := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	after := func(hours int) *metav1.Time { return new(metav1.NewTime(made.Add(time.Duration(hours) * time.Hour))) }
	text, label := metav1.NewFieldsV1(`{"f:data":{"f:plan":{}}}`), metav1.NewFieldsV1(`{"f:metadata":{}}`)
	for name, c := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   int // hours after it was made
	}{
		"by nobody":                  {nil, 0},
		"by somebody":                {[]metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: after(2), FieldsV1: text}}, 2},
		"by two, and the last first": {[]metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: after(3), FieldsV1: text}, {Manager: "flux", Time: after(1), FieldsV1: text}}, 3},
		"an annotation alone":        {[]metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: after(2), FieldsV1: label}}, 0},
		"by the agent":               {[]metav1.ManagedFieldsEntry{{Manager: ManagerAgent, Time: after(2), FieldsV1: text}}, 0},
		"of fields that are dropped": {[]metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: after(2)}}, 2},
		"at a time that is not said": {[]metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: text}}, 0},
		"before it was made":         {[]metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: after(-1), FieldsV1: text}}, 0},
	} {
		o := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made), ManagedFields: c.fields}
		want := made.Add(time.Duration(c.want) * time.Hour)
		if got := EditedAt(o); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if KeepEdits(o); !EditedAt(o).Equal(want) {
			t.Errorf("%s: of what is kept it is %s, want %s", name, EditedAt(o), want)
		}
	}
}

func TestADocumentOfTheMostThatIsReadIsKept(t *testing.T) {
	for more, shortened := range map[int]bool{0: false, 1: true} {
		text := strings.Repeat("x", document.MaxDocumentBytes+more)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelKind: KindPlan}}, Data: map[string]string{DataPlan: text}}
		Shorten(cm, func(n int) string { return strings.Repeat(" ", n) })
		if got := cm.Data[DataPlan] != text || len(cm.BinaryData) > 0; got != shortened {
			t.Errorf("of %d bytes more it is shortened: %t", more, got)
		}
	}
}

// A drain asks before it deletes what stands on the node's own disk alone.
func TestWhatAPodLosesOnItsNode(t *testing.T) {
	empty := corev1.Volume{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	claim := corev1.Volume{Name: "b", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}
	own := corev1.Volume{Name: "c", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	config := corev1.Volume{Name: "d", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}
	for name, c := range map[string]struct {
		volumes []corev1.Volume
		empty   bool
		claims  []string
	}{
		"no volumes":            {nil, false, nil},
		"an empty directory":    {[]corev1.Volume{empty}, true, nil},
		"one before another":    {[]corev1.Volume{empty, config}, true, nil},
		"a claim":               {[]corev1.Volume{claim}, false, []string{"data"}},
		"a claim of its own":    {[]corev1.Volume{own}, false, []string{"web-c"}},
		"a file and two claims": {[]corev1.Volume{config, claim, own}, false, []string{"data", "web-c"}},
	} {
		p := DrainPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{Volumes: c.volumes}})
		if p.EmptyDir != c.empty || !cmp.Equal(p.Claims, c.claims) {
			t.Errorf("%s: an empty directory %t, claims %v", name, p.EmptyDir, p.Claims)
		}
	}
}
