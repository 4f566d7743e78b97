#!/usr/bin/env bash
# Installs AWS's HyperPod chart, or brings its release up to date. CodeBuild runs it beside kubectl
# and Helm 4, with a role that may do anything in the cluster.
#
# CLUSTER              name of the EKS cluster
# CHART_COPY           location in a mirror of the chart with its dependencies, oci://HOST/PATH; unset: it
#                      comes from its publishers. With it:
#   CHART_COPY_VERSION version of the copy
#   CHART_COPY_DIGEST  its digest; unset: nobody has recorded it
#   IMAGE_REGISTRIES   patterns of what the images of the chart begin with, with spaces between them
#   LOGIN_REGION       Region of the mirror in Amazon ECR; unset: it asks for no login
# CHART_REPOSITORY     URL of the Git repository that holds the chart
# CHART_COMMIT         full id of the commit
# CHART_FOLDER         folder of the chart in it
# CHART_SHA256         of the sums of all files of that folder; unset: nobody has pinned it
# REMOTE_CHARTS        NAME:VERSION:SHA256 of each dependency that comes from a chart repository, with
#                      spaces between them; without SHA256 nobody has pinned it
# RELEASE, NAMESPACE   name and namespace of the release
# OPERATOR_NAMESPACE   namespace of the operators that must have become available
# VALUES               values of the chart, JSON
# PLACEMENT            kustomization that says where its pods run, JSON
# PLACED               objects that PLACEMENT changes by name, with spaces between them; unset: none
# GOVERNANCE_ADDON     add-on of task governance, which will bring a Kueue of its own; unset: none
# ACCESS_SECONDS       how long the role may take to be let into the cluster; 120 unless set
set -euo pipefail
export LC_ALL=C

tools=$CODEBUILD_SRC_DIR_tools
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chart=$work/source/${CHART_FOLDER:-}
chmod +x "$tools/helm/helm" "$tools/kubectl/kubectl"
export PATH=$tools/helm:$tools/kubectl:$PATH
export HOME=$work/home KUBECONFIG=$work/kubeconfig HELM_PLUGINS=$here PLACEMENT
mkdir "$HOME"

fail() {
    echo "hyperpod chart: $*" >&2
    exit 1
}

# fetch.fsckObjects hashes every object anew: what is checked out is what the commit's id stands for.
fetch_chart() {
    git init --quiet "$work/source"
    git -C "$work/source" config fetch.fsckObjects true
    git -C "$work/source" fetch --quiet --depth 1 "$CHART_REPOSITORY" "$CHART_COMMIT"
    local got
    got=$(git -C "$work/source" rev-parse FETCH_HEAD)
    [[ $got == "$CHART_COMMIT" ]] || fail "asked for commit $CHART_COMMIT, got $got"
    git -C "$work/source" checkout --quiet --detach FETCH_HEAD
    [[ -f $chart/Chart.yaml ]] || fail "no chart in $CHART_FOLDER of $CHART_COMMIT"
}

# A closed network leads to the mirror alone.
pull_chart() {
    local host=${CHART_COPY#oci://} found
    host=${host%%/*}
    if [[ -n ${LOGIN_REGION:-} ]]; then
        aws ecr get-login-password --region "$LOGIN_REGION" |
            helm registry login --username AWS --password-stdin "$host"
    fi
    helm pull "$CHART_COPY" --version "$CHART_COPY_VERSION" --untar --untardir "$work/copy" 2>&1 |
        tee "$work/pulled"
    found=$(sed -n 's/^Digest: //p' "$work/pulled")
    if [[ -z ${CHART_COPY_DIGEST:-} ]]; then
        echo "$CHART_COPY: ${found:-no digest}, not recorded"
    elif [[ $found != "$CHART_COPY_DIGEST" ]]; then
        fail "$CHART_COPY $CHART_COPY_VERSION: ${found:-no digest}, recorded is $CHART_COPY_DIGEST"
    fi
    chart=$work/copy/${CHART_COPY##*/}
}

check_sum() { # what it is of, what it is, what it should be
    if [[ -z $3 ]]; then
        echo "$1: sha256 $2, not pinned"
    elif [[ $2 == "$3" ]]; then
        echo "$1: sha256 $2, as pinned"
    else
        fail "$1: sha256 $2, pinned is $3"
    fi
}

check_chart() {
    local sum
    sum=$(cd "$chart" && git ls-files -z | sort -z | xargs -0 sha256sum | sha256sum)
    check_sum "$CHART_FOLDER" "${sum%% *}" "${CHART_SHA256:-}"
}

fetch_remote_charts() {
    helm dependency update "$chart"
    local wanted found pin name version sum archives
    wanted=$(for pin in $REMOTE_CHARTS; do cut -d: -f1,2 <<<"$pin"; done | sort)
    found=$(helm dependency list --max-col-width 0 "$chart" |
        awk 'NR > 1 && NF >= 3 && $3 !~ /^file:/ { print $1 ":" $2 }' | sort)
    [[ $found == "$wanted" ]] ||
        fail "its remote charts are ${found//$'\n'/ }, pinned are ${wanted//$'\n'/ }"
    for pin in $REMOTE_CHARTS; do
        IFS=: read -r name version sum <<<"$pin"
        archives=("$chart/charts/$name-${version#v}.tgz" "$chart/charts/$name-v${version#v}.tgz")
        for archive in "${archives[@]}"; do
            if [[ -f $archive ]]; then
                check_sum "$name $version" "$(sha256sum <"$archive" | cut -d' ' -f1)" "$sum"
                continue 2
            fi
        done
        fail "$name $version: no archive in charts/"
    done
}

# All that can go wrong with the chart goes wrong before the cluster is touched. kustomize passes over
# what it does not find.
render() {
    printf '%s' "$VALUES" >"$work/values.json"
    helm template "$RELEASE" "$chart" --namespace "$NAMESPACE" --values "$work/values.json" \
        --post-renderer place-pods >"$work/rendered.yaml"
    local name
    for name in ${PLACED:-}; do
        grep --quiet "^  name: $name\$" "$work/rendered.yaml" || fail "the chart has no $name"
    done
}

# An image from elsewhere would keep its pods waiting for ever.
check_images() {
    [[ -n ${IMAGE_REGISTRIES:-} ]] || return 0
    local image registry
    set -f # the patterns are for images, and not for files
    while read -r image; do
        for registry in $IMAGE_REGISTRIES; do
            # shellcheck disable=SC2254
            case $image in $registry/*) continue 2 ;; esac
        done
        fail "the chart has an image that is not in the mirror: $image"
    done < <(sed -nE 's/^[ -]*image: *"?([^" ]+)"?$/\1/p' "$work/rendered.yaml" | sort -u)
    set +f
}

# An access entry works some seconds after it is made.
connect() {
    aws eks update-kubeconfig --name "$CLUSTER" >/dev/null
    local until=$((SECONDS + ${ACCESS_SECONDS:-120}))
    until kubectl auth can-i '*' '*' --all-namespaces >/dev/null; do
        ((SECONDS < until)) || fail "no access to $CLUSTER"
        sleep 5
    done
}

# Two Kueues in one cluster undo each other's work, and the add-on fails with the name of an object.
# Better before HyperPod is made than after.
refuse_other_kueue() {
    [[ -n ${GOVERNANCE_ADDON:-} ]] || return 0
    local found
    found=$(kubectl get crd workloads.kueue.x-k8s.io --ignore-not-found --output name)
    [[ -n $found ]] || return 0
    if found=$(aws eks describe-addon --cluster-name "$CLUSTER" --addon-name "$GOVERNANCE_ADDON" 2>&1)
    then
        return 0
    fi
    [[ $found == *ResourceNotFoundException* ]] || fail "$found"
    fail "$CLUSTER has a Kueue of its own, and $GOVERNANCE_ADDON brings another;" \
        "uninstall the first, or remove hyperpod.task_governance from the cluster file"
}

# A build that was stopped leaves its revision pending, and Helm refuses every later one
# (aws/aws-cdk#35299). One build runs at a time, so nobody is at work on it. Only Helm's note is
# deleted: to uninstall the release would delete its CRDs, and with them every job.
drop_pending_revision() {
    kubectl delete secret --namespace "$NAMESPACE" --ignore-not-found --selector \
        "owner=helm,name=$RELEASE,status in (pending-install,pending-upgrade,pending-rollback)"
}

# Not --wait: the plugins of a node that HyperPod replaces would fail the deploy. Not
# --rollback-on-failure: that uninstalls a first release, and else changes running nodes once more.
upgrade() {
    helm upgrade "$RELEASE" "$chart" --install --namespace "$NAMESPACE" \
        --values "$work/values.json" --post-renderer place-pods \
        --server-side=true --force-conflicts --history-max 5 --timeout 4m
}

wait_for_operators() {
    local deployment
    for deployment in $(kubectl get deployments --namespace "$OPERATOR_NAMESPACE" --output name \
        --selector app.kubernetes.io/managed-by=Helm); do
        kubectl rollout status --namespace "$OPERATOR_NAMESPACE" --timeout 3m "$deployment"
    done
}

if [[ -n ${CHART_COPY:-} ]]; then
    pull_chart
else
    fetch_chart
    check_chart
    fetch_remote_charts
fi
render
check_images
connect
refuse_other_kueue
drop_pending_revision
upgrade
wait_for_operators
