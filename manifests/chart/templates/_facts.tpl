{{- /*
What the templates of the agent speak of, worked out from the values. The templates
themselves are those of 'kubectl maint install', and a test compares what comes of both.
A value counts where it is given. Where it is not, what stands in the cluster stays.
*/ -}}
{{- define "maint.facts" -}}
{{- include "maint.check" . -}}
{{- $v := .Values -}}
{{- $confines := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" -}}

{{- $wanted := dict "requests" $v.nodes.requests "force" $v.nodes.force "volumes" $v.nodes.volumes "conditions" $v.nodes.conditions "confinement" $v.confinement "kubelets" $v.kubelets -}}
{{- $parts := list -}}
{{- range list "requests" "force" "volumes" "conditions" "confinement" "kubelets" -}}
{{- $parts = append $parts (printf "%s%s" (ternary "" "-" (get $wanted .)) .) -}}
{{- end -}}
{{- $whole := not $v.singleNamespace -}}
{{- $confinement := and $v.confinement $confines -}}
{{- $has := dict "requests" (and $v.nodes.requests $whole) "volumes" (and $v.nodes.volumes $whole) "confinement" $confinement -}}
{{- $_ := set $has "force" (and $v.nodes.force $has.requests (not $v.readOnly)) -}}
{{- $_ := set $has "conditions" (and $v.nodes.conditions $whole (not $v.readOnly)) -}}
{{- $_ := set $has "kubelets" (and $v.kubelets $confinement) -}}

{{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace "maint-agent" -}}
{{- $replicas := 2 -}}
{{- $resources := dict -}}
{{- if $deployment -}}
{{- $replicas = $deployment.spec.replicas -}}
{{- range $deployment.spec.template.spec.containers -}}
{{- if eq .name "agent" }}{{ $resources = .resources | default dict }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if not (kindIs "invalid" $v.replicas) }}{{ $replicas = $v.replicas }}{{ end -}}
{{- if not (kindIs "invalid" $v.resources) }}{{ $resources = $v.resources }}{{ end -}}

{{- $tolerations := $v.tolerations -}}
{{- if $v.tolerateCordon -}}
{{- $tolerations = prepend $tolerations (dict "key" "node.kubernetes.io/unschedulable" "operator" "Exists" "effect" "NoSchedule") -}}
{{- end -}}
{{- $pod := dict -}}
{{- with $v.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end -}}
{{- with $v.affinity }}{{ $_ := set $pod "affinity" . }}{{ end -}}
{{- with $v.priorityClassName }}{{ $_ := set $pod "priorityClassName" . }}{{ end -}}
{{- with $v.image.pullSecrets -}}
{{- $names := list -}}
{{- range . }}{{ $names = append $names (dict "name" .) }}{{ end -}}
{{- $_ := set $pod "imagePullSecrets" $names -}}
{{- end -}}

{{- dict
  "Version" .Chart.AppVersion
  "Namespace" .Release.Namespace
  "Image" (include "maint.image" .)
  "Parts" (join "," $parts)
  "Replicas" $replicas
  "Accounts" (fromJsonArray (include "maint.accounts" .))
  "SinkSecrets" (fromJsonArray (include "maint.sinks" .))
  "Refused" (ternary (list "10.0.0.0/8" "100.64.0.0/10" "172.16.0.0/12" "192.168.0.0/16" "fc00::/7") list (eq $v.outbound "strict"))
  "Has" $has
  "ReadOnly" $v.readOnly
  "MetricsAuth" $v.metricsAuth
  "Cloud" $v.cloud
  "KubeSystem" (or $v.kubeSystem (eq .Release.Namespace "kube-system"))
  "SingleNamespace" $v.singleNamespace
  "Admission" $v.admission
  "Stamps" (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
  "WithNamespace" false
  "WithConfig" false
  "Config" ""
  "Tolerations" $tolerations
  "Pod" $pod
  "Resources" $resources
  | toJson -}}
{{- end -}}

{{- define "maint.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The accounts that the agent may act as. */ -}}
{{- define "maint.accounts" -}}
{{- $accounts := list "maint-runner" -}}
{{- if not (kindIs "invalid" .Values.impersonate) -}}
{{- $accounts = concat $accounts .Values.impersonate | uniq -}}
{{- else -}}
{{- $role := lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "maint-agent" -}}
{{- if .Values.singleNamespace }}{{ $role = lookup "rbac.authorization.k8s.io/v1" "Role" .Release.Namespace "maint-agent-documents" }}{{ end -}}
{{- $standing := list -}}
{{- range get $role "rules" -}}
{{- if and (has "impersonate" .verbs) (has "serviceaccounts" (get . "resources" | default list)) -}}
{{- $standing = concat $standing (get . "resourceNames" | default list) | uniq -}}
{{- end -}}
{{- end -}}
{{- if $standing }}{{ $accounts = $standing }}{{ end -}}
{{- end -}}
{{- toJson $accounts -}}
{{- end -}}

{{- /* The Secrets with URLs of sinks that the agent may read. */ -}}
{{- define "maint.sinks" -}}
{{- $secrets := list "maint-sinks" -}}
{{- $config := .Values.config -}}
{{- if kindIs "invalid" $config -}}
{{- $live := lookup "v1" "ConfigMap" .Release.Namespace "maint-agent" -}}
{{- $config = get (fromYaml (get (get $live "data" | default dict) "config.yaml" | default "")) "spec" | default dict -}}
{{- end -}}
{{- if kindIs "map" $config -}}
{{- range get (get $config "notifications" | default dict) "sinks" -}}
{{- with get (get . "urlSecretRef" | default dict) "name" }}{{ $secrets = append $secrets . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if not (kindIs "invalid" .Values.sinkSecrets) -}}
{{- $secrets = concat $secrets .Values.sinkSecrets -}}
{{- else -}}
{{- $role := lookup "rbac.authorization.k8s.io/v1" "Role" .Release.Namespace "maint-agent" -}}
{{- range get $role "rules" -}}
{{- if has "secrets" (get . "resources" | default list) }}{{ $secrets = concat $secrets (get . "resourceNames" | default list) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $secrets | uniq | toJson -}}
{{- end -}}

{{- /* What is refused in words, before anything is made. */ -}}
{{- define "maint.check" -}}
{{- $v := .Values -}}
{{- if and $v.readOnly $v.impersonate }}{{ fail "impersonate lets the agent act as an account, and readOnly as none: give one of them" }}{{ end -}}
{{- if and $v.readOnly $v.cloud }}{{ fail "cloud is for an agent that acts as accounts, and readOnly lets it act as none: give one of them" }}{{ end -}}
{{- if and $v.cloud (not $v.confinement) }}{{ fail "cloud lets the agent ask for tokens, and without confinement nothing says for whom: give confinement too" }}{{ end -}}
{{- if and $v.singleNamespace (eq .Release.Namespace "kube-system") }}{{ fail "singleNamespace is for a namespace of a team: in kube-system an agent looks at the cluster" }}{{ end -}}
{{- if not (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") -}}
{{- if $v.cloud }}{{ fail "this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do), so nothing would say for whom the agent may ask for tokens: set cloud to false" }}{{ end -}}
{{- if $v.admission }}{{ fail "this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do): set admission to false" }}{{ end -}}
{{- end -}}
{{- $namespace := .Release.Namespace -}}
{{- $binding := lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "maint-agent" -}}
{{- range get $binding "subjects" -}}
{{- $other := get . "namespace" -}}
{{- if and (eq .name "maint-agent") $other (ne $other $namespace) -}}
{{- if lookup "apps/v1" "Deployment" $other "maint-agent" -}}
{{- fail (printf "an agent is installed in namespace %s: give --namespace %s to upgrade it, or uninstall it first" $other $other) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
