{{/*
The job, as JSON: its objects, its name, its namespace, and what of the values does not hold. All
mistakes are told at once.
*/}}
{{- define "training-job.resolved" -}}
{{- $template := .Values.template | default "" -}}
{{- $known := keys .Values.jobTemplates | sortAlpha | join ", " -}}
{{- if not (hasKey .Values.jobTemplates $template) -}}
{{- fail (printf "template: no template %q; known: %s" $template $known) -}}
{{- else -}}
{{- $job := dict "values" .Values "template" $template "errors" list "notes" list -}}
{{- $_ := set $job "stated" (index .Values.jobTemplates $template) -}}
{{- $_ := set $job "at" (printf "jobTemplates.%s" $template) -}}
{{- $_ := set $job "name" (.Values.name | default .Release.Name) -}}
{{- include "training-job.program" $job -}}
{{- include "training-job.nodes" $job -}}
{{- if $job.placement -}}
{{- include "training-job.labels" $job -}}
{{- include "training-job.tolerations" $job -}}
{{- include "training-job.priority" $job -}}
{{- include "training-job.resources" $job -}}
{{- include "training-job.environment" $job -}}
{{- include "training-job.volumes" $job -}}
{{- end -}}
{{- if $job.errors -}}
{{- fail (printf "\n%s" (join "\n" $job.errors)) -}}
{{- else -}}
{{- $objects := include "training-job.filled" $job | fromJsonArray -}}
{{- $namespace := (first $objects).metadata.namespace -}}
{{- dict "objects" $objects "name" $job.name "namespace" $namespace "notes" $job.notes | toJson -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The objects of the placement, with the job's own values where their markers are. */}}
{{- define "training-job.filled" -}}
{{- $text := .placement.objects | toJson -}}
{{- $text = $text | replace "${NAME}" .name | replace "${NODE_TYPE}" .placement.nodeType -}}
{{- $text = $text | replace "${IMAGE}" .values.image -}}
{{- $text = $text | replace "${PRIORITY}" .stated.priorityClassName -}}
{{- $text = $text | replace "${SHARED_MEMORY}" .sharedMemory -}}
{{- $restarts := int64 .values.backoffLimit -}}
{{- $text = $text | replace "\"${RESTARTS_NUMBER}\"" (toString $restarts) -}}
{{- $text = $text | replace "${RESTARTS}" (toString $restarts) -}}
{{- $text = $text | replace "\"${TTL_NUMBER}\"" (int64 .values.ttlSecondsAfterFinished | toString) -}}
{{- $text = $text | replace "\"${TOLERATIONS}\"" (toJson .tolerations) | replace "\"tolerations\":[]," "" -}}
{{- $text = $text | replace "\"${LABELS}\"" .labels -}}
{{- $text = $text | replace "\"${REQUESTS}\"" (toJson .requests) -}}
{{- $text = $text | replace "\"${LIMITS}\"" (omit .requests "cpu" | toJson) -}}
{{- $text = $text | replace "\"${VOLUMES}\"," .volumes | replace "\"${MOUNTS}\"," .mounts -}}
{{/* What programs are given comes last: every `$` in it is doubled, so it holds no marker. */}}
{{- $text = $text | replace "\"${ENVIRONMENT}\"," .environment -}}
{{- $text | replace "\"${COMMAND}\"" (toJson .command) -}}
{{- end -}}
