package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
)

// GateRecord is what the agent wrote down of a policy's gates, which outlives the policy until
// everything is open again.
type GateRecord struct {
	Policy string
	Object *corev1.ConfigMap
	Gates  []string
	Fault  string // why it does not count, as far as can be seen without the agent's key
}

// readGateRecord reads a record. One that cannot be read is of the policy whose name its own holds.
func readGateRecord(cm *corev1.ConfigMap) GateRecord {
	out := GateRecord{Object: cm}
	record, err := annotations.ReadGates(cm)
	if err == nil {
		err = annotations.CheckForm(cm)
	}
	for _, e := range record.Entries {
		out.Gates = append(out.Gates, e.String())
	}
	refused := new(annotations.SignatureError)
	switch {
	case errors.As(err, &refused):
		out.Fault = refused.Why
	case err != nil:
		out.Fault = err.Error()
	}
	out.Policy = cmp.Or(record.Policy, cm.Name)
	return out
}

// PolicyGone says what becomes of what the gates of a policy hold that somebody deleted.
func (r GateRecord) PolicyGone() string {
	held := strings.Join(r.Gates, ", ")
	if held == "" {
		held = "objects"
	}
	if r.Fault != "" {
		return fmt.Sprintf("is deleted, and its gates may still hold %s closed: nothing opens them, since ConfigMap %s does not count: %s", held, r.Object.Name, r.Fault)
	}
	return fmt.Sprintf("is deleted, and its gates may still hold %s closed: the agent opens them, as it found them", held)
}

// GatesWithoutPolicy are the records of policies that are gone, of the namespaces that were read.
func (b Resolver) GatesWithoutPolicy() []GateRecord {
	var out []GateRecord
	for ref, record := range b.records {
		if _, there := b.created[ref]; !there {
			out = append(out, record)
		}
	}
	slices.SortFunc(out, func(a, b GateRecord) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return out
}

// GatesOf is the record of a policy's gates; nil: there is none, or it may not be read.
func GatesOf(ctx context.Context, k *factory.Cluster, name string) *GateRecord {
	if before, _ := factory.SplitKind(name); !view.MayMean(before, annotations.KindPolicy) {
		return nil
	}
	cm, err := k.ConfigMaps(k.Namespace).Get(ctx, annotations.GateName(factory.BareName(name)), metav1.GetOptions{})
	if err != nil || cm.Labels[annotations.LabelKind] != annotations.KindGate {
		return nil
	}
	record := readGateRecord(cm)
	return &record
}
