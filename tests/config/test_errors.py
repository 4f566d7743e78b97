"""Mistakes of a cluster file: found together, one line each."""

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.config_documents import (
    TWO_ZONES,
    mistakes_in,
    sentences_in,
    with_lustre,
    with_pool,
)
from tests.support.pools import (
    HYPERPOD_POOL,
    SYSTEM_POOL,
    make_document,
    pool_document,
)
from tests.support.rich_documents import RICH, VALUES, places, replaced
from ultrascale import config
from ultrascale.errors import ConfigError


def test_the_documents_that_the_mistakes_are_made_in_have_none() -> None:
    assert mistakes_in(make_document()) == []
    assert mistakes_in(make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL])) == []
    assert mistakes_in(with_lustre({"s3": {"bucket": "datasets"}})) == []


def test_ten_mistakes_in_one_file_are_ten_lines_in_the_order_of_the_file() -> None:
    document = make_document(
        region="us-wset-2",
        network={"vpc_cidr": "10.0.0.0/8", "zones": ["us-west-2b", "us-west-2a"]},
        kubernetes={"version": "1.33", "event_ttl": "5m"},
        pools=[
            SYSTEM_POOL | {"zonez": ["us-west-2b"]},
            pool_document(nodes={"max": 0}, tags={"aws:owner": "me"}),
            pool_document(name="second", instance_types=["p5.48xlrage"]),
        ],
        storage={
            "lustre": [
                {
                    "name": "scratch",
                    "zone": "us-west-2d",
                    "capacity_gib": 1300,
                    "throughput_mbps_per_tib": 250,
                }
            ]
        },
    )

    keys = [line.split(": ")[0] for line in mistakes_in(document)]
    assert keys == [
        "region",
        "network.vpc_cidr",
        "kubernetes.version",
        "kubernetes.event_ttl",
        "pools[system].zonez",
        "pools[train].nodes.max",
        "pools[train].tags.aws:owner",
        "pools[second].instance_types[0]",
        "storage.lustre[scratch].zone",
        "storage.lustre[scratch].capacity_gib",
    ]


def test_a_mistake_of_form_hides_no_mistake_of_another_kind() -> None:
    """Only the misspelt key of pool 1 stays unjudged."""
    bad = {"efa": "all", "zones": TWO_ZONES, "nodes": {"max": 0}}
    document = with_pool(**bad, instance_typ=["x"])
    document["pools"].append(pool_document(name="second", **bad))

    keys = {line.split(": ")[0] for line in mistakes_in(document)}
    assert keys == {
        "pools[train].instance_typ",
        "pools[train].nodes.max",
        "pools[train].zones",
        "pools[second].zones",
        "pools[second].nodes.max",
    }


def test_all_mistakes_of_form_of_a_part_are_named_at_once() -> None:
    document = with_pool(efa="some", shards=0, nodes={"max": "x"}, purchase={"option": "lease"})

    assert [line.split(": ")[0] for line in mistakes_in(document)] == [
        "pools[train].nodes.max",
        "pools[train].efa",
        "pools[train].shards",
        "pools[train].purchase.option",
    ]


def test_a_default_is_judged_like_a_value_that_the_file_states() -> None:
    document = make_document(kubernetes=None)
    document["network"]["vpc_cidr"] = "172.20.0.0/16"

    assert mistakes_in(document) == ["kubernetes.service_cidr: service_range_is_apart"]


def test_a_value_is_shown_as_the_file_spells_it() -> None:
    text = yaml.safe_dump(make_document(), sort_keys=False) + "account: +123\n"

    with pytest.raises(ConfigError) as caught:
        config.loads(text, source="f")

    assert caught.value.mistakes == ("f:28:1: account: not text, got +123; put it in quotes",)


def test_a_key_is_text_even_where_yaml_sees_a_truth_value() -> None:
    text = yaml.safe_dump(make_document(), sort_keys=False) + "on: 1\n"

    with pytest.raises(ConfigError, match=r"^f:28:1: on: unknown key 'on'; known: "):
        config.loads(text, source="f")


def test_a_type_whose_facts_no_source_states_is_refused_not_guessed() -> None:
    document = with_pool(instance_types=["p6e-gb300.36xlarge"], efa="all")

    (line,) = mistakes_in(document)
    assert line == "pools[train].instance_types: efa_is_there"


def test_the_document_to_mutate_is_valid() -> None:
    assert mistakes_in(RICH) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(at=st.sampled_from(places(RICH)), new=VALUES)
@example(at=("name",), new=float("inf"))
@example(at=("name",), new=float("nan"))
def test_whatever_a_file_holds_it_loads_or_is_refused_in_lines(
    at: tuple[Any, ...], new: object
) -> None:
    lines = sentences_in(replaced(RICH, at, new))

    assert all(line and "\n" not in line and not line.endswith(".") for line in lines)
    assert len(lines) == len(set(lines))
