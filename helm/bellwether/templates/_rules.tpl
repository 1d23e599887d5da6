{{/* RBAC rules: exactly the verbs that each process uses. A test removes each verb and expects a failure. */}}

{{/* In every watched namespace. In: the root. */}}
{{- define "bellwether.rules.operator" -}}
- apiGroups: [bellwether.dev]
  resources: [leadershippolicies]
  verbs: [get, list, watch, patch]
- apiGroups: [bellwether.dev]
  resources: [leadershippolicies/status, brokerhealths/status, leaderrebalances/status]
  verbs: [patch]
- apiGroups: [bellwether.dev]
  resources: [brokerhealths]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, create, update, patch, delete]
- apiGroups: [bellwether.dev]
  resources: [signalsources, leaderrebalances]
  verbs: [list, watch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- if .Values.watchAllNamespaces }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
{{- end }}
{{- include "bellwether.rules.credentials" (dict "root" .) }}
{{- if .Values.maintenance.watchPods }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}
{{- end }}

{{/*
In the operator's namespace: Leases of Kafka clusters, quarantine orders, whether an operator that was killed has ended,
and the namespace's uid, which marks the installation in Kafka. Undo records of a terminating namespace are exported to it,
too. In: the root.
*/}}
{{- define "bellwether.rules.leases" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, create, update, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- if not .Values.watchAllNamespaces }}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create]
{{- end }}
{{- end }}

{{/* For policies that name a Strimzi cluster: its listeners, pods and rebalances. */}}
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
{{- include "bellwether.rules.secrets" .Values.strimzi.userNames }}
{{- end }}

{{/* The same for processes that only connect to Kafka. */}}
{{- define "bellwether.rules.strimzi.client" -}}
- apiGroups: [kafka.strimzi.io]
  resources: [kafkas, kafkausers]
  verbs: [get]
{{- include "bellwether.rules.secrets" .Values.strimzi.userNames }}
{{- end }}

{{/* Jobs for load plans. */}}
{{- define "bellwether.rules.jobs" -}}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, create]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{- end }}

{{/*
A prober, in the namespaces of its policies. In: several (whether it serves several policies), sources (whether it uses
SignalSources), secrets (rules).
*/}}
{{- define "bellwether.rules.prober" -}}
- apiGroups: [bellwether.dev]
  resources: [leadershippolicies]
  verbs: {{ .several | ternary "[get, list]" "[get]" }}
- apiGroups: [bellwether.dev]
  resources: [brokerhealths]
  verbs: [get, list]
- apiGroups: [bellwether.dev]
  resources: [brokerhealths/status]
  verbs: [patch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- if .sources }}
- apiGroups: [bellwether.dev]
  resources: [signalsources]
  verbs: [list]
- apiGroups: [bellwether.dev]
  resources: [signalsources/status]
  verbs: [patch]
{{- end }}
{{- .secrets }}
{{- end }}

{{/* A quarantine agent, in the namespace of the orders. In: names of the orders' Leases; empty: all. */}}
{{- define "bellwether.rules.agent" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  {{- with . }}
  resourceNames: {{ toJson . }}
  {{- end }}
  verbs: [get]
{{- end }}

{{/* The sampler, in the namespaces of its policies. In: rules for Secrets. */}}
{{- define "bellwether.rules.sampler" -}}
- apiGroups: [bellwether.dev]
  resources: [leadershippolicies]
  verbs: [get, list]
- apiGroups: [bellwether.dev]
  resources: [leaderrebalances]
  verbs: [list]
{{- . }}
{{- end }}

{{/* Spark driver in client mode: creates executors and deletes them by label. */}}
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

{{/* Read the Secrets that policies name: these, or those of rbac. In: root, names. */}}
{{- define "bellwether.rules.credentials" -}}
{{- if or .names (not .root.Values.rbac.anySecret) }}
{{- include "bellwether.rules.secrets" (.names | default .root.Values.rbac.secretNames) }}
{{- else }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- end }}
{{- end }}

{{/* Read these Secrets by name. In: names. */}}
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

{{/*
The same in each of some namespaces, or, without any, in all by a ClusterRole. In: the arguments of bellwether.role, with
namespaces in place of namespace and cluster.
*/}}
{{- define "bellwether.roles" }}
{{- $in := . }}
{{- range .namespaces }}
{{- include "bellwether.role" (merge (dict "namespace" . "cluster" false) $in) }}
{{- end }}
{{- if empty .namespaces }}
{{- include "bellwether.role" (merge (dict "name" (include "bellwether.clustername" (dict "root" .root "name" .name)) "cluster" true) $in) }}
{{- end }}
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
