#!/usr/bin/env bash
# HyperPod runs it on each new instance, before the node joins. An exit code other than 0 fails the
# instance, and HyperPod tries it again at full price: whatever the node can do without must not
# fail here. Its output is in CloudWatch, /aws/sagemaker/Clusters/NAME/ID, LifecycleConfig/...
set -euo pipefail

VOLUME=${VOLUME:-/opt/sagemaker}
# AMIs of different releases have either.
CONFIGURATIONS=${CONFIGURATIONS:-/etc/containerd/config.toml /etc/eks/containerd/containerd-config.toml}
SECONDS_UNTIL_MOUNTED=${SECONDS_UNTIL_MOUNTED:-60}

is_mounted() { mountpoint --quiet "$VOLUME"; }

for ((waited = 0; waited < SECONDS_UNTIL_MOUNTED; waited += 5)); do
    is_mounted && break
    sleep 5
done
if ! is_mounted; then
    echo "no volume at $VOLUME: images stay on the root volume"
    exit 0
fi

# The root volume cannot be made larger, and training images of tens of GB fill it.
root=$VOLUME/containerd
moved=no
for configuration in $CONFIGURATIONS; do
    [[ -f $configuration ]] || continue
    if ! grep --quiet --extended-regexp '^[[:space:]]*root[[:space:]]*=' "$configuration"; then
        # A key of the top level, so it must stand before the first table.
        sed --in-place "1i root = \"$root\"" "$configuration"
    else
        sed --in-place --regexp-extended "s|^[[:space:]]*root[[:space:]]*=.*|root = \"$root\"|" \
            "$configuration"
    fi
    echo "$configuration: images and containers are kept in $root"
    moved=yes
done
if [[ $moved == no ]]; then
    echo "no configuration of containerd among $CONFIGURATIONS: images stay on the root volume"
    exit 0
fi
mkdir --parents "$root"
# What the AMI brings along, such as the pause image, which no registry has under its name.
if [[ -d /var/lib/containerd && -z $(ls --almost-all "$root") ]]; then
    cp --archive /var/lib/containerd/. "$root/"
fi
if systemctl is-active --quiet containerd; then
    systemctl restart containerd
fi
