package nodes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/drain"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Request is what the value of request.maint.dev/<requestor> asks for, with its defaults.
type Request struct {
	Requestor string
	Reason    string
	Cordon    bool
	Priority  int  // higher first, from -MaxPriority to MaxPriority
	Shared    bool // Ready together with others that are
	Failed    bool // the requestor failed: the node is kept out
	WaitFor   *WaitFor
	Drain     *drain.Options // nil: no drain; else Timeout and OnTimeout are set
	Identity  string         // of the value as it stands: another value, another identity
}

// WaitFor counts unfinished pods before a drain.
type WaitFor struct {
	PodSelector string        // as in a list's options; empty: all that no DaemonSet owns
	Timeout     time.Duration // 0: without end
}

// Bounds of a request.
const (
	// MaxPriority bounds priorities, so that age, at one rank an AgeRank, overtakes
	// every one of them. The number is a guess.
	MaxPriority = 1000
	// MaxRequestBytes bounds a value; all annotations of an object together have 256 KiB.
	MaxRequestBytes = 16 << 10
)

const maxRequestor = 63 // of the name part of an annotation's key

// wire is the value of a request. A drain of false is taken out before.
type wire struct {
	Reason   string         `json:"reason"`
	Cordon   *bool          `json:"cordon"`
	Priority int            `json:"priority"`
	Shared   bool           `json:"shared"`
	Failed   bool           `json:"failed"`
	WaitFor  *wireWait      `json:"waitFor"`
	Drain    *drain.Options `json:"drain"`
}

type wireWait struct {
	PodSelector string             `json:"podSelector"`
	Timeout     *document.Duration `json:"timeout"`
}

// Parse reads a request. An empty value asks with all defaults. The error holds
// every fault in the name and the value, a sentence each, on lines of their own.
func Parse(requestor, value string) (Request, error) {
	var faults document.Faults
	if !requestorName(requestor) {
		faults = append(faults, document.Fault{Message: fmt.Sprintf(
			"%q is no name of a requestor: 2 to 63 lower-case letters, digits, - and ., a letter or digit first and last", document.Cut(requestor, 100))})
	}
	w, drains := wire{}, true
	tree, err := document.JSONObject(value, MaxRequestBytes, `{"reason":"…"}`)
	if err != nil {
		faults = append(faults, document.Fault{Message: err.Error()})
	} else {
		drains = lighten(tree)
		faults = append(faults, document.DecodeValue(tree, "", nil, false, &w)...)
		faults = append(faults, w.check()...)
	}
	if len(faults) > 0 {
		return Request{}, faults
	}
	return w.request(requestor, identityOf(value), drains), nil
}

func (w wire) request(requestor, identity string, drains bool) Request {
	r := Request{
		Requestor: requestor, Identity: identity, Reason: w.Reason, Cordon: w.Cordon == nil || *w.Cordon,
		Priority: w.Priority, Shared: w.Shared, Failed: w.Failed,
	}
	if w.WaitFor != nil {
		r.WaitFor = &WaitFor{PodSelector: w.WaitFor.PodSelector, Timeout: w.WaitFor.Timeout.Or(0)}
	}
	if !drains {
		return r
	}
	r.Drain = w.Drain
	if r.Drain == nil {
		r.Drain = &drain.Options{}
	}
	r.Drain.Timeout = &document.Duration{Duration: r.Drain.Timeout.Or(drain.DefaultDrainTimeout)}
	if r.Drain.OnTimeout == "" {
		r.Drain.OnTimeout = drain.TimeoutRetry
	}
	return r
}

func (w wire) check() document.Faults {
	var faults document.Faults
	at := func(path, format string, args ...any) {
		faults = append(faults, document.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if w.Priority < -MaxPriority || w.Priority > MaxPriority {
		at("priority", "must be from %d to %d, is %d", -MaxPriority, MaxPriority, w.Priority)
	}
	if w.WaitFor != nil {
		if _, err := selector.Parse(w.WaitFor.PodSelector); err != nil {
			at("waitFor.podSelector", "%s", err)
		}
		if t := w.WaitFor.Timeout; t != nil && t.Duration < 0 {
			at("waitFor.timeout", "must not be negative, is %s; 0s waits without end", t)
		}
	}
	if w.Drain != nil {
		w.Drain.Check(func(path, format string, args ...any) { at("drain."+path, format, args...) })
	}
	return faults
}

// lighten takes out what counts as absent: null, and durations that are empty. It says whether a drain is
// asked for: "drain": false is none, true one with defaults.
func lighten(tree map[string]any) (drains bool) {
	document.DropNulls(tree)
	if w, ok := tree["waitFor"].(map[string]any); ok {
		withoutEmpty(w, "timeout")
	}
	if d, ok := tree["drain"].(map[string]any); ok {
		withoutEmpty(d, "timeout", "gracePeriod", "podTimeout")
	}
	if wanted, short := tree["drain"].(bool); short {
		delete(tree, "drain")
		return wanted
	}
	return true
}

func withoutEmpty(tree map[string]any, keys ...string) {
	for _, key := range keys {
		if tree[key] == "" {
			delete(tree, key)
		}
	}
}

func requestorName(s string) bool {
	return len(s) >= 2 && len(s) <= maxRequestor && document.DNSSubdomain(s)
}

// identityOf is a short name for a value. White space around it does not count.
func identityOf(value string) string { return shortHash([]byte(strings.TrimSpace(value))) }

func shortHash(b []byte) string {
	sum := sha256.Sum256(bytes.TrimSpace(b))
	return hex.EncodeToString(sum[:6])
}
