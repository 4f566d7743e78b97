#!/usr/bin/env bash
# Says where the pods of a chart run, as Helm renders it: a chart that has no values for that need
# not be rewritten.
#
# PLACEMENT   kustomization of `rendered.yaml`, JSON
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/rendered.yaml"
printf '%s' "$PLACEMENT" >"$work/kustomization.yaml"
kubectl kustomize "$work"
