package view

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Agent is the state of the agent, by its heartbeat or its Lease.
type Agent struct {
	Namespace string    `json:"namespace"`
	Version   string    `json:"version"`
	Identity  string    `json:"identity,omitempty"`
	Pod       string    `json:"pod,omitempty"`
	Heartbeat time.Time `json:"heartbeat"`
	Watches   string    `json:"watches,omitempty"` // the only namespace that it watches; empty: all
	Key       string    `json:"-"`                 // id of the key that it signs with; empty: not known yet
	Missing   string    `json:"-"`                 // why no agent can be counted on
	Absent    bool      `json:"-"`                 // nothing shows that one was ever installed
	Elsewhere bool      `json:"-"`                 // it is at work, and missing where the command is
	Others    string    `json:"-"`                 // where all namespaces are meant: in which it does nothing
	Widened   string    `json:"-"`                 // the command after which it watches all
	// Unconfigured is that its configuration is gone, and what follows; empty: it is not.
	Unconfigured string `json:"-"`
}

// VersionText is the agent's version, which is known after its first heartbeat.
func (a Agent) VersionText() string { return cmp.Or(a.Version, "(version not known yet)") }

// Amiss is what is wrong with the agent where it was asked for; empty: nothing.
func (a Agent) Amiss() string { return cmp.Or(a.Missing, a.Others) }

// In is the state as it counts for what is in a namespace: an agent that watches only another one is missing
// there. Of all namespaces (empty) it is missing in none, and Others says where it does nothing.
func (a Agent) In(namespace string) Agent {
	if a.Watches == "" || a.Missing != "" && !a.Elsewhere {
		return a
	}
	a.Elsewhere, a.Missing, a.Others = false, "", ""
	only := fmt.Sprintf("the agent in namespace %s watches only namespace %s, and nothing acts in ", a.Namespace, a.Watches)
	switch namespace {
	case a.Watches:
	case metav1.NamespaceAll:
		a.Others = only + "the others: it watches all after " + a.Widened
	default:
		a.Elsewhere, a.Missing = true, only+"namespace "+namespace+": it watches all after "+a.Widened
	}
	return a
}
