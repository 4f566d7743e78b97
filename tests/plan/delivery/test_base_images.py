"""Base images from the mirror: one that is left out is pulled from the internet by each build."""

from pathlib import Path

import pytest

from tests.support.pools import make_cluster
from ultrascale.own_images import NO_IMAGES, OwnImages, read_own_image
from ultrascale.parts.mirror.plan import MirrorCopies
from ultrascale.plan.cluster import assemble
from ultrascale.plan.delivery.base_images import base_images, with_copied_bases
from ultrascale.plan.model import ImageBuilderPlan, published

MIRROR = "111122223333.dkr.ecr.us-west-2.amazonaws.com/mirror"
PYTHON = "public.ecr.aws/docker/library/python:3.12.13-slim-trixie"
DIGEST = "sha256:" + "a" * 64
IMAGES = {"repositories": ["llm"], "builds": {"llm": "nvidia"}}


def the_mirror(digests: dict[str, str] | None = None) -> MirrorCopies:
    suffix = ".dkr.ecr.us-west-2.amazonaws.com"
    return MirrorCopies(
        location=MIRROR, regional=suffix, digests=digests or {}, key="images.mirror"
    )


def builder(own_images: OwnImages = NO_IMAGES, **images: object) -> ImageBuilderPlan:
    cluster = make_cluster(images={**IMAGES, **images})
    found = assemble(cluster, own_images).images.builder
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("dockerfile", "image"),
    [
        (f"FROM {PYTHON} AS wheel\nFROM wheel", PYTHON),
        ("FROM --platform=$BUILDPLATFORM busybox:1", "busybox:1"),
        ("from nvcr.io/nvidia/pytorch:25.06-py3", "nvcr.io/nvidia/pytorch:25.06-py3"),
        ("COPY --link --from=quay.io/a/b:1 /x /x", "quay.io/a/b:1"),
        ("RUN --mount=type=bind,from=quay.io/a/b:1,target=/b true", "quay.io/a/b:1"),
        ("ARG BASE=quay.io/a/b:1\nFROM ${BASE} AS c", "quay.io/a/b:1"),
        ("# syntax=docker/dockerfile:1.9\nFROM scratch", "docker/dockerfile:1.9"),
    ],
)
def test_each_image_that_a_dockerfile_takes_comes_from_the_mirror(
    dockerfile: str, image: str
) -> None:
    mirror = the_mirror({PYTHON: DIGEST})
    copied = with_copied_bases(dockerfile, mirror)

    assert base_images(dockerfile) == (image,)
    assert copied == dockerfile.replace(image, mirror.reference(image))
    # Another synthesis finds nothing to change.
    assert with_copied_bases(copied, mirror) == copied


@pytest.mark.parametrize(
    ("dockerfile", "image", "line"),
    [
        ("ARG TAG=2.9\nFROM quay.io/a/b:${TAG}\nARG TAG", "quay.io/a/b:2.9", 1),
        ("ARG V=3.12\nFROM python:$V-slim AS c\nFROM c", "python:3.12-slim", 1),
        ("ARG R='quay.io'\nARG T=1\nFROM ${R}/a/b:$T", "quay.io/a/b:1", 2),
        ("FROM quay.io/a/b:${T:-1}", "quay.io/a/b:1", 0),
    ],
)
def test_a_base_that_arguments_make_is_named_whole(dockerfile: str, image: str, line: int) -> None:
    """An argument that is a tag stays a tag: as an image it would make no reference."""
    mirror = the_mirror({published(image): DIGEST})
    copied = with_copied_bases(dockerfile, mirror).splitlines()
    before = dockerfile.splitlines()

    assert base_images(dockerfile) == (image,)
    assert copied[line].split()[1] == mirror.reference(image)
    assert [*copied[:line], *copied[line + 1 :]] == [*before[:line], *before[line + 1 :]]


@pytest.mark.parametrize(
    "line",
    [
        "FROM scratch",
        "FROM a AS b\nFROM b",
        "COPY --from=0 /a /a",
        "ARG VERSION=1.2\nFROM scratch",
        "FROM $BASE",
        "FROM a AS b-arm64\nFROM b-${TARGETARCH}",
    ],
)
def test_stages_and_variables_are_no_images_of_the_mirror(line: str) -> None:
    assert set(base_images(line)) <= {"a"}
    assert with_copied_bases(line, the_mirror()).count(MIRROR) == line.count("FROM a ")


def test_a_build_names_its_bases_in_the_mirror_alone() -> None:
    plan = builder(mirror=MIRROR)
    (path,) = plan.texts
    assert path == f"{plan.dockerfiles}/nvidia/Dockerfile"
    bases = base_images(plan.texts[path])
    assert [image.partition("/")[0] for image in bases] == [MIRROR.partition("/")[0]] * 2
    assert "images/nvidia/Dockerfile" not in plan.sources
    login = plan.login
    assert login is not None
    assert (login.account, login.region) == ("111122223333", "us-west-2")
    assert (login.prefix, plan.public_region) == ("mirror", None)


def test_a_dockerfile_of_the_users_own_takes_its_bases_from_the_mirror_too(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM nvcr.io/nvidia/pytorch:25.06-py3\n")
    mine = {"./mine": read_own_image(tmp_path)}

    plan = builder(mine, mirror=MIRROR, builds={"llm": "./mine"})

    assert plan.texts == {
        "own/mine/Dockerfile": f"FROM {MIRROR}/nvcr.io/nvidia/pytorch:25.06-py3\n"
    }
    assert not plan.texts.keys() & plan.sources.keys()


def test_images_keep_their_tags_where_a_mirror_is_named() -> None:
    """The backend computes them again from the files that its own image holds."""
    plain, copied = (
        assemble(make_cluster(images={**IMAGES, **more})) for more in ({}, {"mirror": MIRROR})
    )

    assert plain.images.builds == copied.images.builds


def test_without_a_mirror_the_build_has_the_files_of_its_images_as_they_are() -> None:
    plan = builder()

    assert (plan.dockerfiles, plan.texts, plan.login, plan.pip) == ("images", {}, None, None)
    assert {"images/nvidia/Dockerfile", "images/build.sh"} <= plan.sources.keys()
    assert not [path for path in plan.sources if path.startswith(("ultrascale/", "images/cpu"))]


def test_a_repository_of_code_artifact_is_known_by_its_url() -> None:
    url = "https://my-corp-444455556666.d.codeartifact.us-east-1.amazonaws.com/pypi/all/simple/"
    pip = builder(packages={"pip": url}).pip
    assert pip is not None
    known = pip.repository
    assert known is not None
    assert (known.domain, known.owner) == ("my-corp", "444455556666")
    assert (known.region, known.name) == ("us-east-1", "all")
    # Any other index is read without credentials.
    other = builder(packages={"pip": "https://packages.example.com/simple"}).pip
    assert other is not None
    assert other.repository is None
