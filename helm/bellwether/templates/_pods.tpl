{{/*
Pod template of a component. In: root, component, account, workload (all or some fields of values.Workload), args;
optional: ports, probes (a map of liveness, readiness, startup), env, envFrom, volumes, mounts, annotations,
zones, spread (values.Spread), grace; bare: true for pods that use no API, so need no token, trust or identity.
*/}}
{{- define "bellwether.pod" -}}
{{- $root := .root }}
{{- $workload := .workload }}
{{- $bare := eq true (.bare | default false) }}
{{- $trust := $bare | ternary (dict "env" list "volumes" list "mounts" list) (include "bellwether.trust" $root | fromJson) }}
{{- $identities := dict }}
{{- range $part := list "env" "mounts" "volumes" }}
{{- $_ := set $identities $part ($bare | ternary list (include (printf "bellwether.workloadidentities.%s" $part) $root | fromJsonArray)) }}
{{- end }}
{{- $docs := eq $root.Values.docsUrl (include "bellwether.docs" $root) | ternary list (list (dict "name" "BELLWETHER_DOCS_URL" "value" $root.Values.docsUrl)) }}
{{- $selector := include "bellwether.selector" (dict "root" $root "component" .component) | fromYaml -}}
metadata:
  labels:
    {{- toYaml (merge (dict) $selector ($workload.podLabels | default dict) (include "bellwether.labels" $root | fromYaml)) | nindent 4 }}
  {{- with merge (dict) (.annotations | default dict) ($workload.podAnnotations | default dict) $root.Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ .account }}
  automountServiceAccountToken: {{ not $bare }}
  enableServiceLinks: false
  {{- with include "bellwether.pullsecrets" $root | fromJsonArray }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $workload.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .grace }}
  terminationGracePeriodSeconds: {{ int . }}
  {{- end }}
  {{- with .restart }}
  restartPolicy: {{ . }}
  {{- end }}
  securityContext:
    {{- toYaml $root.Values.podSecurity.pod | nindent 4 }}
  {{- with $workload.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .container | default "bellwether" }}
      image: {{ .image | default (include "bellwether.image" $root) | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        {{- range concat .args ($workload.extraArgs | default list) }}
        - {{ toString . | quote }}
        {{- end }}
      {{- with concat (.env | default list) $docs $identities.env $trust.env ($workload.extraEnv | default list) }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .ports }}
      ports:
        {{- range $name, $number := . }}
        - name: {{ $name }}
          containerPort: {{ int $number }}
        {{- end }}
      {{- end }}
      {{- range $kind, $probe := .probes }}
      {{ $kind }}Probe:
        {{- toYaml $probe | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml $workload.resources | nindent 8 }}
      securityContext:
        {{- toYaml $root.Values.podSecurity.container | nindent 8 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- with concat (.mounts | default list) $identities.mounts $trust.mounts ($workload.extraVolumeMounts | default list) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with $workload.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        sizeLimit: {{ $root.Values.podSecurity.tmpSize }}
    {{- with concat (.volumes | default list) $identities.volumes $trust.volumes ($workload.extraVolumes | default list) }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $workload.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $workload.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "bellwether.affinity" . | fromYaml }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- $defaults := and .spread .spread.enabled }}
  {{- if or $defaults $workload.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range $workload.topologySpreadConstraints }}
    - {{- toYaml (hasKey . "labelSelector" | ternary . (merge (dict "labelSelector" (dict "matchLabels" $selector)) .)) | nindent 6 }}
    {{- end }}
    {{- if $defaults }}
    {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      whenUnsatisfiable: {{ $.spread.whenUnsatisfiable }}
      labelSelector:
        matchLabels:
          {{- toYaml $selector | nindent 10 }}
      # Spread only the pods of the same rollout.
      matchLabelKeys: [pod-template-hash]
    {{- end }}
    {{- end }}
  {{- end }}
{{- end }}

{{/* Pull secrets of all pods, as a JSON list. In: the root. */}}
{{- define "bellwether.pullsecrets" -}}
{{- concat .Values.imagePullSecrets (.Values.global.imagePullSecrets | default list) | uniq | toJson }}
{{- end }}

{{/* Environment, volumes and mounts for the trust bundle, as JSON. In: the root. */}}
{{- define "bellwether.trust" -}}
{{- $found := dict "env" list "volumes" list "mounts" list }}
{{- with .Values.trustBundle }}
{{- if .configMapName }}
{{- $file := printf "/etc/bellwether-trust/%s" .key }}
{{- $env := list (dict "name" "SSL_CERT_FILE" "value" $file) (dict "name" "AWS_CA_BUNDLE" "value" $file) }}
{{- $volume := dict "name" "trust-bundle" "configMap" (dict "name" .configMapName) }}
{{- $mount := dict "name" "trust-bundle" "mountPath" "/etc/bellwether-trust" "readOnly" true }}
{{- $found = dict "env" $env "volumes" (list $volume) "mounts" (list $mount) }}
{{- end }}
{{- end }}
{{- toJson $found }}
{{- end }}

{{/* Affinity of a workload, merged with the required zones. In: workload, zones. */}}
{{- define "bellwether.affinity" -}}
{{- $given := deepCopy (.workload.affinity | default dict) }}
{{- if .zones }}
{{- $match := dict "key" "topology.kubernetes.io/zone" "operator" "In" "values" .zones }}
{{- $node := $given.nodeAffinity | default dict }}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict }}
{{- $terms := list }}
{{- range $required.nodeSelectorTerms | default (list dict) }}
{{- $terms = append $terms (merge (dict "matchExpressions" (append (.matchExpressions | default list) $match)) .) }}
{{- end }}
{{- $node = merge (dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms)) (omit $node "requiredDuringSchedulingIgnoredDuringExecution") }}
{{- $given = merge (dict "nodeAffinity" $node) (omit $given "nodeAffinity") }}
{{- end }}
{{- with $given }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/*
A Deployment. In: the arguments of bellwether.pod, name, replicas; recreate: true if two pods cannot share a volume;
namespace.
*/}}
{{- define "bellwether.deployment" }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "bellwether.metadata" (dict "root" .root "name" .name "component" .component "namespace" .namespace) | nindent 2 }}
spec:
  replicas: {{ int .replicas }}
  revisionHistoryLimit: 5
  strategy:
    {{- if .workload.strategy }}
    {{- toYaml .workload.strategy | nindent 4 }}
    {{- else if .recreate }}
    type: Recreate
    {{- else }}
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
    {{- end }}
  selector:
    matchLabels:
      {{- include "bellwether.selector" . | nindent 6 }}
  template:
    {{- include "bellwether.pod" . | nindent 4 }}
{{- end }}

{{/* Logging arguments. In: the root. JSON. */}}
{{- define "bellwether.logging" -}}
{{- list (printf "--log-format=%s" .Values.log.format) (printf "--log-level=%s" .Values.log.level) | toJson }}
{{- end }}

{{/* Probes of pods that serve health on the metrics port. JSON. */}}
{{- define "bellwether.probes.metrics" -}}
{{- $alive := dict "httpGet" (dict "path" "/healthz" "port" "metrics") "initialDelaySeconds" 10 "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 6 }}
{{- $ready := dict "httpGet" (dict "path" "/readyz" "port" "metrics") "periodSeconds" 5 "timeoutSeconds" 3 }}
{{- dict "liveness" $alive "readiness" $ready | toJson }}
{{- end }}

{{/*
What a pod needs to read the workload identities, each a JSON list that is empty without any. Pods read the file
whenever they connect, so a change restarts nothing. In: the root.
*/}}
{{- define "bellwether.workloadidentities.env" -}}
{{- $allowed := dict "name" "BELLWETHER_ALLOWED_DESTINATIONS" "value" (join " " .Values.allowedDestinations) }}
{{- $file := dict "name" "BELLWETHER_WORKLOAD_IDENTITIES" "value" "/etc/bellwether-identities/identities.yaml" }}
{{- concat (.Values.allowedDestinations | empty | ternary list (list $allowed)) (.Values.workloadIdentities | empty | ternary list (list $file)) | toJson }}
{{- end }}
{{- define "bellwether.workloadidentities.mounts" -}}
{{- .Values.workloadIdentities | empty | ternary list (list (dict "name" "workload-identities" "mountPath" "/etc/bellwether-identities" "readOnly" true)) | toJson }}
{{- end }}
{{- define "bellwether.workloadidentities.volumes" -}}
{{- /* Hooks run before it exists. */}}
{{- $map := dict "name" (printf "%s-workload-identities" (include "bellwether.fullname" .)) "optional" true }}
{{- .Values.workloadIdentities | empty | ternary list (list (dict "name" "workload-identities" "configMap" $map)) | toJson }}
{{- end }}
