"""Pods by the thousand that learn the ranks of their nodes from the first one.

Measure by hand: ``python -m tests.support.ranking_pods 512 16000``
"""

import asyncio
import resource
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from random import Random

from tests.support.etcd_server import free_ports
from ultrascale_training import ranks

SECONDS = 600


def places(pods: int) -> Mapping[int, ranks.Place]:
    """Return groups of three layers for ``pods``, drawn by lot."""
    chance = Random(0)
    groups = (4, max(1, pods // 40), max(1, pods // 8))
    return {
        index: tuple(f"nn-{chance.randrange(each):017x}" for each in groups)
        for index in range(pods)
    }


async def others_ask(port: int, found: Mapping[int, ranks.Place]) -> list[int]:
    """Return the ranks of all pods but the first, which each asks for."""
    retry = max(1.0, len(found) / 2000)
    asked = (
        ranks.ask("127.0.0.1", port, "run", index, found[index], SECONDS, retry)
        for index in range(1, len(found))
    )
    return await asyncio.gather(*asked)


def _first(port: int, pods: int) -> int:
    return asyncio.run(ranks.answer_all(port, "run", pods, places(pods)[0], SECONDS))


def main(pods: int) -> None:
    (port,) = free_ports(1)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    found = places(pods)
    began = time.monotonic()
    with ProcessPoolExecutor(1) as pool:
        first = pool.submit(_first, port, pods)
        told = asyncio.run(others_ask(port, found))
        order = ranks.ordered(found)
        assert [order[rank] for rank in (first.result(), *told)] == [*range(pods)]
    print(f"{pods} pods know their ranks after {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    for number in map(int, sys.argv[1:]):
        main(number)
