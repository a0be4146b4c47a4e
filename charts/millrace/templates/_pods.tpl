{{/* What every pod of the control plane shares: Pod Security "restricted", and a root file system that nobody can write. */}}
{{- define "millrace.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "millrace.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* the head of a pod's spec; takes the root context */}}
{{- define "millrace.podHead" -}}
enableServiceLinks: false
securityContext: {{- include "millrace.podSecurity" . | nindent 2 }}
{{- with .Values.images.pullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* the head of a container that runs the operator's image; takes the root context */}}
{{- define "millrace.containerHead" -}}
image: {{ include "millrace.image" (dict "images" .Values.images "of" "operator") }}
imagePullPolicy: {{ .Values.images.pullPolicy }}
securityContext: {{- include "millrace.containerSecurity" . | nindent 2 }}
terminationMessagePolicy: FallbackToLogsOnError
{{- end }}

{{- define "millrace.placing" -}}
{{- with .Values.operator.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
