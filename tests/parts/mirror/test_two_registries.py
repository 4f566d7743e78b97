"""Copies between two registries by skopeo: digests, platforms and charts stay as they are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pools import make_cluster
from tests.support.registries import (
    needs_registries,
    platforms_of,
    push_chart,
    push_image,
    registry,
)
from ultrascale.parts.mirror.contents import Copy
from ultrascale.parts.mirror.copying import copy_all
from ultrascale.parts.mirror.lock import MirrorLock, lock_text, read_mirror_lock
from ultrascale.parts.mirror.session import check_copies, copy_into
from ultrascale.parts.mirror.tools import find_tool
from ultrascale.plan.cluster import assemble

pytestmark = needs_registries
BOTH = ("linux/amd64", "linux/arm64")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("registries")
    with registry(folder / "publisher") as publisher, registry(folder / "mirror") as mirror:
        yield publisher, mirror


def copy_of(publisher: str, mirror: str, name: str, *, chart: bool = False) -> Copy:
    oci = "oci://" if chart else ""
    return Copy(
        source=f"{oci}{publisher}/{name}", target=f"{oci}{mirror}/mirror/{name}", used_by=("test",)
    )


def test_an_index_and_a_chart_arrive_with_their_digests_and_platforms(
    hosts: tuple[str, str],
) -> None:
    publisher, mirror = hosts
    tool = find_tool({})
    image = push_image(publisher, "team/app", "v1", *BOTH)
    chart = push_chart(publisher, "charts/app", "1.0.0")
    copies = [
        copy_of(publisher, mirror, "team/app:v1"),
        copy_of(publisher, mirror, f"team/app@{image}"),
        copy_of(publisher, mirror, "charts/app:1.0.0", chart=True),
    ]

    outcomes = [*copy_all(copies, {}, tool)]
    digests = {each.copy.source: str(each.digest) for each in outcomes}

    assert [(each.state, each.why) for each in outcomes] == [("copied", "")] * 3
    assert list(digests.values()) == [image, image, chart]
    assert platforms_of(mirror, "mirror/team/app", "v1") == list(BOTH)
    assert [each.state for each in copy_all(copies, digests, tool)] == ["there"] * 3
    assert [each.state for each in check_copies(copies, digests, tool)] == ["there"] * 3


def test_a_tag_that_was_moved_since_is_copied_as_it_was_recorded(hosts: tuple[str, str]) -> None:
    publisher, mirror = hosts
    tool = find_tool({})
    before = push_image(publisher, "team/moving", "v1", "linux/amd64")
    after = push_image(publisher, "team/moving", "v1", "linux/amd64", content="patched")
    copy = copy_of(publisher, mirror, "team/moving:v1")

    (recorded,) = copy_all([copy], {copy.source: before}, tool)
    (renewed,) = copy_all([copy], {copy.source: before}, tool, renew=True)

    assert (recorded.state, recorded.digest) == ("copied", before)
    assert (renewed.state, renewed.digest) == ("copied", after)
    (found,) = check_copies([copy], {copy.source: before}, tool)
    assert found.state == "different"
    assert after in found.why
    assert before in found.why


def test_what_is_missing_is_told_of_each_and_stops_no_other(hosts: tuple[str, str]) -> None:
    publisher, mirror = hosts
    tool = find_tool({})
    push_image(publisher, "team/there", "v1", "linux/amd64")
    missing = copy_of(publisher, mirror, "team/absent:v1")
    there = copy_of(publisher, mirror, "team/there:v1")

    assert [each.state for each in check_copies([missing, there], {}, tool)] == ["missing"] * 2
    lost, done = copy_all([missing, there], {}, tool)

    assert (lost.state, done.state) == ("failed", "copied")
    assert "its registry has no such image" in lost.why
    (unrecorded,) = check_copies([there], {}, tool)
    assert unrecorded.state == "unrecorded"


def test_a_registry_that_does_not_answer_is_not_taken_for_one_without_the_image(
    hosts: tuple[str, str],
) -> None:
    copy = copy_of("127.0.0.1:1", hosts[1], "team/app:v2")
    tool = find_tool({})

    (outcome,) = copy_all([copy], {}, tool)
    dead = copy_of(hosts[0], "127.0.0.1:1", "team/app:v1")
    (finding,) = check_copies([dead], {}, tool)

    assert outcome.state == "failed"
    assert "cannot be asked" in outcome.why
    assert finding.state == "unknown"


def test_the_record_has_what_was_copied_and_keeps_what_others_have_copied(
    hosts: tuple[str, str], tmp_path: Path
) -> None:
    publisher, mirror = hosts
    digest = push_image(publisher, "team/recorded", "v1", "linux/amd64")
    there, absent = (
        copy_of(publisher, mirror, f"team/{name}:v1") for name in ("recorded", "nowhere")
    )
    there_in = f"{mirror}/mirror"
    plan = assemble(make_cluster(images={"mirror": there_in}))
    file, lock = tmp_path / "cluster.yaml", tmp_path / "mirror.lock"

    assert [each.state for each in copy_into(file, plan, [absent])] == ["failed"]
    assert not lock.exists()
    others = {"quay.io/other/app:1": "sha256:" + "c" * 64}
    lock.write_text(lock_text(MirrorLock(mirrors={there_in: others, "far/mirror": others})))
    assert [each.state for each in copy_into(file, plan, [absent, there])] == ["failed", "copied"]
    recorded = {there_in: {**others, there.source: digest}, "far/mirror": others}
    assert read_mirror_lock(tmp_path).mirrors == recorded
