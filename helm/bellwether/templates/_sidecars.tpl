{{/*
JSON {"items": [...]} with, for each item of sidecars.accounts: name, namespace (of the ServiceAccount), policy,
policyNamespace, brokerIds, firstBrokerIds, and what its brokers' sidecars use: dataVolumes (name, directory), runAsUser,
brokerRunAsUser (userOfPod: whether the broker's pod replaces it), externalPort, ignoredNetworks, resources. Fails on
errors that the schema cannot detect. In: the root.
*/}}
{{- define "bellwether.sidecars.accounts" -}}
{{- $root := . }}
{{- if and .Values.sidecars.quarantineAgent.enabled (not .Values.sidecars.accounts) }}
{{- fail "sidecars.quarantineAgent.enabled: no broker would get an agent, as sidecars.accounts is empty: list the ServiceAccounts of the brokers' pods there, with Strimzi <cluster>-kafka" }}
{{- end }}
{{- $items := list }}
{{- $seen := dict }}
{{- range $index, $one := .Values.sidecars.accounts }}
{{- $where := printf "sidecars.accounts[%d]" $index }}
{{- $policyNamespace := $one.policyNamespace | default $root.Release.Namespace }}
{{- $item := dict "name" $one.name "namespace" ($one.namespace | default $policyNamespace) "policy" $one.policy "policyNamespace" $policyNamespace "brokerIds" ($one.brokerIds | default list) "firstBrokerIds" ($one.firstBrokerIds | default dict) }}
{{- $defaults := merge (dict "brokerRunAsUser" $root.Values.sidecars.quarantineAgent.runAsUser) (pick $root.Values.sidecars "dataVolumes" "runAsUser" "externalPort" "ignoredNetworks" "resources") }}
{{- range $key, $default := $defaults }}
{{- $own := index $one $key }}
{{- $_ := set $item $key (kindIs "invalid" $own | ternary $default $own) }}
{{- end }}
{{- $_ := set $item "found" (empty $item.dataVolumes) }}
{{- if and $item.found (or (not $root.Values.sidecars.inject) (eq $root.Values.sidecars.injection "policy")) }}
{{- fail (printf "%s: dataVolumes is empty, and only the webhook finds volumes in the pod: list them, or set sidecars.inject: true and sidecars.injection: webhook" $where) }}
{{- end }}
{{- $_ := set $item "findPort" (kindIs "invalid" $one.externalPort) }}
{{- $_ := set $item "userOfPod" (kindIs "invalid" $item.brokerRunAsUser) }}
{{- $_ := set $item "brokerRunAsUser" (kindIs "invalid" $item.brokerRunAsUser | ternary 1001 $item.brokerRunAsUser) }}
{{- $volumes := list }}
{{- $used := dict }}
{{- $set := kindIs "invalid" (index $one "dataVolumes") | ternary "sidecars" $where }}
{{- range $item.dataVolumes }}
{{- $directory := .directory | default (printf "/var/lib/kafka/%s" .name) }}
{{- $volumes = append $volumes (dict "name" .name "directory" $directory) }}
{{- range $what, $value := dict "name" .name "directory" (trimSuffix "/" $directory) }}
{{- $key := printf "%s %s" $what $value }}
{{- if hasKey $used $key }}
{{- fail (printf "%s.dataVolumes: two volumes have the %s: list each volume once, with the directory in which the broker has it" $set $key) }}
{{- end }}
{{- $_ := set $used $key true }}
{{- end }}
{{- end }}
{{- $_ := set $item "dataVolumes" $volumes }}
{{- $account := printf "%s/%s" $item.namespace $item.name }}
{{- if and $root.Values.sidecars.inject (hasKey $seen $account) }}
{{- fail (printf "%s.name: ServiceAccount %s is already in %s, and only one kind of sidecars can be added to the pods of a ServiceAccount: list it once with sidecars.inject, or give the pods different ServiceAccounts" $where $account (get $seen $account)) }}
{{- end }}
{{- $_ := set $seen $account $where }}
{{- $items = append $items $item }}
{{- end }}
{{- dict "items" $items | toJson }}
{{- end }}

{{/*
Sidecar containers of a broker, as YAML. Each reads the broker id in the log directories (meta.properties). The quarantine
agent requires a shared process namespace. In: root, account (an item of bellwether.sidecars.accounts).
*/}}
{{- define "bellwether.sidecars" -}}
{{- $sidecars := .root.Values.sidecars }}
{{- $account := .account }}
{{- $logging := include "bellwether.logging" .root | fromJsonArray }}
{{- range $index, $kind := $sidecars.quarantineAgent.enabled | ternary (list "storage" "self" "quarantine-agent") (list "storage" "self") }}
{{- $agent := eq $kind "quarantine-agent" }}
{{- $port := $agent | ternary $sidecars.quarantineAgent.metricsPort (index (append $sidecars.metricsPorts 0) $index) | int }}
{{- $user := $agent | ternary $account.brokerRunAsUser $account.runAsUser | int }}
- name: bellwether-{{ $kind }}
  image: {{ include "bellwether.image" $.root | quote }}
  imagePullPolicy: {{ $.root.Values.image.pullPolicy }}
  args:
    # While the container runs the pod stays ready, also if the sidecar crashes.
    - supervise
    - --
    {{- if not $agent }}
    - probe
    {{- end }}
    - {{ $kind }}
    - --policy={{ $account.policy }}
    - --namespace={{ $account.policyNamespace }}
    - --metrics-port={{ $port }}
    {{- range $account.dataVolumes }}
    - --directory={{ .name }}={{ .directory }}
    {{- end }}
    {{- if eq $kind "self" }}
    - --port={{ int $account.externalPort }}
    {{- range $account.ignoredNetworks }}
    - --ignore={{ . }}
    {{- end }}
    {{- else if $agent }}
    - --lease-namespace={{ $.root.Release.Namespace }}
    - --max-hold-seconds={{ int $sidecars.quarantineAgent.maxHoldSeconds }}
    {{- end }}
    {{- range $logging }}
    - {{ . }}
    {{- end }}
  ports:
    - name: bw-{{ $agent | ternary "agent" $kind }}
      containerPort: {{ $port }}
  resources:
    {{- toYaml $account.resources | nindent 4 }}
  # All settings are here, because Kafka operators set no security context for the pod.
  securityContext:
    {{- toYaml (merge (dict "runAsNonRoot" true "runAsUser" $user "seccompProfile" (dict "type" "RuntimeDefault")) (deepCopy $.root.Values.podSecurity.container)) | nindent 4 }}
  volumeMounts:
    {{- range $account.dataVolumes }}
    - name: {{ .name }}
      mountPath: {{ .directory }}
      {{- if ne $kind "storage" }}
      readOnly: true
      {{- end }}
    {{- end }}
{{- end }}
{{- end }}

{{/*
The same in CEL, for the admission policy that adds the sidecars to pods. In: container, user (its id, in CEL).
*/}}
{{- define "bellwether.sidecar.cel" -}}
{{- $user := .user }}
{{- $container := .container -}}
{{- with $container -}}
Object.spec.containers{
  name: {{ toJson .name }},
  image: {{ toJson .image }},
  imagePullPolicy: {{ toJson .imagePullPolicy }},
  args: {{ toJson .args }},
  ports: [Object.spec.containers.ports{
    name: {{ toJson (first .ports).name }}, containerPort: {{ int (first .ports).containerPort }}, protocol: "TCP"
  }],
  resources: Object.spec.containers.resources{
    {{- range $index, $key := list "requests" "limits" }}
    {{ empty $index | ternary "" ", " }}{{ $key }}: {{ toJson (get $container.resources $key | default dict) }}
    {{- end }}
  },
  volumeMounts: [
    {{- range $index, $mount := .volumeMounts }}
    {{ empty $index | ternary "" ", " }}Object.spec.containers.volumeMounts{name: {{ toJson .name }}, mountPath: {{ toJson .mountPath }}{{ if .readOnly }}, readOnly: true{{ end }}}
    {{- end }}
  ],
  securityContext: Object.spec.containers.securityContext{
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    runAsUser: {{ $user }},
    seccompProfile: Object.spec.containers.securityContext.seccompProfile{type: "RuntimeDefault"},
    capabilities: Object.spec.containers.securityContext.capabilities{drop: ["ALL"]}
  }
}
{{- end }}
{{- end }}

{{/*
How many seconds the liveness probe of a broker must tolerate: a held broker fails it. The longest hold, and a margin.
In: the root.
*/}}
{{- define "bellwether.sidecars.tolerated" -}}
{{- add (int .Values.sidecars.quarantineAgent.maxHoldSeconds) (.Files.Get "files/return-seconds" | trim | int) }}
{{- end }}

{{/* CEL for whether container c is the broker's: it has the first data volume. In: an account's item. */}}
{{- define "bellwether.sidecars.isbroker" -}}
c.?volumeMounts.orValue([]).exists(m, m.name == {{ (first .dataVolumes).name | toJson }})
{{- end }}

{{/* What adds the sidecars to pods: policy or webhook. In: the root. */}}
{{- define "bellwether.sidecars.injection" -}}
{{- $served := .Capabilities.APIVersions }}
{{- $policy := or ($served.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") ($served.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy") }}
{{- range .Values.sidecars.accounts }}
{{- $policy = and $policy (kindIs "invalid" .dataVolumes | ternary $.Values.sidecars.dataVolumes .dataVolumes | empty | not) }}
{{- end }}
{{- eq .Values.sidecars.injection "auto" | ternary ($policy | ternary "policy" "webhook") .Values.sidecars.injection }}
{{- end }}

{{/* Which pods the API server selects for sidecars. In: root, namespace. */}}
{{- define "bellwether.sidecars.selectors" -}}
namespaceSelector:
  matchLabels:
    kubernetes.io/metadata.name: {{ .namespace }}
objectSelector:
  matchLabels:
    {{- toYaml .root.Values.sidecars.podSelector | nindent 4 }}
{{- end }}
{{- define "bellwether.sidecars.rules" -}}
- apiGroups: [""]
  apiVersions: [v1]
  operations: [CREATE]
  resources: [pods]
{{- end }}

{{/* Which of these pods get sidecars. In: root, accounts (items of bellwether.sidecars.accounts). */}}
{{- define "bellwether.sidecars.conditions" -}}
{{- $volumes := dict }}
{{- range .accounts }}
{{- $names := list }}
{{- range .dataVolumes }}
{{- $names = append $names .name }}
{{- end }}
{{- $_ := set $volumes .name $names }}
{{- end }}
- name: account
  expression: object.spec.?serviceAccountName.orValue('default') in {{ keys $volumes | sortAlpha | toJson }}
- name: not-yet
  expression: '!object.spec.containers.exists(c, c.name.startsWith("bellwether-"))'
# With a mount of a volume that the pod does not have, it would be rejected.
- name: volumes
  expression: >-
    {{ toJson $volumes }}[?object.spec.?serviceAccountName.orValue('default')].orValue([]).all(name,
    object.spec.?volumes.orValue([]).exists(v, v.name == name))
{{- if .root.Values.sidecars.quarantineAgent.enabled }}
# hostPID and shareProcessNamespace together are invalid: the pod would be rejected.
- name: processes-of-its-own
  expression: '!object.spec.?hostPID.orValue(false)'
{{- end }}
{{- end }}
