package setup

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// manifestFiles are templates, rendered by install and, word for word, by the Helm chart: they use
// only what text/template has, and join, indent and toJson as Helm has them.
//
//go:embed manifests/*.yaml
var manifestFiles embed.FS //nolint:gochecknoglobals // embedding needs a variable

// The parts that install may leave out.
const (
	partRequests    = "requests"    // rights over nodes for requests
	partForce       = "force"       // deleting pods for them
	partVolumes     = "volumes"     // reading claims and attachments
	partConditions  = "conditions"  // writing conditions of nodes
	partConfinement = "confinement" // the admission policies that hold the agent's token
	partKubelets    = "kubelets"    // the one that keeps kubelets from asking for their nodes
)

func parts() []string {
	return []string{partRequests, partForce, partVolumes, partConditions, partConfinement, partKubelets}
}

// partsKey is the annotation of the Deployment with the parts that its version offered, with a '-'
// before those that were left out. A part that is not in it is new.
const partsKey = annotations.IntentPrefix + "parts"

// documentsRole replaces rights in the cluster with --single-namespace.
const documentsRole = "maint-agent-documents"

// cloudRole has the right for --cloud, and tokenPolicy confines it.
const (
	cloudRole   = "maint-agent-cloud"
	tokenPolicy = "maint-agent-tokens"
)

// defaultReplicas is the number of agents: a leader and a standby.
const defaultReplicas = 2

// Manifests is what install prints: the agent's objects for one version.
type Manifests struct {
	Version, Namespace, Image string
	Replicas                  int      // 0: the default
	Impersonate               []string // accounts besides maint-runner that the agent may impersonate
	Secrets                   []string // Secrets of sinks besides the default one
	Without                   []string // parts that are left out
	ReadOnly                  bool
	TolerateCordon            bool
	MetricsAuth               bool   // the agent authenticates readers of its metrics
	Cloud                     bool   // the agent may request tokens of the accounts that it impersonates, for AWS
	KubeSystem                bool   // the agent may write ConfigMaps in kube-system
	SingleNamespace           bool   // the agent watches only its own namespace, with a Role
	Admission                 bool   // the policies of admission.go too
	Outbound                  string // outboundOpen, outboundStrict; empty: open
}

// Accounts are the ServiceAccounts that the agent may impersonate, in every namespace.
func (m Manifests) Accounts() []string {
	out := []string{policy.DefaultServiceAccount}
	for _, name := range m.Impersonate {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// SinkSecrets are the Secrets of its namespace whose values the agent may read.
func (m Manifests) SinkSecrets() []string {
	out := []string{defaultSinks}
	for _, name := range m.Secrets {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// defaultSinks is the default Secret for the URLs of sinks.
const defaultSinks = "maint-sinks"

// Values of --outbound for private addresses.
const (
	outboundOpen   = "open"
	outboundStrict = "strict"
)

// Refused are the addresses that steps may not call by the configuration that install applies:
// those of pods, Services and nodes (RFC 1918, RFC 6598, RFC 4193), also where a cloud uses ranges
// that are not public (RFC 6890).
func (m Manifests) Refused() []string {
	if m.Outbound != outboundStrict {
		return nil
	}
	return []string{"10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "240.0.0.0/4", "fc00::/7"}
}

// Has says whether a part is included. A part that acts on nodes needs the part before it, and is
// useless to an agent that acts on nothing.
func (m Manifests) Has(part string) bool {
	switch {
	case slices.Contains(m.Without, part):
		return false
	case m.SingleNamespace && slices.Contains([]string{partRequests, partVolumes, partConditions}, part): // nodes are in no namespace
		return false
	case part == partForce:
		return m.Has(partRequests) && !m.ReadOnly
	case part == partKubelets: // a cluster that lacks the one lacks the other, too
		return m.Has(partConfinement)
	case part == partConditions:
		return !m.ReadOnly
	}
	return true
}

// Parts is the value of partsKey.
func (m Manifests) Parts() string {
	out := parts()
	for i, part := range out {
		if slices.Contains(m.Without, part) {
			out[i] = "-" + part
		}
	}
	return strings.Join(out, ",")
}

// Render writes the objects as YAML documents.
func (m Manifests) Render() (string, error) {
	facts, err := m.facts()
	if err != nil {
		return "", err
	}
	text, err := renderFile("agent", facts)
	if err != nil {
		return "", err
	}
	if m.Admission {
		policies, err := renderPolicies(m.Namespace)
		return text + policies, err
	}
	return text, nil
}

// facts are the values for the templates. The chart computes the same ones from its values
// (manifests/chart/templates/_facts.tpl).
type facts struct {
	Version, Namespace, Image, Parts, Config string

	workload
	rights
	WithNamespace, WithConfig bool
	WithAccount               bool
	AccountAnnotations        map[string]string
}

// workload are the values for the Deployment.
type workload struct {
	Replicas                  int
	PodLabels, PodAnnotations map[string]string
	Tolerations               []any          // of the pod
	Pod                       map[string]any // other fields of its spec; they replace the default of the same name
	Env, VolumeMounts         []any          // of the container
	Resources                 map[string]any // of the container; empty: the default
}

// rights is what the agent may do, and for whom.
type rights struct {
	Accounts, SinkSecrets, Refused           []string
	Has                                      map[string]bool
	ReadOnly, MetricsAuth, Cloud, KubeSystem bool
	SingleNamespace                          bool
}

func (m Manifests) facts() (facts, error) {
	f := facts{
		Version: m.Version, Namespace: m.Namespace, Image: m.Image, Parts: m.Parts(),
		WithNamespace: true, WithConfig: true, WithAccount: true,
		workload: workload{Replicas: m.Replicas},
		rights: rights{
			Accounts: m.Accounts(), SinkSecrets: m.SinkSecrets(), Refused: m.Refused(), Has: map[string]bool{},
			ReadOnly: m.ReadOnly, MetricsAuth: m.MetricsAuth, Cloud: m.Cloud, KubeSystem: m.KubeSystem || m.Namespace == kubeSystem,
			SingleNamespace: m.SingleNamespace,
		},
	}
	if f.Replicas == 0 {
		f.Replicas = defaultReplicas
	}
	for _, part := range parts() {
		f.Has[part] = m.Has(part)
	}
	if m.TolerateCordon { // on a cluster with one node, the agent may have to start on its cordoned node
		f.Tolerations = []any{map[string]any{"key": cordonTaint, "operator": "Exists", "effect": "NoSchedule"}}
	}
	var err error
	f.Config, err = renderFile("config", f)
	return f, err
}

// renderFile executes one of the templates.
func renderFile(name string, f facts) (string, error) {
	text, err := manifestFiles.ReadFile("manifests/" + name + ".yaml")
	if err != nil {
		return "", fmt.Errorf("read the manifests: %w", err)
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"join": func(between string, list []string) string { return strings.Join(list, between) },
		"indent": func(by int, text string) string {
			return strings.Repeat(" ", by) + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+strings.Repeat(" ", by))
		},
		"toJson": toJSON,
	}).Parse(string(text))
	if err != nil {
		return "", fmt.Errorf("read the manifests: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, f); err != nil {
		return "", fmt.Errorf("write the manifests: %w", err)
	}
	return b.String(), nil
}

func toJSON(value any) (string, error) {
	b, err := json.Marshal(value)
	return string(b), err
}

// kubeSystem is the namespace that nobody but Kubernetes writes to by default.
const kubeSystem = "kube-system"

// Objects are the objects in the order of their application.
func (m Manifests) Objects() ([]*unstructured.Unstructured, error) {
	text, err := m.Render()
	if err != nil {
		return nil, err
	}
	return readObjects(text)
}

// all are the objects of every part: everything that install may have applied.
func (m Manifests) all() ([]*unstructured.Unstructured, error) {
	m.Without, m.ReadOnly, m.Admission, m.MetricsAuth, m.Cloud = nil, false, true, true, true
	m.SingleNamespace = true
	narrow, err := m.Objects()
	if err != nil {
		return nil, err
	}
	m.SingleNamespace = false
	out, err := m.Objects()
	if err != nil {
		return nil, err
	}
	there := byKey(out)
	for _, u := range narrow {
		if there[keyOf(u)] == nil {
			out = append(out, u)
		}
	}
	return out, nil
}

// readObjects decodes them like answers of an API server, numbers included.
func readObjects(text string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	var out []*unstructured.Unstructured
	for {
		var raw json.RawMessage
		switch err := decoder.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read the manifests: %w", err)
		case len(raw) == 0 || string(raw) == "null":
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		out = append(out, u)
	}
}

// objectKey identifies an object of an installation.
type objectKey struct{ kind, name string }

func keyOf(u *unstructured.Unstructured) objectKey { return objectKey{u.GetKind(), u.GetName()} }

func (k objectKey) String() string { return strings.ToLower(k.kind) + "/" + k.name }

func named(u *unstructured.Unstructured) string { return keyOf(u).String() }

// objectsByKey are existing objects.
type objectsByKey map[objectKey]*unstructured.Unstructured

func byKey(all []*unstructured.Unstructured) objectsByKey {
	out := objectsByKey{}
	for _, u := range all {
		out[keyOf(u)] = u
	}
	return out
}

// Template is one of the texts that install renders.
type Template struct{ Name, Text string }

// Templates are agent, config and the admission policies, in the order of their application, for
// those who build other packages from the same text.
func Templates() ([]Template, error) {
	var out []Template
	for _, name := range []string{"agent", "config"} {
		text, err := manifestFiles.ReadFile("manifests/" + name + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		out = append(out, Template{name, string(text)})
	}
	for _, name := range policyOrder() {
		text, err := policyFiles.ReadFile("manifests/admission/" + name + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("read the policies: %w", err)
		}
		out = append(out, Template{name, string(text)})
	}
	return out, nil
}
