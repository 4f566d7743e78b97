"""Services whose image has a release of vLLM under security advisories."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.plan.jobs.test_vllm_rules import CLUSTER, service
from tests.support.cases import for_each
from tests.support.jobs import refusals
from ultrascale.catalog.advisories import Advisory, advisories, advisories_of
from ultrascale.errors import ConfigError
from ultrascale.jobs import prepare

OPENAI = "docker.io/vllm/vllm-openai"
CODE, CODE_TOO, LOAD = "CVE-2026-114053", "CVE-2026-27893", "CVE-2026-115911"


@for_each({advisory.id: (advisory,) for advisory in advisories()})
def test_an_advisory_begins_and_ends_where_it_says(advisory: Advisory) -> None:
    def are_under(version: str, *stated: str) -> bool:
        return advisory in advisories_of("vllm", version, {advisory.needs, *stated})

    first = advisory.introduced
    assert are_under(first)
    assert not are_under(f"{first}.dev0")
    assert not are_under(advisory.fixed)
    assert are_under(f"{advisory.fixed}rc1")
    assert not advisory.unless or not are_under(first, advisory.unless)
    assert not [*advisories_of("torch", first, {advisory.needs})]


# Arguments of vLLM, tag of the image, and mistakes.
RUNS_CODE: dict[str, tuple[list[str], str, list[str]]] = {
    "a release with all fixes": (["--trust-remote-code"], "v0.33.0", []),
    "code of a repository that is trusted": (
        ["--trust_remote_code"],
        "v0.30.2",
        ["image: images_are_sound"],
    ),
    "the same in a variant": (
        ["--trust-remote-code=true"],
        "v0.30.2-cu130",
        ["image: images_are_sound"],
    ),
    "code that is not asked for": ([], "v0.30.2", []),
    "code in spite of the option": ([], "v0.17.9", ["image: images_are_sound"]),
    "a release that nothing says": (["--trust-remote-code"], "nightly", []),
}


@for_each(RUNS_CODE)
def test_code_of_others_is_refused(args: list[str], tag: str, keys: list[str]) -> None:
    job = service("-tp=4", *args, image=f"{OPENAI}:{tag}")

    assert refusals(CLUSTER, job) == keys


def test_an_image_of_aws_is_known_by_a_table() -> None:
    image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/aws/deep-learning-containers/vllm"
    job = service("-tp=4", "--trust-remote-code", image=f"{image}:server-cuda-v2.4")

    assert refusals(CLUSTER, job)
    assert not refusals(CLUSTER, job | {"allow_advisories": [allowed(CODE)]})


def allowed(name: str) -> dict[str, str]:
    return {"id": name, "why": "weights of our own", "until": "2027-05-31"}


def test_an_allowance_ends_after_its_last_day(tmp_path: Path) -> None:
    (file := tmp_path / "cluster.yaml").write_text(yaml.safe_dump(CLUSTER))
    job = service("-tp=4", image=f"{OPENAI}:v0.17.9", allow_advisories=[allowed(CODE_TOO)])
    last = datetime(2027, 5, 31, 23, 59, tzinfo=UTC)

    assert prepare(file, job, now=last)
    with pytest.raises(ConfigError, match=r"allow_advisories\[0\].until: a day that is over"):
        prepare(file, job, now=last + timedelta(minutes=1))
