package factory

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// CLIRequestor begins the names under which people ask for nodes.
const CLIRequestor = "cli."

// Requestor is who asks: the name that was given, or cli.<user>.
func (k *Cluster) Requestor(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	user := k.Actor(ctx)
	if user == "" {
		return "", errors.New("the API server does not say who you are: name the requestor with --requestor")
	}
	return requestorName(user), nil
}

// requestorName is a user's name as a requestor: in small letters, with a dash for
// what a requestor's name may not hold. A hash stands in for the end of a long one.
func requestorName(user string) string {
	const longest = 63
	text := regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(strings.ToLower(user), "-")
	text = regexp.MustCompile(`-*\.[-.]*`).ReplaceAllString(text, ".")
	if text = strings.Trim(text, "-."); text == "" {
		text = annotations.Hash10(user)
	}
	if len(CLIRequestor+text) > longest {
		keep := longest - len(CLIRequestor) - 11
		text = strings.TrimRight(text[:keep], "-.") + "-" + annotations.Hash10(user)
	}
	return CLIRequestor + text
}
