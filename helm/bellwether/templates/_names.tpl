{{/* Names, labels and metadata. Every object's metadata comes from bellwether.metadata. */}}

{{- define "bellwether.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* The release name if it contains the chart name, else both. */}}
{{- define "bellwether.fullname" -}}
{{- $name := include "bellwether.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* A valid Kubernetes name of at most 63 characters, with a digest if it had to be changed. In: text. */}}
{{- define "bellwether.legal" -}}
{{- $legal := regexReplaceAll "[^a-z0-9]+" (lower .) "-" | trimAll "-" }}
{{- if and (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" .) (le (len .) 63) (not (regexMatch "-[0-9a-f]{10}$" .)) }}
{{- . }}
{{- else }}
{{- printf "%s-%s" ($legal | trunc 52 | trimSuffix "-") (sha256sum . | trunc 10) }}
{{- end }}
{{- end }}

{{/* Selector labels of a Deployment. In: root, component. */}}
{{- define "bellwether.selector" -}}
app.kubernetes.io/name: {{ include "bellwether.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of every object. In: the root. */}}
{{- define "bellwether.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "bellwether.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: bellwether
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Metadata of an object. In: root, name; optional: component, namespace (cluster: true for none), labels, annotations.
*/}}
{{- define "bellwether.metadata" -}}
{{- $labels := include "bellwether.labels" .root | fromYaml }}
{{- if .component }}
{{- $labels = merge (dict "app.kubernetes.io/component" .component) $labels }}
{{- end }}
{{- $annotations := merge (dict) (.annotations | default dict) .root.Values.commonAnnotations -}}
name: {{ .name }}
{{- if not .cluster }}
namespace: {{ .namespace | default .root.Release.Namespace }}
{{- end }}
labels:
  {{- toYaml (merge (dict) (.labels | default dict) $labels) | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The reference of an image. In: root, image (repository, tag, digest), own (a registry that comes before all others). */}}
{{- define "bellwether.reference" -}}
{{- $registry := coalesce .own .root.Values.global.imageRegistry .root.Values.image.registry }}
{{- $repository := empty $registry | ternary .image.repository (printf "%s/%s" $registry .image.repository) }}
{{- if .image.digest }}
{{- printf "%s@%s" $repository .image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (.image.tag | default .root.Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/* The image. In: the root. */}}
{{- define "bellwether.image" -}}
{{- with .Values.image }}
{{- if ne .repository (lower .repository) }}
{{- fail (printf "image.repository is %s, but image names are lower case; image.registry names the registry that your nodes pull from (docs/image.md)" .repository) }}
{{- end }}
{{- include "bellwether.reference" (dict "root" $ "image" .) }}
{{- end }}
{{- end }}

{{/* Where files of the chart link to, which docsUrl replaces. */}}
{{- define "bellwether.docs" -}}
https://bellwether-kafka.github.io/bellwether/latest/
{{- end }}

{{/* A text with links to the site that docsUrl names. In: root, text. */}}
{{- define "bellwether.linked" -}}
{{- .text | replace (include "bellwether.docs" .root) (printf "%s/" (trimSuffix "/" .root.Values.docsUrl)) }}
{{- end }}

{{/* The name of a component's ServiceAccount. In: root, account (values), component. */}}
{{- define "bellwether.account" -}}
{{- .account.name | default (printf "%s-%s" (include "bellwether.fullname" .root) .component) }}
{{- end }}

{{/* The name of an object without a namespace: unique across namespaces with releases of the same name. In: root, name. */}}
{{- define "bellwether.clustername" -}}
{{- include "bellwether.legal" (printf "%s-%s" .name .root.Release.Namespace) }}
{{- end }}

{{/* Namespaces whose policies the release manages, as JSON; empty: all. In: the root. */}}
{{- define "bellwether.watched" -}}
{{- if .Values.watchAllNamespaces }}
{{- if .Values.watchNamespaces }}
{{- fail "watchAllNamespaces and watchNamespaces exclude each other: remove one" }}
{{- end }}
{{- list | toJson }}
{{- else }}
{{- .Values.watchNamespaces | default (list .Release.Namespace) | uniq | toJson }}
{{- end }}
{{- end }}

{{/* Namespaces with policies that may request load plans, as JSON. In: the root. */}}
{{- define "bellwether.spark.namespaces" -}}
{{- .Values.spark.namespaces | default (list .Release.Namespace) | uniq | toJson }}
{{- end }}
