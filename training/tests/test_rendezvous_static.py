"""Static rendezvous of a rendered job: each of many agents gets the rank of its pod."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support import forked
from tests.support.etcd_server import free_ports
from tests.support.job_containers import expanded
from tests.support.jobs import VOLCANO, container, large_cluster, prepared

pytestmark = pytest.mark.training

NODES, PROCESSES, SECONDS = 512, 8, 60


def options(script: str, nodes: int, variables: Mapping[str, str]) -> list[list[str]]:
    """Return torchrun's options in each pod of a job, as bash reads them in its command."""
    (words,) = re.findall(r"^exec torchrun (.+?) \\\n  train\.py", script, re.MULTILINE | re.DOTALL)
    # Texts of addresses sort unlike the indexes.
    loop = (
        f"for ((index = 0; index < {nodes}; index++)); do\n"
        'POD_IP="127.0.$((index % 256)).$((255 - index / 256))"\n'
        f"printf '%s\\n' {words}; echo\ndone"
    )
    printed = subprocess.run(
        ["bash", "-euc", loop], env={**variables}, capture_output=True, check=True, text=True
    )
    return [each.splitlines() for each in printed.stdout.split("\n\n") if each]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Answers that torch's agents of 512 pods got, in the order of the pods."""
    (port,) = free_ports(1)
    by_index = VOLCANO | {"rendezvous": {"ranks": "index"}}
    cluster = large_cluster(scheduling=by_index)
    job = prepared(cluster, nodes=NODES, processes_per_node=PROCESSES)
    script = expanded(container(job)["command"][2], {}).replace("29500", str(port))
    given = {"POD_GROUP": "tune-0b1c", "ATTEMPT": "3", "main": "127.0.0.1"}
    nodes = options(script, NODES, given)
    assert len(nodes) == NODES
    folder = tmp_path_factory.mktemp("agents")
    (folder / "nodes.json").write_text(json.dumps(nodes))
    program = forked.start(
        "tests.support.joining_agents",
        ["--told", str(folder)],
        environment={**os.environ, "TORCH_CPP_LOG_LEVEL": "ERROR"},
        output=folder / "log",
    )
    assert program.wait(timeout=3 * SECONDS) == 0, (folder / "log").read_text()[-3000:]
    found = {each["address"]: each for each in json.loads((folder / "told.json").read_text())}
    addresses = [word for words in nodes for word in words if word.startswith("--local-addr=")]
    return [found[word.partition("=")[2]] for word in addresses]


def test_each_of_512_agents_gets_the_rank_of_its_pod(told: list[dict[str, Any]]) -> None:
    """With c10d the text of addresses gives the order, and 256 of them never meet."""
    assert [each["node_rank"] for each in told] == [*range(NODES)]
    assert [rank for each in told for rank in each["ranks"]] == [*range(NODES * PROCESSES)]
    assert {each["world"] for each in told} == {NODES * PROCESSES}
    assert {each["main"] for each in told} == {"127.0.0.1"}


def test_512_agents_know_their_ranks_within_a_minute(told: list[dict[str, Any]]) -> None:
    assert max(each["seconds"] for each in told) < SECONDS
