{{- define "dispatch-operator.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the objects in the release's namespace; it is not repeated when the release bears the chart's name. */}}
{{- define "dispatch-operator.fullname" -}}
{{- $name := include "dispatch-operator.name" . -}}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $joined | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of what lies outside of it, where releases of other namespaces may have the same name. */}}
{{- define "dispatch-operator.globalName" -}}
{{- printf "%s:%s" .Release.Namespace (include "dispatch-operator.fullname" .) -}}
{{- end -}}

{{- define "dispatch-operator.namespacedRole" -}}
{{- include "dispatch-operator.globalName" . }}-namespaced
{{- end -}}

{{/* Those of the namespaces to serve in which something can be made now; all, where there is no cluster to ask. */}}
{{- define "dispatch-operator.presentNamespaces" -}}
{{- $connected := lookup "v1" "Namespace" "" "kube-system" -}}
{{- $present := list -}}
{{- range .Values.namespaces -}}
{{- $found := lookup "v1" "Namespace" "" . -}}
{{- if or (not $connected) (and $found (not (dig "metadata" "deletionTimestamp" "" $found))) -}}
{{- $present = append $present . -}}
{{- end -}}
{{- end -}}
{{- toJson $present -}}
{{- end -}}

{{- define "dispatch-operator.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "dispatch-operator.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* The Lease of a release that works alone; releases with a selector share one. A shard's own is eleven characters longer. */}}
{{- define "dispatch-operator.lease" -}}
{{- $shared := include "dispatch-operator.name" . | trunc 52 | trimSuffix "-" -}}
{{- ternary $shared (include "dispatch-operator.fullname" .) (ne .Values.selector "") -}}
{{- end -}}

{{- define "dispatch-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "dispatch-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "dispatch-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "dispatch-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The test's pod is none of the operator's: neither the Service nor the NetworkPolicy selects it. */}}
{{- define "dispatch-operator.testSelectorLabels" -}}
app.kubernetes.io/name: {{ include "dispatch-operator.name" . | trunc 58 | trimSuffix "-" }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "dispatch-operator.testLabels" -}}
{{ include "dispatch-operator.testSelectorLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "dispatch-operator.hasService" -}}
{{- if or .Values.metrics.service .Values.metrics.serviceMonitor.enabled }}true{{ end -}}
{{- end -}}

{{- define "dispatch-operator.podSecurityContext" -}}
{{- with ternary (omit .Values.podSecurityContext "runAsUser" "runAsGroup") .Values.podSecurityContext .Values.openshift -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{- define "dispatch-operator.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- .Values.image.repository }}{{ ternary (print "@" .Values.image.digest) (print ":" $tag) (ne .Values.image.digest "") -}}
{{- end -}}
