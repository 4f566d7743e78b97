#!/usr/bin/env bash
# Builds and pushes the images that the registry does not hold yet. CodeBuild runs it in the root of
# the project; anyone with Docker and the AWS CLI can.
#
# REGISTRY          host of the registry
# BUILDS            REPOSITORY:DOCKERFILE:ARCHITECTURE:TAG of each image, with spaces between them
# TAG               tag of every image instead of its own; empty: its own
# ONLY              repositories to build for, with spaces between them; empty: all of BUILDS
# PUBLIC_REGION     Region of Amazon ECR Public to log in to; empty: pull from it without a login
set -euo pipefail

log_in() { docker login --username AWS --password-stdin "$1"; }

is_wanted() { [[ -z ${ONLY:-} || " $ONLY " == *" $1 "* ]]; }

is_there() {
    local answer
    if answer=$(aws ecr describe-images --repository-name "$1" --image-ids "imageTag=$2" 2>&1); then
        return 0
    fi
    [[ $answer == *ImageNotFoundException* ]] && return 1
    echo "$answer" >&2
    exit 1
}

for repository in ${ONLY:-}; do
    if [[ " $BUILDS " != *" $repository:"* ]]; then
        echo "$repository: nothing is built for it; BUILDS: $BUILDS" >&2
        exit 1
    fi
done

aws ecr get-login-password | log_in "$REGISTRY"
if [[ -n ${PUBLIC_REGION:-} ]]; then
    aws ecr-public get-login-password --region "$PUBLIC_REGION" | log_in public.ecr.aws
fi

for build in $BUILDS; do
    IFS=: read -r repository dockerfile architecture own_tag <<<"$build"
    tag=${TAG:-$own_tag}
    image=$REGISTRY/$repository:$tag
    is_wanted "$repository" || continue
    if is_there "$repository" "$tag"; then
        echo "$image: already there"
        continue
    fi
    echo "$image: building images/$dockerfile"
    docker build --pull --platform "linux/$architecture" --file "images/$dockerfile/Dockerfile" \
        --tag "$image" .
    docker push "$image"
    # The next base image needs the space.
    docker system prune --all --force
done
