{{/*
Prober identities: each prober and the webhook has its own ServiceAccount, so that an admission policy can limit it to
its own entries.
*/}}

{{/* The signal type that a prober writes. In: an item of values.probers. */}}
{{- define "bellwether.signal" -}}
{{- if eq .kind "Plugin" }}
{{- .plugin }}
{{- else }}
{{- get (dict "Reachability" "ExternalReachability" "Canary" "Canary" "Replication" "ReplicationLag" "Prometheus" "Prometheus") .kind }}
{{- end }}
{{- end }}

{{/*
JSON {"items": [...]} with, for each prober, name, component, policy, namespace, signal, source, secrets, and its item of
values.probers. Fails on errors that the schema cannot detect. In: the root.
*/}}
{{- define "bellwether.identities" -}}
{{- $root := . }}
{{- $full := include "bellwether.fullname" . }}
{{- $items := list }}
{{- $policies := list }}
{{- $namespaces := list }}
{{- range .Values.probers }}
{{- $policies = append $policies .policy | uniq }}
{{- $namespaces = append $namespaces (.namespace | default $root.Release.Namespace) | uniq }}
{{- end }}
{{- if .Values.alertmanager.enabled }}
{{- $policies = append $policies (required "alertmanager.policy is required: the name of the LeadershipPolicy" .Values.alertmanager.policy) | uniq }}
{{- end }}
{{- range $index, $one := .Values.probers }}
{{- $where := printf "probers[%d]" $index }}
{{- $kind := lower $one.kind }}
{{- if and (has $one.kind (list "Reachability" "Canary")) (not $one.vantage) }}
{{- fail (printf "%s.vantage is required: a stable name of the place, such as eu-west-1a" $where) }}
{{- end }}
{{- if eq $one.kind "Plugin" }}
{{- if not $one.plugin }}
{{- fail (printf "%s.plugin is required: the signal type of the plug-in" $where) }}
{{- end }}
{{- if not $one.vantage }}
{{- fail (printf "%s.vantage is required: a stable name of the place, such as eu-west-1a" $where) }}
{{- end }}
{{- $kind = printf "%s-%s" $kind (lower $one.plugin) }}
{{- else if $one.plugin }}
{{- fail (printf "%s.plugin is not allowed for kind %s: remove it, or set kind: Plugin" $where $one.kind) }}
{{- end }}
{{- if and $one.vantage (eq $one.kind "Prometheus") }}
{{- fail (printf "%s.vantage is not allowed for kind Prometheus: remove it" $where) }}
{{- end }}
{{- $component := printf "prober-%s%s%s" $kind (empty $one.vantage | ternary "" (printf "-%s" $one.vantage)) (gt (len $policies) 1 | ternary (printf "-%s" $one.policy) "") }}
{{- $namespace := $one.namespace | default $root.Release.Namespace }}
{{- if and (gt (len $namespaces) 1) (ne $namespace $root.Release.Namespace) }}
{{- $component = printf "%s-%s" $component $namespace }}
{{- end }}
{{- $source := $one.vantage | default (eq $one.kind "Prometheus" | ternary "*" "replication") }}
{{- $items = append $items (dict "name" (include "bellwether.legal" (printf "%s-%s" $full $component)) "component" (include "bellwether.legal" $component) "policy" $one.policy "namespace" $namespace "signal" (include "bellwether.signal" $one) "source" $source "secrets" ($one.secretNames | default $root.Values.rbac.secretNames) "prober" $one "where" $where) }}
{{- end }}
{{- with .Values.alertmanager }}
{{- if .enabled }}
{{- $items = append $items (dict "name" (include "bellwether.legal" (printf "%s-prober-alertmanager" $full)) "component" "prober-alertmanager" "policy" .policy "namespace" (.namespace | default $root.Release.Namespace) "signal" "Alertmanager" "source" "*" "secrets" list "where" "alertmanager") }}
{{- end }}
{{- end }}
{{- $seen := dict }}
{{- range $items }}
{{- if hasKey $seen .name }}
{{- fail (printf "%s is a duplicate of %s: use one item for each policy, kind and vantage, and set its replicas" .where (get $seen .name)) }}
{{- end }}
{{- $_ := set $seen .name .where }}
{{- end }}
{{- dict "items" $items | toJson }}
{{- end }}

{{/*
The entries that each account may write, as YAML: a map from account to a list of POLICY/SIGNAL/SOURCE, where * is any
source and @pod the broker whose id is at the end of the pod's name. In: the root.
*/}}
{{- define "bellwether.grants" -}}
{{- $grants := dict }}
{{- range (include "bellwether.identities" . | fromJson).items }}
{{- $_ := set $grants (printf "system:serviceaccount:%s:%s" $.Release.Namespace .name) (list (printf "%s/%s/%s" .policy .signal .source)) }}
{{- end }}
{{- range .Values.sidecars.accounts }}
{{- $account := printf "system:serviceaccount:%s:%s" (.namespace | default .policyNamespace | default $.Release.Namespace) .name }}
{{- $before := get $grants $account | default list }}
{{- $_ := set $grants $account (concat $before (list (printf "%s/StorageLatency/@pod" .policy) (printf "%s/ReadLatency/@pod" .policy) (printf "%s/SelfReachability/@pod" .policy)) | uniq) }}
{{- if $.Values.sidecars.quarantineAgent.enabled }}
{{- $_ := set $grants $account (append (get $grants $account) (printf "%s/Quarantine/@pod" .policy) | uniq) }}
{{- end }}
{{- end }}
{{- toYaml $grants }}
{{- end }}
