"""A command that changes a cluster changes the one of its file, whatever a kubeconfig offers."""

from pathlib import Path

import pytest

from tests.support.command_line import Ultrascale
from tests.support.fake_aws import ID
from tests.support.operate_groups import has, written
from tests.support.pools import ODCR, POOL, as_text, make_cluster, make_document
from tests.support.stub_api_http import kubeconfig
from ultrascale.cli import ask
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError, QuestionError
from ultrascale.plan import plan_cluster

ACCOUNT = "111122223333"
STATIC = POOL | {
    "role": "reserved",
    "provisioner": "karpenter",
    "purchase": ODCR,
    "nodes": {"static": 4},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(as_text(make_document(account=ACCOUNT)))
    return path


def named(folder: Path, cluster: str) -> Path:
    return kubeconfig(folder, "http://127.0.0.1:1", cluster=cluster)


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize(
    ("place", "what"),
    [
        (f"us-west-2:{ACCOUNT}:cluster/production", "is production in us-west-2; choose it"),
        (f"us-east-1:{ACCOUNT}:cluster/research", "is research in us-east-1; choose it"),
        ("us-west-2:444455556666:cluster/research", "in us-west-2 of account 444455556666"),
    ],
)
def test_another_cluster_is_refused_even_where_its_context_is_named(
    tmp_path: Path, file: Path, place: str, what: str, chosen: bool
) -> None:
    arn = f"arn:aws:eks:{place}"
    path = named(tmp_path, arn)
    with pytest.raises(ClusterError, match=what):
        ask.connected(file, path, arn if chosen else None)


@pytest.mark.parametrize("words", [("scale", "train", 3), ("roll", "train")], ids=["scale", "roll"])
@pytest.mark.parametrize("chosen", [True, False])
def test_a_command_looks_at_the_kubeconfig_and_the_context_that_it_is_given(
    ultrascale: Ultrascale, tmp_path: Path, words: tuple[str, ...], chosen: bool
) -> None:
    arn = f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/production"
    options = ["--kubeconfig", named(tmp_path, arn), *(["--context", arn] if chosen else [])]
    command, *rest = words
    answer = ultrascale(command, written(tmp_path, STATIC), *rest, *options)
    assert answer.returncode == 1
    which = f"context {arn}" if chosen else "current context"
    assert f"{which} is production in us-west-2" in answer.stderr


def test_which_cluster_it_is_is_told_or_that_nobody_knows(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask.connected(file, named(tmp_path, f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/research"), None)
    told = capsys.readouterr().err
    ask.connected(file, named(tmp_path, "kind-laptop"), None)
    assert told == f"research in us-west-2 of account {ACCOUNT}\n"
    assert "check that kind-laptop is its cluster" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["444455556666:cluster/research", f"{ID}:cluster/production"])
def test_nodes_of_one_cluster_are_not_ended_after_those_of_another_are_drained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    has(monkeypatch, {})
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", cluster=f"arn:aws:eks:us-west-2:{name}")
    plan = plan_cluster(make_cluster())
    with pytest.raises(QuestionError, match=f"not of research of {ID} in us-west-2"):
        ask.owner(plan, None, Cluster.connected(path, None))
