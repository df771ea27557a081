package node

import (
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// findDaemonSets asks for DaemonSets that are not known yet. It is ready when all that the node's
// pods name are known.
func (s *session) findDaemonSets(now time.Time) (again time.Time, ready bool) {
	ready = true
	for _, p := range s.seen.pods {
		if !p.OfDaemonSet() || p.Finished() {
			continue
		}
		key := p.Namespace + "/" + p.Controller.Name
		k, have := s.daemonSets[key]
		switch {
		case k.asking && k.again.IsZero():
			ready = false
		case k.asking:
		case !have || k.err != nil && !now.Before(k.again):
			s.daemonSets[key] = known{asking: true, err: k.err, again: k.again}
			ready = ready && have
			go s.findDaemonSet(key)
		case k.err != nil:
			again = earliest(again, k.again)
		}
	}
	return again, ready
}

func (s *session) findDaemonSet(key string) {
	namespace, name, _ := strings.Cut(key, "/")
	_, err := s.kube().AppsV1().DaemonSets(namespace).Get(s.life.ctx, name, metav1.GetOptions{})
	s.alive(func() {
		k := known{there: err == nil}
		if err != nil && !apierrors.IsNotFound(err) {
			k.err, k.again = err, s.d.config.Now().Add(lookAgain)
		}
		s.daemonSets[key] = k
	})
}
