package plan

import (
	"fmt"
	"net"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
	"github.com/kubectl-maint/kubectl-maint/pkg/expr"
)

// The step types that call functions.
const (
	TypeFunction = "function"
	TypePipeline = "pipeline"
)

// FunctionProperties call a function of Crossplane's protocol v1, or v1beta1 where only that is
// served.
type FunctionProperties struct {
	Endpoint    string               `json:"endpoint,omitempty"`    // host:port; this or functionRef
	FunctionRef *FunctionRef         `json:"functionRef,omitempty"` // an installed function; this or endpoint
	Input       map[string]any       `json:"input,omitempty"`
	Credentials []FunctionCredential `json:"credentials,omitempty"`
	TLS         *FunctionTLS         `json:"tls,omitempty"`     // default: of an endpoint, verified by the system's authorities; of functionRef, by the certificate of the agent's configuration
	Force       bool                 `json:"force,omitempty"`   // take fields of desired objects from their owners
	Timeout     *document.Duration   `json:"timeout,omitempty"` // of one call, default 20s
}

// PipelineProperties call functions one after another, as a Composition does.
type PipelineProperties struct {
	Functions []PipelineFunction `json:"functions"`
	Force     bool               `json:"force,omitempty"` // take fields of desired objects from their owners
}

// PipelineFunction is one function of a pipeline. It is handed what the one before desires, and its
// context.
type PipelineFunction struct {
	Name        string               `json:"name"`
	Endpoint    string               `json:"endpoint,omitempty"`    // host:port; this or functionRef
	FunctionRef *FunctionRef         `json:"functionRef,omitempty"` // an installed function; this or endpoint
	Input       map[string]any       `json:"input,omitempty"`
	Credentials []FunctionCredential `json:"credentials,omitempty"`
	TLS         *FunctionTLS         `json:"tls,omitempty"`     // as of a step of type function
	Timeout     *document.Duration   `json:"timeout,omitempty"` // of one call, default 20s
}

// Called is the function as a step of its own would call it.
func (f PipelineFunction) Called() *FunctionProperties {
	return &FunctionProperties{Endpoint: f.Endpoint, FunctionRef: f.FunctionRef, Input: f.Input, Credentials: f.Credentials, TLS: f.TLS, Timeout: f.Timeout}
}

// FunctionRef names a Crossplane function that is installed in the plan's cluster.
type FunctionRef struct {
	Name string `json:"name"`
}

// FunctionCredential hands a function the data of a Secret of the plan's namespace.
type FunctionCredential struct {
	Name       string `json:"name"`
	SecretName string `json:"secretName"`
}

// FunctionTLS says how to speak with a function: with the ca.crt, tls.crt and
// tls.key of a Secret of the plan's namespace, or in plaintext.
type FunctionTLS struct {
	SecretName string `json:"secretName,omitempty"`
	ServerName string `json:"serverName,omitempty"` // default: the endpoint's host
	Insecure   bool   `json:"insecure,omitempty"`   // plaintext
}

// MaxFunctions is how many functions a pipeline calls (a guess: compositions have fewer than ten).
const MaxFunctions = 20

func checkFunction(p any, at document.Reporter) {
	props := p.(*FunctionProperties)
	switch ref := props.FunctionRef; {
	case (props.Endpoint == "") == (ref == nil):
		at("", "needs exactly one of endpoint (host:port) and functionRef (an installed function)")
	case ref != nil:
		if !expr.IsTemplate(ref.Name) && !document.DNSSubdomain(ref.Name) {
			at("functionRef.name", "%q is no name of an installed function", document.Cut(ref.Name, 100))
		}
	default:
		CheckEndpoint(props.Endpoint, at)
	}
	CheckFunction(props.Credentials, props.TLS, at)
	document.CheckSpan("timeout", props.Timeout, time.Second, 10*time.Minute, at)
}

// CheckEndpoint reports what is wrong with the address of a function.
func CheckEndpoint(endpoint string, at document.Reporter) {
	if expr.IsTemplate(endpoint) {
		return
	}
	if host, port, err := net.SplitHostPort(endpoint); err != nil || host == "" || port == "" {
		at("endpoint", "%q is no host and port; write it like fn.example.org:9443", document.Cut(endpoint, 200))
	}
}

// CheckFunction reports what is wrong with what a function is given, and how it is spoken with.
func CheckFunction(credentials []FunctionCredential, tls *FunctionTLS, at document.Reporter) {
	seen := map[string]bool{}
	for _, c := range credentials {
		if c.Name == "" || c.SecretName == "" {
			at("credentials", "each needs a name and a secretName")
		}
		if seen[c.Name] {
			at("credentials", "%q appears twice", document.Cut(c.Name, 100))
		}
		seen[c.Name] = true
	}
	if tls != nil && tls.Insecure && (tls.SecretName != "" || tls.ServerName != "") {
		at("tls", "insecure is plaintext: it goes with neither secretName nor serverName")
	}
}

func checkPipeline(p any, at document.Reporter) {
	props := p.(*PipelineProperties)
	if n := len(props.Functions); n == 0 || n > MaxFunctions {
		at("functions", "must be from 1 to %d, are %d", MaxFunctions, n)
		return
	}
	seen := map[string]bool{}
	for i, f := range props.Functions {
		path := fmt.Sprintf("functions[%d]", i)
		switch {
		case !document.DNSLabel(f.Name):
			at(path+".name", "%q is no name: write lower case letters, digits and dashes, at most %d", document.Cut(f.Name, 100), document.MaxNameLength)
		case seen[f.Name]:
			at(path+".name", "%q appears twice", f.Name)
		}
		seen[f.Name] = true
		checkFunction(f.Called(), func(field, format string, args ...any) {
			if field != "" {
				field = "." + field
			}
			at(path+field, format, args...)
		})
	}
}
