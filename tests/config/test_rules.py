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
from ultrascale.parts.hyperpod.section import TaskGovernance

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
            for kind, places in places_of(config.cluster_type()).items()
            if issubclass(kind, Section) and kind is not Section
        }

        assert TaskGovernance in sections
        assert all(len(places) == 1 and None not in places[0] for places in sections.values())

    def test_what_stands_in_no_list_is_a_section(self) -> None:
        alone = {
            kind
            for kind, places in places_of(config.cluster_type()).items()
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


class Plan:
    """A file once it is planned."""


class Size(int):
    """A fact that follows from a plan."""


class TestFacts:
    """Values that rules take beside parts of a file, and the facts that they rest on."""

    def test_a_rule_gives_its_name_and_severity_to_its_mistakes(self) -> None:
        rules = config.Rules()

        @rules(severity="warning")
        def pool_is_odd(pool: config.Pool) -> Mistakes:
            yield config.refuse("name", "odd")

        reading = read_document(parse_yaml(as_text(make_document(pools=[SYSTEM_POOL])), source=""))

        (mistake,) = rules.judge(reading.parts, severity="warning")
        assert (mistake.code, mistake.severity) == ("pool_is_odd", "warning")
        assert [*reading.judge(rules)] == []

    def test_a_mistake_that_two_rules_find_is_told_once(self) -> None:
        rules = config.Rules(each_pool)

        @rules
        def each_pool_again(pool: config.Pool) -> Mistakes:
            yield from each_pool(pool)

        reading = read_document(parse_yaml(as_text(make_document(pools=[SYSTEM_POOL])), source=""))

        mistakes = [*reading.judge(rules)]
        assert len(mistakes) == 2
        assert len(reading.refusal(mistakes).diagnostics) == 1

    def test_a_fact_is_found_once_and_rules_without_it_are_skipped(self) -> None:
        rules, asked = config.Rules(given=(Plan, Size)), list[Plan]()

        @rules
        def size_fits(size: Size) -> Mistakes:
            yield config.refuse("size", str(size))

        @rules
        def size_is_even(size: Size) -> Mistakes:
            yield config.refuse("even", str(size))

        @rules.fact()
        def size_of(plan: Plan) -> Size | None:
            asked.append(plan)
            return Size(3) if len(asked) == 1 else None

        assert [each.code for each in rules.judge(Plan())] == ["size_fits", "size_is_even"]
        assert len(asked) == 1
        assert [*rules.judge(Plan())] == []
        assert [*rules.judge()] == []

    @pytest.mark.parametrize("wrong", [True, False])
    def test_rules_and_facts_wait_until_others_find_nothing(self, *, wrong: bool) -> None:
        rules = config.Rules(given=(Plan, Size))

        @rules
        def plan_is_right(plan: Plan) -> Mistakes:
            if wrong:
                yield config.refuse("plan", "wrong")

        @rules(after=(plan_is_right,))
        def plan_is_large(plan: Plan) -> Mistakes:
            yield config.refuse("plan", "small")

        @rules
        def size_fits(size: Size) -> Mistakes:
            yield config.refuse("size", str(size))

        @rules.fact(after=(plan_is_large,))
        def size_of(plan: Plan) -> Size:
            return Size(3)

        codes = [each.code for each in rules.judge(Plan())]
        assert codes == (["plan_is_right", "size_fits"] if wrong else ["plan_is_large"])

    def test_rules_that_rest_on_a_value_are_judged_alone(self) -> None:
        rules = config.Rules(each_pool, given=(config.Parts, Plan))
        document = parse_yaml(as_text(make_document(pools=[SYSTEM_POOL])), source="")
        parts = read_document(document).parts

        @rules.fact()
        def size_of(plan: Plan) -> Size:
            return Size(3)

        @rules
        def size_fits(pool: config.Pool, size: Size) -> Mistakes:
            yield config.refuse("size", f"{pool.name} {size}")

        assert [each.code for each in rules.judge(parts)] == ["each_pool"]
        assert [*rules.judge(Plan())] == []
        codes = [each.code for each in rules.judge(parts, Plan(), resting_on=Plan)]
        assert codes == ["size_fits"]

    def test_rules_without_a_file_take_no_parts_of_one(self) -> None:
        with pytest.raises(TypeError, match="rule each_pool takes pool"):
            config.Rules(each_pool, given=(Plan,))

    def test_a_fact_of_a_part_raises(self) -> None:
        rules = config.Rules()

        def size_of(pool: config.Pool) -> Size:
            return Size(len(pool.name))

        with pytest.raises(TypeError, match="fact size_of takes a part of a cluster file"):
            rules.fact()(size_of)
