package leader

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// heartbeatInterval is how often the leader says that it lives.
const heartbeatInterval = 30 * time.Second

// Heartbeat keeps the ConfigMap by which every user can see that an agent runs, and
// which version it is.
type Heartbeat struct {
	Kube      kubernetes.Interface
	Namespace string
	Identity  string
	Version   string
	Pod       string        // empty: not known
	Key       func() string // names the key that signs; nil: nothing is signed
	Now       func() time.Time
	Log       *slog.Logger
}

// Run writes until ctx ends.
func (h Heartbeat) Run(ctx context.Context) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		if err := h.write(ctx); err != nil && ctx.Err() == nil {
			h.Log.Warn("could not write the heartbeat", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (h Heartbeat) write(ctx context.Context) error {
	maps := h.Kube.CoreV1().ConfigMaps(h.Namespace)
	data := map[string]string{"version": h.Version, "identity": h.Identity, "heartbeat": h.Now().UTC().Format(time.RFC3339)}
	if h.Pod != "" {
		data["pod"] = h.Pod
	}
	if h.Key != nil {
		data[annotations.HeartbeatKey] = h.Key()
	}
	cm, err := maps.Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: annotations.HeartbeatName, Labels: map[string]string{annotations.LabelKind: annotations.KindHeartbeat}}, Data: data}
		_, err = maps.Create(ctx, cm, client.CreateOptions())
		return err
	}
	if err != nil {
		return err
	}
	cm.Data = data
	_, err = maps.Update(ctx, cm, client.UpdateOptions())
	return err
}
