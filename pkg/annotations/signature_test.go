package annotations

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
)

func keyringOf(t *testing.T, data map[string]string) Keyring {
	t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: KeyName}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	ring, err := ReadKeyring(s)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func longKey(letter string) string { return strings.Repeat(letter, keySize) }

func signedLedger(t *testing.T, ring Keyring) *corev1.ConfigMap {
	t.Helper()
	cm, err := LedgerObject("shop", "nightly", ledger.Ledger{PlanUID: "uid-nightly"})
	if err != nil {
		t.Fatal(err)
	}
	cm.Labels[LabelPhase] = "Running"
	cm.BinaryData = map[string][]byte{"steps": {1, 2, 3}}
	if err := ring.Sign(cm); err != nil {
		t.Fatal(err)
	}
	return cm
}

func TestWhatASignatureCovers(t *testing.T) {
	ring := keyringOf(t, map[string]string{DataKey: longKey("k")})
	for name, c := range map[string]struct {
		edit func(cm *corev1.ConfigMap)
		want string // why it does not count; empty: it does
		// named is whether its metadata alone still says that the agent made it.
		named bool
	}{
		"nothing was changed":            {edit: func(*corev1.ConfigMap) {}, named: true},
		"an annotation of somebody":      {edit: func(cm *corev1.ConfigMap) { cm.Annotations["example.org/team"] = "shop" }, named: true},
		"a label of somebody":            {edit: func(cm *corev1.ConfigMap) { cm.Labels["velero.io/backup"] = "b1" }, named: true},
		"a finalizer":                    {edit: func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"x"} }, named: true},
		"other data":                     {edit: func(cm *corev1.ConfigMap) { cm.Data[DataLedger] += " " }, want: "changed after", named: true},
		"more data":                      {edit: func(cm *corev1.ConfigMap) { cm.Data["more"] = "" }, want: "changed after", named: true},
		"data moved to another key":      {edit: func(cm *corev1.ConfigMap) { cm.Data["m"] = cm.Data[DataLedger]; delete(cm.Data, DataLedger) }, want: "changed after", named: true},
		"no data":                        {edit: func(cm *corev1.ConfigMap) { cm.Data = nil }, want: "changed after", named: true},
		"other binary data":              {edit: func(cm *corev1.ConfigMap) { cm.BinaryData["steps"] = []byte{1, 2} }, want: "changed after", named: true},
		"binary data as data":            {edit: func(cm *corev1.ConfigMap) { cm.Data["steps"] = string(cm.BinaryData["steps"]); cm.BinaryData = nil }, want: "changed after", named: true},
		"another plan":                   {edit: func(cm *corev1.ConfigMap) { cm.Labels[LabelPlan] = "hourly" }, want: "changed after", named: true},
		"another phase":                  {edit: func(cm *corev1.ConfigMap) { cm.Labels[LabelPhase] = "Pending" }, want: "changed after", named: true},
		"another kind":                   {edit: func(cm *corev1.ConfigMap) { cm.Labels[LabelKind] = KindRun }, want: "signature is false"},
		"another name":                   {edit: func(cm *corev1.ConfigMap) { cm.Name += "x" }, want: "signature is false"},
		"another namespace":              {edit: func(cm *corev1.ConfigMap) { cm.Namespace = "bank" }, want: "signature is false"},
		"a namespace that eats the name": {edit: func(cm *corev1.ConfigMap) { cm.Namespace, cm.Name = "shopm", cm.Name[1:] }, want: "signature is false"},
		"no signature":                   {edit: func(cm *corev1.ConfigMap) { delete(cm.Annotations, StatusSignature) }, want: "carries no signature"},
		"no annotation at all":           {edit: func(cm *corev1.ConfigMap) { cm.Annotations = nil }, want: "carries no signature"},
		"another version": {
			edit: func(cm *corev1.ConfigMap) {
				cm.Annotations[StatusSignature] = "v2" + cm.Annotations[StatusSignature][2:]
			}, want: "none that this agent can read",
		},
		"letters that are no signature": {edit: func(cm *corev1.ConfigMap) { cm.Annotations[StatusSignature] = "v1.x.%.%" }, want: "none that this agent can read"},
		"one part too few":              {edit: func(cm *corev1.ConfigMap) { cm.Annotations[StatusSignature] = "v1.a.b" }, want: "none that this agent can read"},
		"a digest of other data": {edit: func(cm *corev1.ConfigMap) {
			cm.Data[DataLedger] = "{}"
			parts := strings.Split(cm.Annotations[StatusSignature], ".")
			parts[2] = encode(contentOf(cm))
			cm.Annotations[StatusSignature] = strings.Join(parts, ".")
		}, want: "signature is false"},
	} {
		t.Run(name, func(t *testing.T) {
			cm := signedLedger(t, ring)
			c.edit(cm)
			err := ring.Check(cm)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Check: %v, want %q", err, c.want)
			}
			if refused := new(SignatureError); err != nil && !errors.As(err, &refused) {
				t.Errorf("%T is no *SignatureError", err)
			}
			if got := ring.CheckName(cm) == nil; got != c.named {
				t.Errorf("CheckName: %v, want %v", got, c.named)
			}
		})
	}
}

// What was signed as a run that exists is no other object of its name; what was signed before it was
// created is, and so is what an agent signed that knew of no uid.
func TestASignatureOfARunCoversItsUID(t *testing.T) {
	ring := keyringOf(t, map[string]string{DataKey: longKey("k")})
	signedAs := func(kind, uid string) *corev1.ConfigMap {
		cm := signedLedger(t, ring)
		cm.Labels[LabelKind], cm.UID = kind, types.UID(uid)
		if err := ring.Sign(cm); err != nil {
			t.Fatal(err)
		}
		return cm
	}
	for name, c := range map[string]struct {
		cm    *corev1.ConfigMap
		uid   types.UID
		edit  func(cm *corev1.ConfigMap)
		want  string // why it does not count; empty: it does
		again bool
	}{
		"a run":                           {cm: signedAs(KindRun, "one"), uid: "one"},
		"a run that was created again":    {cm: signedAs(KindRun, "one"), uid: "two", want: "somebody created it again", again: true},
		"a run that is not created yet":   {cm: signedAs(KindRun, ""), uid: "one"},
		"a ledger that was created again": {cm: signedAs(KindLedger, "one"), uid: "two"},
		"the uid of the copy":             {cm: signedAs(KindRun, "one"), uid: "two", edit: func(cm *corev1.ConfigMap) { cm.Data[dataUID] = "two" }, want: "changed after"},
		"no uid":                          {cm: signedAs(KindRun, "one"), uid: "two", edit: func(cm *corev1.ConfigMap) { delete(cm.Data, dataUID) }, want: "changed after"},
		"a copy that is signed again": {cm: signedAs(KindRun, "one"), uid: "two", edit: func(cm *corev1.ConfigMap) {
			if err := ring.Sign(cm); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cm := c.cm
			cm.UID = c.uid
			if c.edit != nil {
				c.edit(cm)
			}
			err := ring.Check(cm)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Check: %v, want %q", err, c.want)
			}
			if Recreated(cm) != c.again || c.again && (ring.CheckRestored(cm) != nil || CheckForm(cm) != nil) {
				t.Errorf("it does not count where it is restored: %v, %v", ring.CheckRestored(cm), CheckForm(cm))
			}
		})
	}
}

func TestWhichKeysCount(t *testing.T) {
	old, both, fresh := keyringOf(t, map[string]string{DataKey: longKey("o")}), keyringOf(t, map[string]string{DataKey: longKey("n"), DataPreviousKey: longKey("o")}), keyringOf(t, map[string]string{DataKey: longKey("n")})
	for name, c := range map[string]struct {
		by, read Keyring
		counts   bool
		outdated bool
	}{
		"the same key":                            {by: old, read: old, counts: true},
		"the old key while it is being replaced":  {by: old, read: both, counts: true, outdated: true},
		"the new key while it is being replaced":  {by: both, read: both, counts: true},
		"the new key afterwards":                  {by: both, read: fresh, counts: true},
		"the old key afterwards":                  {by: old, read: fresh},
		"the new key for who knows the old alone": {by: fresh, read: old},
		"any key for who knows none":              {by: old, read: Keyring{}},
	} {
		t.Run(name, func(t *testing.T) {
			cm := signedLedger(t, c.by)
			if err := c.read.Check(cm); (err == nil) != c.counts {
				t.Errorf("Check: %v, want %v", err, c.counts)
			}
			if got := c.read.Outdated(cm); got != c.outdated {
				t.Errorf("Outdated: %v, want %v", got, c.outdated)
			}
		})
	}
	if old.ID() == fresh.ID() || both.ID() != fresh.ID() || (Keyring{}).ID() != "" {
		t.Errorf("ids: %q %q %q %q", old.ID(), both.ID(), fresh.ID(), Keyring{}.ID())
	}
	if cm := signedLedger(t, old); strings.Contains(cm.Annotations[StatusSignature], "oooo") {
		t.Error("the signature holds the key")
	}
	if err := (Keyring{}).Sign(&corev1.ConfigMap{}); err == nil {
		t.Error("signed without a key")
	}
}

func TestWhichKeysAreKnownByTheirNames(t *testing.T) {
	one, both := keyringOf(t, map[string]string{DataKey: longKey("n")}), keyringOf(t, map[string]string{DataKey: longKey("n"), DataPreviousKey: longKey("o")})
	current, previous := keyID([]byte(longKey("n"))), keyID([]byte(longKey("o")))
	for name, c := range map[string]struct {
		ring Keyring
		id   string
		want bool
	}{
		"the one that signs":            {both, current, true},
		"the one before it":             {both, previous, true},
		"the one before it, afterwards": {one, previous, false},
		"another":                       {both, keyID([]byte(longKey("x"))), false},
		"no name":                       {one, "", false},
		"no name, and no key":           {Keyring{}, "", false},
	} {
		if got := c.ring.Knows(c.id); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	twice := keyringOf(t, map[string]string{DataKey: longKey("k"), DataPreviousKey: longKey("k")})
	if twice.Outdated(signedLedger(t, twice)) {
		t.Error("what the key signed that takes its own place is outdated")
	}
	forged := signedLedger(t, keyringOf(t, map[string]string{DataKey: longKey("o")}))
	if forged.Name = "other"; both.Outdated(forged) {
		t.Error("what does not count is outdated")
	}
}

// Without a key it is known only of some that they cannot be the agent's.
func TestWhatCannotBeTheAgentsByItsForm(t *testing.T) {
	ring := keyringOf(t, map[string]string{DataKey: longKey("k")})
	part := func(i int, text string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) {
			parts := strings.Split(cm.Annotations[StatusSignature], ".")
			parts[i] = text
			cm.Annotations[StatusSignature] = strings.Join(parts, ".")
		}
	}
	for name, c := range map[string]struct {
		edit func(*corev1.ConfigMap)
		want string // why; empty: it may be
	}{
		"signed":                   {func(*corev1.ConfigMap) {}, ""},
		"with whatever key":        {part(1, "0123456789"), ""},
		"with a sum that is false": {part(3, "AAAA"), ""},
		"not signed":               {func(cm *corev1.ConfigMap) { cm.Annotations = nil }, "carries no signature"},
		"in another version":       {part(0, "v2"), "cannot be read"},
		"with a sum that is none":  {part(3, "!"), "cannot be read"},
		"changed after it":         {func(cm *corev1.ConfigMap) { cm.Data["more"] = "x" }, "changed after"},
		"with a digest of its own": {part(2, "AAAA"), "changed after"},
	} {
		cm := signedLedger(t, ring)
		c.edit(cm)
		err := CheckForm(cm)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWhatIsAKey(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"a new key":            {data: map[string][]byte{DataKey: NewKey()}},
		"two keys":             {data: map[string][]byte{DataKey: NewKey(), DataPreviousKey: NewKey()}},
		"no key before it":     {data: map[string][]byte{DataKey: NewKey(), DataPreviousKey: {}}},
		"an empty Secret":      {want: `holds no "key"`},
		"an empty key":         {data: map[string][]byte{DataKey: {}}, want: `holds no "key"`},
		"a short key":          {data: map[string][]byte{DataKey: make([]byte, keySize-1)}, want: "has 31 bytes"},
		"a short previous key": {data: map[string][]byte{DataKey: NewKey(), DataPreviousKey: []byte("x")}, want: "has 1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			ring, err := ReadKeyring(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "maint-system", Name: KeyName}, Data: c.data})
			if c.want == "" {
				again, err := ReadKeyring(&corev1.Secret{Data: ring.KeyData()})
				if err != nil || !again.Equal(ring) || ring.Empty() {
					t.Errorf("%v: read again it is another", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "maint-system/"+KeyName) || !ring.Empty() {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Of what does not count only why is kept; with another key it may count, and is read
// again, and what was changed never does.
func TestWhatDoesNotCountIsNotKept(t *testing.T) {
	ours, other := keyringOf(t, map[string]string{DataKey: longKey("k")}), keyringOf(t, map[string]string{DataKey: longKey("o")})
	for name, c := range map[string]struct {
		edit     func(cm *corev1.ConfigMap)
		reader   Keyring
		emptied  string // why; empty: it is kept
		mayCount bool   // with our key
	}{
		"signed":             {edit: func(*corev1.ConfigMap) {}, reader: ours},
		"with another key":   {edit: func(*corev1.ConfigMap) {}, reader: other, emptied: "another key", mayCount: true},
		"not signed":         {edit: func(cm *corev1.ConfigMap) { delete(cm.Annotations, StatusSignature) }, reader: ours, emptied: "no signature"},
		"changed":            {edit: func(cm *corev1.ConfigMap) { cm.Data["more"] = "x" }, reader: ours, emptied: "changed after"},
		"nobody has any key": {edit: func(*corev1.ConfigMap) {}, reader: Keyring{}, emptied: "key", mayCount: true},
	} {
		t.Run(name, func(t *testing.T) {
			cm := signedLedger(t, ours)
			c.edit(cm)
			before := SizeOf(cm)
			c.reader.EmptyUncounted(cm)
			why := ""
			if err := c.reader.Check(cm); err != nil {
				why = err.Error()
			}
			if IsEmptied(cm) != (c.emptied != "") || !strings.Contains(why, c.emptied) || (why == "") != (c.emptied == "") {
				t.Errorf("emptied: %t, because %q", IsEmptied(cm), why)
			}
			if IsEmptied(cm) == (SizeOf(cm) == before) || cm.Name == "" || cm.Labels[LabelPlan] == "" {
				t.Errorf("kept: %+v", cm)
			}
			if ours.MayCount(cm) != c.mayCount {
				t.Errorf("it may count: %t", ours.MayCount(cm))
			}
			if IsEmptied(cm) && ours.Check(cm) == nil {
				t.Error("what was emptied counts")
			}
		})
	}
}
