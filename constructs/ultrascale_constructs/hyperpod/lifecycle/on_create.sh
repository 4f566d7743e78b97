#!/usr/bin/env bash
# HyperPod runs it on each new instance, before the node joins. An exit code other than 0 fails the
# instance, and HyperPod tries it again at full price: whatever the node can do without must not
# fail here. Its output is in CloudWatch, /aws/sagemaker/Clusters/NAME/ID, LifecycleConfig/...
set -euo pipefail

VOLUME=${VOLUME:-/opt/sagemaker}
# AMIs of different releases have either.
CONFIGURATIONS=${CONFIGURATIONS:-/etc/containerd/config.toml /etc/eks/containerd/containerd-config.toml}
# The AMI's dlami-nvme.service joins the local NVMe disks there.
NVME=${NVME:-/opt/dlami/nvme}
DISKS=${DISKS:-/sys/block}
KUBELET=${KUBELET:-/var/lib/kubelet}
SECONDS_UNTIL_MOUNTED=${SECONDS_UNTIL_MOUNTED:-60}
SECONDS_UNTIL_JOINED=${SECONDS_UNTIL_JOINED:-120}

is_mounted_within() {
    local seconds=$1 folder=$2
    for ((waited = 0; waited < seconds; waited += 5)); do
        mountpoint --quiet "$folder" && return
        sleep 5
    done
    mountpoint --quiet "$folder"
}

# The root volume cannot be made larger, and training images of tens of GB fill it.
move_images() {
    if ! is_mounted_within "$SECONDS_UNTIL_MOUNTED" "$VOLUME"; then
        echo "no volume at $VOLUME: images stay on the root volume"
        return
    fi
    local root=$VOLUME/containerd moved=no configuration
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
        return
    fi
    mkdir --parents "$root"
    # What the AMI brings along, such as the pause image, which no registry has under its name.
    if [[ -d /var/lib/containerd && -z $(ls --almost-all "$root") ]]; then
        cp --archive /var/lib/containerd/. "$root/"
    fi
    if systemctl is-active --quiet containerd; then
        systemctl restart containerd
    fi
}

# Volumes of pods, such as the scratch space of jobs, lie below the kubelet's folder. AWS's own
# script moves it in the same way, by default to the second volume.
# https://github.com/awslabs/awsome-distributed-ai/blob/main/1.architectures/7.sagemaker-hyperpod-eks/LifecycleScripts/base-config/on_create_main.sh
move_pod_volumes() {
    local target=$NVME/kubelet
    if ! grep --quiet --no-messages "Instance Storage" "$DISKS"/nvme*/device/model; then
        echo "no local NVMe disks: volumes of pods stay on the root volume"
    elif ! is_mounted_within "$SECONDS_UNTIL_JOINED" "$NVME"; then
        echo "no volume at $NVME: volumes of pods stay on the root volume"
    elif [[ -L $KUBELET ]]; then
        echo "$KUBELET has been moved before"
    elif systemctl is-active --quiet kubelet; then
        echo "the kubelet runs already: volumes of pods stay on the root volume"
    elif mkdir --parents "$KUBELET" "$target" && cp --archive "$KUBELET/." "$target/" &&
        mv "$KUBELET" "$KUBELET.of-image" && ln --symbolic "$target" "$KUBELET"; then
        echo "volumes of pods are kept in $target"
    else
        [[ -e $KUBELET ]] || mv "$KUBELET.of-image" "$KUBELET"
        echo "$KUBELET could not be moved: volumes of pods stay on the root volume"
    fi
}

move_images
move_pod_volumes
