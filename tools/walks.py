"""Stays of a training job, a service and a pool on their way: `python tools/walks.py`.

Each is planned and rendered for real, under `sys.setprofile`. A **stay** is a module of the product
that is entered from another one by a call which has the thing among its arguments, ``self``
included: the job as `Job`, `JobRequest` or `JobPlan`; the pool as `PoolPlan`, `NodeClassPlan` or
`NodePoolPlan`, and in the last row as the `Pool` of the cluster file as well. Classes that inherit
from these count; tuples of things do not, so that a function which takes every pool is no stay of
one. A module counts once, however often it is entered. Left out are the command line, the tables
of facts, and the thing as ``self`` of a special method: to make it is no stay.

Jobs go the way of `ultrascale submit --dry-run`, from the file to the manifest. Pools go the way of
`plan`, from the types of the cluster file to the objects of their NodePools.
"""

import argparse
import contextlib
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parent.parent
_PACKAGES = frozenset(
    {"ultrascale", "ultrascale_constructs", "ultrascale_k8s", "ultrascale_stacks"}
)
_LEFT_OUT = ("ultrascale.cli", "ultrascale.catalog", "ultrascale.facts")
_JOB = frozenset({"Job", "JobRequest", "JobPlan"})
_POOL = frozenset({"PoolPlan", "NodeClassPlan", "NodePoolPlan"})


@dataclass(frozen=True, slots=True)
class Walk:
    """A run, and the names of the classes of the thing on its way."""

    subject: str
    wanted: str
    things: frozenset[str]
    run: Callable[[], object]


def submit(file: str, job: str) -> None:
    """Print the manifest of a job, as `ultrascale submit --dry-run` does.

    Raises:
        SystemExit: The command failed.
    """
    from ultrascale.cli import main

    options = ["--dry-run", "--account", "111122223333"]
    sys.argv = ["ultrascale", "submit", str(ROOT / "clusters" / file), job, *options]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def render_pools(file: str) -> None:
    """Plan a cluster file that is read already, and render its node classes and NodePools."""
    from ultrascale import config, plan
    from ultrascale_k8s import node_pool_objects

    profile = sys.getprofile()
    sys.setprofile(None)
    cluster = config.load(ROOT / "clusters" / file)
    sys.setprofile(profile)
    planned = plan.assemble(cluster)
    for node_class in planned.nodes.classes:
        node_pools = [
            pool for pool in planned.nodes.node_pools if pool.node_class == node_class.name
        ]
        node_pool_objects(node_class, node_pools)


WALKS = (
    Walk("training job", "20", _JOB, lambda: submit("llm-kueue.yaml", "pretrain")),
    Walk("service", "20", _JOB, lambda: submit("serving.yaml", "chat")),
    Walk("pool", "7", _POOL, lambda: render_pools("auto-mode.yaml")),
    Walk("pool, its section too", "", _POOL | {"Pool"}, lambda: render_pools("auto-mode.yaml")),
)


def stays(walk: Walk) -> Mapping[str, str]:
    """Return the function by which ``walk`` first entered each module.

    Raises:
        SystemExit: A class of the thing appeared nowhere: it has another name now.
    """
    entered: dict[str, str] = {}
    seen: set[str] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        module = _module(frame)
        if event != "call" or module.split(".")[0] not in _PACKAGES:
            return
        names = walk.things.intersection(_classes(frame))
        seen.update(names)
        left_out = f"{module}.".startswith(tuple(f"{name}." for name in _LEFT_OUT))
        if names and not left_out and module != _caller(frame):
            entered.setdefault(module, frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            walk.run()
    finally:
        sys.setprofile(None)
    if missing := walk.things - seen:
        raise SystemExit(f"no call takes a {', '.join(sorted(missing))}: name its class of today")
    return entered


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _caller(frame: FrameType) -> str:
    caller = frame.f_back
    while caller is not None and _module(caller).split(".")[0] not in _PACKAGES:
        caller = caller.f_back
    return "" if caller is None else _module(caller)


def _classes(frame: FrameType) -> Iterator[str]:
    """Yield the class names of a call's arguments, with those that they inherit from.

    ``self`` of a special method is left out.
    """
    code = frame.f_code
    first = 1 if code.co_name.startswith("__") else 0
    for name in code.co_varnames[first : code.co_argcount + code.co_kwonlyargcount]:
        for kind in type(frame.f_locals.get(name)).__mro__:
            yield kind.__name__


def main() -> None:
    """Print the stays of each walk, and with ``--files`` their modules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="list the modules of each way")
    arguments = parser.parse_args()
    for walk in WALKS:
        entered = stays(walk)
        print(f"{walk.subject:24}{len(entered):4}  wanted at most {walk.wanted or '-'}")
        if arguments.files:
            for module, function in sorted(entered.items()):
                print(f"    {module}: {function}")


if __name__ == "__main__":
    main()
