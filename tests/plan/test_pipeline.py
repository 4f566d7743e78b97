"""A pipeline is planned from every file that it deploys, or refused before it is made."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.pipelines import (
    DEV,
    DEV_ACCOUNT,
    HOME,
    PROD,
    PROD_ACCOUNT,
    cluster,
    load_pipeline,
    pipeline,
    two_accounts,
    write,
)
from tests.support.pools import NEURON_POOL, SYSTEM_POOL
from tests.support.verdicts import verdict
from ultrascale.errors import ConfigError, Diagnostic
from ultrascale.plan import load


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(path: Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(ConfigError) as caught:
        load_pipeline(path)
    return caught.value.diagnostics


def lines(path: Path) -> tuple[str, ...]:
    return tuple(f"{each.file}: {each.keyed}" for each in refused(path))


def test_each_stage_deploys_its_file_into_its_files_account(repository: Path) -> None:
    path = two_accounts(repository)
    plan = load_pipeline(path)
    assert plan is not None
    assert [(stage.name, stage.file, stage.account) for stage in plan.stages] == [
        ("dev", DEV, DEV_ACCOUNT),
        ("prod", PROD, PROD_ACCOUNT),
    ]
    assert [stage.cluster for stage in plan.stages] == [load(Path(DEV)), load(Path(PROD))]
    assert [stage.approval for stage in plan.stages] == [False, True]
    # It lies where its connection is, and the roles that look are known before they are there.
    assert (plan.account, plan.region, plan.name) == (HOME, "us-east-2", "prod-pipeline")
    assert plan.role_arn == f"arn:aws:iam::{HOME}:role/prod-pipeline-us-east-2"
    assert plan.stages[0].gate_role_arn == f"arn:aws:iam::{DEV_ACCOUNT}:role/dev-gate-us-west-2"
    assert (plan.file, plan.branch) == (PROD, "main")
    # An absolute path within the repository is taken from its folder.
    assert load_pipeline(repository / path) == plan
    assert load_pipeline(write(repository, prod=cluster())) is None


def test_stages_of_one_wave_are_deployed_side_by_side(repository: Path) -> None:
    stages = [{"name": "dev", "cluster": DEV, "wave": "all"}, {"name": "prod", "wave": "all"}]

    plan = load_pipeline(two_accounts(repository, stages=stages))

    assert plan is not None
    assert [(wave.name, len(wave.stages)) for wave in plan.waves] == [("all", 2)]


def test_names_of_roles_fit_where_the_cluster_has_the_longest_one(repository: Path) -> None:
    longest = "c" * 40
    plan = load_pipeline(two_accounts(repository))
    assert plan is not None
    stage = plan.stages[0]

    for region in ("ap-southeast-2", "us-gov-west-1"):
        cluster = replace(stage.cluster, name=longest, region=region)
        assert len(replace(plan, cluster=longest, region=region).role) <= 64
        assert len(replace(stage, cluster=cluster).gate_role) <= 64


def test_every_stage_whose_file_is_not_there_is_named(repository: Path) -> None:
    """Whoever runs it in another folder would look for a file that is where it belongs."""
    stages = [{"name": name, "cluster": f"clusters/{name}.yaml"} for name in ("qa", "load")]

    assert lines(two_accounts(repository, stages=stages)) == tuple(
        f"{PROD}: pipeline.stages[{name}].cluster: no such file here, got 'clusters/{name}.yaml'; "
        "run this in the repository's folder, or correct the path"
        for name in ("qa", "load")
    )


DEV_STAGE: dict[str, Any] = {"name": "dev", "cluster": DEV}
WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another account": (
        DEV_STAGE | {"account": "222233334444"},
        {},
        "pipeline.stages[dev].account: stages_agree_with_their_files",
    ),
    "another Region": (
        DEV_STAGE | {"region": "us-east-1"},
        {},
        "pipeline.stages[dev].region: stages_agree_with_their_files",
    ),
    "no account": (
        DEV_STAGE,
        {"account": None},
        "pipeline.stages[dev].cluster: stages_agree_with_their_files",
    ),
    "a pipeline of its own": (
        DEV_STAGE,
        {"pipeline": pipeline({"name": "dev"})},
        "pipeline.stages[dev].cluster: stages_agree_with_their_files",
    ),
}


@pytest.mark.parametrize(("stage", "changes", "line"), WRONG.values(), ids=list(WRONG))
def test_a_stage_and_its_file_must_say_the_same(
    repository: Path, stage: dict[str, Any], changes: dict[str, Any], line: str
) -> None:
    path = two_accounts(repository, stages=[stage, {"name": "prod"}])
    write(repository, dev=cluster(**{"name": "dev", "account": DEV_ACCOUNT, **changes}))

    assert line in [verdict(each) for each in refused(path) if each.file == PROD]


def test_two_clusters_of_one_name_and_place_are_refused(repository: Path) -> None:
    path = two_accounts(
        repository, stages=[DEV_STAGE, DEV_STAGE | {"name": "b", "cluster": "b.yaml"}]
    )
    (repository / "b.yaml").write_text((repository / DEV).read_text())
    assert lines(path) == (
        f"{PROD}: pipeline.stages[b]: a cluster of the name, account and Region of stages[dev], "
        "got 'dev'; rename one of the clusters",
    )
    itself = two_accounts(repository, stages=[{"name": "prod", "cluster": PROD}])
    assert lines(itself) == (
        f"{PROD}: pipeline.stages[prod].cluster: this very file, got '{PROD}'; leave it out",
    )


def groups(number: int) -> dict[str, Any]:
    """Return a cluster of ``number`` node groups, each of which has a stack of its own."""
    group = NEURON_POOL | {"provisioner": "self-managed", "nodes": {"max": 1}}
    pools = [SYSTEM_POOL, *(group | {"name": f"group-{n}"} for n in range(number))]
    return cluster(name="dev", account=DEV_ACCOUNT) | {"pools": pools}


def test_a_cluster_of_more_stacks_than_a_stage_can_deploy_is_refused(repository: Path) -> None:
    path = two_accounts(repository)
    write(repository, dev=groups(50))

    (line,) = lines(path)

    assert re.fullmatch(
        rf"{PROD}: pipeline.stages\[dev\]: takes [6-9][0-9] actions to check and deploy, and a "
        rf"stage "
        "of CodePipeline has room for 50; take it out, and deploy it by `ultrascale deploy`",
        line,
    )


def test_a_wave_of_more_stacks_than_a_stage_can_deploy_is_refused(repository: Path) -> None:
    """The CDK would divide it, and another run could look between its parts."""
    stages = [DEV_STAGE | {"wave": "all"}, {"name": "prod", "wave": "all"}]
    path = two_accounts(repository, stages=stages)
    write(repository, dev=groups(28))

    (line,) = lines(path)

    assert line.startswith(f"{PROD}: pipeline.stages[dev]: takes 5")
    assert re.search(r"; divide the wave: dev takes 4\d, prod takes 1\d$", line)


def test_mistakes_of_every_file_are_named_at_once_in_their_places(repository: Path) -> None:
    path = two_accounts(repository, stages=[DEV_STAGE | {"region": "eu-west-1"}, {"name": "prod"}])
    write(repository, dev=cluster(name="dev", account=DEV_ACCOUNT, kubernetes={"version": "1.20"}))
    text = (repository / DEV).read_text().splitlines()
    with pytest.raises(ConfigError) as caught:
        load_pipeline(path)
    (told,) = (each for each in caught.value.diagnostics if each.file == DEV)
    assert told.key == "kubernetes.version"
    assert told.span is not None
    assert "1.20" in text[told.span.line - 1]


@pytest.mark.parametrize("name", ["../prod.yaml", "a b.yaml", "$(x).yaml"])
def test_a_path_that_the_pipeline_cannot_name_is_refused(repository: Path, name: str) -> None:
    (repository / "here").mkdir()
    path = Path("here") / name
    path.write_text((repository / two_accounts(repository)).read_text())

    (line,) = lines(path)

    assert line.endswith("name it from the repository's folder, as clusters/prod.yaml")
