package view

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// Keys are those by which records of the agent's count, as far as a command may read them.
type Keys struct {
	rings  []annotations.Keyring
	unread error // why one of them is not known
}

// Add takes in the Secret of an agent's key, or why it could not be read.
func (k *Keys) Add(secret *corev1.Secret, err error) {
	ring := annotations.Keyring{}
	if err == nil {
		ring, err = annotations.ReadKeyring(secret)
	}
	if k.rings = append(k.rings, ring); err != nil {
		k.unread = err
	}
}

// Check says why a record does not count: *annotations.SignatureError. Where a key is not known, the
// form of its signature has to do.
func (k *Keys) Check(cm *corev1.ConfigMap) error {
	return k.check(cm, func(ring annotations.Keyring) error { return ring.Check(cm) })
}

// CheckBeside is Check for a run, beside the plan of its name that is there, by its UID; empty: none is.
func (k *Keys) CheckBeside(cm *corev1.ConfigMap, plan string) error {
	return k.check(cm, func(ring annotations.Keyring) error { return ring.CheckBeside(cm, plan) })
}

func (k *Keys) check(cm *corev1.ConfigMap, by func(annotations.Keyring) error) error {
	err := annotations.CheckForm(cm)
	if err != nil || k.unread != nil {
		return err
	}
	for _, ring := range k.rings {
		if err = by(ring); err == nil {
			break
		}
	}
	return err
}

// Doubt is what is to be said of records that Check lets pass where a key is not known; else empty.
func (k *Keys) Doubt() string {
	if k.unread == nil {
		return ""
	}
	return fmt.Sprintf("; whether the agent wrote that cannot be checked (%v): delete it if it did not", k.unread)
}
