package main

import (
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/connector"
)

func TestTheSchemasOfConnectorsSayWhatTheValidatorSays(t *testing.T) {
	account := func(rest string) string {
		return "type: aws, aws: {accountId: '123456789012', region: eu-central-1, " + rest + "}"
	}
	for kind, cases := range map[string]map[string]bool{
		connector.CloudProvider: {
			account("auth: {serviceAccount: {}}"):                                                        false,
			account("auth: {static: {secretRef: {name: keys}}}"):                                         false,
			account("assumeRoleArn: 'arn:aws:iam::123456789012:role/maint', auth: {serviceAccount: {}}"): false,
			account("assumeRoleArn: maint, auth: {serviceAccount: {}}"):                                  true,
			account("auth: {}"): true,
			account("auth: {serviceAccount: {}, static: {secretRef: {name: keys}}}"): true,
			account("auth: {serviceAccount: {name: x}}"):                             true,
			"type: gcp": true,
			"type: aws": true,
			"type: aws, aws: {accountId: 123456789012, region: eu-central-1, auth: {serviceAccount: {}}}": true,
			"type: aws, aws: {accountId: '1234', region: eu-central-1, auth: {serviceAccount: {}}}":       true,
			"type: aws, aws: {accountId: '123456789012', auth: {serviceAccount: {}}}":                     true,
		},
		connector.K8SCluster: {
			"providerRef: {name: aws-stg}, eks: {name: stg, region: eu-central-1}": false,
			"eks: {name: stg}": true,
			"k8s: {kubeconfigRef: {name: other, key: config}}":                            false,
			"k8s: {kubeconfigRef: {name: other}}, providerRef: {name: x}, eks: {name: a}": true,
			"k8s: {}": true,
			"gke: {}": true,
		},
	} {
		s := compiled(t, map[string]string{connector.CloudProvider: "cloudprovider.schema.json", connector.K8SCluster: "k8scluster.schema.json"}[kind])
		for spec, broken := range cases {
			text := "apiVersion: maint.dev/v1alpha1\nkind: " + kind + "\nspec: {" + spec + "}\n"
			_, faults := connector.Parse([]byte(text))
			err := s.Validate(value(t, text))
			if (len(faults) > 0) != broken || (err != nil) != broken {
				t.Errorf("%s: the validator says %v, the schema says %v", spec, faults, err)
			}
		}
	}
}
