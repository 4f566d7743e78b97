"""`ultrascale upgrade-plan`: what another minor of Kubernetes takes, with no account."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

import typer
import yaml
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from ultrascale import config
from ultrascale.errors import UltrascaleError
from ultrascale.plan import names
from ultrascale.plan.upgrade import Manifest, UpgradePlan, plan_upgrade

BLOCKED = 3
"""Exit status where something has to be done before the upgrade."""

_WIDTH = 160
_LOADER = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def upgrade_plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file, as deployed.")],
    to: Annotated[str, typer.Option(metavar="VERSION", help="The Kubernetes minor, as 1.36.")],
    assembly: Annotated[Path, typer.Option(help="Folder that `cdk synth` wrote.")] = Path(
        "cdk.out"
    ),
    manifests: Annotated[Path, typer.Option(help="Folder of the manifests.")] = Path("dist"),
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Say what an upgrade of Kubernetes takes: blockers, versions, and which nodes go.

    Asks nobody. Ends with status 3 where something has to be done first.
    """
    cluster = config.load(file)
    _refuse_another_cluster(cluster.name, file, assembly)
    upgrade = plan_upgrade(cluster, to, _read(manifests))
    if as_json:
        typer.echo(json.dumps(asdict(upgrade), indent=2, ensure_ascii=False, default=str))
    else:
        _print(upgrade, file)
    if upgrade.blockers:
        raise typer.Exit(BLOCKED)


def _refuse_another_cluster(name: str, file: Path, assembly: Path) -> None:
    """Refuse manifests beside an assembly of another cluster file.

    Raises:
        UltrascaleError: They are, or nothing is synthesized there.
    """
    todo = f"run `make synth CLUSTER={file}`"
    if not (assembly / "manifest.json").exists():
        raise UltrascaleError(f"{assembly}: nothing is synthesized here; {todo}")
    try:
        template = (assembly / f"{names.stack(name, 'network')}.template.json").read_text()
    except FileNotFoundError:
        template = "{}"
    if json.loads(template).get("Description") != names.stack_description(name):
        raise UltrascaleError(f"{assembly}: synthesized from another cluster file; {todo}")


def _read(manifests: Path) -> Mapping[str, Sequence[Manifest]]:
    files = sorted(manifests.glob("*.k8s.yaml"))
    if not files:
        raise UltrascaleError(f"{manifests}: no manifests here; run `make synth`")
    return {str(each): [*_documents(each)] for each in files}


def _documents(file: Path) -> Iterator[Manifest]:
    for document in yaml.load_all(file.read_bytes(), Loader=_LOADER):
        if isinstance(document, Mapping):
            yield cast("Manifest", document)


def _print(upgrade: UpgradePlan, file: Path) -> None:
    console = Console(width=max(Console().width, _WIDTH), highlight=False, markup=False)
    console.print(f"{upgrade.cluster}: Kubernetes {upgrade.now} to {upgrade.then}")
    for line in _support(upgrade):
        console.print(line)
    changes = Table("", "now", f"with {upgrade.then}", "", box=SIMPLE)
    for each in upgrade.versions:
        then = each.then if each.state == "changes" else each.state
        changes.add_row(each.name, each.now, then, each.note)
    console.print(changes)
    pools = Table("pool", "its nodes", "how", "image", box=SIMPLE)
    for pool in upgrade.pools:
        pools.add_row(pool.pool, pool.fate, pool.how, " to ".join(filter(None, pool.images)))
    console.print(pools)
    _print_steps(console, upgrade, file)


def _support(upgrade: UpgradePlan) -> Iterator[str]:
    for version, ends in upgrade.support_ends.items():
        if ends is None:
            yield f"{version}: when its standard support ends is not known here"
        else:
            after = (
                "EKS upgrades the cluster by itself"
                if upgrade.upgraded_by_eks
                else ("extended support is paid for by the hour")
            )
            yield f"{version}: in standard support to {ends}; after that {after}"


def _print_steps(console: Console, upgrade: UpgradePlan, file: Path) -> None:
    if upgrade.blockers:
        console.print("blockers, to be gone before the upgrade:")
        for line in upgrade.blockers:
            console.print(f"  {line}", soft_wrap=True)
        return
    console.print("nothing stands in the way; in this order:")
    steps = [f'write `version: "{upgrade.then}"` under `kubernetes` in {file}']
    steps += [
        f"between its jobs: ultrascale scale {file} {pool.pool} 0"
        for pool in upgrade.pools
        if pool.fate == "empty first"
    ]
    steps += ["deploy: the control plane is upgraded first, then add-ons, then the pools"]
    steps += [
        f"ultrascale roll {file} {pool.pool} --batch 1"
        for pool in upgrade.pools
        if pool.rolled_by_hand
    ]
    for number, step in enumerate(steps, 1):
        console.print(f"  {number}. {step}", soft_wrap=True)
