package annotations

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// DataFormat says in which format the agent wrote an object for itself. Where it is
// missing that is the first. Fields may be added to a format when it does no harm that an
// older version drops them; whatever else changes takes the next number.
const DataFormat = "format"

// format is the newest that this version reads.
const format = 1

// ErrNewer says that a newer version wrote an object in a format that this one does not
// know. It is left alone: what is not known would be lost with the next write.
var ErrNewer = errors.New("was written by a newer version") //nolint:gochecknoglobals // a sentinel for errors.Is

// understood refuses what is written in a newer format.
func understood(cm *corev1.ConfigMap) error {
	text, there := cm.Data[DataFormat]
	if n, err := strconv.Atoi(text); !there || err == nil && n >= 1 && n <= format {
		return nil
	}
	return fmt.Errorf("%s/%s %w: its format is %q, and this version reads up to %d; it is left alone", cm.Namespace, cm.Name, ErrNewer, document.Cut(text, 20), format)
}
