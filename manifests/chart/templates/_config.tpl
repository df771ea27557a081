{{- /* Generated from pkg/cmd/setup/manifests by 'make generate'. */ -}}
{{- define "maint.config" -}}
apiVersion: maint.dev/v1alpha1
kind: AgentConfig
spec:
  logLevel: info
  nodes: {maxParallelOperations: 1}
  retention: {runs: 30d}
{{- if .Refused}}
  # outbound: strict. No address of pods, Services or nodes
  outbound: {deny: [{{range $i, $a := .Refused}}{{if $i}}, {{end}}{{printf "%q" $a}}{{end}}]}
{{- end}}
{{- end -}}
