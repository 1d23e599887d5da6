{{/*
Prober identities: each prober has its own ServiceAccount, so that an admission policy can limit it to
its own entries.
*/}}

{{/*
JSON {"items": [...]} with, for each prober: name (of its account), component, namespaces (of its policies;
empty: all), signal, option (that takes the source), source, secrets (rules), annotations, item (of values.probers) and deployments, one for each shard with name,
component and shard. Fails on errors that the schema cannot detect. In: the root.
*/}}
{{- define "bellwether.identities" -}}
{{- $root := . }}
{{- $full := include "bellwether.fullname" . }}
{{- $items := list }}
{{- $probers := .Files.Get "files/probers.json" | fromJson }}
{{- range $index, $one := .Values.probers }}
{{- $where := printf "probers[%d]" $index }}
{{- $kind := lower $one.kind }}
{{- $prober := get $probers $one.kind }}
{{- if eq $one.kind "Plugin" }}
{{- if not $one.plugin }}
{{- fail (printf "%s.plugin is required: the signal type of the plug-in" $where) }}
{{- end }}
{{- $kind = printf "%s-%s" $kind (lower $one.plugin) }}
{{- else if $one.plugin }}
{{- fail (printf "%s.plugin is not allowed for kind %s: remove it, or set kind: Plugin" $where $one.kind) }}
{{- end }}
{{- if and $one.vantage (not $prober.option) }}
{{- fail (printf "%s.vantage is not allowed for kind %s: remove it" $where $one.kind) }}
{{- end }}
{{- $source := $one.vantage | default $prober.source }}
{{- if not $source }}
{{- fail (printf "%s.vantage is required: a stable name of the place, such as eu-west-1a" $where) }}
{{- end }}
{{- $component := printf "prober-%s%s%s" $kind (empty $one.vantage | ternary "" (printf "-%s" $one.vantage)) (empty $one.namespaces | ternary "" (printf "-%s" (join "-" $one.namespaces))) }}
{{- $items = append $items (dict "component" $component "signal" ($one.plugin | default $prober.signal) "option" $prober.option "source" $source "secrets" (include "bellwether.rules.credentials" (dict "root" $root "names" $one.secretNames)) "values" $one "item" $one "where" $where) }}
{{- end }}
{{- $seen := dict }}
{{- range $items }}
{{- $_ := set . "name" (include "bellwether.legal" (printf "%s-%s" $full .component)) }}
{{- $_ := set . "namespaces" (.values.namespaces | default (include "bellwether.watched" $root | fromJsonArray) | uniq) }}
{{- if hasKey $seen .name }}
{{- fail (printf "%s is a duplicate of %s: use one item for each kind and vantage, and set its replicas or shards" .where (get $seen .name)) }}
{{- end }}
{{- $_ := set $seen .name .where }}
{{- if and (empty .namespaces) $root.Values.rbac.create (not $root.Values.admission.enabled) }}
{{- fail (printf "%s would get the right to write any Lease of the Kubernetes cluster: set admission.enabled, or %s.namespaces in place of watchAllNamespaces" .where .where) }}
{{- end }}
{{- $_ := set . "deployments" (include "bellwether.shards" (dict "full" $full "component" .component "shards" .values.shards) | fromJsonArray) }}
{{- $_ := set . "component" (include "bellwether.legal" .component) }}
{{- $_ := set . "annotations" (.values.serviceAccountAnnotations | default dict) }}
{{- $_ := unset . "values" }}
{{- end }}
{{- dict "items" $items | toJson }}
{{- end }}

{{/*
Deployments that share the policies, as a JSON list of name, component and shard (K/N). In: full, component, shards.
*/}}
{{- define "bellwether.shards" -}}
{{- $in := . }}
{{- $parts := int (default 1 .shards) }}
{{- $found := list }}
{{- range $part := untilStep 1 (int (add $parts 1)) 1 }}
{{- $component := gt $parts 1 | ternary (printf "%s-%d" $in.component $part) $in.component }}
{{- $found = append $found (dict "name" (include "bellwether.legal" (printf "%s-%s" $in.full $component)) "component" (include "bellwether.legal" $component) "shard" (printf "%d/%d" $part $parts)) }}
{{- end }}
{{- toJson $found }}
{{- end }}

{{/* Arguments that choose the policies of a prober or the sampler, as JSON. In: root, namespaces, secretNames, shard. */}}
{{- define "bellwether.selection" -}}
{{- $args := list }}
{{- range .namespaces }}
{{- $args = append $args (printf "--namespace=%s" .) }}
{{- end }}
{{- if empty .namespaces }}
{{- $args = append $args "--all-namespaces" }}
{{- end }}
{{- if ne .shard "1/1" }}
{{- $args = append $args (printf "--shard=%s" .shard) }}
{{- end }}
{{- if and .root.Values.rbac.anySecret (empty .secretNames) }}
{{- $args = append $args "--labelled-secrets" }}
{{- end }}
{{- toJson $args }}
{{- end }}

{{/*
The entries that each account may write, as YAML: a map from account to a list of POLICY/SIGNAL/SOURCE, where * is any
policy or source, within what RBAC permits, and @pod the broker of its pod (bellwether.admission.who). In: the root.
*/}}
{{- define "bellwether.grants" -}}
{{- $grants := dict }}
{{- range (include "bellwether.identities" . | fromJson).items }}
{{- $_ := set $grants (printf "system:serviceaccount:%s:%s" $.Release.Namespace .name) (list (printf "*/%s/%s" .signal .source)) }}
{{- end }}
{{- $sidecars := (.Files.Get "files/probers.json" | fromJson).sidecars }}
{{- range $one := (include "bellwether.sidecars.accounts" . | fromJson).items }}
{{- $account := printf "system:serviceaccount:%s:%s" .namespace .name }}
{{- $before := get $grants $account | default list }}
{{- range $signal := concat $sidecars ($.Values.sidecars.quarantineAgent.enabled | ternary (list "Quarantine") list) }}
{{- $before = append $before (printf "%s/%s/@pod" $one.policy $signal) }}
{{- end }}
{{- $_ := set $grants $account ($before | uniq) }}
{{- end }}
{{- toYaml $grants }}
{{- end }}
