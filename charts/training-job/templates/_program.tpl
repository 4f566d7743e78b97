{{/* Add a mistake to those of a job. */}}
{{- define "training-job.error" -}}
{{- $_ := set .job "errors" (append .job.errors .text) -}}
{{- end -}}

{{/* A word as Kubernetes passes it on, which reads `$(NAME)` and `$$` in it. */}}
{{- define "training-job.literal" -}}
{{- replace "$" "$$" . -}}
{{- end -}}

{{/* Sets command; judges the name and the image. */}}
{{- define "training-job.program" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$" .name) -}}
{{- $wrong := printf "name: not a DNS label of at most 40 characters, got %q" .name -}}
{{- include "training-job.error" (dict "job" . "text" $wrong) -}}
{{- end -}}
{{- $image := .values.image | default "" -}}
{{- $todo := "write REGISTRY/REPOSITORY:TAG, with a tag that stays" -}}
{{- if not (regexMatch "^[-\\w]*[.:][-.:\\w]*/[-./:\\w]*(\\w:[-.\\w]+|@sha256:[0-9a-f]{64})$" $image) -}}
{{- include "training-job.error" (dict "job" . "text" (printf "image: no whole reference, got %q; %s" $image $todo)) -}}
{{- else if hasSuffix ":latest" $image -}}
{{- include "training-job.error" (dict "job" . "text" (printf "image: a tag that moves, got %q; %s" $image $todo)) -}}
{{- end -}}
{{- $command := list -}}
{{- range concat .values.command (.values.args | default list) -}}
{{- $command = append $command (include "training-job.literal" .) -}}
{{- end -}}
{{- $_ := set . "command" $command -}}
{{- end -}}

{{/* Sets environment: the variables of the libraries, then those of the values, which win. */}}
{{- define "training-job.environment" -}}
{{- $job := . -}}
{{- $allowed := .values.allowEnv | default list -}}
{{- $own := dict -}}
{{- range $name, $value := .values.env -}}
{{- if and (eq $name "CUDA_VISIBLE_DEVICES") (eq (trim $value | lower) "all") -}}
{{- $note := printf "env.%s: %q is left out: CUDA sees no device by that word." $name $value -}}
{{- $_ := set $job "notes" (append $job.notes $note) -}}
{{- else -}}
{{- $_ := set $own $name $value -}}
{{- end -}}
{{- range $job.values.cluster.refusedVariables -}}
{{- if and (regexMatch .name $name) (not (and .allowable (has $name $allowed))) -}}
{{- include "training-job.error" (dict "job" $job "text" (printf "env.%s: %s; %s" $name .wrong .todo)) -}}
{{- end -}}
{{- end -}}
{{- range $job.values.cluster.bypassesEfa -}}
{{- if and (eq .name $name) (not (has $name $allowed)) (hasKey ($job.requests | default dict) "vpc.amazonaws.com/efa") (regexMatch .value (trim $value)) -}}
{{- include "training-job.error" (dict "job" $job "text" (printf "env.%s: %s, got %s; %s" $name .wrong $value .todo)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .values.modelType (not (hasKey $own "MODEL_TYPE")) -}}
{{- $_ := set $own "MODEL_TYPE" .values.modelType -}}
{{- end -}}
{{- $items := list -}}
{{- $taken := list -}}
{{- range .placement.environments -}}
{{- if has (toString $job.count) (include "training-job.words" .counts | fromJsonArray) -}}
{{- range .variables -}}
{{- $value := hasKey $own .name | ternary (get $own .name | include "training-job.literal") .value -}}
{{- $items = append $items (dict "name" .name "value" $value) -}}
{{- $taken = append $taken .name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := $own -}}
{{- if not (has $name $taken) -}}
{{- $items = append $items (dict "name" $name "value" (include "training-job.literal" $value)) -}}
{{- end -}}
{{- end -}}
{{- $text := "" -}}
{{- range $items -}}
{{- $text = printf "%s%s," $text (toJson .) -}}
{{- end -}}
{{- $_ := set . "environment" $text -}}
{{- end -}}

{{/* Numbers as words, which are equal however Helm read them. */}}
{{- define "training-job.words" -}}
{{- $words := list -}}
{{- range . -}}
{{- $words = append $words (int64 . | toString) -}}
{{- end -}}
{{- toJson $words -}}
{{- end -}}

{{/* Sets volumes and mounts. */}}
{{- define "training-job.volumes" -}}
{{- $job := . -}}
{{- $claims := list -}}
{{- $mounts := "" -}}
{{- range list (list "dataPvcName" "/data") (list "checkpointPvcName" "/checkpoints") -}}
{{- $claim := get $job.values (first .) | default "" -}}
{{- if $claim -}}
{{- if not (has $claim $job.placement.claims) -}}
{{- $known := join ", " $job.placement.claims -}}
{{- $namespace := (first $job.placement.objects).metadata.namespace -}}
{{- $wrong := printf "%s: no claim that the cluster file makes in namespace %s, got %q; known: %s" (first .) $namespace $claim $known -}}
{{- include "training-job.error" (dict "job" $job "text" $wrong) -}}
{{- else -}}
{{- $claims = append $claims $claim | uniq -}}
{{- range $number, $each := $claims -}}
{{- if eq $each $claim -}}
{{- $_ := set $job "number" $number -}}
{{- end -}}
{{- end -}}
{{- $mount := dict "name" (printf "claim-%d" $job.number) "mountPath" (last .) -}}
{{- $mounts = printf "%s%s," $mounts (toJson $mount) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $volumes := "" -}}
{{- range $number, $claim := $claims -}}
{{- $volume := dict "name" (printf "claim-%d" $number) "persistentVolumeClaim" (dict "claimName" $claim) -}}
{{- $volumes = printf "%s%s," $volumes (toJson $volume) -}}
{{- end -}}
{{- $_ := set . "volumes" $volumes -}}
{{- $_ := set . "mounts" $mounts -}}
{{- end -}}
