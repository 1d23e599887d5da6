{{/* What the admission policies share: who is bound by them, and whose an entry or a Lease is (CEL). */}}

{{/* Usernames that admission lets write what it likes: the operator has a policy of its own. JSON. In: the root. */}}
{{- define "bellwether.admission.exempt" -}}
{{- $operator := include "bellwether.account" (dict "root" . "account" .Values.operator.serviceAccount "component" "operator") }}
{{- prepend .Values.admission.exemptServiceAccounts (printf "system:serviceaccount:%s:%s" .Release.Namespace $operator) | uniq | toJson }}
{{- end }}

{{/* Every ServiceAccount but those that are exempt; people are no ServiceAccounts. In: the root. */}}
{{- define "bellwether.admission.accounts" -}}
- name: service-accounts
  expression: request.userInfo.username.startsWith('system:serviceaccount:')
- name: not-exempt
  expression: '!(request.userInfo.username in {{ include "bellwether.admission.exempt" . }})'
{{- end }}

{{/* Whether the account has any grant: CEL that needs no variable. In: the root. */}}
{{- define "bellwether.admission.granted" -}}
request.userInfo.username in {{ include "bellwether.grants" . | fromYaml | keys | sortAlpha | toJson }}
{{- end }}

{{/*
Variables on who asks: its account, its grants, and the ordinal that ends its pod's name, where it has one. The grants
stand in the policy itself: an API server that once watched ConfigMaps for a policy's parameters, and stopped when that
policy went, does not see those that come later, and would refuse everything. In: the root.
*/}}
{{- define "bellwether.admission.who" -}}
- name: account
  expression: request.userInfo.username.substring(22).replace(':', '/')
- name: grants
  expression: >-
    {{ include "bellwether.grants" . | fromYaml | toJson }}[?request.userInfo.username].orValue([])
- name: pod
  expression: >-
    has(request.userInfo.extra) && 'authentication.kubernetes.io/pod-name' in request.userInfo.extra
    ? request.userInfo.extra['authentication.kubernetes.io/pod-name'][0] : ''
- name: ordinal
  expression: variables.pod.substring(variables.pod.lastIndexOf('-') + 1)
{{- end }}

{{/*
Whether the account was granted a type and a source. A sidecar, which shares its account with those of other brokers,
is told by its pod, and its sources bear the broker's id. In: policy, type, source (CEL); broker (CEL), or none.
*/}}
{{- define "bellwether.admission.own" -}}
({{ .policy }} + '/' + {{ .type }} + '/' + {{ .source }}) in variables.grants
|| ({{ .policy }} + '/' + {{ .type }} + '/*') in variables.grants
|| (({{ .policy }} + '/' + {{ .type }} + '/@pod') in variables.grants
{{- with .broker }}
&& variables.ordinal == string({{ . }})
{{- end }}
&& variables.ordinal.matches('^[0-9]+$')
&& ({{ .source }} == 'broker-' + variables.ordinal || {{ .source }}.startsWith('broker-' + variables.ordinal + '-')))
{{- end }}

{{/*
Whether a Lease has the name that its prober gives it: readable where that is a legal name, else with a digest, which
CEL cannot compute. In: name, plain (both CEL).
*/}}
{{- define "bellwether.admission.named" -}}
['bellwether-prober-' + {{ .plain }}].all(p, p.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(p) <= 253
? {{ .name }} == p : {{ .name }}.matches('^bellwether-prober-.*-[0-9a-f]{10}$'))
{{- end }}

{{/* A policy's binding. In: root, name, namespaces (list; empty: all). */}}
{{- define "bellwether.admission.binding" }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  {{- include "bellwether.metadata" (dict "root" .root "name" .name "component" "admission" "cluster" true) | nindent 2 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
  {{- with .namespaces }}
  matchResources:
    namespaceSelector:
      matchExpressions:
        - key: kubernetes.io/metadata.name
          operator: In
          values: {{ uniq . | toJson }}
  {{- end }}
{{- end }}
