package agentconfig

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// AgentConfigDocument is the agent's configuration as it stands under config.yaml.
type AgentConfigDocument struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Spec       AgentConfig `json:"spec"`
}

// AgentConfig are the limits and defaults that an admin sets for all plans.
type AgentConfig struct {
	LogLevel      string           `json:"logLevel,omitempty"` // debug, info (default), warn, error
	Nodes         nodes.NodeLimits `json:"nodes,omitzero"`
	Steps         []StepUse        `json:"steps,omitempty"`
	Outbound      Outbound         `json:"outbound,omitzero"`
	Notifications Notifications    `json:"notifications,omitzero"`
	Retention     Retention        `json:"retention,omitzero"`
	Functions     Functions        `json:"functions,omitzero"`
	// MinimumWindow is how much change a policy has to permit: one that permits less has a condition.
	MinimumWindow *MinimumWindow `json:"minimumWindow,omitempty"`
	// LifecycleConditions says whether Kubernetes' lifecycle conditions are written on nodes, default
	// true. With false those that the agent wrote end.
	LifecycleConditions *bool `json:"lifecycleConditions,omitempty"`
}

// Functions say how installed Crossplane functions are called.
type Functions struct {
	// TLSSecretRef names the Secret of the agent's own namespace that holds the client certificate
	// for them: tls.crt and tls.key, and in ca.crt the authority of their certificates.
	TLSSecretRef *SecretRef `json:"tlsSecretRef,omitempty"`
}

// SecretRef names a Secret of the agent's own namespace.
type SecretRef struct {
	Name string `json:"name"`
}

// MinimumWindow is a share of time: so many hours in each span of Per.
type MinimumWindow struct {
	Hours float64            `json:"hours"`
	Per   *document.Duration `json:"per"`
}

// Enough is the time that a policy has to permit within Per.
func (m MinimumWindow) Enough() time.Duration { return time.Duration(m.Hours * float64(time.Hour)) }

// WritesLifecycle says whether lifecycle conditions are written on nodes.
func (c AgentConfig) WritesLifecycle() bool {
	return c.LifecycleConditions == nil || *c.LifecycleConditions
}

// SecretError says why a Secret of the configuration is of no use, which the agent's admin has to
// mend.
type SecretError struct {
	Why string
	Err error // what the API server said, if it was that
}

// Unwrap gives the API server's own answer.
func (e *SecretError) Unwrap() error { return e.Err }

func (e *SecretError) Error() string { return e.Why }

// Secrets are the names of the Secrets of its own namespace that the agent has to read, in the
// order of the configuration. What is no name is left out.
func (c AgentConfig) Secrets() []string {
	var names []string
	add := func(name string) {
		if document.DNSSubdomain(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, sink := range c.Notifications.Sinks {
		add(sink.URLSecretRef.Name)
	}
	if ref := c.Functions.TLSSecretRef; ref != nil {
		add(ref.Name)
	}
	return names
}

// StepUse narrows the step types that plans of some namespaces may use.
type StepUse struct {
	Namespaces []string `json:"namespaces"` // names, or a prefix and *
	Deny       []string `json:"deny"`
}

// Outbound says where steps may send requests. Loopback, link-local and
// metadata addresses are refused unless Allow names exactly that address or
// CIDR; names in Allow narrow all requests to them.
type Outbound struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// Notifications say where people are told, and of what by the agent itself.
type Notifications struct {
	Sinks []Sink      `json:"sinks,omitempty"` // steps of type notification name them
	On    []NotifyFor `json:"on,omitempty"`    // told to every sink
	// Before has every sink told of each slot of a plan, each window of a policy and each
	// sleep of a HibernatePlan, so long ahead. Absent: nobody is told ahead.
	Before *document.Duration `json:"before,omitempty"`
}

// Sink is where people are told. Its URL, in shoutrrr's form, is a secret and
// stands in a Secret of the agent's own namespace.
type Sink struct {
	Name         string                `json:"name"`
	URLSecretRef document.SecretKeyRef `json:"urlSecretRef"`
	// Namespaces may send to it, and are what it hears of: names, or beginnings and *.
	// None are all, and the cluster.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Takes says whether a namespace may send to the sink, and whether the sink is told about that
// namespace. What is about a node or the whole cluster has no namespace (an empty name): a sink
// that names namespaces is not told of it.
func (s Sink) Takes(namespace string) bool {
	return len(s.Namespaces) == 0 || slices.ContainsFunc(s.Namespaces, func(p string) bool { return matches(p, namespace) })
}

// matches says whether a pattern, a name or a beginning and *, means a namespace.
func matches(pattern, namespace string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == namespace || wild && strings.HasPrefix(namespace, prefix)
}

// NotifyFor is what the agent tells by itself.
type NotifyFor string

// What this version tells of.
const (
	NotifyRunFailed     NotifyFor = "RunFailed"
	NotifyRunSucceeded  NotifyFor = "RunSucceeded"
	NotifySlotMissed    NotifyFor = "SlotMissed"
	NotifyWindowOpening NotifyFor = "WindowOpening" // of a policy
	NotifyDrainBlocked  NotifyFor = "DrainBlocked"  // for good: no waiting ends it
)

// SinkError says why a sink has no URL, which the agent's admin has to mend.
type SinkError struct {
	Name, Why string
	Err       error // what the API server said, if it was that
}

// Unwrap gives the API server's own answer.
func (e *SinkError) Unwrap() error { return e.Err }

func (e *SinkError) Error() string { return fmt.Sprintf("%q: %s", document.Cut(e.Name, 100), e.Why) }

// Sink is the one of that name, where a namespace may send to it, or a *SinkError that
// names those to which it may.
func (n Notifications) Sink(namespace, name string) (Sink, error) {
	may, names := n.sinksFor(namespace)
	if i := slices.Index(names, name); i >= 0 {
		return may[i], nil
	}
	there := "which names none"
	if len(names) > 0 {
		there = "which names " + strings.Join(names, ", ")
	}
	return Sink{}, &SinkError{Name: name, Why: "not among spec.notifications.sinks of the AgentConfig, " + there}
}

// Default is the sink of a step that names none: the one named default, else the only one to which
// a namespace may send. Where there is neither it is a *SinkError.
func (n Notifications) Default(namespace string) (Sink, error) {
	const name = "default"
	may, names := n.sinksFor(namespace)
	if i := slices.Index(names, name); i >= 0 {
		return may[i], nil
	}
	switch len(may) {
	case 1:
		return may[0], nil
	case 0:
		return Sink{}, &SinkError{Name: name, Why: "a step names no sink, and spec.notifications.sinks of the AgentConfig names none"}
	}
	return Sink{}, &SinkError{Name: name, Why: "a step names no sink, and spec.notifications.sinks of the AgentConfig has none of this name, but several others: " + strings.Join(names, ", ")}
}

// sinksFor are the sinks to which a namespace may send, and their names.
func (n Notifications) sinksFor(namespace string) (may []Sink, names []string) {
	for _, s := range n.Sinks {
		if s.Takes(namespace) {
			may, names = append(may, s), append(names, s.Name)
		}
	}
	return may, names
}

// Retention says how long ended runs are kept beside the plans' own limits.
type Retention struct {
	Runs *document.Duration `json:"runs,omitempty"` // default 30d
}

// Parse reads the agent's configuration, a document in YAML, and reports all its faults. What could
// be read is returned with them.
func Parse(text []byte) (AgentConfig, document.Faults) {
	var doc AgentConfigDocument
	c, ok := document.Read(text, &doc)
	if !ok {
		return doc.Spec, c.Faults()
	}
	v := &configChecker{c}
	v.Envelope(doc.APIVersion, doc.Kind, "AgentConfig")
	document.OneOf(c, "spec.logLevel", doc.Spec.LogLevel, "debug", "info", "warn", "error")
	v.Positive("spec.retention.runs", doc.Spec.Retention.Runs)
	for i, use := range doc.Spec.Steps {
		v.stepUse(fmt.Sprintf("spec.steps[%d]", i), use)
	}
	doc.Spec.Nodes.Check(c.Below("spec.nodes"))
	v.notifications("spec.notifications", doc.Spec.Notifications)
	v.destinations("spec.outbound.allow", doc.Spec.Outbound.Allow)
	v.destinations("spec.outbound.deny", doc.Spec.Outbound.Deny)
	v.functions("spec.functions", doc.Spec.Functions)
	v.minimumWindow("spec.minimumWindow", doc.Spec.MinimumWindow)
	return doc.Spec, c.Faults()
}

// configChecker checks the agent's configuration.
type configChecker struct{ *document.Checker }

func (v *configChecker) namespaces(path string, patterns []string) {
	for i, pattern := range patterns {
		prefix, _ := strings.CutSuffix(pattern, "*")
		if prefix != "" && !document.DNSLabel(strings.TrimSuffix(prefix, "-")) || pattern == "" {
			v.Fault(fmt.Sprintf("%s.namespaces[%d]", path, i), "%q is no namespace: write its name, or a beginning and *, like team-*", document.Cut(pattern, 100))
		}
	}
}

func (v *configChecker) stepUse(path string, use StepUse) {
	if len(use.Namespaces) == 0 {
		v.Fault(path+".namespaces", `is missing: name the namespaces, or "*" for all`)
	}
	v.namespaces(path, use.Namespaces)
	for i, name := range use.Deny {
		if _, known := plan.StepTypeNamed(name); !known {
			v.Fault(fmt.Sprintf("%s.deny[%d]", path, i), "%s", plan.UnknownType(name))
		}
	}
}

// The bounds of notifications.before (guesses: below it nobody has time to act, above it
// nobody remembers).
const (
	MinBefore = time.Minute
	MaxBefore = 7 * 24 * time.Hour
)

func (v *configChecker) notifications(path string, n Notifications) {
	if b := n.Before; b != nil && (b.Duration < MinBefore || b.Duration > MaxBefore) {
		v.Fault(path+".before", "must be from 1m to 7d, is %s", b)
	}
	seen := map[string]bool{}
	for i, s := range n.Sinks {
		at := fmt.Sprintf("%s.sinks[%d]", path, i)
		switch {
		case !document.DNSLabel(s.Name):
			v.Fault(at+".name", "%q is no name: write lower case letters, digits and dashes, at most %d", document.Cut(s.Name, 100), document.MaxNameLength)
		case seen[s.Name]:
			v.Fault(at+".name", "%q appears twice", s.Name)
		}
		seen[s.Name] = true
		v.namespaces(at, s.Namespaces)
		if !document.DNSSubdomain(s.URLSecretRef.Name) {
			v.Fault(at+".urlSecretRef.name", "%q is no name of a Secret; it stands in the agent's own namespace", document.Cut(s.URLSecretRef.Name, 100))
		}
		if s.URLSecretRef.Key == "" {
			v.Fault(at+".urlSecretRef.key", "is missing: name the key that holds the URL")
		}
	}
	for i, on := range n.On {
		at := fmt.Sprintf("%s.on[%d]", path, i)
		switch on {
		case NotifyRunFailed, NotifyRunSucceeded, NotifySlotMissed, NotifyWindowOpening, NotifyDrainBlocked:
		default:
			v.Fault(at, "must be one of RunFailed, RunSucceeded, SlotMissed, WindowOpening, DrainBlocked, is %q", document.Cut(string(on), 100))
		}
	}
}

func (v *configChecker) functions(path string, f Functions) {
	if ref := f.TLSSecretRef; ref != nil && !document.DNSSubdomain(ref.Name) {
		v.Fault(path+".tlsSecretRef.name", "%q is no name of a Secret; it stands in the agent's own namespace", document.Cut(ref.Name, 100))
	}
}

// The bounds of minimumWindow.per (guesses: the windows of a shorter time are of no use to anybody
// who plans, and those of a longer one nobody has written yet).
const (
	MinPer = time.Hour
	MaxPer = 366 * 24 * time.Hour
)

func (v *configChecker) minimumWindow(path string, m *MinimumWindow) {
	if m == nil {
		return
	}
	if m.Per == nil {
		v.Fault(path+".per", "is missing; write it like 30d")
		return
	}
	if m.Per.Duration < MinPer || m.Per.Duration > MaxPer {
		v.Fault(path+".per", "must be from 1h to 366d, is %s", m.Per)
		return
	}
	if m.Hours <= 0 || m.Hours > m.Per.Hours() {
		v.Fault(path+".hours", "must be more than 0 and at most the hours of per, %g, is %g", m.Per.Hours(), m.Hours)
	}
}

func (v *configChecker) destinations(path string, list []string) {
	for i, d := range list {
		_, addrErr := netip.ParseAddr(d)
		_, cidrErr := netip.ParsePrefix(d)
		if addrErr != nil && cidrErr != nil && !document.DNSSubdomain(strings.TrimPrefix(d, "*.")) {
			v.Fault(fmt.Sprintf("%s[%d]", path, i), "%q is no host name, *.domain, address or CIDR", document.Cut(d, 100))
		}
	}
}

// Denied are the step types that plans of a namespace may not use. Who may call no function may not
// call several by a pipeline.
func (c AgentConfig) Denied(namespace string) []string {
	var out []string
	for _, use := range c.Steps {
		for _, pattern := range use.Namespaces {
			if matches(pattern, namespace) {
				out = append(out, use.Deny...)
			}
		}
	}
	if slices.Contains(out, plan.TypeFunction) && !slices.Contains(out, plan.TypePipeline) {
		out = append(out, plan.TypePipeline)
	}
	return out
}
