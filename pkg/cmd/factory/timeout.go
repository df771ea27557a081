package factory

import (
	"cmp"
	"net/http"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kubectl-maint/kubectl-maint/pkg/kube"
)

// AddFlags adds the flags that choose and reach the cluster.
func (c *Factory) AddFlags(flags *pflag.FlagSet) {
	c.Config.AddFlags(flags)
	c.requestTimeout = flags.Lookup("request-timeout")
}

// endUnanswered ends requests that nobody answers. --request-timeout=0 asks to wait forever.
func (c *Factory) endUnanswered(config *rest.Config) *rest.Config {
	forEver := c.requestTimeout != nil && c.requestTimeout.Changed
	if config.Timeout == 0 && !forEver {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return kube.LimitAnswers(next, cmp.Or(c.AnswerWithin, kube.AnswerWithin))
		})
	}
	return config
}
