// Package keys holds the key by which the agent knows again what it wrote for itself.
package keys

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// Store is the keyring in force, as the Secret says. A Secret that is broken or gone
// leaves the one before it in force for as long as this process lives.
type Store struct {
	Config

	planIs  func(plan types.NamespacedName) string // nil: no plan is known
	mu      sync.RWMutex
	current annotations.Keyring
	fault   error // why the Secret as it stands is of no use; nil: it is
	lost    loss
	unkept  string        // the ID of a key that signs what an agent left that signed nothing, and has no Secret until that is done; of Begin alone
	former  string        // the ID of a key that signed before this one and is not in the Secret; empty: there is none
	changed chan struct{} // closed when the Secret is another
}

// loss is what the Secret says of the key before this one.
type loss struct {
	at   string // when it was found to be gone; empty: it was not
	seen string // where only signatures told of it: which
}

// Config is what the key is kept with.
type Config struct {
	Kube           kube.Interface // the agent's own
	Meta           metadata.Interface
	Namespace      string // the agent's own
	WatchNamespace string // empty: all
	Now            func() time.Time
	Log            *slog.Logger
	// Changed hears that what counts may be another.
	Changed func()
}

// New knows no key yet.
func New(c Config) *Store { return &Store{Config: c, changed: make(chan struct{})} }

// Fixed holds a keyring that does not change.
func Fixed(ring annotations.Keyring) *Store {
	return &Store{current: ring, changed: make(chan struct{}), Config: Config{Changed: func() {}}}
}

// Sign signs an object of the agent's that is about to be written.
func (s *Store) Sign(cm *corev1.ConfigMap) error {
	if err := s.keyring().Sign(cm); err != nil {
		return fmt.Errorf("sign %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	return nil
}

// Check says why an object does not count as the agent's own, beside the plan that is there:
// *annotations.SignatureError.
func (s *Store) Check(cm *corev1.ConfigMap) error {
	if annotations.Recreated(cm) && s.planIs != nil {
		return s.keyring().CheckBeside(cm, s.planIs(types.NamespacedName{Namespace: cm.Namespace, Name: cm.Labels[annotations.LabelPlan]}))
	}
	return s.keyring().Check(cm)
}

// KnowPlans tells the store, before anything is checked, how the UID of the plan that is there now is
// found; empty: there is none.
func (s *Store) KnowPlans(uid func(plan types.NamespacedName) string) *Store {
	s.planIs = uid
	return s
}

// Empty takes out what an object holds that does not count.
func (s *Store) Empty(cm *corev1.ConfigMap) { s.keyring().EmptyUncounted(cm) }

// MayCount says whether an object that was emptied may count now.
func (s *Store) MayCount(cm *corev1.ConfigMap) bool { return s.keyring().MayCount(cm) }

// CheckKind is Check for an object that says of itself that it is of a kind of ours. What
// does not is somebody else's, which reading it says.
func (s *Store) CheckKind(cm *corev1.ConfigMap, kind string) error {
	if cm.Labels[annotations.LabelKind] != kind {
		return nil
	}
	return s.Check(cm)
}

// IsOurs says by an object's metadata alone whether the agent made it.
func (s *Store) IsOurs(o metav1.Object) bool { return s.keyring().CheckName(o) == nil }

// ID names the key that signs; empty: there is none.
func (s *Store) ID() string { return s.keyring().ID() }

func (s *Store) keyring() annotations.Keyring {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.current
}

// Observe takes in the Secret as the watch shows it.
func (s *Store) Observe(o any) {
	secret := o.(*corev1.Secret)
	ring, err := annotations.ReadKeyring(secret)
	if !s.take(ring, err, loss{secret.Annotations[annotations.StatusKeyLost], secret.Annotations[annotations.StatusKeySeen]}) {
		return
	}
	if err != nil {
		s.Log.Error("the agent's key is broken", "error", err.Error(), "in force", s.ID())
	} else {
		s.Log.Info("took up the agent's key", "key", ring.ID(), "replacing", ring.Replacing())
	}
	s.Changed()
}

// Lost hears that the Secret is gone. The leader makes it again.
func (s *Store) Lost(any) {
	if s.take(annotations.Keyring{}, fmt.Errorf("the Secret %s/%s is gone", s.Namespace, annotations.KeyName), loss{}) {
		s.Log.Warn("the Secret of the agent's key is gone", "in force", s.ID())
		s.Changed()
	}
}

// take notes what the Secret says, and says whether that is news.
func (s *Store) take(ring annotations.Keyring, fault error, lost loss) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault != nil {
		ring = s.current
	}
	if ring.Equal(s.current) && fmt.Sprint(fault) == fmt.Sprint(s.fault) && lost == s.lost {
		return false
	}
	before := s.current.ID()
	if s.current, s.fault, s.lost = ring, fault, lost; ring.Knows(s.former) {
		s.former = ""
	}
	s.replaced(before)
	close(s.changed)
	s.changed = make(chan struct{})
	return true
}

// replaced notes the ID of a key that signed before, where what it signed counts no longer. The
// caller holds the lock.
func (s *Store) replaced(key string) {
	if key != "" && !s.current.Empty() && !s.current.Knows(key) {
		s.former = key
	}
}

// precededBy hears of the key that the agent before this one signed with.
func (s *Store) precededBy(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost.at == "" { // else the Secret says that it is lost
		s.replaced(key)
	}
}

// Usable says why nothing can be done: there is no key. One that is in force goes on
// being used whatever became of its Secret.
func (s *Store) Usable() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.current.Empty() {
		return nil
	}
	return s.fault
}

// broken says whether the Secret as it stands is of no use.
func (s *Store) broken() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.fault != nil
}

// Condition says what is wrong with the key; none where nothing is.
func (s *Store) Condition() []metav1.Condition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := metav1.Condition{Type: "SigningKey", Status: metav1.ConditionFalse}
	switch {
	case s.fault != nil && s.current.Empty():
		c.Reason, c.Message = "Broken", fmt.Sprintf("%v, so nothing is done: put the key back, or delete the Secret to begin with a new one (docs/operations.md, \"The key\")", s.fault)
	case s.fault != nil:
		c.Reason, c.Message = "Broken", fmt.Sprintf("%v; the previous key stays in force until the agent ends: put it back", s.fault)
	case s.lost.at != "":
		c.Reason, c.Message = "Lost", s.lost.String()+fmt.Sprintf("; take %s off the Secret %s/%s when that is done", annotations.StatusKeyLost, s.Namespace, annotations.KeyName)
	case s.former != "":
		c.Reason, c.Message = "Replaced", fmt.Sprintf("the Secret %s/%s holds another key than key %s, which was in use before, and not under %q: what that key signed is not accepted any more. Put it there (docs/operations.md, \"The key\"), or sign what you know with 'kubectl maint adopt'", s.Namespace, annotations.KeyName, s.former, annotations.DataPreviousKey)
	default:
		return nil
	}
	c.Message = document.Cut(c.Message, 4*document.MaxMessage)
	return []metav1.Condition{c}
}

// String says what is known of the key before, and what to do.
func (l loss) String() string {
	at := document.Cut(l.at, 40)
	if l.seen == "" {
		return fmt.Sprintf("the key was found to be gone at %s and a new one was made: what the old key signed is not accepted any more. 'kubectl maint adopt' signs what you know", at)
	}
	return fmt.Sprintf("there was no key at %s and a new one was made, but %s. If an agent was installed before, its key is lost: restore the Secret, or sign what you know with 'kubectl maint adopt'. If there never was one, somebody made these signatures up: delete those objects", at, document.Cut(l.seen, maxSeen))
}

// changes is closed when the Secret is another than now.
func (s *Store) changes() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changed
}
