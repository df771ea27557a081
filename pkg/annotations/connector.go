package annotations

import (
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
	return one, append(faults, NameFaults(cm, "a connector")...)
}
