{{/*
Operator configuration of load rebalancing, as YAML; empty without stores. Completes the profiles with the chart's image
and, for SparkOnKubernetes, with its account and a confined pod template. In: the root.
*/}}
{{- define "bellwether.load.config" -}}
{{- if .Values.load.stores }}
{{- $root := . }}
{{- $image := include "bellwether.reference" (dict "root" . "image" .Values.spark.image "own" .Values.spark.image.registry) }}
{{- $profiles := dict }}
{{- range $name, $given := .Values.load.profiles }}
{{- $profile := deepCopy $given }}
{{- $type := $given.type | default "Job" }}
{{- if not $given.image }}
{{- $profile = set $profile "image" $image }}
{{- end }}
{{- if eq $type "SparkOnKubernetes" }}
{{- if not $given.serviceAccountName }}
{{- if not $root.Values.spark.enabled }}
{{- fail (printf "load.profiles.%s.serviceAccountName is required without spark.enabled: set either" $name) }}
{{- end }}
{{- $profile = set $profile "serviceAccountName" (include "bellwether.account" (dict "root" $root "account" $root.Values.spark.serviceAccount "component" "spark")) }}
{{- end }}
{{- $executors := $given.executors | default dict }}
{{- $pod := include "bellwether.load.executor" $root | fromYaml }}
{{- $template := mergeOverwrite $pod (deepCopy ($executors.podTemplate | default dict)) }}
{{- $profile = set $profile "executors" (mergeOverwrite (deepCopy $executors) (dict "podTemplate" $template)) }}
{{- end }}
{{- $profiles = set $profiles $name $profile }}
{{- end }}
{{- dict "stores" .Values.load.stores "profiles" $profiles | toYaml }}
{{- end }}
{{- end }}

{{/* Pod template of executors, confined as the chart's own pods. In: the root. */}}
{{- define "bellwether.load.executor" -}}
apiVersion: v1
kind: Pod
spec:
  automountServiceAccountToken: false
  securityContext:
    {{- toYaml .Values.podSecurity.pod | nindent 4 }}
  containers:
    - name: executor
      securityContext:
        {{- toYaml .Values.podSecurity.container | nindent 8 }}
      volumeMounts:
        - name: scratch
          mountPath: /tmp
  volumes:
    - name: scratch
      emptyDir: {}
{{- end }}

{{/*
What a pod needs to read the configuration: arguments, volumes, mounts, and an annotation that restarts it when the
configuration changes. In: the root. JSON; empty lists without stores.
*/}}
{{- define "bellwether.load.mounted" -}}
{{- $config := include "bellwether.load.config" . }}
{{- if $config }}
{{- $volume := dict "name" "load-config" "configMap" (dict "name" (printf "%s-load" (include "bellwether.fullname" .))) }}
{{- $mount := dict "name" "load-config" "mountPath" "/etc/bellwether" "readOnly" true }}
{{- dict "args" (list "--load-config=/etc/bellwether/load.yaml") "volumes" (list $volume) "mounts" (list $mount) "annotations" (dict "bellwether.dev/load-config" (sha256sum $config)) | toJson }}
{{- else }}
{{- dict "args" list "volumes" list "mounts" list "annotations" dict | toJson }}
{{- end }}
{{- end }}
