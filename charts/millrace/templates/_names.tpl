{{/* Names and labels. Everything is called after the release, so that two releases can share a namespace. */}}
{{- define "millrace.name" -}}
{{- if contains "millrace" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-millrace{{ end }}
{{- end }}

{{/* Cluster-wide objects carry the namespace too: a release of the same name may be elsewhere. */}}
{{- define "millrace.clusterName" -}}
{{ include "millrace.name" . }}:{{ .Release.Namespace }}
{{- end }}

{{/* selector of a component: dict "root" $ "component" "operator" */}}
{{- define "millrace.selector" -}}
app.kubernetes.io/name: millrace
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "millrace.labels" -}}
{{ include "millrace.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: millrace
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* dict "images" .Values.images "of" "operator" */}}
{{- define "millrace.image" -}}
{{- $one := index .images .of -}}
{{ $one.repository }}{{ if $one.digest }}@{{ $one.digest }}{{ else }}:{{ .images.tag }}{{ end }}
{{- end }}

{{- define "millrace.bootstrap" -}}
{{ .Values.kafka.bootstrapServers | default (printf "kafka.%s.svc:9092" .Release.Namespace) }}
{{- end }}

{{- define "millrace.testNamespace" -}}
{{ .Values.test.namespace | default (first .Values.watchNamespaces) | default .Release.Namespace }}
{{- end }}
