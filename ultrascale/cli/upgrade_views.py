"""The plan of an upgrade of Kubernetes, from a cluster file and manifests, and its tables."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import yaml
from msgspec.structs import replace
from rich.box import SIMPLE

from ultrascale import config
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.documents import Json, look_up, read_json, sequence, text
from ultrascale.errors import UltrascaleError
from ultrascale.plan import names
from ultrascale.plan.stacks import stack_of
from ultrascale.plan.upgrade.report import Manifest, Support, UpgradePlan, plan_upgrade

_UNREAD = "manifests of your own and of charts: --also FOLDER reads them"
_LOADER = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def upgrade_of(
    file: Path, to: str, *, assembly: Path, manifests: Path, also: Sequence[Path] | None
) -> UpgradePlan:
    """Return the plan of an upgrade of the cluster of ``file``.

    Args:
        file: The cluster file as it was deployed.
        to: New minor version of Kubernetes.
        assembly: Folder that `cdk synth` wrote for the file.
        manifests: Folder of the cluster's manifests.
        also: The user's own manifests; None if they are not given.

    Raises:
        UltrascaleError: Nothing is synthesized there, or another file is; or a file is no YAML.
    """
    reading = config.read(file)
    cluster = config.check(reading)
    _refuse_another_cluster(cluster.name, file, assembly)
    found = {**_manifests_in(manifests), **_read_also(also or [])}
    upgrade = plan_upgrade(
        cluster, to, found, file=shlex.quote(str(file)), own_images=reading.own_images
    )
    if also is None:
        upgrade = replace(upgrade, unknown=(*upgrade.unknown, _UNREAD))
    return upgrade


def _refuse_another_cluster(name: str, file: Path, assembly: Path) -> None:
    """Refuse manifests beside an assembly of another cluster.

    Raises:
        UltrascaleError: The manifests are of another cluster, or nothing is synthesized there.
    """
    todo = f"run `ultrascale synth {file}`"
    if not (assembly / "manifest.json").exists():
        raise UltrascaleError(f"{assembly}: nothing is synthesized here; {todo}")
    template = assembly / f"{stack_of(name, 'network')}.template.json"
    try:
        found = read_json(template)["Description"]
    except (FileNotFoundError, KeyError):
        found = None
    except ValueError as error:
        raise UltrascaleError(f"{template}: not JSON, {error}; {todo}") from None
    if found != names.stack_description(name):
        raise UltrascaleError(f"{assembly}: synthesized from another cluster file; {todo}")


def _manifests_in(manifests: Path) -> Mapping[str, Sequence[Manifest]]:
    files = sorted(manifests.glob("*.k8s.yaml"))
    if not files:
        raise UltrascaleError(f"{manifests}: no manifests here; run `ultrascale synth FILE`")
    return {str(file): [*_documents(file)] for file in files}


def _read_also(places: Iterable[Path]) -> Mapping[str, Sequence[Manifest]]:
    """Return the manifests of files, and of all files in folders.

    Raises:
        UltrascaleError: There are no manifests, or a file is no YAML.
    """
    found: dict[str, Sequence[Manifest]] = {}
    for place in places:
        files = sorted(each for each in place.rglob("*.y*ml")) if place.is_dir() else [place]
        if not files or not files[0].is_file():
            raise UltrascaleError(f"--also: no manifests in {place}; write a file or a folder")
        found |= {str(file): [*_documents(file)] for file in files}
    return found


def _documents(file: Path) -> Iterator[Manifest]:
    """Yield the objects in a file; a list's items are yielded one by one.

    Raises:
        UltrascaleError: The file is no YAML, or holds a value that is no Kubernetes object.
    """
    try:
        documents: list[object] = [*yaml.load_all(file.read_bytes(), Loader=_LOADER)]
    except yaml.YAMLError as error:
        why = "render it first (`helm template`)" if "{{" in file.read_text() else str(error)
        raise UltrascaleError(f"{file}: not YAML; {why}") from None
    for document in documents:
        value = look_up(document)
        if isinstance(value, Mapping):
            is_list = text(value, "kind").endswith("List") and "items" in value
            for item in sequence(value, "items") if is_list else [value]:
                yield _object(item, file)


def _object(manifest: Json, file: Path) -> Manifest:
    if not isinstance(manifest, Mapping):
        wrong = f"an item of a List is no object, got {manifest!r}"
        raise UltrascaleError(f"{file}: {wrong}; correct it")
    if not isinstance(manifest.get("metadata") or {}, Mapping):
        raise UltrascaleError(f"{file}: metadata is no mapping, got {manifest['metadata']!r}")
    return manifest


def print_upgrade(upgrade: UpgradePlan) -> None:
    """Print the plan of an upgrade."""
    console = screen()
    say(f"{upgrade.cluster}: Kubernetes {upgrade.now} to {upgrade.then}")
    for each in upgrade.support:
        say(_support(each))
    changes = Table("", "now", f"with {upgrade.then}", "", box=SIMPLE)
    for version in upgrade.versions:
        then = version.then if version.state == "changes" else version.state
        changes.add_row(version.name, version.now, then, version.note)
    console.print(changes)
    pools = Table("pool", "at most", "its nodes", "how", "image", box=SIMPLE)
    for pool in upgrade.pools:
        images = " to ".join(filter(None, pool.images))
        pools.add_row(pool.pool, f"{pool.most:,}", pool.fate, pool.how, images)
    console.print(pools)
    _print_lines("not known here:", upgrade.unknown)
    if upgrade.blockers:
        _print_lines("blockers, to be gone before the upgrade:", upgrade.blockers)
        return
    say("nothing that is known stands in the way; in this order:")
    for number, step in enumerate(upgrade.steps, 1):
        say(f"  {number}. {step}")
    say(f"the way back: {upgrade.way_back}")


def _support(support: Support) -> str:
    standard, extended = support.standard_ends, support.extended_ends
    if standard is None:
        return f"{support.version}: when its standard support ends is not known here"
    if extended is None:
        return f"{support.version}: supported until {standard}, when EKS upgrades it by itself"
    return (
        f"{support.version}: in standard support until {standard}, then for "
        f"${support.extended_usd_per_hour:.2f} an hour more until {extended}, when EKS upgrades it "
        "by itself"
    )


def _print_lines(title: str, lines: Iterable[str]) -> None:
    say(title)
    for line in lines:
        say(f"  {line}")
