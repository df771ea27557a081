package node

import (
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

// checkRequestor refuses an invalid requestor name.
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
