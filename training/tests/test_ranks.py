"""Ranks of nodes in the order of the network, as the pods of a job compute them."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.etcd_server import free_ports
from tests.support.folders import ROOT
from tests.support.node_labels import Nodes, node_reader, variables
from tests.support.ranking_pods import others_ask, places
from ultrascale.plan import names
from ultrascale_training import ranks

CODE = str(ROOT / "training")
LAYER = "topology.k8s.aws/network-node-layer-"


def program(index: int, port: int, *more: str, nodes: int = 3, run: str = "tune-0") -> list[str]:
    options = [f"--index={index}", f"--nodes={nodes}", f"--port={port}", f"--run={run}"]
    module = [sys.executable, "-m", "ultrascale_training.ranks"]
    return [*module, "--host=127.0.0.1", *options, *more]


def test_neighbours_in_rank_are_neighbours_in_the_network() -> None:
    places = {
        0: ("a", "x", "4"),
        1: ("a", "y", "1"),
        2: ("b", "z", "2"),
        3: ("a", "x", "1"),
        4: ("a", "x", "4"),
        5: ("b", "z", "2"),
        6: ("a", "y", "1"),
    }

    # First the group of the pod that keeps the store, then what is next to it.
    assert ranks.ordered(places) == [0, 4, 3, 1, 6, 2, 5]


def test_an_ultraserver_is_a_group_within_the_lowest_layer() -> None:
    server = "topology.k8s.aws/ultraserver-id"

    assert ranks.layers({f"{LAYER}1": "a", f"{LAYER}2": "b", server: "us-1"}) == ("a", "b", "us-1")
    assert ranks.layers({server: "us-1"}) == ()


def test_pods_whose_place_nobody_knows_come_last_in_the_order_of_their_indexes() -> None:
    places = {0: ("a",), 1: (), 2: ("b",), 3: (), 4: ("a",)}

    assert ranks.ordered(places) == [0, 4, 2, 1, 3]
    assert ranks.ordered({index: () for index in range(5)}) == [0, 1, 2, 3, 4]


PLACES = st.lists(st.sampled_from("abc"), min_size=3, max_size=3).map(tuple)


@given(places=st.lists(PLACES, min_size=1, max_size=40))
def test_each_group_of_each_layer_has_ranks_in_a_row_and_the_first_pod_rank_0(
    places: list[tuple[str, ...]],
) -> None:
    order = ranks.ordered(dict(enumerate(places)))

    assert sorted(order) == [*range(len(places))]
    assert order[0] == 0
    for layer in (1, 2, 3):
        groups = [places[index][:layer] for index in order]
        changes = sum(left != right for left, right in pairwise(groups))
        assert changes == len(set(groups)) - 1


@given(order=st.permutations(range(30)))
def test_the_table_in_the_log_can_be_read_back(order: list[int]) -> None:
    read: list[int] = []
    for part in ranks.ranges(order).split(","):
        first, _, last = part.partition("-")
        read += range(int(first), int(last or first) + 1)

    assert read == order


def test_every_pod_of_512_learns_its_rank() -> None:
    (port,) = free_ports(1)
    found = places(512)
    order = ranks.ordered(found)

    async def meet() -> tuple[int, list[int]]:
        first = ranks.answer_all(port, "run", 512, found[0], 120)
        return await asyncio.gather(first, others_ask(port, found))

    first, others = asyncio.run(meet())

    assert [order[rank] for rank in (first, *others)] == [*range(512)]


def test_a_pod_of_another_try_is_sent_away_and_the_others_meet() -> None:
    (port,) = free_ports(1)

    async def meet() -> tuple[Sequence[int], str]:
        stranger = asyncio.create_task(ranks.ask("127.0.0.1", port, "tune-9", 1, (), 1, 0.1))
        told = await asyncio.gather(
            ranks.answer_all(port, "tune-0", 2, ("a",), 120),
            ranks.ask("127.0.0.1", port, "tune-0", 1, ("b",), 120),
        )
        try:
            await stranger
        except TimeoutError as error:
            return told, str(error)
        return told, ""

    told, said = asyncio.run(meet())

    assert [*told] == [0, 1]
    assert said == f"the first pod gave no rank at 127.0.0.1:{port} within 1 seconds"


def test_who_is_waited_for_is_named_while_the_others_meet(
    capfd: pytest.CaptureFixture[str],
) -> None:
    (port,) = free_ports(1)

    async def meet() -> str:
        first = asyncio.create_task(ranks.answer_all(port, "tune-0", 5, (), 60, tell_seconds=0.05))
        one = asyncio.create_task(ranks.ask("127.0.0.1", port, "tune-0", 2, (), 60, 0.1))
        told = ""
        while "1,3-4" not in told:
            await asyncio.sleep(0.05)
            told += capfd.readouterr().err
        first.cancel()
        one.cancel()
        return told

    told = asyncio.run(asyncio.wait_for(meet(), 60))

    assert told.splitlines()[-1] == "ultrascale: waiting for 3 of 5 pods: 1,3-4"


def test_a_job_whose_pods_do_not_come_ends_with_their_names() -> None:
    missing = "1000 of 2001 pods: " + ",".join(map(str, range(1, 41, 2))) + " and more"
    (port,) = free_ports(1)
    desk = ranks.Desk("tune-0", 2001, ())
    desk.places.update({index: () for index in range(2, 2001, 2)})

    with pytest.raises(TimeoutError, match=r"^4 of 5 pods: 1-4 have not come within 0 seconds$"):
        asyncio.run(ranks.answer_all(port, "tune-0", 5, (), 0))
    assert desk.missing() == missing


def test_a_pod_whose_connection_breaks_before_its_answer_asks_again() -> None:
    (port,) = free_ports(1)

    async def meet() -> list[int]:
        first = asyncio.create_task(ranks.answer_all(port, "tune-0", 3, (), 60))
        while True:
            try:
                _, breaking = await asyncio.open_connection("127.0.0.1", port)
                break
            except OSError:
                await asyncio.sleep(0.05)
        breaking.write(b'{"run": "tune-0", "index": 1, "place": []}\n')
        await breaking.drain()
        breaking.transport.abort()
        # The first pod now has all places, and still answers whoever lacks a rank.
        other = await ranks.ask("127.0.0.1", port, "tune-0", 2, (), 60)
        again = await ranks.ask("127.0.0.1", port, "tune-0", 1, (), 60)
        return [await first, again, other]

    assert asyncio.run(asyncio.wait_for(meet(), 60)) == [0, 1, 2]


def test_each_pod_prints_its_rank_alone_and_the_first_one_the_order() -> None:
    (port,) = free_ports(1)
    with ThreadPoolExecutor() as pool:
        done = [
            pool.submit(
                subprocess.run,
                program(index, port),
                env={"PYTHONPATH": CODE},
                capture_output=True,
                check=True,
                text=True,
            )
            for index in range(3)
        ]

    assert [each.result().stdout for each in done] == ["0\n", "1\n", "2\n"]
    assert done[0].result().stderr == "ultrascale: 3 pods by node rank: 0-2\n"


def test_the_commands_of_jobs_and_the_program_call_its_table_alike() -> None:
    assert names.RANKS_TABLE == ranks.TABLE


# --- labels of the node -------------------------------------------------------------------------


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Path]:
    with node_reader(tmp_path) as folder:
        yield folder


def test_a_pod_reads_the_layers_of_its_node_and_nothing_else(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {f"{LAYER}2": "nn-b", f"{LAYER}1": "nn-a", f"{LAYER}3": "nn-c", "zone": "a"}
    monkeypatch.setattr(Nodes, "labels", {"ip-10-0-0-1": labels})
    monkeypatch.setattr(Nodes, "asked", [])
    # Nobody listens there: the API server is asked itself.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")

    place = ranks.place_of_node(variables(account, "ip-10-0-0-1"), nodes=1, account=account)

    assert place == ("nn-a", "nn-b", "nn-c")
    (asked,) = Nodes.asked
    # From the cache of the API server, without the list of images.
    assert asked["path"] == "/api/v1/nodes/ip-10-0-0-1?resourceVersion=0"
    assert asked["Authorization"] == "Bearer secret"
    assert "PartialObjectMetadata" in asked["Accept"]


def test_a_pod_that_may_not_read_its_node_goes_on_without(
    account: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Nodes, "asked", [])

    assert ranks.place_of_node(variables(account, "gone"), nodes=1, account=account) == ()
    # Asking again would not help.
    assert len(Nodes.asked) == 1
    assert "the labels of node gone cannot be read: 403 Forbidden" in capsys.readouterr().err


def test_an_api_server_that_does_not_answer_delays_a_job_by_little(
    account: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        given = {**variables(account, "n"), "KUBERNETES_SERVICE_PORT": str(closed.getsockname()[1])}

        assert ranks.place_of_node(given, nodes=1, account=account) == ()
    assert "Connection refused" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["ULTRASCALE_NODE", "KUBERNETES_SERVICE_HOST"])
def test_a_pod_without_the_means_asks_nobody(account: Path, missing: str) -> None:
    given = variables(account, "n")
    del given[missing]

    assert ranks.place_of_node(given, nodes=1, account=account) == ()


def test_it_needs_no_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError")

    done = subprocess.run(
        [sys.executable, "-c", "import ultrascale_training.ranks"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{CODE}"},
        check=False,
    )

    assert done.returncode == 0
