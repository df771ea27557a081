package watch

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/remedy"
)

// How long the API server may take for what a live view shows before the view says so (guesses): at first, and
// at most where its answers take long.
const (
	leastTimeout = 10 * time.Second
	mostTimeout  = 2 * time.Minute
)

// AnswerTimeout is how long a live view waits for the API server. It is twice as long as the last look took, so that a
// slow server is not taken for a silent one: each look that is given up gives the next one more time.
type AnswerTimeout struct {
	Patient bool // the next look is waited for as long as any: nothing is shown yet that may become old
	took    time.Duration
}

// Within reads something from the API server. It is an error that this took too long, also where look knows of
// none: then a part may be missing of what was read.
func (a *AnswerTimeout) Within(ctx context.Context, look func(context.Context) error) error {
	limit := min(max(leastTimeout, 2*a.took), mostTimeout)
	if a.Patient {
		limit, a.Patient = mostTimeout, false
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begun := time.Now()
	err := look(limited)
	a.took = time.Since(begun)
	if limited.Err() != nil && ctx.Err() == nil {
		return remedy.Late(limit)
	}
	return err
}

// Unanswered says whether an error is that of an API server that does not answer now and may soon do so.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return !refused(err)
	}
	return errors.As(err, &remedy.UnansweredError{})
}
