"""Ranks of a job's nodes in the order of the network, computed before torchrun starts.

::

    python -m ultrascale_training.ranks --index=3 --nodes=512 --host=HOST --port=29501 --run=NAME

Each pod reads the network layers of its own node from the labels of the Node, and sends them to the
first pod. The first pod sorts all pods and answers each with its rank, which this program prints.
The first pod has rank 0, since it keeps the store; the nodes in the same group of the lowest layer
come next, then other nodes of the next layer's group, and so on. So neighbors in a ring of ranks
are neighbors in the network. Within a group, pods are sorted by index.

Pods with an unknown place, because the API server does not answer or a label is missing, come last
in the order of their indexes. The cost is a connection, a line and an answer for each pod.

The program needs only the standard library, and no torch.
"""

import argparse
import asyncio
import json
import os
import random
import re
import resource
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

Place = tuple[str, ...]
"""Values of a node's network layers, the broadest first; empty if they are not known."""

LAYER_LABEL = re.compile(r"topology\.k8s\.aws/network-node-layer-(\d+)")
"""Label with a node's group in a network layer; layer 1 is the broadest.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-topology-prerequisites.html
"""

ACCOUNT = Path("/var/run/ultrascale/node-reader")
"""Folder of the token and the certificate with which a pod asks the API server."""

ULTRASERVER_LABEL = "topology.k8s.aws/ultraserver-id"
"""Label with a node's UltraServer, whose accelerators have links of their own.

Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-tasks-scheduling.html
"""

TABLE = "ultrascale: {} pods by node rank: "
"""Prefix of the line with the order in the first pod's log; `ultrascale logs --rank` reads it."""

_ASK_SECONDS, _TRIES = 10.0, 4
# Node requests a second of all pods of a job together. Each makes a new TLS connection, which costs
# an API server more than the answer from memory.
_REQUESTS_PER_SECOND = 1000
# Lookups a second of the first pod's name by all pods of a job together.
_LOOKUPS_PER_SECOND = 2000
_RETRY_SECONDS = 1.0
_PATIENCE_SECONDS = 1800.0
_TELL_SECONDS = 60.0
_FAREWELL_SECONDS = 30.0
_LONGEST_LINE = 64 * 1024
_BACKLOG = 4096
# Most runs of indexes that a line for people names.
_MOST_NAMED = 20


def main(arguments: Sequence[str]) -> int:
    """Print the rank of this pod's node, and return the exit status."""
    parser = argparse.ArgumentParser(prog="ultrascale_training.ranks", description=__doc__)
    parser.add_argument("--index", type=int, required=True, help="Index of this pod.")
    parser.add_argument("--nodes", type=int, required=True, help="Pods of the job.")
    parser.add_argument("--host", required=True, help="Host of the first pod.")
    parser.add_argument("--port", type=int, required=True, help="Port of the first pod.")
    parser.add_argument("--run", required=True, help="Name of this attempt of the job.")
    parser.add_argument(
        "--patience",
        type=float,
        default=_PATIENCE_SECONDS,
        help="Seconds to wait for the other pods.",
    )
    given = parser.parse_args(arguments)
    place = place_of_node(os.environ, nodes=given.nodes)
    try:
        if given.index == 0:
            rank = asyncio.run(
                answer_all(given.port, given.run, given.nodes, place, given.patience)
            )
        else:
            retry = max(_RETRY_SECONDS, given.nodes / _LOOKUPS_PER_SECOND)
            rank = asyncio.run(
                ask(given.host, given.port, given.run, given.index, place, given.patience, retry)
            )
    except TimeoutError as error:
        print(f"node ranks: {error}", file=sys.stderr)
        return 1
    print(rank)
    return 0


def ordered(places: Mapping[int, Place]) -> list[int]:
    """Return the indexes of pods, sorted by the rank that the pods get.

    Args:
        places: Place of the node of each pod, by the index of the pod; 0 is the first rank.
    """
    first = places[0]

    def key(index: int) -> tuple[object, ...]:
        place = places[index]
        # In each layer, the first pod's group goes before the other groups.
        ours = (*first, *[""] * len(place))
        layers_of = tuple(
            (value != known, value) for value, known in zip(place, ours, strict=False)
        )
        return (index != 0, not place, layers_of, index)

    return sorted(places, key=key)


def ranges(indexes: Sequence[int]) -> str:
    """Return ``indexes`` as text, runs of neighbors as `FIRST-LAST`, separated by commas."""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def place_of_node(environment: Mapping[str, str], *, nodes: int, account: Path = ACCOUNT) -> Place:
    """Return the place of this pod's node by the node's labels; empty if it is not known.

    Args:
        environment: Variables of the pod: the address of the API server, the name of the node.
        nodes: Number of the job's pods, which ask at the same time.
        account: Folder of the token and the certificate.
    """
    node = environment.get("ULTRASCALE_NODE")
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}") for part in ("HOST", "PORT"))
    if not node or not host or not (account / "token").exists():
        return ()
    url = f"https://{host}:{port or 443}/api/v1/nodes/{node}?resourceVersion=0"
    wrong = ""
    for attempt in range(_TRIES):
        time.sleep(random.uniform(0, nodes / _REQUESTS_PER_SECOND * (attempt + 1)))
        try:
            context = ssl.create_default_context(cafile=str(account / "ca.crt"))
            return layers(_labels(url, (account / "token").read_text(), context))
        except urllib.error.HTTPError as error:
            wrong = f"{error.code} {error.reason}"
            error.close()
            if error.code in (401, 403, 404):
                break
        except (OSError, ValueError) as error:
            wrong = str(error)
    print(f"node ranks: the labels of node {node} cannot be read: {wrong}", file=sys.stderr)
    return ()


def _labels(url: str, token: str, context: ssl.SSLContext) -> Mapping[str, str]:
    # Only metadata is requested: a Node with its images has tens of kilobytes.
    # Source: https://kubernetes.io/docs/reference/using-api/api-concepts/
    headers = {
        "Authorization": f"Bearer {token.strip()}",
        "Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    }
    request = urllib.request.Request(url, headers=headers)
    # No proxy: a proxy in the job's environment is for the internet.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    with opener.open(request, timeout=_ASK_SECONDS) as answer:
        found = json.loads(answer.read())
    labels = found.get("metadata", {}).get("labels", {})
    return {str(key): str(value) for key, value in labels.items()}


def layers(labels: Mapping[str, str]) -> Place:
    """Return the network layers among the labels of a node, the broadest first.

    An UltraServer is a group within the lowest layer.
    """
    found = {
        int(match[1]): value
        for key, value in labels.items()
        if (match := LAYER_LABEL.fullmatch(key))
    }
    server = labels.get(ULTRASERVER_LABEL)
    return (*(found[layer] for layer in sorted(found)), *([server] if found and server else []))


async def answer_all(
    port: int,
    run: str,
    nodes: int,
    place: Place,
    patience: float,
    *,
    tell_seconds: float = _TELL_SECONDS,
) -> int:
    """Send every other pod its rank, and return the rank of the first pod, 0.

    Args:
        port: TCP port to listen on.
        run: Name of this attempt of the job; pods of another attempt are rejected.
        nodes: Pods of the job.
        place: Place of the first pod's node.
        patience: Seconds to wait for all pods.
        tell_seconds: Seconds between two log lines that name the missing pods.

    Raises:
        TimeoutError: Pods have not connected in time; the message names them.
    """
    _hold_connections(nodes)
    desk = Desk(run, nodes, place)
    server = await asyncio.start_server(
        desk.meet, port=port, backlog=_BACKLOG, limit=_LONGEST_LINE, reuse_address=True
    )
    telling = asyncio.create_task(_log_missing_pods(desk, tell_seconds))
    try:
        await asyncio.wait_for(desk.all_came.wait(), patience)
        order = ordered(desk.places)
        desk.answer(order)
        # A pod whose connection breaks before its answer connects again.
        with suppress(TimeoutError):
            await asyncio.wait_for(desk.all_know.wait(), _FAREWELL_SECONDS)
    except TimeoutError:
        raise TimeoutError(
            f"{desk.missing()} have not come within {patience:.0f} seconds"
        ) from None
    finally:
        telling.cancel()
        server.close()
    print(f"{TABLE.format(nodes)}{ranges(order)}", file=sys.stderr, flush=True)
    return 0


async def _log_missing_pods(desk: "Desk", seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        if not desk.all_came.is_set():
            print(f"ultrascale: waiting for {desk.missing()}", file=sys.stderr, flush=True)


class Desk:
    """Collector of all pods' places on the first pod; it answers once all have connected."""

    def __init__(self, run: str, nodes: int, place: Place) -> None:
        self._run = run
        self._nodes = nodes
        self._ranks: dict[int, int] = {}
        self._known: set[int] = {0}
        self._ranked = asyncio.Event()
        self.places: dict[int, Place] = {0: place}
        self.all_came = asyncio.Event()
        self.all_know = asyncio.Event()

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a pod of this attempt once all pods have connected; close any other connection."""
        try:
            told = json.loads(await reader.readline())
            index, place = int(told["index"]), tuple(map(str, told["place"]))
            if told["run"] == self._run and 0 < index < self._nodes:
                await self._serve(index, place, reader, writer)
        except (ValueError, KeyError, TypeError, OSError):
            pass
        finally:
            writer.close()

    async def _serve(
        self, index: int, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if not self._ranked.is_set():
            self.places[index] = place
        if len(self.places) == self._nodes:
            self.all_came.set()
        await self._ranked.wait()
        writer.write(f"{self._ranks[index]}\n".encode())
        if await reader.readline():
            self._known.add(index)
        if len(self._known) == self._nodes:
            self.all_know.set()

    def missing(self) -> str:
        """Return the pods that have not connected, in words."""
        missing = [index for index in range(self._nodes) if index not in self.places]
        runs = ranges(missing).split(",")
        named = ",".join(runs[:_MOST_NAMED]) + (" and more" if len(runs) > _MOST_NAMED else "")
        return f"{len(missing)} of {self._nodes} pods: {named}"

    def answer(self, order: Sequence[int]) -> None:
        """Send each pod its rank according to ``order``."""
        self._ranks = {index: rank for rank, index in enumerate(order)}
        self._ranked.set()
        if self._nodes == 1:
            self.all_know.set()


async def ask(
    host: str,
    port: int,
    run: str,
    index: int,
    place: Place,
    patience: float,
    retry: float = _RETRY_SECONDS,
) -> int:
    """Return the rank of the pod with ``index``, as the first pod answers.

    Args:
        host: Host of the first pod.
        port: Its TCP port.
        run: Name of this attempt of the job.
        index: Index of this pod.
        place: Place of its node.
        patience: Seconds to wait for an answer.
        retry: Average seconds between two attempts to reach the first pod.

    Raises:
        TimeoutError: The first pod has not answered in time.
    """
    told = json.dumps({"run": run, "index": index, "place": place}).encode() + b"\n"

    async def until_answered() -> int:
        while True:
            with suppress(OSError, ValueError):
                reader, writer = await asyncio.open_connection(host, port)
                try:
                    writer.write(told)
                    # Got an empty line: the first pod belongs to another attempt, or has just
                    # ended.
                    rank = int(await reader.readline())
                    writer.write(b"known\n")
                    return rank
                finally:
                    writer.close()
            await asyncio.sleep(retry * random.uniform(0.5, 1.5))

    try:
        return await asyncio.wait_for(until_answered(), patience)
    except TimeoutError:
        raise TimeoutError(
            f"the first pod gave no rank at {host}:{port} within {patience:.0f} seconds"
        ) from None


def _hold_connections(count: int) -> None:
    """Raise this process's limit of open files, so that ``count`` pods can wait."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 64
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
