#!/usr/bin/env bash
# Says where the pods of a chart run, as Helm renders it: a chart that has no values for that need
# not be rewritten.
#
# PLACEMENT   kustomization of `rendered.yaml`, JSON
# PLACED      objects that it changes by name, with spaces between them; kustomize passes over those
#             that are not there
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/rendered.yaml"
for name in $PLACED; do
    if ! grep --quiet "^  name: $name\$" "$work/rendered.yaml"; then
        echo "place-pods: the chart has no $name" >&2
        exit 1
    fi
done
printf '%s' "$PLACEMENT" >"$work/kustomization.yaml"
kubectl kustomize "$work"
