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
