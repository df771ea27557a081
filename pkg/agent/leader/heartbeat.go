package leader

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/informer"
	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// heartbeatInterval is how often the leader says that it lives: one request. Whoever waits for
// an agent takes one for silent after 30 s, and while another one takes over, up to 15 s pass.
const heartbeatInterval = 5 * time.Second

// Heartbeat keeps the ConfigMap by which every user can see that an agent runs, and
// which version it is.
type Heartbeat struct {
	Kube      kube.Interface
	Namespace string
	Identity  string
	Version   string
	Pod       string        // empty: not known
	Watches   string        // the only namespace that is watched; empty: all
	Key       func() string // names the key that signs; nil: nothing is signed
	Actors    func() string // whether false actors are refused, as annotations.HeartbeatActors; empty: not known yet
	// Configuration is annotations.HeartbeatConfiguration, given what the heartbeat said of it
	// before; nil: nothing is said.
	Configuration func(before string) string
	Now           func() time.Time
	Log           *slog.Logger
	// Rewound hears that the API server's state is older than it was, as after a restored
	// backup: an agent without an election has no lease that tells. nil: nobody hears.
	Rewound func(was, is uint64)
}

// Run writes until ctx ends.
func (h Heartbeat) Run(ctx context.Context) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	var last *corev1.ConfigMap
	var at uint64
	for {
		var err error
		if last, err = h.write(ctx, last); err != nil && ctx.Err() == nil {
			h.Log.Warn("could not write the heartbeat", "error", err.Error())
		}
		at = h.written(last, at)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// written is the version of the newest heartbeat: each is newer than the one before, unless
// the API server's state went back.
func (h Heartbeat) written(last *corev1.ConfigMap, at uint64) uint64 {
	if last == nil {
		return at
	}
	version := informer.VersionOf(last)
	if version > 0 && version < at && h.Rewound != nil {
		h.Rewound(at, version)
	}
	return version
}

// write says that the leader lives, on the object as it was last written; nil: it is not known.
func (h Heartbeat) write(ctx context.Context, last *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	maps := h.Kube.CoreV1().ConfigMaps(h.Namespace)
	data := map[string]string{"version": h.Version, "identity": h.Identity, "heartbeat": h.Now().UTC().Format(time.RFC3339)}
	if h.Pod != "" {
		data["pod"] = h.Pod
	}
	if h.Watches != "" {
		data[annotations.HeartbeatWatches] = h.Watches
	}
	if h.Key != nil {
		data[annotations.HeartbeatKey] = h.Key()
	}
	actors := ""
	if h.Actors != nil {
		actors = h.Actors()
	}
	if actors != "" {
		data[annotations.HeartbeatActors] = actors
	}
	stands := func(before string) {
		if h.Configuration == nil {
			return
		}
		if is := h.Configuration(before); is != "" {
			data[annotations.HeartbeatConfiguration] = is
		}
	}
	if last == nil {
		found, err := maps.Get(ctx, annotations.HeartbeatName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			stands("")
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: annotations.HeartbeatName, Labels: map[string]string{annotations.LabelKind: annotations.KindHeartbeat}}, Data: data}
			return orNil(maps.Create(ctx, cm, client.CreateOptions()))
		}
		if err != nil {
			return nil, err
		}
		last = found
	}
	if known := last.Data[annotations.HeartbeatActors]; actors == "" && known != "" { // the agent before this one knew
		data[annotations.HeartbeatActors] = known
	}
	stands(last.Data[annotations.HeartbeatConfiguration])
	last.Data = data
	written, err := maps.Update(ctx, last, client.UpdateOptions())
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // somebody else wrote, or took it away
		return h.write(ctx, nil)
	}
	return orNil(written, err)
}

// orNil is an object that was written; nil where it may not have been.
func orNil(cm *corev1.ConfigMap, err error) (*corev1.ConfigMap, error) {
	if err != nil {
		return nil, err
	}
	return cm, nil
}
