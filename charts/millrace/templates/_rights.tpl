{{/* What the operator does in a namespace that it serves, verb by verb. Nothing here touches a node. */}}
{{- define "millrace.operatorRules" -}}
# the resources themselves: watched, marked with a finalizer, annotated with alerts; never made, never deleted
- apiGroups: [millrace.io]
  resources: [streamjobs, topics]
  verbs: [get, list, watch, patch]
- apiGroups: [millrace.io]
  resources: [streamjobs/status, topics/status]
  verbs: [patch]
# where owners are checked (OpenShift), owning objects with blockOwnerDeletion asks for this
- apiGroups: [millrace.io]
  resources: [streamjobs/finalizers]
  verbs: [update]
# the parts of a job: server-side apply is create and patch; they go with their owner, so none is deleted
- apiGroups: [""]
  resources: [configmaps, services, serviceaccounts]
  verbs: [list, watch, create, patch]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list, watch, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [list, watch, create, patch]
# volumes outlive their job, unless its spec says otherwise
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list, watch, create, patch, delete]
# word for word the Role of a driver: Kubernetes lets nobody hand out rights that he does not hold. The operator itself
# lists, watches, annotates and deletes.
- apiGroups: [""]
  resources: [pods]
  verbs: [create, get, list, watch, delete, deletecollection, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
{{- include "millrace.secretRules" . }}
{{- end }}

{{/* Only where values ask for it: Topics, and the lag of jobs, on brokers that want a login, are looked after with the
Secret that the spec names in authSecret. One at a time by its name; a list would show all of a namespace's. Jobs need
none of this: the kubelet mounts their Secret. */}}
{{- define "millrace.secretRules" -}}
{{- if .Values.kafka.readSecrets }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- end }}
{{- end }}

{{/* In its own namespace: the Lease of the election and the canary of the watch. */}}
{{- define "millrace.homeRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [millrace-operator]
  verbs: [get, update]
{{- end }}

{{- define "millrace.lagRules" -}}
- apiGroups: [millrace.io]
  resources: [streamjobs]
  verbs: [list]
{{- include "millrace.secretRules" . }}
{{- end }}

{{/* For people. */}}
{{- define "millrace.viewRules" -}}
- apiGroups: [millrace.io]
  resources: [streamjobs, topics]
  verbs: [get, list, watch]
{{- end }}

{{- define "millrace.editRules" -}}
- apiGroups: [millrace.io]
  resources: [streamjobs, topics, streamjobs/scale]
  verbs: [create, update, patch, delete, deletecollection]
- apiGroups: [millrace.io]
  resources: [streamjobs/scale]
  verbs: [get]
{{- end }}

{{/* a Role or ClusterRole and its binding: dict "root" $ "component" "operator" "namespace" "" "rules" "…" */}}
{{- define "millrace.grant" -}}
{{- $kind := ternary "Role" "ClusterRole" (ne .namespace "") -}}
{{- $name := ternary (printf "%s-%s" (include "millrace.name" .root) .component) (printf "%s:%s" (include "millrace.clusterName" .root) .component) (ne .namespace "") -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name | default $name }}
  {{- if .namespace }}
  namespace: {{ .namespace }}
  {{- end }}
  labels: {{- include "millrace.labels" . | nindent 4 }}
rules: {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name | default $name }}
  {{- if .namespace }}
  namespace: {{ .namespace }}
  {{- end }}
  labels: {{- include "millrace.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name | default $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "millrace.name" .root }}-{{ .component }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
