package annotations

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusSignature is on what the agent wrote for itself: runs, ledgers, gate records.
const StatusSignature = "status.maint.dev/signature"

// KeyName is the Secret in the agent's namespace that holds the key of signatures.
const KeyName = "maint-agent-key"

// The data of that Secret: the key that signs, and one that still counts while it is
// being replaced.
const (
	DataKey         = "key"
	DataPreviousKey = "previous"
)

// HeartbeatKey names, in the heartbeat's data, the key that signs. Without it nothing was signed.
const HeartbeatKey = "key"

// HeartbeatWatches names, in the heartbeat's data, the only namespace that is watched; absent: all are.
// HeartbeatActors says there whether the API server refuses false actors; absent: that is not known.
const (
	HeartbeatWatches = "watches"
	HeartbeatActors  = "actors"
	ActorsVerified   = "verified"
	ActorsUnverified = "unverified"
	// HeartbeatConfiguration says how the agent's configuration stands; absent: there was none.
	HeartbeatConfiguration = "configuration"
	ConfigurationPresent   = "present"
	ConfigurationDeleted   = "deleted" // the agent keeps it in force until it ends
	ConfigurationLost      = "lost"    // an earlier agent had one, and the defaults are in force
)

// StatusKeyLost is on that Secret: when the key before this one was found to be gone.
const StatusKeyLost = "status.maint.dev/key-lost"

// StatusKeySeen is beside it where no heartbeat told of the key before: which objects say that
// another key signed them. Anybody who may write ConfigMaps may have written that.
const StatusKeySeen = "status.maint.dev/key-seen"

// keySize is how long a new key is, in bytes, and the least that is taken.
const keySize = 32

// signatureVersion begins every signature; another way to make them has another.
const signatureVersion = "v1"

// Keyring are the keys that count: one signs, and the one before it is still known
// while it is being replaced. The zero Keyring knows nothing.
type Keyring struct {
	current, previous []byte
}

// NewKey makes a key.
func NewKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails: see its documentation
	return key
}

// ReadKeyring reads the Secret of the agent's key. It says what is wrong with it.
func ReadKeyring(s *corev1.Secret) (Keyring, error) {
	k := Keyring{current: s.Data[DataKey], previous: s.Data[DataPreviousKey]}
	switch {
	case len(k.current) == 0:
		return Keyring{}, fmt.Errorf("the Secret %s/%s holds no %q", s.Namespace, s.Name, DataKey)
	case len(k.current) < keySize:
		return Keyring{}, fmt.Errorf("the Secret %s/%s: %q has %d bytes; at least %d are needed", s.Namespace, s.Name, DataKey, len(k.current), keySize)
	case len(k.previous) > 0 && len(k.previous) < keySize:
		return Keyring{}, fmt.Errorf("the Secret %s/%s: %q has %d bytes; at least %d are needed, or none", s.Namespace, s.Name, DataPreviousKey, len(k.previous), keySize)
	}
	return k, nil
}

// KeyData is the data of the Secret that holds a keyring.
func (k Keyring) KeyData() map[string][]byte {
	data := map[string][]byte{DataKey: k.current}
	if len(k.previous) > 0 {
		data[DataPreviousKey] = k.previous
	}
	return data
}

// Empty says whether there is no key.
func (k Keyring) Empty() bool { return len(k.current) == 0 }

// Replacing says whether the key before this one still counts.
func (k Keyring) Replacing() bool { return len(k.previous) > 0 }

// Knows says whether a key of that ID counts.
func (k Keyring) Knows(id string) bool {
	return id != "" && (id == k.ID() || id == keyID(k.previous))
}

// Equal says whether two keyrings hold the same.
func (k Keyring) Equal(o Keyring) bool {
	return hmac.Equal(k.current, o.current) && hmac.Equal(k.previous, o.previous)
}

// ID names the key that signs; it tells nothing of the key itself. Empty: there is none.
func (k Keyring) ID() string { return keyID(k.current) }

func keyID(key []byte) string {
	if len(key) == 0 {
		return ""
	}
	return hex.EncodeToString(mac(key, "id")[:keyIDSize])
}

// keyIDSize is how long the name of a key is, in bytes.
const keyIDSize = 5

// Sign puts a signature on an object as it is now. It covers the object's kind, namespace and name,
// our labels, and its data, in which the plan of a run or a ledger is named by its UID. The data of a
// run name its own object, too, by its UID once it has one, so that a copy of a run does not pass for
// it. After any change of these the object has to be signed again.
func (k Keyring) Sign(cm *corev1.ConfigMap) error {
	if k.Empty() {
		return errors.New("there is no key to sign with")
	}
	if cm.Annotations == nil {
		cm.Annotations = map[string]string{}
	}
	if cm.Labels[LabelKind] == KindRun && cm.UID != "" {
		data := map[string]string{} // the object may be shared
		maps.Copy(data, cm.Data)
		data[dataUID] = string(cm.UID)
		cm.Data = data
	}
	digest := contentOf(cm)
	cm.Annotations[StatusSignature] = strings.Join([]string{signatureVersion, k.ID(), encode(digest), encode(identity(k.current, cm, digest))}, ".")
	return nil
}

// SignatureError says why an object does not count as the agent's own.
type SignatureError struct {
	Kind, Namespace, Name string
	Why                   string
}

func (e *SignatureError) Error() string {
	return fmt.Sprintf("the %s %s/%s does not count: %s", e.Kind, e.Namespace, e.Name, e.Why)
}

// dataUID is the key in the data of a run under which the UID of its object stands.
const dataUID = "uid"

// Recreated says whether a run's object is not the one that was signed last, but one of its name.
// Whoever created it again may be somebody who restored a backup.
func Recreated(cm *corev1.ConfigMap) bool {
	uid := cm.Data[dataUID]
	return cm.Labels[LabelKind] == KindRun && uid != "" && uid != string(cm.UID)
}

// Check says why an object does not count as written by the agent: *SignatureError.
func (k Keyring) Check(cm *corev1.ConfigMap) error {
	err := k.CheckRestored(cm)
	if err == nil && Recreated(cm) {
		return refused(cm, "it was deleted, and somebody created it again from what the agent had signed")
	}
	return err
}

// CheckBeside is Check where the UID of the plan that is there now is known; empty: there is none. A
// run that somebody created again is none of the agent's while its plan is the same: what had run of
// it would run again. With another plan, or none, it came back from a backup, and only ends.
func (k Keyring) CheckBeside(cm *corev1.ConfigMap, plan string) error {
	if err := k.CheckRestored(cm); err != nil || Recreated(cm) && (plan == "" || plan != PlanOfRun(cm)) {
		return err
	}
	return k.Check(cm)
}

// CheckRestored is Check for an object that may have come back from a backup.
func (k Keyring) CheckRestored(cm *corev1.ConfigMap) error {
	digest, err := k.signed(cm)
	if err != nil {
		return err
	}
	if why, emptied := cm.BinaryData[uncountedKey]; emptied {
		return refused(cm, string(why))
	}
	if !hmac.Equal(digest, contentOf(cm)) {
		return refused(cm, changedSince)
	}
	return nil
}

const changedSince = "it was changed after the agent had signed it"

// uncountedKey holds why what an object held is not kept. No object of a cluster has such
// a key.
const uncountedKey = "\x00uncounted"

// EmptyUncounted takes out what an object holds that the agent has not signed, and leaves the
// reason in its place: nothing else of such an object is ever looked at.
func (k Keyring) EmptyUncounted(cm *corev1.ConfigMap) {
	if forged := new(SignatureError); errors.As(k.CheckRestored(cm), &forged) {
		cm.Data, cm.BinaryData = nil, map[string][]byte{uncountedKey: []byte(forged.Why)}
	}
}

// IsEmptied says whether EmptyUncounted took out what the object held.
func IsEmptied(cm *corev1.ConfigMap) bool { return cm.BinaryData[uncountedKey] != nil }

// MayCount says whether an object that EmptyUncounted emptied may count with the keys of now: its
// signature is of a key that was not known then. It has to be read again.
func (k Keyring) MayCount(cm *corev1.ConfigMap) bool {
	return IsEmptied(cm) && string(cm.BinaryData[uncountedKey]) != changedSince && k.CheckName(cm) == nil
}

// CheckName says why an object was not written by the agent, by its metadata alone: what
// it holds may have been changed since. Its errors are *SignatureError.
func (k Keyring) CheckName(o metav1.Object) error {
	_, err := k.signed(o)
	return err
}

// Outdated says whether an object is signed, and with the key that is being replaced.
func (k Keyring) Outdated(o metav1.Object) bool {
	_, id, _, _, _ := parseSignature(o)
	return k.Replacing() && id == keyID(k.previous) && id != k.ID() && k.CheckName(o) == nil
}

// CheckForm says, without a key, why an object cannot count as written by the agent:
// *SignatureError. One that it finds nothing wrong with may be false all the same.
func CheckForm(cm *corev1.ConfigMap) error {
	version, _, digest, _, ok := parseSignature(cm)
	switch {
	case Unsigned(cm):
		return refused(cm, unsigned)
	case !ok || version != signatureVersion:
		return refused(cm, "its signature cannot be read")
	case !hmac.Equal(digest, contentOf(cm)):
		return refused(cm, changedSince)
	}
	return nil
}

const unsigned = "it carries no signature of the agent's"

// Unsigned says whether an object carries no signature at all.
func Unsigned(o metav1.Object) bool { return o.GetAnnotations()[StatusSignature] == "" }

// SignedWith names the key that an object says it was signed with; empty: it says none. Anybody
// may have written it.
func SignedWith(o metav1.Object) string {
	version, id, _, _, ok := parseSignature(o)
	if !ok || version != signatureVersion || !keyIDForm(id) {
		return ""
	}
	return id
}

// keyIDForm says whether a text looks like the name of a key.
func keyIDForm(id string) bool {
	b, err := hex.DecodeString(id)
	return err == nil && len(b) == keyIDSize
}

// SignedKinds selects the objects that the agent signs.
func SignedKinds() string {
	return LabelKind + " in (" + strings.Join([]string{KindLedger, KindGate, KindRestore, KindRun}, ",") + ")"
}

// signed is the digest that an object's signature speaks of.
func (k Keyring) signed(o metav1.Object) ([]byte, error) {
	if Unsigned(o) {
		return nil, refused(o, unsigned)
	}
	version, id, digest, sum, ok := parseSignature(o)
	switch {
	case !ok || version != signatureVersion:
		return nil, refused(o, "its signature is none that this agent can read")
	case k.Empty():
		return nil, refused(o, "there is no key to check its signature with")
	}
	key := k.current
	if id != k.ID() {
		key = k.previous
	}
	switch {
	case id != keyID(key):
		return nil, refused(o, "it was signed with another key than the agent's")
	case !hmac.Equal(sum, identity(key, o, digest)):
		return nil, refused(o, "its signature is false")
	}
	return digest, nil
}

func refused(o metav1.Object, why string) error {
	return &SignatureError{Kind: cutKind(o.GetLabels()[LabelKind]), Namespace: o.GetNamespace(), Name: o.GetName(), Why: why}
}

// cutKind is a kind of ours as it is said; a label may hold anything.
func cutKind(kind string) string {
	if AgentWrites(kind) {
		return kind
	}
	return "object"
}

func parseSignature(o metav1.Object) (version, id string, digest, sum []byte, ok bool) {
	parts := strings.Split(o.GetAnnotations()[StatusSignature], ".")
	if len(parts) != 4 {
		return "", "", nil, nil, false
	}
	digest, broken := base64.RawURLEncoding.DecodeString(parts[2])
	sum, alsoBroken := base64.RawURLEncoding.DecodeString(parts[3])
	return parts[0], parts[1], digest, sum, broken == nil && alsoBroken == nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// identity binds a digest to the object that holds what it is of.
func identity(key []byte, o metav1.Object, digest []byte) []byte {
	return mac(key, "object", o.GetLabels()[LabelKind], o.GetNamespace(), o.GetName(), string(digest))
}

func mac(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	writeParts(h, parts...)
	return h.Sum(nil)
}

// contentOf is the digest of what a signature covers beside the object's name.
func contentOf(cm *corev1.ConfigMap) []byte {
	h := sha256.New()
	writeParts(h, cm.Labels[LabelPlan], cm.Labels[LabelPhase])
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		writeParts(h, "data", key, cm.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		writeParts(h, "binaryData", key)
		writeLength(h, len(cm.BinaryData[key]))
		_, _ = h.Write(cm.BinaryData[key])
	}
	return h.Sum(nil)
}

// writeParts writes each part behind its length, so that no two lists are alike.
func writeParts(to io.Writer, parts ...string) {
	for _, p := range parts {
		writeLength(to, len(p))
		_, _ = io.WriteString(to, p) // a hash takes everything
	}
}

func writeLength(to io.Writer, n int) {
	_ = binary.Write(to, binary.BigEndian, uint64(n)) //nolint:gosec // a length is not below zero
}
