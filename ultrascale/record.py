"""Facts of an account, recorded in a cluster file so that synthesis needs no account."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import cast

import yaml

from ultrascale import yaml_reader
from ultrascale.account.vpcs import Route, SubnetRecord, VpcRecord
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen
from ultrascale.new_files import write_new_files
from ultrascale.yaml_writer import dump_flow

# --- The `network` section of a cluster file for an existing VPC ----------------------------------


_WAYS_OUT = {"transit-gateway": "transit-gateway", "none": "none"}
# Source: https://docs.aws.amazon.com/vpc/latest/privatelink/create-endpoint-service.html
_OF_PARTNERS = "vpce-svc-"


def network_section(vpc: VpcRecord) -> str:
    """Return the section as YAML; comments mark the decisions that a person has to make.

    The use of a subnet is a guess: subnets with a route to an internet gateway are public, all
    others are for nodes.

    Args:
        vpc: The VPC.
    """
    return "".join(f"{line}\n" for line in _lines(vpc))


def facts_of(subnet: SubnetRecord) -> dict[str, object]:
    """Return the facts of a subnet that a cluster file records, by their keys."""
    return {
        "free_addresses": subnet.free_addresses,
        "free_prefixes": subnet.free_prefixes,
        "route": subnet.route,
    }


def services_of(vpc: VpcRecord) -> list[str]:
    """Return the AWS services with a working endpoint that no stack of ours made."""
    return sorted(
        {
            each.service
            for each in vpc.endpoints
            if each.available
            and each.kind != "other"
            and not each.ours
            and not each.service.startswith(_OF_PARTNERS)
        }
    )


def cautions(
    vpc: VpcRecord, subnets: Sequence[SubnetRecord], present: Sequence[str] = ()
) -> Iterator[str]:
    """Yield a line for each fact that the account cannot see.

    Args:
        vpc: The VPC.
        subnets: The recorded subnets.
        present: Services that have an endpoint by the file.
    """
    for subnet in subnets:
        if subnet.most_free_prefixes > subnet.free_prefixes:
            yield (
                f"{subnet.id}: {subnet.free_prefixes:,} free /28 blocks are certain, and there may "
                f"be {subnet.most_free_prefixes:,}: interfaces of other accounts are not visible; "
                f"record it with credentials of account {vpc.owner} to know"
            )
    if unknown := [subnet.id for subnet in subnets if not subnet.reservations_known]:
        yield (
            f"{', '.join(unknown)}: reserved parts are not visible, and count as free: ask account "
            f"{vpc.owner} for the subnets' CIDR reservations"
        )
    if vpc.shared and not vpc.endpoints:
        yield (
            f"{vpc.id}: no endpoint is visible, and those of account {vpc.owner} may not be: ask "
            "its owner which there are, and write them into network.endpoints.present"
        )
    elif unseen := sorted({*present} - {each.service for each in vpc.endpoints}):
        yield (
            f"{vpc.id}: no endpoint of {', '.join(unseen)} is visible, and "
            "network.endpoints.present keeps them: take out those that are neither its owner's nor "
            "answered for by private hosted zones of a hub"
        )


def _lines(vpc: VpcRecord) -> Iterator[str]:
    yield "network:"
    yield "  vpc:"
    yield f"    id: {vpc.id}"
    if vpc.shared:
        yield f'    owner: "{vpc.owner}"'
    yield f"    cidrs: {dump_flow([str(cidr) for cidr in vpc.cidrs])}"
    yield "  subnets:  # decide on use: control-plane, nodes, accelerated, public"
    for subnet in vpc.subnets:
        entry = {
            "id": subnet.id,
            "zone": subnet.zone,
            "cidr": str(subnet.cidr),
            "use": ["public" if subnet.route == "internet-gateway" else "nodes"],
            **facts_of(subnet),
        }
        yield f"    - {dump_flow(entry)}"
    yield f"  egress: {_egress([subnet.route for subnet in vpc.subnets])}"
    yield "  endpoints:"
    yield "    create: none"
    yield f"    present: {dump_flow(services_of(vpc))}"


def _egress(routes: Sequence[Route]) -> str:
    """Return the route of the nodes' subnets to the internet."""
    ways = {_WAYS_OUT.get(route, "nat") for route in routes if route != "internet-gateway"}
    return ways.pop() if len(ways) == 1 else "nat  # subnets differ: decide on nat, transit-gateway"


# --- Facts of an account, recorded in a cluster file so that synthesis needs no account -----------


# --- Recorded facts in the text of a cluster file; the rest of the text stays as it is ------------


_WIDTH = 120


class Update(Frozen):
    """A cluster file with new recorded facts."""

    text: str  # Its text
    changes: tuple[str, ...]  # Differences from before, a line each
    subnets: tuple[SubnetRecord, ...]  # Subnets of the file that the account sees
    present: tuple[str, ...]  # Services that have an endpoint by the file


class _Edit(Frozen):
    """A replacement of a part of the file; places are counted in characters from its beginning."""

    start: int
    end: int
    text: str


def updated(text: str, vpc: VpcRecord, *, file: str) -> Update:
    """Return a cluster file with current free addresses and routes of subnets, and endpoints.

    Comments, order and form of everything else stay. Endpoints that the file names and the account
    does not see stay as well: a participant may not see the owner's endpoints, and a hub's
    endpoints are in another VPC.

    Args:
        text: Text of the file, in which `network.vpc` and `network.subnets` can be read.
        vpc: The VPC, as an account sees it.
        file: Name of the file, for errors.

    Raises:
        QuestionError: The file contradicts the account, with all contradictions. Or its text has a
            form in which the facts cannot be replaced.
    """
    document = cast("dict[str, object]", yaml_reader.load(text))
    _, root = yaml_reader.compose(text)
    section = document.get("network")
    if not (isinstance(section, dict) and isinstance(section.get("subnets"), list)):
        raise _unwritable(file)
    stated = cast("dict[str, object]", section)
    entries = cast("list[dict[str, object]]", stated["subnets"])
    network = _mapping_at(root, "network")
    if mistakes := [*_contradictions(stated, entries, vpc, file)]:
        raise QuestionError(mistakes)
    edits: list[_Edit] = []
    changes: list[str] = []
    seen: list[SubnetRecord] = []
    for entry, node in zip(entries, _items_at(network, "subnets"), strict=True):
        record = vpc.subnet(str(entry["id"]))
        assert record is not None
        seen.append(record)
        facts = {key: value for key, value in facts_of(record).items() if entry.get(key) != value}
        for key, value in facts.items():
            before = f", was {entry[key]}" if key in entry else ""
            changes.append(f"{record.id}: {key} {value}{before}")
        edits += _edits_of_mapping(text, node, facts)
        entry.update(facts)
    edits += _edits_of_endpoints(stated, network, vpc, changes)
    new = _edited(text, edits)
    if edits and yaml_reader.load(new) != document:
        raise _unwritable(file)
    present = tuple(_stated_endpoints(stated))
    return Update(text=new, changes=tuple(changes), subnets=tuple(seen), present=present)


def _edited(text: str, edits: Iterable[_Edit]) -> str:
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        text = f"{text[: edit.start]}{edit.text}{text[edit.end :]}"
    return text


def _stated_endpoints(stated: Mapping[str, object]) -> list[str]:
    section = cast("dict[str, object]", stated.get("endpoints") or {})
    return cast("list[str]", section.get("present") or [])


def _unwritable(file: str) -> QuestionError:
    wrong = "a form in which facts cannot be replaced"
    todo = "write each subnet out in this file, without anchors"
    return QuestionError([f"{file}: network.subnets: {wrong}; {todo}"])


def _contradictions(
    stated: Mapping[str, object],
    entries: Sequence[Mapping[str, object]],
    vpc: VpcRecord,
    file: str,
) -> Iterator[str]:
    own = cast("dict[str, object]", stated.get("vpc"))
    if own.get("id") != vpc.id:
        yield (
            f"{file}: network.vpc.id: another VPC than {vpc.id}, got {own.get('id')!r}; name the "
            "file's, or write a file of its own"
        )
        return
    for number, entry in enumerate(entries):
        at = f"{file}: network.subnets[{number}]"
        record = vpc.subnet(str(entry.get("id")))
        if record is None:
            yield (
                f"{at}.id: {vpc.id} has no such subnet that the account sees, got "
                f"{entry.get('id')!r}; take it out, or have it shared"
            )
            continue
        if entry.get("zone") not in (record.zone, record.zone_id):
            yield (
                f"{at}.zone: {record.id} lies in {record.zone} ({record.zone_id}), got "
                f"{entry.get('zone')!r}; write that"
            )
        if entry.get("cidr") != str(record.cidr):
            yield f"{at}.cidr: {record.id} is {record.cidr}, got {entry.get('cidr')!r}; write that"


def _edits_of_mapping(
    text: str, node: yaml.MappingNode, facts: Mapping[str, object]
) -> Iterator[_Edit]:
    """Yield the edits that give a mapping new values and keep its form."""
    places = {key.value: value for key, value in node.value}
    added = {key: value for key, value in facts.items() if key not in places}
    for key in facts.keys() - added.keys():
        place = places[key]
        start, end = place.start_mark.index, place.end_mark.index
        yield _Edit(start=start, end=end, text=str(facts[key]))
    if not added:
        return
    if node.flow_style:
        last = node.value[-1][1].end_mark.index
        entries = "".join(f", {key}: {value}" for key, value in added.items())
        yield _Edit(start=last, end=last, text=entries)
    else:
        # Inserted after the line of a scalar value: a comment may follow the value on its line.
        key, value = next(pair for pair in node.value if isinstance(pair[1], yaml.ScalarNode))
        line = text.find("\n", value.end_mark.index)
        place = len(text) if line < 0 else line
        indent = " " * key.start_mark.column
        entries = "".join(f"\n{indent}{key}: {value}" for key, value in added.items())
        yield _Edit(start=place, end=place, text=entries)


def _edits_of_endpoints(
    stated: dict[str, object],
    network: yaml.MappingNode,
    vpc: VpcRecord,
    changes: list[str],
) -> Iterator[_Edit]:
    """Yield the edit of the endpoints if their list changes, and note it in ``changes``."""
    section = cast("dict[str, object]", stated.get("endpoints") or {})
    before, seen = _stated_endpoints(stated), {endpoint.service for endpoint in vpc.endpoints}
    services = sorted({*services_of(vpc), *(each for each in before if each not in seen)})
    if {*before} == {*services}:
        return
    gone, new = sorted({*before} - {*services}), sorted({*services} - {*before})
    differences = [*(f"no {each}" for each in gone), *new]
    if "present" not in section:
        line = f"write `present: {dump_flow(services)}` into network.endpoints"
        changes.append(f"endpoints: {line}")
        return
    changes.append(f"endpoints.present: {', '.join(differences)}")
    section["present"] = [*services]
    node = _value_at(_mapping_at(network, "endpoints"), "present")
    assert isinstance(node, yaml.SequenceNode)
    column = node.start_mark.column
    if node.flow_style:
        joined = textwrap.fill(", ".join(services), max(_WIDTH - column - 2, 40))
        written = f"[{joined}]".replace("\n", f"\n{' ' * (column + 1)}")
        yield _Edit(start=node.start_mark.index, end=node.end_mark.index, text=written)
    else:
        written = f"\n{' ' * column}".join(f"- {service}" for service in services)
        end = node.value[-1].end_mark.index
        yield _Edit(start=node.start_mark.index, end=end, text=written)


def _value_at(node: yaml.MappingNode, key: str) -> yaml.Node:
    return next(value for name, value in node.value if name.value == key)


def _mapping_at(node: yaml.Node | None, key: str) -> yaml.MappingNode:
    assert isinstance(node, yaml.MappingNode)
    value = _value_at(node, key)
    assert isinstance(value, yaml.MappingNode)
    return value


def _items_at(node: yaml.MappingNode, key: str) -> Sequence[yaml.MappingNode]:
    value = _value_at(node, key)
    assert isinstance(value, yaml.SequenceNode)
    return [item for item in value.value if isinstance(item, yaml.MappingNode)]


# --- Answers of the account and values of nodes, as rows of `facts` ------------------------------


def record_facts(file: Path, rows: Sequence[Mapping[str, object]], seen: date) -> Sequence[str]:
    """Write ``rows`` among the facts of a cluster file, and return what is new, a line each.

    A row replaces the row of its subject, and a comment within that one. Comments, order and form
    of everything else stay.

    Args:
        file: The cluster file.
        rows: Rows as the file has them, without the day.
        seen: Day of the answers.

    Raises:
        QuestionError: The file's facts have a form in which rows cannot be replaced.
    """
    text = file.read_text("utf-8-sig")
    document = cast("dict[str, object]", yaml_reader.load(text))
    old = cast("list[dict[str, object]]", document.get("facts") or [])
    places = {_subject(row): number for number, row in enumerate(old)}
    lines = {_subject(row): dump_flow({**row, "seen": seen}) for row in rows}
    new = {key: cast("dict[str, object]", yaml_reader.load(line)) for key, line in lines.items()}
    changed = {key: lines[key] for key in new if key not in places or old[places[key]] != new[key]}
    if not changed:
        return ()
    _, root = yaml_reader.compose(text)
    assert isinstance(root, yaml.MappingNode)
    result = _edited(text, _edits_of_facts(text, root, changed, places))
    rest = [row for key, row in new.items() if key not in places]
    try:
        wanted = {**document, "facts": [*(new.get(_subject(row), row) for row in old), *rest]}
        is_sound = yaml_reader.load(result) == wanted
    except yaml_reader.YamlError:
        is_sound = False
    if not is_sound:
        wrong = "a form in which rows cannot be replaced"
        raise QuestionError([f"{file}: facts: {wrong}; write each row as `- {{…}}` on its line"])
    write_new_files(file.absolute().parent, {}, replaced={file.name: result.encode()})
    return tuple(changed.values())


_Subject = tuple[object, ...]


def _subject(row: Mapping[str, object]) -> _Subject:
    return row.get("fact"), row.get("of"), row.get("kubernetes")


def _edits_of_facts(
    text: str,
    root: yaml.MappingNode,
    rows: Mapping[_Subject, str],
    places: Mapping[_Subject, int],
) -> Iterator[_Edit]:
    new = [row for key, row in rows.items() if key not in places]
    list_ = next((value for key, value in root.value if key.value == "facts"), None)
    if list_ is None:
        lines = "".join(f"\n  - {row}" for row in new)
        ending = "" if text.endswith("\n") else "\n"
        yield _Edit(start=len(text), end=len(text), text=f"{ending}\nfacts:{lines}\n")
        return
    items: list[yaml.Node] = list_.value if isinstance(list_, yaml.SequenceNode) else []
    for key in rows.keys() & places.keys():
        item = items[places[key]]
        # A block ends where the next token begins, after comments.
        yield _Edit(start=item.start_mark.index, end=_end(item), text=rows[key])
    if not items:
        start, end = list_.start_mark.index, list_.end_mark.index
        yield _Edit(start=start, end=end, text=f"[{', '.join(new)}]")
        return
    place, before = _end(items[-1]), ", "
    if not list_.flow_style:
        line = text.find("\n", place)
        place = len(text) if line < 0 else line
        before = f"\n{' ' * list_.start_mark.column}- "
    yield _Edit(start=place, end=place, text="".join(f"{before}{row}" for row in new))


def _end(node: yaml.Node) -> int:
    """Return the place behind the last part of a node that is no comment."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end(node.value[-1])
    return node.end_mark.index


__all__ = ["Update", "cautions", "network_section", "record_facts", "updated"]
