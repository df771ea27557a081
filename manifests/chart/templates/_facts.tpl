{{- /*
What the templates of the agent speak of, worked out from the values. The templates
themselves are those of 'kubectl maint install', and a test compares what comes of both.
A value counts where it is given. Where it is not, what stands in the cluster stays.
*/ -}}
{{- define "maint.facts" -}}
{{- include "maint.defaults" . -}}
{{- include "maint.check" . -}}
{{- $v := .Values -}}
{{- $confines := eq (include "maint.serves" (list . "ValidatingAdmissionPolicy" ">=1.30-0")) "yes" -}}

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

{{- $actions := dict -}}
{{- if and $confines (or $v.confinement $v.admission) -}}
{{- range (lookup "admissionregistration.k8s.io/v1" "ValidatingAdmissionPolicyBinding" "" "").items -}}
{{- $_ := set $actions .metadata.name .spec.validationActions -}}
{{- end -}}
{{- end -}}

{{- $tolerations := $v.tolerations | default list -}}
{{- if $v.tolerateCordon -}}
{{- $tolerations = prepend $tolerations (dict "key" "node.kubernetes.io/unschedulable" "operator" "Exists" "effect" "NoSchedule") -}}
{{- end -}}
{{- $pod := dict -}}
{{- with $v.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end -}}
{{- with $v.affinity }}{{ $_ := set $pod "affinity" . }}{{ end -}}
{{- with $v.priorityClassName }}{{ $_ := set $pod "priorityClassName" . }}{{ end -}}
{{- with $v.topologySpreadConstraints }}{{ $_ := set $pod "topologySpreadConstraints" . }}{{ end -}}
{{- with $v.podSecurityContext }}{{ $_ := set $pod "securityContext" . }}{{ end -}}
{{- with $v.volumes }}{{ $_ := set $pod "volumes" . }}{{ end -}}
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
  "Actions" $actions
  "Replicas" $replicas
  "Accounts" (fromJsonArray (include "maint.accounts" .))
  "SinkSecrets" (fromJsonArray (include "maint.sinks" .))
  "Refused" (ternary (list "10.0.0.0/8" "100.64.0.0/10" "172.16.0.0/12" "192.0.0.0/24" "192.168.0.0/16" "198.18.0.0/15" "240.0.0.0/4" "fc00::/7") list (eq $v.outbound "strict"))
  "Has" $has
  "ReadOnly" $v.readOnly
  "MetricsAuth" $v.metricsAuth
  "Cloud" $v.cloud
  "KubeSystem" (or $v.kubeSystem (eq .Release.Namespace "kube-system"))
  "SingleNamespace" $v.singleNamespace
  "Admission" $v.admission
  "Stamps" (eq (include "maint.serves" (list . "MutatingAdmissionPolicy" ">=1.36-0")) "yes")
  "WithNamespace" false
  "WithConfig" false
  "Config" ""
  "WithAccount" (ne (get ($v.serviceAccount | default dict) "create" | toString) "false")
  "AccountAnnotations" (get ($v.serviceAccount | default dict) "annotations" | default dict)
  "PodLabels" ($v.podLabels | default dict)
  "PodAnnotations" ($v.podAnnotations | default dict)
  "Tolerations" $tolerations
  "Pod" $pod
  "Env" ($v.env | default list)
  "VolumeMounts" ($v.volumeMounts | default list)
  "Resources" $resources
  | toJson -}}
{{- end -}}

{{- /*
Whether the API server has a kind of admission policy. Without a cluster ('helm template')
Helm knows no kinds, and the version of Kubernetes that it was told decides.
*/ -}}
{{- define "maint.serves" -}}
{{- $top := index . 0 -}}
{{- $known := $top.Capabilities.APIVersions -}}
{{- if $known.Has "apps/v1/Deployment" -}}
{{- if $known.Has (printf "admissionregistration.k8s.io/v1/%s" (index . 1)) }}yes{{ end -}}
{{- else if semverCompare (index . 2) $top.Capabilities.KubeVersion.Version }}yes{{ end -}}
{{- end -}}

{{- define "maint.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{- /*
What a binding does: as it does in the cluster, else as the nearest that an earlier version
had instead of it, else it refuses.
*/ -}}
{{- define "maint.actions" -}}
{{- $standing := (first .).Actions -}}
{{- $actions := list -}}
{{- range rest . }}{{ $actions = $actions | default (get $standing .) }}{{ end -}}
{{- $actions | default (list "Deny") | toJson -}}
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
{{- range $role.rules -}}
{{- if and (has "impersonate" .verbs) (has "serviceaccounts" (.resources | default list)) -}}
{{- $standing = concat $standing (.resourceNames | default list) | uniq -}}
{{- end -}}
{{- end -}}
{{- if $standing }}{{ $accounts = $standing }}{{ end -}}
{{- end -}}
{{- toJson $accounts -}}
{{- end -}}

{{- /* The Secrets with URLs of sinks and the certificate for functions that the agent may read. */ -}}
{{- define "maint.sinks" -}}
{{- $secrets := list "maint-sinks" -}}
{{- $config := .Values.config -}}
{{- if kindIs "invalid" $config -}}
{{- $live := lookup "v1" "ConfigMap" .Release.Namespace "maint-agent" -}}
{{- $config = (fromYaml (get ($live.data | default dict) "config.yaml" | default "")).spec -}}
{{- end -}}
{{- if kindIs "map" $config -}}
{{- range ($config.notifications | default dict).sinks -}}
{{- with (.urlSecretRef | default dict).name }}{{ $secrets = append $secrets . }}{{ end -}}
{{- end -}}
{{- with (($config.functions | default dict).tlsSecretRef | default dict).name }}{{ $secrets = append $secrets . }}{{ end -}}
{{- end -}}
{{- if not (kindIs "invalid" .Values.sinkSecrets) -}}
{{- $secrets = concat $secrets .Values.sinkSecrets -}}
{{- else -}}
{{- $role := lookup "rbac.authorization.k8s.io/v1" "Role" .Release.Namespace "maint-agent" -}}
{{- range $role.rules -}}
{{- if has "secrets" (.resources | default list) }}{{ $secrets = concat $secrets (.resourceNames | default list) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $secrets | uniq | toJson -}}
{{- end -}}

{{- /*
Values that are not there, as 'helm upgrade --reuse-values' has it that gives those of a
former chart: where nothing is not the default, that is put in.
*/ -}}
{{- define "maint.defaults" -}}
{{- $v := .Values -}}
{{- range $key, $value := dict "image" (dict) "nodes" (dict) "confinement" true "kubelets" true "outbound" "open" -}}
{{- if kindIs "invalid" (index $v $key) }}{{ $_ := set $v $key $value }}{{ end -}}
{{- end -}}
{{- range list "requests" "force" "volumes" "conditions" -}}
{{- if kindIs "invalid" (index $v.nodes .) }}{{ $_ := set $v.nodes . true }}{{ end -}}
{{- end -}}
{{- if not $v.image.repository }}{{ $_ := set $v.image "repository" "kubectl-maint/agent" }}{{ end -}}
{{- end -}}

{{- /* Objects with labels of an admin beside their own. */ -}}
{{- define "maint.labelled" -}}
{{- $text := index . 0 -}}
{{- $labels := index . 1 -}}
{{- if $labels -}}
{{- range splitList "\n---\n" $text -}}
{{- with fromYaml . }}
---
{{ set . "metadata" (set .metadata "labels" (merge (dict) (.metadata.labels | default dict) $labels)) | toYaml }}
{{- end -}}
{{- end -}}
{{- else }}{{ $text }}{{ end -}}
{{- end -}}

{{- /*
Whether an agent shows itself in a namespace, by its Lease or its heartbeat: it may run without a
Deployment. Half a minute is how long a living one is silent at most.
*/ -}}
{{- define "maint.lives" -}}
{{- $lease := lookup "coordination.k8s.io/v1" "Lease" . "maint-agent" -}}
{{- $heartbeat := lookup "v1" "ConfigMap" . "maint-agent-status" -}}
{{- $seen := list -}}
{{- if ($lease.spec).holderIdentity }}{{ $seen = append $seen ($lease.spec.renewTime | default "") }}{{ end -}}
{{- if ($heartbeat.data).heartbeat }}{{ $seen = append $seen $heartbeat.data.heartbeat }}{{ end -}}
{{- $since := now | unixEpoch | int64 | add -30 -}}
{{- $lives := "no" -}}
{{- range $seen -}}
{{- if gt (toDate "2006-01-02T15:04:05Z07:00" . | unixEpoch | int64) $since }}{{ $lives = "yes" }}{{ end -}}
{{- end -}}
{{- $lives -}}
{{- end -}}

{{- /* What is refused in words, before anything is made. */ -}}
{{- define "maint.check" -}}
{{- $v := .Values -}}
{{- range list "app.kubernetes.io/name" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "maint.dev/kind" -}}
{{- if hasKey ($v.labels | default dict) . }}{{ fail (printf "labels: %s is a label of the chart: leave it out" .) }}{{ end -}}
{{- end -}}
{{- if hasKey ($v.podLabels | default dict) "app.kubernetes.io/name" }}{{ fail "podLabels: by app.kubernetes.io/name the Deployment finds its pods: leave it out" }}{{ end -}}
{{- range $v.env -}}
{{- if eq .name "POD_NAME" }}{{ fail "env: POD_NAME is set by the chart: leave it out" }}{{ end -}}
{{- end -}}
{{- $monitoring := $v.monitoring | default dict -}}
{{- if and $v.metricsAuth $monitoring.serviceMonitor (not $monitoring.authorization) }}{{ fail "metricsAuth has /metrics ask for a token, and monitoring.serviceMonitor would send none: give monitoring.authorization" }}{{ end -}}
{{- if and $v.readOnly $v.impersonate }}{{ fail "impersonate lets the agent act as an account, and readOnly as none: give one of them" }}{{ end -}}
{{- if and $v.readOnly $v.cloud }}{{ fail "cloud is for an agent that acts as accounts, and readOnly lets it act as none: give one of them" }}{{ end -}}
{{- if and $v.cloud (not $v.confinement) }}{{ fail "cloud lets the agent ask for tokens, and without confinement nothing says for whom: give confinement too" }}{{ end -}}
{{- if and $v.singleNamespace (eq .Release.Namespace "kube-system") }}{{ fail "singleNamespace is for a namespace of a team: in kube-system an agent looks at the cluster" }}{{ end -}}
{{- if ne (include "maint.serves" (list . "ValidatingAdmissionPolicy" ">=1.30-0")) "yes" -}}
{{- if $v.cloud }}{{ fail "this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do), so nothing would say for whom the agent may ask for tokens: set cloud to false" }}{{ end -}}
{{- if $v.admission }}{{ fail "this API server has no ValidatingAdmissionPolicy (Kubernetes 1.30 and later do): set admission to false" }}{{ end -}}
{{- end -}}
{{- $namespace := .Release.Namespace -}}
{{- $binding := lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "maint-agent" -}}
{{- range $binding.subjects -}}
{{- $other := .namespace -}}
{{- if and (eq .name "maint-agent") $other (ne $other $namespace) -}}
{{- if or (lookup "apps/v1" "Deployment" $other "maint-agent") (eq (include "maint.lives" $other) "yes") -}}
{{- fail (printf "an agent is installed in namespace %s: give --namespace %s to upgrade it, or uninstall it first. A release of Helm is upgraded by helm upgrade -n %s; an installation by kubectl maint is taken over by helm install -n %s --take-ownership --force-conflicts" $other $other $other $other) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
