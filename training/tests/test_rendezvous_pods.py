"""Eight pods of a rendered job: from the labels of their nodes to the processes that train."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.etcd_server import free_ports
from tests.support.folders import ROOT
from tests.support.forked_torchrun import forked_torchrun
from tests.support.job_containers import Image, moved, running
from tests.support.jobs import container, job_cluster, make_job, prepared
from tests.support.node_labels import Nodes, node_reader, variables
from ultrascale.jobs.logs import read_table

pytestmark = pytest.mark.training

NODES = 8
LAYER = "topology.k8s.aws/network-node-layer-"
WORKER = "tests.support.gathering_worker"
# As the image's, but for the folder of the token.
PYTHON = """#!{python}
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, {training!r})
from ultrascale_training import ranks

if sys.argv[1] == "-m":
    ranks.place_of_node = partial(ranks.place_of_node, account=Path({account!r}))
    sys.exit(ranks.main(sys.argv[3:]))
"""


@pytest.fixture
def image(tmp_path: Path) -> Image:
    found = Image(tmp_path)
    python = tmp_path / "python3"
    names = {"python": sys.executable, "training": str(ROOT / "training"), "account": str(tmp_path)}
    python.write_text(PYTHON.format(**names))
    python.chmod(0o755)
    return found


def test_eight_torchruns_train_with_the_ranks_of_their_places_in_the_network(
    tmp_path: Path, image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {
        f"node-{index}": {f"{LAYER}1": "a", f"{LAYER}2": f"b{index % 2}", f"{LAYER}3": f"c{index}"}
        for index in range(NODES)
    }
    # This one says nothing, and comes last.
    labels["node-2"] = {}
    monkeypatch.setattr(Nodes, "labels", labels)
    met = tmp_path / "met"
    (port,) = free_ports(1)
    train = {**job_cluster()["pools"][1], "nodes": {"static": NODES}}
    job = make_job(nodes=NODES, script=WORKER, args=[str(met)], processes_per_node=1)
    command = container(prepared(job_cluster(train), job))["command"]
    command = moved(command, "tune-worker-0.tune", 29500, port)
    given = {"POD_GROUP": "tune-0b1c", "ATTEMPT": "0", "FIRST_INDEX": "0", "OMP_NUM_THREADS": "1"}

    with node_reader(tmp_path), forked_torchrun(tmp_path), ExitStack() as stack:
        pods: list[subprocess.Popen[str]] = []
        # The first pod comes last.
        for index in reversed(range(NODES)):
            node = f"node-{index}"
            # Texts of addresses sort unlike the indexes.
            own = {"NODE": node, "VC_TASK_INDEX": str(index), "POD_IP": f"127.0.0.{9 - index}"}
            of_pod = {**given, **own, **variables(tmp_path, node)}
            pods.append(stack.enter_context(running(command, image, of_pod)))
        said = [pod.communicate(timeout=120)[0] for pod in pods]
        ends = [pod.returncode for pod in pods]

    log = tmp_path / "log-torchrun"
    assert ends == [0] * NODES, log.read_text()[-3000:] if log.exists() else said
    by_rank = [0, 4, 6, 1, 3, 5, 7, 2]
    assert json.loads(met.read_text()) == [f"node-{index}" for index in by_rank]
    # The logs of the others say nothing.
    assert [*read_table("".join(said).rstrip())] == by_rank
