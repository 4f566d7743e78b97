"""Changes every key of the cluster file, one at a time, and holds the guard to what follows.

`python -m tests.support.guard_sweep` takes every change, in minutes on two cores; with ``--sample``
those of one class of eight, and with names of keys those of these keys alone. Each change is
compared in both directions: what is added goes the other way round. Two things end it with status
1: a verdict that `guard-opinions.yaml` does not expect, or expects in vain; and a protected
resource that goes without the guard's refusal, by a second, simple search for what is replaced.
"""

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from functools import cache
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from tests.support.create_only_schemas import (
    PAGES,
    REGION,
    TABLE,
    known_types,
    schema_row,
    text,
    unknown_types,
)
from ultrascale.node import use_node

use_node()

from tests.support.assembly import Assembly, synthesize  # noqa: E402
from tests.support.guard_changes import (  # noqa: E402
    REVERSE,
    KeyChange,
    Kind,
    files,
    key_changes,
)
from tests.support.guard_opinions import mistakes, surprises  # noqa: E402
from tests.support.pools import as_text, loads_own  # noqa: E402
from ultrascale.catalog.provisioners import HYPERPOD, NODE_POOLS  # noqa: E402
from ultrascale.errors import ConfigError  # noqa: E402
from ultrascale.guard import Change, Changes, compare  # noqa: E402
from ultrascale.plan import ClusterPlan, plan_cluster  # noqa: E402

PROTECTED = frozenset(
    {
        "AWS::EC2::Subnet",
        "AWS::EC2::VPC",
        "AWS::ECR::Repository",
        "AWS::EKS::Cluster",
        "AWS::FSx::FileSystem",
        "AWS::KMS::Key",
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        "AWS::S3::Bucket",
        "AWS::SageMaker::Cluster",
    }
)
GROUPS = frozenset({"AWS::EKS::Nodegroup", "AWS::AutoScaling::AutoScalingGroup"})
WRITE = "python -m tests.support.create_only_schemas"
# Its scripts are made anew with every deployment.
_SCRIPTS = "HyperPodLifecycle"
_SAMPLE = 8

_NODE_POOL = re.compile(r'"kind\\":\\"NodePool\\",\\"metadata\\":{\\"name\\":\\"([a-z0-9-]+)')

Resource = tuple[str, str]
Templates = Mapping[str, Any]
# Findings, and the verdicts by kind of change
Look = tuple[list[str], Mapping[Kind, list[str]]]


def planned(document: Mapping[str, Any]) -> ClusterPlan | None:
    """Return the plan of a cluster file; None where it is refused."""
    try:
        return plan_cluster(loads_own(as_text(dict(document))))
    except ConfigError:
        return None


def made(document: Mapping[str, Any]) -> Assembly:
    """Return what a cluster file becomes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.yaml"
        file.write_text(as_text(dict(document)))
        # Warnings of hundreds of syntheses would hide what is found.
        with redirect_stderr(StringIO()):
            return synthesize(file, Path(folder), validated=False)


def whole(assembly: Assembly) -> Templates:
    """Return the templates by the whole names of their stacks."""
    prefix = assembly.plan.name
    return {f"{prefix}-{layer}": each for layer, each in assembly.templates.items()}


def unnoticed(old: Assembly, new: Assembly, changes: Changes | None = None) -> Iterator[str]:
    """Yield what goes, or changes, without a word of the guard, which are ``changes``."""
    before, after = whole(old), whole(new)
    changes = changes or compare(before, after, region=old.plan.region)
    told = {(each.stack, each.logical_id): each for each in changes.resources}
    for key in _replaced(before, after):
        kind = _body(before, key)["Type"]
        if _is_protected(before, key, kind) and not (key in told and told[key].protected):
            yield f"{'/'.join(key)}: {kind} is replaced"
    there = set(_standing(after))
    for key in _standing(before):
        if key[0] in after and key not in there:
            yield from _unnoticed_loss(before, key, told.get(key))
    for key in _changed(before, after):
        if key not in told:
            yield f"{'/'.join(key)}: changes"
    yield from _unnoticed_nodes(old, new, changes)
    yield from _unnoticed_ends(old.plan, new.plan, changes)


def _unnoticed_ends(old: ClusterPlan, new: ClusterPlan, changes: Changes) -> Iterator[str]:
    """Yield reserved pools that get fewer nodes, or their nodes for a shorter time."""
    refused = {each.pool for each in changes.pools if each.protected}
    later = {pool.name: pool for pool in new.all_pools}
    for pool in old.all_pools:
        other = later.get(pool.name)
        if other is None or other.provisioner != pool.provisioner or old.name != new.name:
            continue
        sized = pool.static or pool.provisioner not in NODE_POOLS
        reserved = "reserved" in {pool.capacity_type, pool.role}
        if sized and reserved and other.max_nodes < pool.max_nodes and pool.name not in refused:
            yield f"pool {pool.name}: has fewer nodes"
        ends = [each.window.usable_until for each in (pool, other) if each.window is not None]
        # A training plan ends by itself: no calendar of ours empties its nodes.
        sized = sized and pool.provisioner != HYPERPOD
        if sized and len(ends) > 1 and ends[1] < ends[0] and pool.name not in refused:
            yield f"pool {pool.name}: ends earlier"


def _unnoticed_nodes(old: Assembly, new: Assembly, changes: Changes) -> Iterator[str]:
    before, after = whole(old), whole(new)
    stacks = {each.stack for each in changes.pools}
    for stack in _rolled_groups(before, after):
        if stack not in stacks:
            yield f"{stack}: its nodes roll"
    if old.plan.name == new.plan.name:
        rolled = {each.pool for each in changes.pools}
        for name in _pool_names(old) & _pool_names(new):
            if _nodes_of(old, name) != _nodes_of(new, name) and name not in rolled:
                yield f"NodePool {name}: its nodes drift"
    told_pools = {each.name for each in changes.resources if each.type.endswith("::NodePool")}
    kept = set(_node_pools(after, after))
    for name in _node_pools(before, after):
        if name not in kept | told_pools:
            yield f"NodePool {name}: leaves"


def _rolled_groups(before: Templates, after: Templates) -> Iterator[str]:
    """Yield stacks whose node group has other nodes, or whose launch template has."""
    there = set(_standing(before))
    paths = {
        "AWS::EKS::Nodegroup": ("Version", "ReleaseVersion"),
        "AWS::EC2::LaunchTemplate": ("LaunchTemplateData",),
    }
    for key in _standing(after):
        for path in paths.get(_body(after, key)["Type"], ()) if key in there else ():
            if _at(before, key, path) != _at(after, key, path):
                yield key[0]


def _pool_names(assembly: Assembly) -> set[str]:
    return {each["metadata"]["name"] for each in assembly.documents if each["kind"] == "NodePool"}


def _nodes_of(assembly: Assembly, name: str) -> object:
    """Return what the nodes of a NodePool are made of."""
    template = assembly.find("NodePool", name)["spec"]["template"]
    reference = template["spec"]["nodeClassRef"]
    return template, assembly.find(reference["kind"], reference["name"])["spec"]


def _unnoticed_loss(before: Templates, key: Resource, told: Change | None) -> Iterator[str]:
    body = _body(before, key)
    retained = body.get("DeletionPolicy", "").startswith("Retain")
    if told is None or told.action != ("kept" if retained else "deleted"):
        yield f"{'/'.join(key)}: {body['Type']} leaves its stack"
    elif _is_protected(before, key, body["Type"]) and not (retained or told.protected):
        yield f"{'/'.join(key)}: {body['Type']} is deleted"


def _node_pools(templates: Templates, standing: Templates) -> Iterator[str]:
    """Yield the NodePools that the stacks of ``templates`` which are ``standing`` apply."""
    for stack, template in templates.items():
        if stack in standing:
            yield from _NODE_POOL.findall(json.dumps(template))


def _is_protected(templates: Templates, key: Resource, kind: str) -> bool:
    if kind in GROUPS:
        guards = [
            each["Properties"]["Guarded"]
            for each in templates[key[0]]["Resources"].values()
            if each["Type"] == "Custom::NodeGroupGuard"
        ]
        return guards == ["true"]
    return kind in PROTECTED and not key[1].startswith(_SCRIPTS)


def _standing(templates: Templates) -> Iterator[Resource]:
    for stack, template in templates.items():
        yield from ((stack, logical_id) for logical_id in template.get("Resources", {}))


def _body(templates: Templates, key: Resource) -> Mapping[str, Any]:
    return templates[key[0]]["Resources"][key[1]]


def _changed(before: Templates, after: Templates) -> Iterator[Resource]:
    there = set(_standing(before))
    for key in _standing(after):
        if key in there:
            old, new = (
                json.dumps(_flat(side, key[0], _body(side, key).get("Properties")), sort_keys=True)
                for side in (before, after)
            )
            if old != new:
                yield key


def _replaced(before: Templates, after: Templates) -> set[Resource]:
    """Return what is replaced, by text: a create-only property differs, or names what is."""
    there = set(_standing(before))
    watched = {
        key: [
            (_at(before, key, path), _at(after, key, path))
            for path in _create_only(_body(after, key)["Type"])
        ]
        for key in _standing(after)
        if key in there
    }
    found = {key for key, pairs in watched.items() if any(old != new for old, new in pairs)}
    while True:
        marks = [f'"{stack}/{logical_id}"' for stack, logical_id in found]
        more = {
            key
            for key, pairs in watched.items()
            if key not in found and any(mark in new for _, new in pairs for mark in marks)
        }
        if not more:
            return found
        found |= more


@cache
def _create_only(kind: str) -> tuple[str, ...]:
    return tuple(schema_row(kind)["create_only"].split()) if kind.startswith("AWS::") else ()


def _at(templates: Templates, key: Resource, path: str) -> str:
    value: Any = _body(templates, key).get("Properties", {})
    for part in path.split("/"):
        value = cast("dict[str, Any]", value).get(part) if isinstance(value, dict) else None
    return json.dumps(_flat(templates, key[0], value), sort_keys=True)


def _flat(templates: Templates, stack: str, value: object) -> object:
    """Return a value in which imports are what they stand for, and references name their stack."""
    if isinstance(value, list):
        return [_flat(templates, stack, each) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    items = cast("dict[str, Any]", value)
    if set(items) == {"Fn::ImportValue"}:
        found = _exports(templates, items["Fn::ImportValue"])
        return items if found is None else _flat(templates, *found)
    if set(items) == {"Ref"}:
        return {"Ref": f"{stack}/{items['Ref']}"}
    if set(items) == {"Fn::GetAtt"}:
        return {"Fn::GetAtt": [f"{stack}/{items['Fn::GetAtt'][0]}", items["Fn::GetAtt"][1]]}
    return {key: _flat(templates, stack, each) for key, each in items.items()}


def _exports(templates: Templates, name: str) -> tuple[str, object] | None:
    stack = name.partition(":")[0]
    for output in templates.get(stack, {}).get("Outputs", {}).values():
        if output.get("Export", {}).get("Name") == name:
            return stack, output["Value"]
    return None


def _table() -> Iterator[str]:
    """Yield what is wrong with the table itself."""
    if TABLE.read_text() != text(known_types()):
        yield f"{TABLE.name} is not what {PAGES.name} and cfn-lint say: `{WRITE}` writes it"


@cache
def _base(name: str) -> Assembly:
    return made(files()[name])


def _of_itself(name: str) -> list[str]:
    """Return what the guard cannot read of an unchanged file."""
    templates = whole(_base(name))
    unread = compare(templates, templates, region=REGION).unread
    return [
        *(f"{name}: {each} cannot be read" for each in unread),
        *(
            f"{each} is not in {TABLE.name}"
            for each in unknown_types(_base(name).templates.values())
        ),
    ]


def _of_change(change: KeyChange) -> Look:
    """Return what passes unnoticed by a change and its reverse, and the verdicts on both."""
    try:
        base, other = _base(change.file), made(change.candidates[0])
    except RuntimeError as error:
        # jsii's word for whatever fails in the CDK: `check` took the file.
        return [f"{change.told}: {change.kind}: cannot be synthesized: {error}"], {}
    lines: list[str] = []
    verdicts: dict[Kind, list[str]] = {}
    directions: list[tuple[Kind, Assembly, Assembly]] = [
        (change.kind, base, other),
        (REVERSE[change.kind], other, base),
    ]
    for kind, old, new in directions:
        found = compare(whole(old), whole(new), region=old.plan.region)
        lines += [f"{change.told}: {kind}: {line}" for line in unnoticed(old, new, found)]
        verdicts[kind] = sorted(found.verdicts.union(verdicts.get(kind, [])))
    return lines, verdicts


def _of_file(name: str, changes: Sequence[KeyChange]) -> list[Look]:
    """Return what is found of an unchanged file, which is synthesized once, and of its changes."""
    return [(_of_itself(name), {}), *map(_of_change, changes)]


def _changes(every: int, keys: Sequence[str]) -> Iterator[KeyChange]:
    plans = {name: planned(document) for name, document in files().items()}

    def accepted(file: str, document: Mapping[str, Any]) -> bool:
        plan = planned(document)
        return plan is not None and plan != plans[file]

    return key_changes(accepted, every=every, keys=keys)


def _findings(every: int, keys: Sequence[str], counts: Counter[str]) -> Iterator[str]:
    reached: dict[tuple[str, Kind], dict[str, str]] = {}
    by_file: dict[str, list[KeyChange]] = {} if keys else {name: [] for name in files()}
    # jsii's process is no child's to share.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        # One process has all changes of a file, the file with the most of them first.
        for change in _changes(every, keys):
            by_file.setdefault(change.file, []).append(change)
        order = sorted(by_file, key=lambda name: -len(by_file[name]))
        looks = {name: pool.submit(_of_file, name, by_file[name]) for name in order}
        counts["changes, both ways"] = sum(map(len, by_file.values()))
        yield from (*_table(), *mistakes())
        for name, changes in by_file.items():
            itself, *others = looks[name].result()
            yield from itself[0]
            for change, (lines, verdicts) in zip(changes, others, strict=True):
                yield from lines
                if "--write" in sys.argv:
                    print(json.dumps([change.key, change.told, verdicts]), flush=True)
                for kind, found in verdicts.items():
                    known = reached.setdefault((change.key, kind), {})
                    known.update({each: change.told for each in found if each not in known})
    yield from surprises(reached, whole=every == 1 and not keys)


def main(every: int, keys: Sequence[str] = ()) -> int:
    """Sweep one of ``every`` classes of changes, print findings, and return the exit status.

    Args:
        every: How many classes of changes one is taken of.
        keys: Keys whose changes are taken; none: all.
    """
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    found = 0
    for found, line in enumerate(_findings(every, keys, counts), start=1):  # noqa: B007 the last counts
        print(line, flush=True)
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    print(f"{told}; {found} unnoticed; {time.monotonic() - begun:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    options = sys.argv[1:]
    wanted = [option for option in options if not option.startswith("--")]
    sys.exit(main(_SAMPLE if "--sample" in options else 1, wanted))
