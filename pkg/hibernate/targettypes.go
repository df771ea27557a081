package hibernate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/selector"
)

// Types of targets.
const (
	TypeWorkload  = "workload"
	TypeKarpenter = "karpenter"
	TypeNoop      = "noop"
	TypeEC2       = "ec2"
	TypeRDS       = "rds"
	TypeASG       = "asg"
	TypeEKS       = "eks"
	TypeFunction  = "function"
)

// TargetType is one row of the table of targets.
type TargetType struct {
	Name  string
	Needs string   // the kind of connector without which it cannot be reached; empty: none
	Takes []string // the kinds of connectors that it takes
	// Cluster says that it sleeps in a cluster: the plan's own, or the one of its connector.
	Cluster bool
	// New is an empty value of the type's parameters, a pointer to a struct.
	New func() any
	// Check reports what the types cannot say; nil: nothing.
	Check func(params any, at document.Reporter)
}

// TargetTypes are the types of targets that this version puts to sleep.
func TargetTypes() []TargetType {
	return []TargetType{
		{Name: TypeWorkload, Takes: []string{connector.K8SCluster}, Cluster: true, New: func() any { return &WorkloadParameters{} }, Check: checkWorkload},
		{Name: TypeKarpenter, Takes: []string{connector.K8SCluster}, Cluster: true, New: func() any { return &KarpenterParameters{} }, Check: checkKarpenter},
		{Name: TypeEC2, Needs: connector.CloudProvider, Takes: []string{connector.CloudProvider}, New: func() any { return &EC2Parameters{} }, Check: checkEC2},
		{Name: TypeRDS, Needs: connector.CloudProvider, Takes: []string{connector.CloudProvider}, New: func() any { return &RDSParameters{} }, Check: checkRDS},
		{Name: TypeASG, Needs: connector.CloudProvider, Takes: []string{connector.CloudProvider}, New: func() any { return &ASGParameters{} }, Check: checkASG},
		{Name: TypeEKS, Needs: connector.K8SCluster, Takes: []string{connector.K8SCluster}, New: func() any { return &EKSParameters{} }, Check: checkEKS},
		{Name: TypeFunction, New: func() any { return &FunctionParameters{} }, Check: checkFunction},
		{Name: TypeNoop, New: func() any { return &NoopParameters{} }, Check: checkNoop},
	}
}

// TypeNamed is the row of the table with that name.
func TypeNamed(name string) (TargetType, bool) {
	types := TargetTypes()
	i := slices.IndexFunc(types, func(t TargetType) bool { return t.Name == name })
	if i < 0 {
		return TargetType{}, false
	}
	return types[i], true
}

func typeNames() string {
	var names []string
	for _, t := range TargetTypes() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

func unknownType(name string) string {
	if slices.Contains([]string{"gke", "cloudsql"}, strings.ToLower(name)) {
		return fmt.Sprintf("%q is not supported; there are %s", name, typeNames())
	}
	return fmt.Sprintf("%q is no type of target; there are %s%s", document.Cut(name, 100), typeNames(), didYouMean(name, strings.Split(typeNames(), ", ")))
}

// didYouMean ends a message about a word with the one among words that is near it.
func didYouMean(word string, words []string) string {
	return strings.ReplaceAll(document.DidYouMean(word, words), `"`, "")
}

// WorkloadParameters say which workloads of a cluster sleep.
type WorkloadParameters struct {
	Namespaces        []string                `json:"namespaces,omitempty"` // default: the plan's own
	NamespaceSelector *selector.LabelSelector `json:"namespaceSelector,omitempty"`
	Selector          *selector.LabelSelector `json:"selector,omitempty"` // none is all
	Kinds             []any                   `json:"kinds,omitempty"`    // names or {apiVersion, kind}; default: the kinds that docs/hibernation.md lists
	Floor             *int32                  `json:"floor,omitempty"`    // replicas while asleep, default 0
	Order             []string                `json:"order,omitempty"`    // of kinds, as they fall asleep
	Timeout           *document.Duration      `json:"timeout,omitempty"`
}

// Kind is a kind of workload.
type Kind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// KnownKinds are those that are named without their version.
func KnownKinds() []Kind {
	return []Kind{
		{"apps/v1", "Deployment"}, {"apps/v1", "StatefulSet"}, {"apps/v1", "ReplicaSet"}, {"apps/v1", "DaemonSet"}, {"batch/v1", "CronJob"}, ScaledObject(),
	}
}

// Of are the kinds that sleep, in the order in which they fall asleep: the jobs that would
// wait for a Deployment go before it, and what keeps data last. DaemonSets sleep only if
// asked, and ScaledObjects with what they scale, whatever kinds are named, where KEDA is installed.
func (p WorkloadParameters) Of() []Kind {
	if len(p.Kinds) == 0 {
		return p.ordered([]Kind{{"batch/v1", "CronJob"}, {"apps/v1", "Deployment"}, {"apps/v1", "ReplicaSet"}, {"apps/v1", "StatefulSet"}, ScaledObject()})
	}
	out := p.named()
	scaled := slices.ContainsFunc(out, func(k Kind) bool {
		return k.Kind != "CronJob" && k.Kind != "DaemonSet" && k != ScaledObject()
	})
	if scaled && !slices.Contains(out, ScaledObject()) { // it would scale up what sleeps
		out = append(out, ScaledObject())
	}
	return p.ordered(out)
}

// named are the kinds that the plan names.
func (p WorkloadParameters) named() []Kind {
	out := make([]Kind, 0, len(p.Kinds)+1)
	for _, one := range p.Kinds {
		if k, err := kindOf(one); err == "" {
			out = append(out, k)
		}
	}
	return out
}

// Names says whether the plan names a kind: others of those that sleep need not be installed.
func (p WorkloadParameters) Names(k Kind) bool { return slices.Contains(p.named(), k) }

// ScaledObject is KEDA's kind of autoscaler.
func ScaledObject() Kind { return Kind{"keda.sh/v1alpha1", "ScaledObject"} }

func (p WorkloadParameters) ordered(kinds []Kind) []Kind {
	at := func(k Kind) int {
		if i := slices.Index(p.Order, k.Kind); i >= 0 {
			return i
		}
		return len(p.Order)
	}
	slices.SortStableFunc(kinds, func(a, b Kind) int { return at(a) - at(b) })
	return kinds
}

// kindOf reads one of the kinds; why says what is wrong with it.
func kindOf(one any) (k Kind, why string) {
	switch one := one.(type) {
	case string:
		i := slices.IndexFunc(KnownKinds(), func(k Kind) bool { return k.Kind == one })
		if i < 0 {
			return k, fmt.Sprintf("%q is not known by its name; write {apiVersion, kind}", document.Cut(one, 100))
		}
		return KnownKinds()[i], ""
	case map[string]any:
		fields, ok := document.StringMap(one)
		k = Kind{APIVersion: fields["apiVersion"], Kind: fields["kind"]}
		if !ok || len(fields) != 2 || k.APIVersion == "" || k.Kind == "" {
			return k, "write a kind by its name, or as {apiVersion, kind}"
		}
		return k, ""
	}
	return k, "write a kind by its name, or as {apiVersion, kind}"
}

func (p *WorkloadParameters) timeout() *document.Duration { return p.Timeout }

func checkWorkload(params any, at document.Reporter) {
	p := params.(*WorkloadParameters)
	for _, list := range []struct {
		field     string
		has, most int
	}{{"namespaces", len(p.Namespaces), MaxNamespaces}, {"kinds", len(p.Kinds), MaxKinds}, {"order", len(p.Order), MaxKinds}} {
		if list.has > list.most {
			at(list.field, "has %d; at most %d are read", list.has, list.most)
			return
		}
	}
	if len(p.Namespaces) > 0 && p.NamespaceSelector != nil {
		at("namespaceSelector", "stands beside namespaces; write one of them")
	}
	for i, ns := range p.Namespaces {
		switch {
		case !document.DNSLabel(ns):
			at(fmt.Sprintf("namespaces[%d]", i), "%q cannot name a namespace", document.Cut(ns, 100))
		case slices.Contains(p.Namespaces[:i], ns):
			at(fmt.Sprintf("namespaces[%d]", i), "%q appears twice", ns)
		}
	}
	checkSelector("namespaceSelector", p.NamespaceSelector, at)
	checkSelector("selector", p.Selector, at)
	for i, one := range p.Kinds {
		if _, why := kindOf(one); why != "" {
			at(fmt.Sprintf("kinds[%d]", i), "%s", why)
		}
	}
	kinds := p.Of()
	for i, one := range p.Order {
		if !slices.ContainsFunc(kinds, func(k Kind) bool { return k.Kind == one }) {
			at(fmt.Sprintf("order[%d]", i), "%q is not among the kinds that sleep", document.Cut(one, 100))
		}
	}
	if p.Floor != nil && *p.Floor < 0 {
		at("floor", "must not be negative, is %d", *p.Floor)
	}
	checkTimeout(p.Timeout, at)
}

func checkSelector(path string, s *selector.LabelSelector, at document.Reporter) {
	if s == nil {
		return
	}
	if _, err := s.Read(); err != nil {
		at(path, "%s", err)
	}
}

func checkTimeout(d *document.Duration, at document.Reporter) {
	document.CheckSpan("timeout", d, leastTimeout, mostTimeout, at)
}

// KarpenterParameters say which NodePools of Karpenter make no nodes, and lose those that
// they have.
type KarpenterParameters struct {
	NodePools []string           `json:"nodePools,omitempty"` // empty: all
	Strategy  string             `json:"strategy,omitempty"`  // DeleteNodes, the only one
	Timeout   *document.Duration `json:"timeout,omitempty"`
}

// DeleteNodes is the strategy by which Karpenter's nodes sleep.
const DeleteNodes = "DeleteNodes"

func checkKarpenter(params any, at document.Reporter) {
	p := params.(*KarpenterParameters)
	checkNodePools("", p.NodePools, p.Strategy, at)
	checkTimeout(p.Timeout, at)
}

// checkNodePools checks what stands under a prefix of a path.
func checkNodePools(under string, names []string, strategy string, at document.Reporter) {
	for i, name := range names {
		if !document.DNSSubdomain(name) {
			at(fmt.Sprintf("%snodePools[%d]", under, i), "%q cannot name a NodePool", document.Cut(name, 100))
		}
	}
	if strategy != "" && strategy != DeleteNodes {
		at(under+"strategy", "%q is not known; there is %s", document.Cut(strategy, 100), DeleteNodes)
	}
}

// NoopParameters have nothing put to sleep, late or with failures if asked.
type NoopParameters struct {
	Delay        *document.Duration `json:"delay,omitempty"`        // that each operation takes
	FailShutdown int                `json:"failShutdown,omitempty"` // so many first passes fail
	FailWakeUp   int                `json:"failWakeUp,omitempty"`
	Timeout      *document.Duration `json:"timeout,omitempty"`
}

func (p *NoopParameters) timeout() *document.Duration { return p.Timeout }

func (p *KarpenterParameters) timeout() *document.Duration { return p.Timeout }

func checkNoop(params any, at document.Reporter) {
	p := params.(*NoopParameters)
	if p.Delay != nil && p.Delay.Duration < 0 {
		at("delay", "must not be negative, is %s", p.Delay)
	}
	for _, count := range []struct {
		field string
		n     int
	}{{"failShutdown", p.FailShutdown}, {"failWakeUp", p.FailWakeUp}} {
		if count.n < 0 {
			at(count.field, "must not be negative, is %d", count.n)
		}
	}
	checkTimeout(p.Timeout, at)
}

// Timeout is how long an operation of a target with such parameters may take before that
// is a failure.
func Timeout(params any) time.Duration {
	if p, ok := params.(interface{ timeout() *document.Duration }); ok {
		return p.timeout().Or(DefaultTimeout)
	}
	return DefaultTimeout
}

// Params are the parameters of a valid plan's target, a pointer to those of its type.
func (t Target) Params() any {
	kind, known := TypeNamed(t.Type)
	if !known {
		return nil
	}
	params := kind.New()
	if faults := document.DecodeValue(nonNil(t.Parameters), "", nil, false, params); len(faults) > 0 {
		return nil
	}
	return params
}
