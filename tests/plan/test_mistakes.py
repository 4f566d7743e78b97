"""Every mistake of a file is named at once, whatever part of the product finds it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.pools import LUSTRE, NEURON_POOL, SYSTEM_POOL, make_document
from tests.support.rich_documents import RICH, VALUES, places, replaced
from ultrascale import config
from ultrascale.config._rules import rule as file_rules
from ultrascale.errors import ConfigError
from ultrascale.plan import load, plan_cluster
from ultrascale.plan.jobs.judgement import JobRequest
from ultrascale.plan.jobs.rules import Candidates, Roles, WrongKeys
from ultrascale.plan.jobs.rules import rule as job_rules
from ultrascale.plan.rules import rule as plan_rules

SMALL = {"vpc_cidr": "10.0.0.0/24", "zones": ["us-west-2a", "us-west-2b"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.yaml"


def mistakes(file: Path, **changes: Any) -> list[str]:
    """Return the error lines for a valid file with ``changes``, without the file's name."""
    file.write_text(yaml.safe_dump(make_document(**changes), sort_keys=False))
    with pytest.raises(ConfigError) as caught:
        load(file)
    return [each.keyed for each in caught.value.diagnostics]


def keys(lines: list[str]) -> list[str]:
    return [line.partition(": ")[0] for line in lines]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(at=st.sampled_from(places(RICH)), new=VALUES)
@example(at=("name",), new=float("inf"))
@example(at=("name",), new=float("nan"))
def test_whatever_a_file_holds_it_is_planned_or_refused_in_lines(
    tmp_path_factory: pytest.TempPathFactory, at: tuple[Any, ...], new: object
) -> None:
    file = tmp_path_factory.mktemp("file") / "cluster.yaml"
    file.write_text(yaml.safe_dump(replaced(RICH, at, new), sort_keys=False))

    try:
        load(file)
    except ConfigError as error:
        lines = error.mistakes
    else:
        lines = ()

    assert all(line.startswith(f"{file}:") and "\n" not in line for line in lines)
    assert len(lines) == len(set(lines))


class TestTogether:
    """A user who mends one mistake per run needs as many runs as mistakes."""

    def test_a_misspelt_type_hides_no_range_that_is_too_small(self, file: Path) -> None:
        pools = [SYSTEM_POOL, NEURON_POOL | {"instance_types": ["trn1.33xlarge"]}]
        storage = {"lustre": [LUSTRE | {"capacity_gib": 1300}]}
        lines = mistakes(file, network=SMALL, pools=pools, storage=storage)
        assert keys(lines) == [
            "network.vpc_cidr",
            "pools[train].instance_types[0]",
            "storage.lustre[training].capacity_gib",
        ]
        assert "got '10.0.0.0/24'; use a /" in lines[0]

    def test_a_misspelt_key_hides_nothing_that_the_plan_finds_elsewhere(self, file: Path) -> None:
        lines = mistakes(
            file,
            regoin="x",
            network=SMALL,
            kubernetes={"version": "1.36", "admin": 1},
            pools=[SYSTEM_POOL | {"nodez": 1}, NEURON_POOL | {"shards": 2}],
            pipeline={"branches": "main"},
        )
        assert {"regoin", "network.vpc_cidr", "kubernetes.admin"} <= {*keys(lines)}
        assert {"pools[system].nodez", "pipeline.branches"} <= {*keys(lines)}

    def test_everything_that_is_not_built_yet_is_named_in_the_order_of_the_file(
        self, file: Path
    ) -> None:
        # What rests on an unsupported value is not said beside it.
        first = LUSTRE | {"efa": True, "capacity_gib": 1300}
        lines = mistakes(file, storage={"lustre": [first, LUSTRE | {"name": "b", "efa": True}]})
        assert keys(lines) == ["storage.lustre[training].efa", "storage.lustre[b].efa"]
        assert all("not supported yet" in line for line in lines)

    def test_one_mistake_is_one_line(self, file: Path) -> None:
        """A version that is none has no add-ons either, but that is the same mistake."""
        assert keys(mistakes(file, kubernetes={"version": "1.33"})) == ["kubernetes.version"]
        assert keys(mistakes(file, network=SMALL | {"vpc_cidr": "10.0.0.0/29"})) == [
            "network.vpc_cidr"
        ]

    def test_nodes_that_cannot_be_counted_count_for_nothing(self, file: Path) -> None:
        lines = mistakes(file, pools=[SYSTEM_POOL, NEURON_POOL | {"nodes": {"min": 1}}])
        assert lines == [
            "pools[train].nodes: no count of nodes, got {min: 1}; add max, or static for a "
            "fixed count"
        ]

    def test_a_plan_without_a_file_says_the_same(self, file: Path) -> None:
        changes: dict[str, Any] = {"network": SMALL, "kubernetes": {"version": "1.36"}}
        cluster = config.loads(yaml.safe_dump(make_document(**changes)))

        with pytest.raises(ConfigError) as caught:
            plan_cluster(cluster)

        assert sorted(caught.value.mistakes) == sorted(mistakes(file, **changes))

    @pytest.mark.parametrize("region", ["us-west-2", "us-gov-west-1"])
    def test_a_range_holds_as_many_nodes_whoever_reserves_its_prefixes(
        self, file: Path, region: str
    ) -> None:
        network = {"vpc_cidr": "10.0.0.0/16", "zones": [f"{region}a", f"{region}b"]}
        pool = SYSTEM_POOL | {"nodes": {"min": 2, "max": 385}, "zones": [f"{region}a"]}
        changes: dict[str, Any] = {"region": region, "network": network, "pools": [pool]}

        assert mistakes(file, kubernetes=None, **changes) == [
            f"network.vpc_cidr: too small for 385 nodes in zone {region}a, "
            "got '10.0.0.0/16'; ask for fewer nodes, or spread them over more zones"
        ]

        pool["nodes"] = {"min": 2, "max": 384}
        document = make_document(kubernetes=None, **changes)
        assert plan_cluster(config.loads(yaml.safe_dump(document))).region == region


class TestUnsupported:
    """Advice that leads into the next refusal costs a run and a user's patience."""

    def test_regions_of_china_are_refused_plainly(self, file: Path) -> None:
        network = {"vpc_cidr": "10.0.0.0/16", "zones": ["cn-north-1a", "cn-north-1b"]}

        lines = mistakes(
            file, region="cn-north-1", network=network, kubernetes=None, pools=[SYSTEM_POOL]
        )

        assert lines == [
            "region: Regions of China are not supported yet, got 'cn-north-1'; "
            "use a Region of another partition"
        ]


class TestCatalog:
    """A value that no source states is refused, never guessed."""

    def test_the_missing_fact_is_told_in_the_users_words(self, file: Path) -> None:
        unknown = NEURON_POOL | {"instance_types": ["trn2u.48xlarge"]}
        other = NEURON_POOL | {"name": "second", "zonez": 1}
        lines = mistakes(file, pools=[SYSTEM_POOL, unknown, other])
        assert lines[0] == (
            "pools[train].instance_types: for trn2u.48xlarge no source says how many interfaces "
            "its network card 0 takes; choose another instance type, or record what EC2 says of "
            "it: `ultrascale preflight FILE --record`"
        )
        assert keys(lines) == ["pools[train].instance_types", "pools[second].zonez"]

    def test_a_region_without_a_known_addon_registry_is_a_mistake(self, file: Path) -> None:
        network = {"vpc_cidr": "10.0.0.0/16", "zones": ["me-west-1a", "me-west-1b"]}
        pools = [SYSTEM_POOL, NEURON_POOL | {"zones": ["me-west-1b"]}]
        changes: dict[str, Any] = {"region": "me-west-1", "network": network, "pools": pools}

        (line,) = mistakes(file, **changes)

        assert line.startswith("region: ")
        assert "set images.eks_registry to its host name" in line
        registry = "123456789012.dkr.ecr.me-west-1.amazonaws.com"
        document = make_document(**changes, images={"eks_registry": registry})
        plan = plan_cluster(config.loads(yaml.safe_dump(document)))
        assert plan.devices.efa is not None
        assert plan.devices.efa.image.startswith(f"{registry}/")


class TestRules:
    """One engine judges the file, the plan and jobs: a rule that it never calls would not show."""

    def test_each_type_that_a_rule_of_jobs_takes_is_found_by_somebody(self) -> None:
        rules: Any = job_rules
        taken = {kind for rule in rules._rules for kind in rule.takes}

        assert taken - rules._facts.keys() == {JobRequest, WrongKeys, Candidates, Roles}

    def test_each_rule_has_a_name_of_its_own(self) -> None:
        tables: list[Any] = [file_rules, plan_rules, job_rules]
        names = Counter(rule.function.__name__ for table in tables for rule in table._rules)

        assert [name for name, count in names.items() if count > 1] == []
        assert not [name for name in names if name.startswith("_")]
