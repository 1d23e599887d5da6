{{/*
Who reports: one identity for each prober and the webhook, with a ServiceAccount of its own, so that an admission
policy can bind it to its own entries.
*/}}

{{/* What kind of signal a prober writes. In: an item of values.probers. */}}
{{- define "bellwether.signal" -}}
{{- if eq .kind "Plugin" }}
{{- .plugin }}
{{- else }}
{{- get (dict "Reachability" "ExternalReachability" "Replication" "ReplicationLag" "Prometheus" "Prometheus") .kind }}
{{- end }}
{{- end }}

{{/*
JSON {"items": [...]}: of each prober name, component, policy, namespace, signal, source, secrets, and its item of
values.probers. Fails on what no schema can say. In: the root.
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
{{- $policies = append $policies (required "alertmanager.policy: name the LeadershipPolicy that the webhook follows" .Values.alertmanager.policy) | uniq }}
{{- end }}
{{- range $index, $one := .Values.probers }}
{{- $where := printf "probers[%d]" $index }}
{{- $kind := lower $one.kind }}
{{- if and (eq $one.kind "Reachability") (not $one.vantage) }}
{{- fail (printf "%s.vantage: give the place a stable name, such as eu-west-1a" $where) }}
{{- end }}
{{- if eq $one.kind "Plugin" }}
{{- if not $one.plugin }}
{{- fail (printf "%s.plugin: name the kind of signal that the package announces" $where) }}
{{- end }}
{{- if not $one.vantage }}
{{- fail (printf "%s.vantage: give the prober's place a stable name" $where) }}
{{- end }}
{{- $kind = printf "%s-%s" $kind (lower $one.plugin) }}
{{- else if $one.plugin }}
{{- fail (printf "%s.plugin: goes with kind Plugin, not with %s" $where $one.kind) }}
{{- end }}
{{- if and $one.vantage (eq $one.kind "Prometheus") }}
{{- fail (printf "%s.vantage: a Prometheus prober has none: its rules are its sources" $where) }}
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
{{- fail (printf "%s: %s is the same prober: give each policy, kind and vantage one item, and raise replicas instead" .where (get $seen .name)) }}
{{- end }}
{{- $_ := set $seen .name .where }}
{{- end }}
{{- dict "items" $items | toJson }}
{{- end }}

{{/*
Which entries each account may write, as YAML: a map from account to a list of POLICY/SIGNAL/SOURCE, where * is any
source and @pod the broker whose id ends the pod's name. In: the root.
*/}}
{{- define "bellwether.grants" -}}
{{- $grants := dict }}
{{- range (include "bellwether.identities" . | fromJson).items }}
{{- $_ := set $grants (printf "system:serviceaccount:%s:%s" $.Release.Namespace .name) (list (printf "%s/%s/%s" .policy .signal .source)) }}
{{- end }}
{{- range .Values.sidecars.accounts }}
{{- $account := printf "system:serviceaccount:%s:%s" (.namespace | default .policyNamespace | default $.Release.Namespace) .name }}
{{- $before := get $grants $account | default list }}
{{- $_ := set $grants $account (concat $before (list (printf "%s/StorageLatency/@pod" .policy) (printf "%s/SelfReachability/@pod" .policy)) | uniq) }}
{{- if $.Values.sidecars.quarantineAgent.enabled }}
{{- $_ := set $grants $account (append (get $grants $account) (printf "%s/Quarantine/@pod" .policy) | uniq) }}
{{- end }}
{{- end }}
{{- toYaml $grants }}
{{- end }}
