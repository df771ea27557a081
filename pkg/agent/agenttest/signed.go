package agenttest

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/keys"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// keyring is the same for every agent of a test.
func keyring() annotations.Keyring {
	ring, err := annotations.ReadKeyring(&corev1.Secret{Data: map[string][]byte{annotations.DataKey: bytes.Repeat([]byte("k"), 32)}})
	if err != nil {
		panic(err) // the key above is none
	}
	return ring
}

// Keys is the agent's key as it stands in tests.
func Keys() *keys.Store { return keys.Fixed(keyring()) }

// Signed is an object as an agent would have written it.
func Signed(t testing.TB, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	out := cm.DeepCopy()
	if err := keyring().Sign(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Rewrite has an object of the agent's be another, as if the agent had written it so.
func (c *Cluster) Rewrite(namespace, name string, edit func(cm *corev1.ConfigMap)) {
	c.t.Helper()
	cm := c.ConfigMap(namespace, name)
	if cm == nil {
		c.t.Fatalf("there is no ConfigMap %s/%s", namespace, name)
	}
	edit(cm)
	c.Put(Signed(c.t, cm))
}
