package view

import (
	"regexp"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

// CLIRequestor is the prefix of requestor names for people.
const CLIRequestor = "cli."

// RequestorName turns a user name into a requestor name: in lower case, with dashes for characters
// that are not allowed. A hash replaces the end of a long name.
func RequestorName(user string) string {
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
