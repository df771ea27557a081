#!/usr/bin/env bash
# Checks every manifest and example against the schemas of the Kubernetes
# version that the tests run. Custom resources of others (the Prometheus
# operator's) have no schema here and are counted as skipped.
set -euo pipefail

cd "$(dirname "$0")/.."
schemas=bin/schemas
spec=$(cd tools/kube && GOWORK=off go list -m -f '{{.Dir}}/api/openapi-spec/swagger.json' k8s.io/kubernetes)
if [[ ! -f $spec ]]; then
	(cd tools/kube && GOWORK=off go mod download k8s.io/kubernetes)
	spec=$(cd tools/kube && GOWORK=off go list -m -f '{{.Dir}}/api/openapi-spec/swagger.json' k8s.io/kubernetes)
fi
rm -rf "$schemas"
(cd tools/kube && GOWORK=off go run ./schemas -spec "$spec" -o "../../$schemas")

# Only what is a Kubernetes object: templates of the chart are compared with what install
# prints by test/packages, and a file that is none (values, dashboards)
# has no apiVersion at the start of a line.
files=$(find manifests examples -name '*.yaml' ! -name 'kustomization.yaml' ! -path 'manifests/chart/*' -exec grep -lE '^apiVersion:' {} + | sort)
if [[ -z $files ]]; then
	echo "manifests-check: no manifest in manifests/ or examples/: nothing was checked" >&2
	exit 1
fi
# shellcheck disable=SC2086 # one word per file
bin/kubeconform -strict -summary \
	-schema-location "$schemas/{{ .ResourceKind }}_{{ .Group }}_{{ .ResourceAPIVersion }}.json" \
	-skip ServiceMonitor,PodMonitor,PrometheusRule \
	$files
