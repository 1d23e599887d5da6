{{/*
Sidecar containers of a broker, as YAML. Each takes the broker id from the number at the end of the pod's name. The
quarantine agent requires a shared process namespace. In: root, policy, namespace (of the policy).
*/}}
{{- define "bellwether.sidecars" -}}
{{- $sidecars := .root.Values.sidecars }}
{{- $logging := include "bellwether.logging" .root | fromJsonArray }}
{{- range $index, $kind := $sidecars.quarantineAgent.enabled | ternary (list "storage" "self" "quarantine-agent") (list "storage" "self") }}
{{- $agent := eq $kind "quarantine-agent" }}
{{- $port := $agent | ternary $sidecars.quarantineAgent.metricsPort (index (append $sidecars.metricsPorts 0) $index) | int }}
{{- $user := $agent | ternary $sidecars.quarantineAgent.runAsUser $sidecars.runAsUser | int }}
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
    - --policy={{ $.policy }}
    - --namespace={{ $.namespace }}
    - --metrics-port={{ $port }}
    {{- if eq $kind "storage" }}
    - --directory={{ $sidecars.directory }}
    {{- else if eq $kind "self" }}
    - --port={{ int $sidecars.externalPort }}
    {{- range $sidecars.ignoredNetworks }}
    - --ignore={{ . }}
    {{- end }}
    {{- else if $agent }}
    - --lease-namespace={{ include "bellwether.leasenamespace" $.root }}
    - --max-pause-seconds={{ int $sidecars.quarantineAgent.maxPauseSeconds }}
    {{- end }}
    {{- range $logging }}
    - {{ . }}
    {{- end }}
  env:
    - name: BELLWETHER_{{ $agent | ternary "" "PROBE_" }}{{ $kind | upper | replace "-" "_" }}_BROKER
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
  ports:
    - name: bw-{{ $agent | ternary "agent" $kind }}
      containerPort: {{ $port }}
  resources:
    {{- toYaml $sidecars.resources | nindent 4 }}
  # All settings are here, because Kafka operators set no security context for the pod.
  securityContext:
    {{- toYaml (merge (dict "runAsNonRoot" true "runAsUser" $user "seccompProfile" (dict "type" "RuntimeDefault")) (deepCopy $.root.Values.podSecurity.container)) | nindent 4 }}
  {{- if eq $kind "storage" }}
  volumeMounts:
    - name: {{ $sidecars.dataVolume }}
      mountPath: {{ $sidecars.directory }}
  {{- end }}
{{- end }}
{{- end }}

{{/*
The same in CEL, for the admission policy that adds the sidecars to pods. In: a container.
*/}}
{{- define "bellwether.sidecar.cel" -}}
{{- $container := . -}}
Object.spec.containers{
  name: {{ toJson .name }},
  image: {{ toJson .image }},
  imagePullPolicy: {{ toJson .imagePullPolicy }},
  args: {{ toJson .args }},
  env: [Object.spec.containers.env{
    name: {{ toJson (first .env).name }},
    valueFrom: Object.spec.containers.env.valueFrom{
      fieldRef: Object.spec.containers.env.valueFrom.fieldRef{apiVersion: "v1", fieldPath: "metadata.name"}
    }
  }],
  ports: [Object.spec.containers.ports{
    name: {{ toJson (first .ports).name }}, containerPort: {{ int (first .ports).containerPort }}, protocol: "TCP"
  }],
  resources: Object.spec.containers.resources{
    {{- range $index, $key := list "requests" "limits" }}
    {{ empty $index | ternary "" ", " }}{{ $key }}: {{ toJson (get $container.resources $key | default dict) }}
    {{- end }}
  },
  {{- with .volumeMounts }}
  volumeMounts: [Object.spec.containers.volumeMounts{
    name: {{ toJson (first .).name }}, mountPath: {{ toJson (first .).mountPath }}
  }],
  {{- end }}
  securityContext: Object.spec.containers.securityContext{
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    runAsUser: {{ int .securityContext.runAsUser }},
    seccompProfile: Object.spec.containers.securityContext.seccompProfile{type: "RuntimeDefault"},
    capabilities: Object.spec.containers.securityContext.capabilities{drop: ["ALL"]}
  }
}
{{- end }}

{{/* What adds the sidecars to pods: policy or webhook. In: the root. */}}
{{- define "bellwether.sidecars.injection" -}}
{{- $served := .Capabilities.APIVersions }}
{{- $policy := or ($served.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") ($served.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy") }}
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

{{/* Which of these pods get sidecars. In: root, accounts (names). */}}
{{- define "bellwether.sidecars.conditions" -}}
- name: account
  expression: object.spec.?serviceAccountName.orValue('default') in {{ toJson .accounts }}
- name: not-yet
  expression: '!object.spec.containers.exists(c, c.name.startsWith("bellwether-"))'
# With a mount of a volume that the pod does not have, it would be rejected.
- name: volume
  expression: object.spec.?volumes.orValue([]).exists(v, v.name == {{ toJson .root.Values.sidecars.dataVolume }})
{{- if .root.Values.sidecars.quarantineAgent.enabled }}
# hostPID and shareProcessNamespace together are invalid: the pod would be rejected.
- name: processes-of-its-own
  expression: '!object.spec.?hostPID.orValue(false)'
{{- end }}
{{- end }}
