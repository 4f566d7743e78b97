{{/* Sets tiers and placement: what this project renders on those nodes for a template of that name. */}}
{{- define "training-job.nodes" -}}
{{- $job := . -}}
{{- $selector := .stated.nodeSelector | default dict -}}
{{- $_ := set . "selector" $selector -}}
{{- $enabled := dict -}}
{{- $disabled := list -}}
{{- range $name, $tier := .values.nodeSelectors -}}
{{- $agrees := true -}}
{{- range $key, $value := $tier.labels -}}
{{- if ne (get $selector $key | default $value) $value -}}
{{- $agrees = false -}}
{{- end -}}
{{- end -}}
{{- if and $agrees (hasKey $tier "enabled" | ternary $tier.enabled true) -}}
{{- $_ := set $enabled $name $tier -}}
{{- else if $agrees -}}
{{- $disabled = append $disabled (printf "nodeSelectors.%s.enabled" $name) -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "tiers" $enabled -}}
{{- $at := printf "%s.nodeSelector" .at -}}
{{- if and (not $enabled) $disabled -}}
{{- $wrong := printf "%s: nodes of a tier that is disabled; set %s: true" $at (join ", " $disabled) -}}
{{- include "training-job.error" (dict "job" . "text" $wrong) -}}
{{- else -}}
{{- $wanted := get $selector "node-type" -}}
{{- $known := list -}}
{{- range .values.cluster.placements -}}
{{- if or (not .team) (eq .team $job.template) -}}
{{- $known = append $known .nodeType -}}
{{- if eq .nodeType $wanted -}}
{{- $_ := set $job "placement" . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not .placement -}}
{{- $wrong := printf "%s.node-type: the chart renders no such job for cluster %s, got %q; known: %s; send other jobs by ultrascale submit --values" $at .values.cluster.name $wanted (join ", " $known) -}}
{{- include "training-job.error" (dict "job" . "text" $wrong) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Sets labels: those that the nodes of a job must have beside what the placement says. */}}
{{- define "training-job.labels" -}}
{{- $job := . -}}
{{- $kept := dict -}}
{{- range $key, $value := .selector -}}
{{- include "training-job.label" (dict "job" $job "kept" $kept "key" $key "value" $value "at" (printf "%s.nodeSelector.%s" $job.at $key)) -}}
{{- end -}}
{{- range $name, $tier := .tiers -}}
{{- range $key, $value := $tier.labels -}}
{{- $common := true -}}
{{- range $job.tiers -}}
{{- if ne (get .labels $key) $value -}}
{{- $common = false -}}
{{- end -}}
{{- end -}}
{{- if and $common (not (hasKey $job.selector $key)) -}}
{{- include "training-job.label" (dict "job" $job "kept" $kept "key" $key "value" $value "at" (printf "nodeSelectors.%s.labels.%s" $name $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $rules := list -}}
{{- range $key, $value := $kept -}}
{{- $rules = append $rules (dict "key" $key "operator" "In" "values" (list $value) | toJson) -}}
{{- end -}}
{{- $_ := set . "labels" (join "," $rules) -}}
{{- end -}}

{{/* Keeps a label that the nodes have; leaves out one that they lack, or refuses it with a domain. */}}
{{- define "training-job.label" -}}
{{- if eq (get .job.placement.labels .key | default "") .value -}}
{{- $_ := set .kept .key .value -}}
{{- else if contains "/" .key -}}
{{- $wrong := printf "%s: not a label of all nodes of %s, got %q; leave it out, or send the job by ultrascale submit" .at .job.placement.nodeType .value -}}
{{- include "training-job.error" (dict "job" .job "text" $wrong) -}}
{{- else -}}
{{- $note := printf "%s: %q is left out, as no node there has it." .at .value -}}
{{- $_ := set .job "notes" (append .job.notes $note) -}}
{{- end -}}
{{- end -}}

{{/* Sets tolerations: what bears the taints of the nodes, then what the values say. */}}
{{- define "training-job.tolerations" -}}
{{- $job := . -}}
{{- $own := list -}}
{{- range .stated.tolerations -}}
{{- $own = append $own (merge (dict) . (dict "operator" "Equal")) -}}
{{- end -}}
{{- $added := list -}}
{{- range $taint := .placement.taints -}}
{{- $borne := false -}}
{{- range $own -}}
{{- $value := or (eq .operator "Exists") (eq (.value | default "") $taint.value) -}}
{{- if and $value (eq .key $taint.key) (eq (.effect | default $taint.effect) $taint.effect) -}}
{{- $borne = true -}}
{{- end -}}
{{- end -}}
{{- if not $borne -}}
{{- $added = append $added (dict "key" $taint.key "operator" "Exists" "effect" $taint.effect) -}}
{{- $note := printf "%s.tolerations: %s=%s:%s is added, as nodes there have that taint." $job.at $taint.key $taint.value $taint.effect -}}
{{- $_ := set $job "notes" (uniq (append $job.notes $note)) -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "tolerations" (concat (uniq $added) $own) -}}
{{- end -}}

{{/* Judges the PriorityClass; those of the cluster are made, and count. */}}
{{- define "training-job.priority" -}}
{{- $job := . -}}
{{- $name := .stated.priorityClassName -}}
{{- if not (has $name .placement.priorityClasses) -}}
{{- $known := join ", " .placement.priorityClasses -}}
{{- $wrong := printf "%s.priorityClassName: not one that such a job may have, got %q; known: %s" .at $name $known -}}
{{- include "training-job.error" (dict "job" . "text" $wrong) -}}
{{- end -}}
{{- range .values.cluster.priorityClasses -}}
{{- $stated := get $job.values.priorityClasses .name | default dict -}}
{{- $at := printf "priorityClasses.%s" .name -}}
{{- if and (hasKey $stated "value") (ne (int64 $stated.value) (int64 .value)) -}}
{{- $note := printf "%s.value: %d does not count: the cluster's is %d." $at (int64 $stated.value) (int64 .value) -}}
{{- $_ := set $job "notes" (append $job.notes $note) -}}
{{- end -}}
{{- $policy := .preempts | ternary "PreemptLowerPriority" "Never" -}}
{{- if ne ($stated.preemptionPolicy | default $policy) $policy -}}
{{- $note := printf "%s.preemptionPolicy: %s does not count: the cluster's is %s." $at $stated.preemptionPolicy $policy -}}
{{- $_ := set $job "notes" (append $job.notes $note) -}}
{{- end -}}
{{- end -}}
{{- end -}}
