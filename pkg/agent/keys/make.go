package keys

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
)

// mendedWithin is how long a broken Secret is looked at again where no watch says that
// it was mended (a guess).
const mendedWithin = 30 * time.Second

// What of the signatures of a key before is told: some of their namespaces, and so much text.
const (
	namedAtMost = 5
	maxSeen     = 900
)

// Read takes in the Secret as it is now, so that what is read next can be checked. That
// there is none yet is no error: who leads makes it.
func (s *Store) Read(ctx context.Context) error {
	secret, err := s.get(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s.Observe(secret)
	return nil
}

func (s *Store) get(ctx context.Context) (*corev1.Secret, error) {
	secret, err := s.Kube.CoreV1().Secrets(s.Namespace).Get(ctx, annotations.KeyName, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the agent may not read the Secret %s/%s, which holds the key of what it writes for itself: apply the manifests of its version ('kubectl maint install --apply'): %w", s.Namespace, annotations.KeyName, err)
	case err != nil:
		return nil, fmt.Errorf("read the Secret %s/%s: %w", s.Namespace, annotations.KeyName, err)
	}
	return secret, nil
}

// ensure makes sure, for the one who leads, that there is a key.
func (s *Store) ensure(ctx context.Context) error {
	secret, err := s.get(ctx)
	if apierrors.IsNotFound(err) {
		secret, err = s.create(ctx)
	}
	if err != nil {
		return err
	}
	s.Observe(secret)
	_, err = annotations.ReadKeyring(secret)
	return err
}

// create makes the Secret: with the key that is in force, where somebody took it away
// under us, else with a new one. Where something tells of a key before, the Secret says so.
func (s *Store) create(ctx context.Context) (_ *corev1.Secret, err error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: annotations.KeyName}, Data: s.keyring().KeyData()}
	if s.keyring().Empty() {
		if secret.Annotations, err = s.lostBefore(ctx); err != nil {
			return nil, err
		}
		secret.Data = map[string][]byte{annotations.DataKey: annotations.NewKey()}
	}
	made, err := s.Kube.CoreV1().Secrets(s.Namespace).Create(ctx, secret, client.CreateOptions())
	if apierrors.IsAlreadyExists(err) { // our own reply was lost, or another was faster
		return s.get(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("make the Secret %s/%s: %w", s.Namespace, annotations.KeyName, err)
	}
	s.Log.Info("made the Secret of the agent's key", "secret", s.Namespace+"/"+annotations.KeyName)
	return made, nil
}

// before says whether an agent ran before this one, and which key it signed with, as its
// heartbeat says: none, if it is of a version that signed nothing.
func (s *Store) before(ctx context.Context) (ran bool, key string, err error) {
	beat, err := s.Kube.CoreV1().ConfigMaps(s.Namespace).Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, "", nil
	}
	if err != nil {
		return false, "", fmt.Errorf("read the heartbeat of the agent before: %w", err)
	}
	return true, beat.Data[annotations.HeartbeatKey], nil
}

// shared says whether the heartbeat stands where others may write ConfigMaps, as that of an agent
// of one namespace does: that it names no key shows nothing, since they may have taken it out.
func (s *Store) shared() bool { return s.WatchNamespace == s.Namespace }

// lostBefore are the annotations of a new Secret. A heartbeat that names a key says for sure
// that it is lost. Where the heartbeat is gone with its installation, signatures tell of a key;
// but a tenant can write one, so the Secret says which they are. None: nothing tells of a key.
func (s *Store) lostBefore(ctx context.Context) (map[string]string, error) {
	notes := map[string]string{annotations.StatusKeyLost: s.Now().UTC().Format(time.RFC3339)}
	ran, key, err := s.before(ctx)
	switch {
	case err != nil || ran && key == "" && !s.shared():
		return nil, err
	case key != "":
		s.Log.Error("the agent's key is lost: what was signed with it does not count", "key", key)
		return notes, nil
	}
	seen, err := s.signatures(ctx)
	switch {
	case err != nil || seen.count == 0 && (!ran || seen.unsigned == 0):
		return nil, err
	case seen.count == 0: // somebody took the key out of the heartbeat, or there never was one
		s.Log.Error("the agent's key is lost, and the heartbeat names none: what is not signed does not count", "objects", seen.unsigned)
		return notes, nil
	}
	notes[annotations.StatusKeySeen] = seen.String()
	s.Log.Warn("the agent's key may be lost", "seen", seen.String())
	return notes, nil
}

// signatures looks for objects that say that a key signed them.
func (s *Store) signatures(ctx context.Context) (seen signatures, err error) {
	err = s.each(ctx, func(o *metav1.PartialObjectMetadata) error {
		seen.add(o)
		return nil
	})
	return seen, err
}

// signatures are objects that say that a key signed them.
type signatures struct {
	count      int
	first, key string // one of them, and the key that it names
	namespaces []string
	unsigned   int // objects that say so of none
}

func (s *signatures) add(o metav1.Object) {
	key := annotations.SignedWith(o)
	if key == "" {
		s.unsigned++
		return
	}
	if s.count++; s.count == 1 {
		s.first, s.key = o.GetNamespace()+"/"+o.GetName(), key
	}
	if !slices.Contains(s.namespaces, o.GetNamespace()) {
		s.namespaces = append(s.namespaces, o.GetNamespace())
	}
}

func (s *signatures) String() string {
	if s.count == 1 {
		return fmt.Sprintf("ConfigMap %s says that key %s signed it", s.first, s.key)
	}
	return fmt.Sprintf("ConfigMap %s says that key %s signed it, and %d in all say so of a key, in namespaces %s", s.first, s.key, s.count, document.Few(s.namespaces, namedAtMost))
}

// Begin returns when there is a key, and, where the agent before was of a version that
// signed nothing, all that it left is signed: its heartbeat names no key, and there is no Secret.
// waits hears of each attempt that failed. Signed says whether anything had to be looked at.
func (s *Store) Begin(ctx context.Context, waits func(error)) (signed bool) {
	for failures := (informer.Failures{}); ctx.Err() == nil; {
		changed := s.changes()
		looked, err := s.begin(ctx)
		if signed = signed || looked; err == nil {
			return signed
		}
		waits(err)
		pause := informer.Backoff(failures.Count(err), err)
		if s.Usable() != nil { // only a person mends it
			pause = mendedWithin
		}
		s.wait(ctx, changed, pause)
	}
	return signed
}

func (s *Store) begin(ctx context.Context) (signed bool, err error) {
	ran, key, err := s.before(ctx)
	if err == nil && ran && key == "" {
		signed, err = s.signFormer(ctx)
	}
	if err == nil {
		err = s.ensure(ctx)
	}
	if err != nil {
		return signed, err
	}
	s.unkept = ""
	s.precededBy(key)
	return signed, nil
}

// signFormer signs what an agent left that signed nothing, with a key that is not in its Secret yet:
// the Secret says from then on that this is done. Whoever takes the key out of the heartbeat later
// has nothing signed; and if we die on the way, the next leader begins anew with another key. An
// agent of one namespace signs nothing: create says that the key is lost.
func (s *Store) signFormer(ctx context.Context) (signed bool, err error) {
	if _, err := s.get(ctx); err == nil {
		s.Log.Warn("the heartbeat of the agent before names no key, but there is one: what is not signed with it does not count. If an earlier version was at work meanwhile, look at what it left, and sign what you know with 'kubectl maint adopt OBJECT'")
		return false, nil
	} else if !apierrors.IsNotFound(err) {
		return false, err
	}
	if s.shared() { // what stands there without a signature may be theirs, too
		return false, nil
	}
	if s.keyring().Empty() {
		s.Observe(&corev1.Secret{Data: map[string][]byte{annotations.DataKey: annotations.NewKey()}})
		s.unkept = s.ID()
	}
	if s.unkept == "" || s.unkept != s.ID() { // a key that was in its Secret before
		return false, nil
	}
	_, err = s.signAll(ctx, s.unsigned)
	return true, err
}

// Run keeps the key, as the one who leads, until ctx ends: a Secret that is taken away
// is made again, and what the key before has signed is signed with the new one.
func (s *Store) Run(ctx context.Context) {
	for failures := (informer.Failures{}); ctx.Err() == nil; {
		changed := s.changes()
		pause, err := time.Duration(0), s.keep(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.Error("the agent's key", "error", err.Error())
			pause = informer.Backoff(failures.Count(err), err)
		} else {
			failures = informer.Failures{}
		}
		s.wait(ctx, changed, pause)
	}
}

func (s *Store) keep(ctx context.Context) error {
	err := s.ensure(ctx)
	if err != nil && s.broken() { // it was said, and only a person mends it
		return nil
	}
	if err != nil || !s.keyring().Replacing() {
		return err
	}
	left, err := s.signAll(ctx, s.outdated)
	if err != nil {
		return err
	}
	if left > 0 {
		s.Log.Warn("not everything could be signed with the agent's new key: the rest does not count any more once the previous one is removed from its Secret", "objects", left, "key", s.ID())
		return nil
	}
	s.Log.Info("everything is signed with the agent's new key; the previous one may be taken out of its Secret", "key", s.ID())
	return nil
}

// wait waits until something changed, and for a pause if one is given.
func (s *Store) wait(ctx context.Context, changed <-chan struct{}, pause time.Duration) {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-over:
	}
}
