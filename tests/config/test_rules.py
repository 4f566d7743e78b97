"""The registry of rules, which finds their arguments by type."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.pools import NEURON_POOL, SYSTEM_POOL, as_text, make_cluster, make_document
from ultrascale import config
from ultrascale.config._base import Model, Section
from ultrascale.config._document import parse_yaml
from ultrascale.config._parts import places_of
from ultrascale.config._reading import read_document

Mistakes = Iterator[config.Mistake]
MISSPELT = SYSTEM_POOL | {"rolle": "system"}


def found(rule: Any, document: dict[str, Any]) -> list[str]:
    """Return the places of the mistakes that ``rule`` finds in ``document``."""
    reading = read_document(parse_yaml(as_text(document), source=""))
    mistakes = reading.judge(config.Rules(rule))
    return [".".join(str(key) for key in mistake.at) for mistake in mistakes]


def each_pool(pool: config.Pool) -> Mistakes:
    yield config.refuse("name", pool.name)


def all_pools(pools: config.Every[config.Pool]) -> Mistakes:
    yield config.refuse("pools", str(len(pools)))


def readable_pools(pools: config.Readable[config.Pool]) -> Mistakes:
    yield from (config.Mistake(placed.at, placed.item.name) for placed in pools.placed)


def karpenter_or_none(pool: config.Pool, karpenter: config.Karpenter | None) -> Mistakes:
    if karpenter is None:
        yield config.refuse("", pool.name)


def karpenter_alone(pool: config.Pool, karpenter: config.Karpenter) -> Mistakes:
    yield config.refuse("", pool.name + karpenter.version)


def claim_in_lustre(
    claim: config.Claim, file_system: config.Lustre, storage: config.Storage
) -> Mistakes:
    assert storage.lustre == (file_system,)
    yield config.refuse("name", claim.name)


def name_of_pool(job: config.Job, names: config.Names[config.Pool]) -> Mistakes:
    if job.pool not in names:
        yield config.refuse("pool", str(job.pool))


class TestRegistration:
    """A rule whose arguments nothing finds would never run, and nobody would notice."""

    def test_a_type_that_no_part_of_the_file_is_raises(self) -> None:
        def strange(pool: config.Pool, zones: tuple[str, ...]) -> Mistakes:
            yield config.refuse("zones", pool.name + str(zones))

        with pytest.raises(TypeError, match=r"rule strange takes zones: tuple\[str, \.\.\.\]"):
            config.Rules(strange)

    def test_an_item_that_the_judged_one_is_not_in_raises(self) -> None:
        def astray(pool: config.Pool, queue: config.Queue) -> Mistakes:
            yield config.refuse("name", pool.name + queue.name)

        with pytest.raises(TypeError, match=r"rule astray takes queue: .*Queue"):
            config.Rules(astray)

    def test_a_first_parameter_that_is_no_part_raises(self) -> None:
        def aimless(name: str) -> Mistakes:
            yield config.refuse("name", name)

        with pytest.raises(TypeError, match="rule aimless takes name"):
            config.Rules(aimless)

    def test_an_item_of_a_list_is_never_none(self) -> None:
        def doubtful(job: config.Job, pool: config.Pool | None) -> Mistakes:
            yield config.refuse("", f"{job.pool}{pool}")

        with pytest.raises(TypeError, match="rule doubtful takes pool"):
            config.Rules(doubtful)

    def test_a_parameter_without_a_type_raises(self) -> None:
        def bare(pool: config.Pool) -> Mistakes:
            yield config.refuse("name", pool.name)

        del bare.__annotations__["pool"]
        with pytest.raises(TypeError, match="rule bare leaves a parameter without a type"):
            config.Rules(bare)

    def test_a_section_stands_in_the_file_once(self) -> None:
        sections = {
            kind: places
            for kind, places in places_of(config.Cluster).items()
            if issubclass(kind, Section) and kind is not Section
        }

        assert config.TaskGovernance in sections
        assert all(len(places) == 1 and None not in places[0] for places in sections.values())

    def test_what_stands_in_no_list_is_a_section(self) -> None:
        alone = {
            kind
            for kind, places in places_of(config.Cluster).items()
            if len(places) == 1 and None not in places[0] and kind is not Model
        }

        assert {kind.__name__ for kind in alone if not issubclass(kind, Section)} == {"PodBlocks"}


class TestArguments:
    """A rule runs where all that it takes can be read."""

    def test_each_readable_item_is_judged_in_its_place(self) -> None:
        document = make_document(pools=[SYSTEM_POOL, NEURON_POOL])

        assert found(each_pool, document) == ["pools.0.name", "pools.1.name"]
        assert found(readable_pools, document) == ["pools.0", "pools.1"]

    def test_an_item_with_a_mistake_of_form_is_judged_as_far_as_it_can_be_read(self) -> None:
        document = make_document(pools=[MISSPELT, NEURON_POOL])

        assert sorted(found(each_pool, document)) == ["pools.0.name", "pools.1.name"]
        assert found(readable_pools, document) == ["pools.1"]

    @pytest.mark.parametrize("pools", [[MISSPELT, NEURON_POOL], {"system": {}}, None])
    def test_a_rule_of_every_item_waits_for_the_last(self, pools: object) -> None:
        assert found(all_pools, make_document(pools=[SYSTEM_POOL])) == ["pools"]
        assert found(all_pools, make_document(pools=pools)) == []

    def test_a_section_is_none_where_the_file_leaves_it_out_and_nowhere_else(self) -> None:
        unreadable = make_document(pools=[NEURON_POOL], karpenter={"version": 1})
        stated = make_document(pools=[NEURON_POOL], karpenter={"version": "1.15.2"})
        left_out = make_document(pools=[NEURON_POOL])
        left_out_elsewhere_broken = make_document(pools=[NEURON_POOL], regin="x")

        for document in (left_out, left_out_elsewhere_broken):
            assert found(karpenter_or_none, document) == ["pools.0"]
            assert found(karpenter_alone, document) == []
        for document in (unreadable, stated):
            assert found(karpenter_or_none, document) == []
        assert found(karpenter_alone, stated) == ["pools.0"]
        assert found(karpenter_alone, unreadable) == []

    def test_an_item_is_judged_with_all_that_it_is_in(self) -> None:
        claim = {"namespace": "training", "name": "data", "mount_path": "/data"}
        lustre = {
            "name": "scratch",
            "zone": "us-west-2b",
            "capacity_gib": 1200,
            "throughput_mbps_per_tib": 250,
            "claim": claim,
        }

        document = make_document(storage={"lustre": [lustre]})
        assert found(claim_in_lustre, document) == ["storage.lustre.0.claim.name"]
        document = make_document(storage={"lustre": [lustre | {"zone": 1}]})
        assert found(claim_in_lustre, document) == []

    def test_a_name_is_known_although_its_item_cannot_be_read(self) -> None:
        jobs = {"tune": {"pool": "system"}, "lost": {"pool": "other"}}

        document = make_document(pools=[MISSPELT, NEURON_POOL], jobs=jobs)

        assert found(name_of_pool, document) == ["jobs.lost.pool"]

    def test_a_default_is_judged_like_a_section_that_the_file_states(self) -> None:
        def defaults(kubernetes: config.Kubernetes) -> Mistakes:
            yield config.refuse("version", kubernetes.version)

        for document in (make_document(kubernetes=None), make_document(kubernetes=None, regin=1)):
            assert found(defaults, document) == ["kubernetes.version"]


def test_a_cluster_says_which_keys_its_file_states() -> None:
    cluster = make_cluster(pools=[SYSTEM_POOL])

    assert "zones" not in cluster.pools[0].model_fields_set
    assert "role" not in cluster.pools[0].model_fields_set
    assert cluster.kubernetes.model_fields_set == {"admins"}
