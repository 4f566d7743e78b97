#!/usr/bin/env bash
# Builds and pushes the images that the registry does not hold yet. CodeBuild runs it in the root of
# the project; anyone with Docker and the AWS CLI can.
#
# REGISTRY          host of the registry
# BUILDS            REPOSITORY:DOCKERFILE:ARCHITECTURE:TAG of each image, with spaces between them;
#                   DOCKERFILE is a folder of images, or ./FOLDER: a folder of own, all by itself
# TAG               tag of every image instead of its own; empty: its own
# ONLY              repositories to build for, with spaces between them; empty: all of BUILDS
# PUBLIC_REGISTRY   host of Amazon ECR Public, to log in to; empty: pull from it without a login
# PUBLIC_REGION     Region that gives the login
# DOCKERFILES       folder that holds a folder for each Dockerfile; empty: images
# MIRROR            host of the registry in Amazon ECR that base images come from; empty: none
# MIRROR_REGION     its Region
# PIP_INDEX         URL of the index that Python packages come from; empty: pip's own
# CODEARTIFACT_*    DOMAIN, OWNER and REGION of AWS CodeArtifact, where that index is one of its
#                   repositories; empty: the index asks for no credentials
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

# The file is a secret of the build: no layer and no command line holds what is in it.
settings=$(mktemp -d)
trap 'rm -rf "$settings"' EXIT
secrets=()
if [[ -n ${PIP_INDEX:-} ]]; then
    index=$PIP_INDEX
    if [[ -n ${CODEARTIFACT_DOMAIN:-} ]]; then
        token=$(aws codeartifact get-authorization-token --domain "$CODEARTIFACT_DOMAIN" \
            --domain-owner "$CODEARTIFACT_OWNER" --region "$CODEARTIFACT_REGION" \
            --query authorizationToken --output text)
        index=https://aws:$token@${index#https://}
    fi
    (umask 077 && printf '[global]\nindex-url = %s\n' "$index" >"$settings/pip.conf")
    secrets=(--secret "id=pip.conf,src=$settings/pip.conf")
fi

aws ecr get-login-password | log_in "$REGISTRY"
if [[ -n ${MIRROR:-} && $MIRROR != "$REGISTRY" ]]; then
    aws ecr get-login-password --region "$MIRROR_REGION" | log_in "$MIRROR"
fi
if [[ -n ${PUBLIC_REGISTRY:-} ]]; then
    aws ecr-public get-login-password --region "$PUBLIC_REGION" | log_in "$PUBLIC_REGISTRY"
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
    context=. folder=${DOCKERFILES:-images}/$dockerfile
    # A folder of the user's own is all that its build gets.
    if [[ $dockerfile == ./* ]]; then
        context=own/${dockerfile#./} folder=own/${dockerfile#./}
    fi
    echo "$image: building $folder"
    docker build --pull --platform "linux/$architecture" ${secrets[@]+"${secrets[@]}"} \
        --file "$folder/Dockerfile" --tag "$image" "$context"
    docker push "$image"
    # The next base image needs the space.
    docker system prune --all --force
done
