{{/* A quantity as text, which values may give as a number too. */}}
{{- define "training-job.quantity" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ int64 . }}{{ end -}}
{{- end -}}

{{/* CPU in thousandths. */}}
{{- define "training-job.millicpu" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- hasSuffix "m" . | ternary $number (mul $number 1000) -}}
{{- end -}}

{{/* Memory in bytes. */}}
{{- define "training-job.bytes" -}}
{{- $units := dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- mul (regexFind "^[0-9]+" . | int64) (get $units $unit | default 1) -}}
{{- end -}}

{{/* Memory in MiB, rounded up. */}}
{{- define "training-job.mib" -}}
{{- div (add (include "training-job.bytes" . | int64) 1048575) 1048576 -}}
{{- end -}}

{{/*
What counts of a resource's limit and request, which of CPU is the request: it is held to no limit.
An empty text where neither is stated.
*/}}
{{- define "training-job.amount" -}}
{{- $resources := .job.stated.resources | default dict -}}
{{- $limits := $resources.limits | default dict -}}
{{- $requests := $resources.requests | default dict -}}
{{- $limit := hasKey $limits .name | ternary (get $limits .name | include "training-job.quantity") "" -}}
{{- $request := hasKey $requests .name | ternary (get $requests .name | include "training-job.quantity") "" -}}
{{- $at := printf "%s.resources" .job.at -}}
{{- if and $limit $request (ne $limit $request) -}}
{{- $size := printf "training-job.%s" .size -}}
{{- if gt (include $size $request | int64) (include $size $limit | int64) -}}
{{- $wrong := printf "%s.requests.%s: more than its limit, %s, got %s; raise the limit" $at .name $limit $request -}}
{{- include "training-job.error" (dict "job" .job "text" $wrong) -}}
{{- else if ne .name "cpu" -}}
{{- $note := printf "%s: request and limit of %s differ, and the limit counts for both." $at .name -}}
{{- $_ := set .job "notes" (append .job.notes $note) -}}
{{- end -}}
{{- end -}}
{{- if and $limit (eq .name "cpu") -}}
{{- $note := printf "%s.limits.cpu: %s is left out: a limit would throttle the pod." $at $limit -}}
{{- $_ := set .job "notes" (append .job.notes $note) -}}
{{- end -}}
{{- eq .name "cpu" | ternary ($request | default $limit) ($limit | default $request) -}}
{{- end -}}

{{/* Sets count, requests and sharedMemory. */}}
{{- define "training-job.resources" -}}
{{- $job := . -}}
{{- $gpus := include "training-job.amount" (dict "job" . "name" "nvidia.com/gpu" "size" "number") -}}
{{- $devices := include "training-job.amount" (dict "job" . "name" "aws.amazon.com/neuron" "size" "number") -}}
{{- $interfaces := include "training-job.amount" (dict "job" . "name" "vpc.amazonaws.com/efa" "size" "number") -}}
{{- $cpu := include "training-job.amount" (dict "job" . "name" "cpu" "size" "millicpu") -}}
{{- $memory := include "training-job.amount" (dict "job" . "name" "memory" "size" "bytes") -}}
{{- $at := printf "%s.resources" .at -}}
{{- $resource := empty $devices | ternary "nvidia.com/gpu" "aws.amazon.com/neuron" -}}
{{- $count := $devices | default $gpus | default "0" -}}
{{- $_ := set . "count" $count -}}
{{- $share := dict -}}
{{- $known := list -}}
{{- range .placement.shares -}}
{{- if eq .resource $resource -}}
{{- $known = append $known (int64 .count | toString) -}}
{{- end -}}
{{- if and (eq (int64 .count | toString) $count) (or (eq .resource $resource) (eq $count "0")) -}}
{{- $share = . -}}
{{- end -}}
{{- end -}}
{{- if and $gpus $devices -}}
{{- include "training-job.error" (dict "job" . "text" (printf "%s: GPUs and Neuron devices in one pod; keep one of both" $at)) -}}
{{- else if not $share -}}
{{- $wrong := printf "%s: no even share of a node there, got %s %s; known: %s" $at $count $resource (join ", " $known) -}}
{{- include "training-job.error" (dict "job" . "text" $wrong) -}}
{{- else -}}
{{- $requests := $share.requests -}}
{{- $given := get $requests "vpc.amazonaws.com/efa" | default "0" -}}
{{- if ne ($interfaces | default $given) $given -}}
{{- $wrong := printf "%s: a job of %s %s has %s EFA interfaces here, got %s; leave them out" $at $count $resource $given $interfaces -}}
{{- include "training-job.error" (dict "job" . "text" $wrong) -}}
{{- end -}}
{{- if $cpu -}}
{{- $requests = merge (dict "cpu" $cpu) $requests -}}
{{- if gt (include "training-job.millicpu" $cpu | int64) (int64 $share.millicpu) -}}
{{- $wrong := printf "%s: more CPU than such a pod has room for, got %s; ask for at most %dm" $at $cpu (int64 $share.millicpu) -}}
{{- include "training-job.error" (dict "job" . "text" $wrong) -}}
{{- end -}}
{{- end -}}
{{- if $memory -}}
{{- $requests = merge (dict "memory" $memory) $requests -}}
{{- if gt (include "training-job.mib" $memory | int64) (int64 $share.memoryMib) -}}
{{- $wrong := printf "%s: more memory than such a pod has room for, got %s; ask for at most %dMi" $at $memory (int64 $share.memoryMib) -}}
{{- include "training-job.error" (dict "job" . "text" $wrong) -}}
{{- end -}}
{{- end -}}
{{- $mib := include "training-job.mib" $requests.memory | int64 -}}
{{- $_ := set . "requests" $requests -}}
{{- $_ := set . "sharedMemory" (printf "%dMi" (div (mul $mib (int64 .values.cluster.sharedMemoryPercent)) 100)) -}}
{{- end -}}
{{- end -}}

{{/* A number of whole things. */}}
{{- define "training-job.number" -}}
{{- . -}}
{{- end -}}
