{{/* Shared parts of the admission policies: restricted accounts, and owners of entries and Leases (CEL). */}}

{{/* Usernames that are exempt; the operator has its own admission policy. JSON. In: the root. */}}
{{- define "bellwether.admission.exempt" -}}
{{- $operator := include "bellwether.account" (dict "root" . "account" .Values.operator.serviceAccount "component" "operator") }}
{{- prepend .Values.admission.exemptServiceAccounts (printf "system:serviceaccount:%s:%s" .Release.Namespace $operator) | uniq | toJson }}
{{- end }}

{{/* Match every ServiceAccount that is not exempt; users are not restricted. In: the root. */}}
{{- define "bellwether.admission.accounts" -}}
- name: service-accounts
  expression: request.userInfo.username.startsWith('system:serviceaccount:')
- name: not-exempt
  expression: '!(request.userInfo.username in {{ include "bellwether.admission.exempt" . }})'
{{- end }}

{{/* Whether the account has a grant (CEL without variables). In: the root. */}}
{{- define "bellwether.admission.granted" -}}
request.userInfo.username in {{ include "bellwether.grants" . | fromYaml | keys | sortAlpha | toJson }}
{{- end }}

{{/*
Variables about the requester: its account, its grants, and its pod's broker, if any: admission sees a pod's name and no
disk, so an administrator says which id the first pod of each set has, or the only one of an account. The grants are part
of the policy and not a parameter ConfigMap: an API server that has stopped its watch on parameter ConfigMaps
after the deletion of a policy does not see new ones, and would reject every request. In: the root.
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
- name: first
  expression: >-
    {{ include "bellwether.firstbrokers" . }}[?request.userInfo.username].orValue({})
- name: dash
  expression: variables.pod.lastIndexOf('-')
- name: broker
  expression: >-
    variables.pod == '' ? '' : '*' in variables.first ? string(variables.first['*'])
    : variables.pod.matches('.-(0|[1-9][0-9]{0,9})$') ? string(int(variables.pod.substring(variables.dash + 1))
    + variables.first[?variables.pod.substring(0, variables.dash)].orValue(0)) : ''
{{- end }}

{{/* What @pod means in a message (CEL). In: the root. */}}
{{- define "bellwether.admission.pod" -}}
(variables.grants.exists(g, g.endsWith('/@pod'))
? ', where @pod is ' + (variables.broker == '' ? 'no broker' : 'broker-' + variables.broker) + ' by its pod\'s name '
+ variables.pod + ': if the pod has another broker, set sidecars.accounts[].firstBrokerIds in the chart values' : '')
{{- end }}

{{/* Broker id of pod 0 by account and set; '*' if the account has one broker only. JSON. In: the root. */}}
{{- define "bellwether.firstbrokers" -}}
{{- $first := dict }}
{{- range (include "bellwether.sidecars.accounts" . | fromJson).items }}
{{- $account := printf "system:serviceaccount:%s:%s" .namespace .name }}
{{- $own := .firstBrokerIds }}
{{- if and (eq (len .brokerIds) 1) (empty $own) }}
{{- $own = dict "*" (first .brokerIds) }}
{{- end }}
{{- $_ := set $first $account (merge (get $first $account | default dict) $own) }}
{{- end }}
{{- toJson $first }}
{{- end }}

{{/*
Whether the account has a grant for a type and a source. Sidecars of several brokers share an account; they are
distinguished by their pod's broker, and their sources contain its id. In: policy, type, source (CEL); broker (CEL), or none.
*/}}
{{- define "bellwether.admission.own" -}}
({{ .policy }} != '' && (('*/' + {{ .type }} + '/' + {{ .source }}) in variables.grants
|| ('*/' + {{ .type }} + '/*') in variables.grants))
|| (({{ .policy }} + '/' + {{ .type }} + '/@pod') in variables.grants
{{- with .broker }}
&& variables.broker == string({{ . }})
{{- end }}
&& variables.broker != ''
&& ({{ .source }} == 'broker-' + variables.broker || {{ .source }}.startsWith('broker-' + variables.broker + '-')))
{{- end }}

{{/*
Whether a Lease has the name that its prober uses: POLICY.TYPE.SOURCE if these are labels, else one with a digest, which
CEL cannot compute, and without a dot. In: name, plain (both CEL).
*/}}
{{- define "bellwether.admission.named" -}}
['bellwether-prober-' + {{ .plain }}].all(p, p.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?){2}$') && size(p) <= 253
? {{ .name }} == p : {{ .name }}.matches('^bellwether-prober-[-a-z0-9]*-[0-9a-f]{16}$'))
{{- end }}

{{/* Binding of an admission policy. In: root, name, namespaces (list; empty: all). */}}
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
