"""Mistakes in `images.builds`: an image in the wrong repository is one that no job finds."""

from typing import Any

import pytest

from tests.support.pools import make_cluster
from tests.support.verdicts import verdict
from ultrascale.errors import ConfigError, Diagnostic


def mistakes(**images: Any) -> tuple[Diagnostic, ...]:
    with pytest.raises(ConfigError) as caught:
        make_cluster(images=images)
    return caught.value.diagnostics


def test_a_build_without_a_repository_is_answered_with_the_nearest() -> None:
    (found,) = mistakes(repositories=["bert-pretrain"], builds={"bert-pretain": "neuron"})

    assert verdict(found) == "images.builds.bert-pretain: builds_have_a_repository"
    assert found.fix == "did you mean bert-pretrain?"


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("neurn", "did you mean neuron?"),
        (
            "jax",
            "write neuron, nvidia, posttrain, cpu, tensorboard, backend, none, "
            "or ./FOLDER of your own",
        ),
        ("../mine", "write ./FOLDER, of letters, digits, '.', '_' and '-'"),
        ("/mine", "write ./FOLDER, of letters, digits, '.', '_' and '-'"),
        ("./a/../b", "write ./FOLDER, of letters, digits, '.', '_' and '-'"),
        ("./", "write ./FOLDER, of letters, digits, '.', '_' and '-'"),
    ],
)
def test_a_dockerfile_that_is_not_there_is_answered_with_those_that_are(
    written: str, answer: str
) -> None:
    (found,) = mistakes(repositories=["bert"], builds={"bert": written})

    assert verdict(found) == "images.builds.bert: form"
    assert found.fix == answer


def test_every_wrong_dockerfile_is_named_at_once() -> None:
    found = mistakes(repositories=["bert", "llama"], builds={"bert": "gpu", "llama": "jax"})

    assert [each.key for each in found] == ["images.builds.bert", "images.builds.llama"]


@pytest.mark.parametrize(
    "url",
    [
        "https://corp-444455556666.d.codeartifact.us-east-1.amazonaws.com/pypi/mirror/",
        "https://corp.d.codeartifact.us-east-1.amazonaws.com/pypi/mirror/simple/",
    ],
)
def test_a_url_of_code_artifact_says_whose_repository_it_is(url: str) -> None:
    (found,) = mistakes(packages={"pip": url})

    assert verdict(found) == "images.packages.pip: code_artifact_is_whole"
    assert found.fix.endswith("/pypi/NAME/simple/")
