package node

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// cliRequestor begins the names under which people ask for nodes.
const cliRequestor = "cli."

// requestorOf is who asks: the name that was given, or cli.<user>.
func requestorOf(ctx context.Context, k *factory.Cluster, given string) (string, error) {
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
	if len(cliRequestor+text) > longest {
		keep := longest - len(cliRequestor) - 11
		text = strings.TrimRight(text[:keep], "-.") + "-" + annotations.Hash10(user)
	}
	return cliRequestor + text
}

// checkRequestor refuses a name under which nobody can ask.
func checkRequestor(name string, f *exit.Faults) {
	if name == "" {
		return
	}
	if _, err := nodes.Parse(name, ""); err != nil {
		f.Add("--requestor: %v", err)
	}
}

// checkNodes refuses a command line that names no nodes, or names them twice.
func checkNodes(names []string, selector string, f *exit.Faults) {
	switch {
	case len(names) > 0 && selector != "":
		f.Add("-l and names exclude each other")
	case len(names) == 0 && selector == "":
		f.Add("NODE is missing; or pick nodes with -l")
	}
}
