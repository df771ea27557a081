package main

import (
	"github.com/invopop/jsonschema"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
)

func cloudProviderSchema(s source) (*jsonschema.Schema, error) {
	e := reflectAll(s, &connector.CloudDocument{})
	e.envelope("CloudDocument", connector.CloudProvider, "CloudProvider of kubectl maint (connector.yaml)")
	e.words("CloudSpec.type", connector.TypeAWS)
	e.at("CloudSpec").Required = []string{"type", "aws"}
	e.at("AWS.accountId").Pattern = "^[0-9]{12}$"
	e.at("AWS.assumeRoleArn").Pattern = "^arn:aws[a-z-]*:iam::[0-9]{12}:role/"
	for path, example := range map[string]string{"AWS.accountId": "123456789012", "AWS.region": "eu-central-1", "AWS.assumeRoleArn": "arn:aws:iam::123456789012:role/maint"} {
		e.at(path).Examples = []any{example}
	}
	e.oneOf("Auth", "serviceAccount", "static")
	return e.done()
}

func clusterSchema(s source) (*jsonschema.Schema, error) {
	e := reflectAll(s, &connector.ClusterDocument{})
	e.envelope("ClusterDocument", connector.K8SCluster, "K8SCluster of kubectl maint (connector.yaml)")
	e.oneOf("ClusterSpec", "eks", "k8s")
	e.at("ClusterSpec").DependentRequired = map[string][]string{"eks": {"providerRef"}}
	e.at("EKSCluster.region").Examples = []any{"eu-central-1"}
	e.at("KubeconfigRef.key").Default = connector.DefaultKubeconfigKey
	return e.done()
}
