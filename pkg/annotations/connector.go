package annotations

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// DataConnector is the data key of connectors.
const DataConnector = "connector.yaml"

// Connector reads the connector in a ConfigMap and reports everything wrong with it. One
// with faults is returned as far as it could be read.
func Connector(cm *corev1.ConfigMap) (connector.Connector, document.Faults) {
	text, fault := DocumentText(cm)
	if fault != nil {
		return connector.Connector{}, document.Faults{*fault}
	}
	one, faults := connector.Parse([]byte(text))
	if !document.DNSLabel(cm.Name) {
		faults = append(faults, document.Fault{Path: "metadata.name", Message: fmt.Sprintf("%q cannot name a connector: at most %d characters of a-z, 0-9 and '-'", document.Cut(cm.Name, 100), document.MaxNameLength)})
	}
	return one, faults
}
