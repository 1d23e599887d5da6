{{/* Exactly what each process asks the API for; a test takes each verb away and sees it fail. */}}

{{/* In every watched namespace. In: the root. */}}
{{- define "bellwether.rules.operator" -}}
- apiGroups: [bellwether.dev]
  resources: [leadershippolicies]
  verbs: [get, list, watch, patch]
- apiGroups: [bellwether.dev]
  resources: [leadershippolicies/status, brokerhealths/status]
  verbs: [patch]
- apiGroups: [bellwether.dev]
  resources: [brokerhealths]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, create, update, patch, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if .Values.rbac.anySecret }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- else }}
{{- include "bellwether.rules.secrets" .Values.rbac.secretNames }}
{{- end }}
{{- if .Values.maintenance.watchPods }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}
{{- end }}

{{/*
The Leases of Kafka clusters, in their one namespace, which is the refuge, too, for undo records out of a namespace that
ends. In: the root.
*/}}
{{- define "bellwether.rules.leases" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- if .Values.watchNamespaces }}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create]
{{- end }}
{{- end }}

{{/* Where policies name a Strimzi cluster: how it is reached, which pods it has, whether it is being rebalanced. */}}
{{- define "bellwether.rules.strimzi.operator" -}}
- apiGroups: [kafka.strimzi.io]
  resources: [kafkas]
  verbs: [get, list]
- apiGroups: [kafka.strimzi.io]
  resources: [kafkausers]
  verbs: [get]
- apiGroups: [kafka.strimzi.io]
  resources: [kafkarebalances]
  verbs: [list]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}

{{/* The same for what only connects. */}}
{{- define "bellwether.rules.strimzi.client" -}}
- apiGroups: [kafka.strimzi.io]
  resources: [kafkas, kafkausers]
  verbs: [get]
{{- end }}

{{/* Load plans, where policies may ask for them. */}}
{{- define "bellwether.rules.jobs" -}}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, create]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}

{{/* A prober, in its policy's namespace. In: names of Secrets. */}}
{{- define "bellwether.rules.prober" -}}
- apiGroups: [bellwether.dev]
  resources: [leadershippolicies]
  verbs: [get]
- apiGroups: [bellwether.dev]
  resources: [brokerhealths]
  verbs: [get, list]
- apiGroups: [bellwether.dev]
  resources: [brokerhealths/status]
  verbs: [patch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- include "bellwether.rules.secrets" . }}
{{- end }}

{{/* The sampler, in its policy's namespace. In: names of Secrets. */}}
{{- define "bellwether.rules.sampler" -}}
- apiGroups: [bellwether.dev]
  resources: [leadershippolicies]
  verbs: [get]
{{- include "bellwether.rules.secrets" . }}
{{- end }}

{{/* Spark's driver in client mode, which makes its executors and cleans up after them by label. */}}
{{- define "bellwether.rules.spark" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete, deletecollection]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, deletecollection]
- apiGroups: [""]
  resources: [services]
  verbs: [deletecollection]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list, deletecollection]
{{- end }}

{{/* Only these Secrets, and only by name. In: names. */}}
{{- define "bellwether.rules.secrets" -}}
{{- with . }}
- apiGroups: [""]
  resources: [secrets]
  resourceNames: {{ toJson . }}
  verbs: [get]
{{- end }}
{{- end }}

{{/*
A role and its binding to one account. In: root, name, component, rules (YAML), account, accountNamespace; namespace, or
cluster: true.
*/}}
{{- define "bellwether.role" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .cluster | ternary "ClusterRole" "Role" }}
metadata:
  {{- include "bellwether.metadata" . | nindent 2 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .cluster | ternary "ClusterRoleBinding" "RoleBinding" }}
metadata:
  {{- include "bellwether.metadata" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .cluster | ternary "ClusterRole" "Role" }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .accountNamespace | default .root.Release.Namespace }}
{{- end }}

{{/* A ServiceAccount. In: root, name, component, annotations; namespace. */}}
{{- define "bellwether.serviceaccount" }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "bellwether.metadata" . | nindent 2 }}
automountServiceAccountToken: false
{{- end }}
