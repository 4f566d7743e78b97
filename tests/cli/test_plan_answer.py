"""Opening lines of `ultrascale plan`, held against `plan --json`."""

import json
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from tests.support.needs import FLEET_BEYOND_LIMITS
from tests.support.plan_golden import AT, STATUSES
from tests.support.pools import (
    CAPACITY_BLOCK,
    ON_DEMAND,
    SPOT,
    SYSTEM_POOL,
    as_text,
    make_document,
    pool_document,
)

CLUSTERS = [ROOT / "clusters" / f"{name}.yaml" for name in STATUSES]
NUMBER = re.compile(r"(?<![\w.-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])")


Json = dict[str, "Json"] | list["Json"] | str | float | None


def leaves(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def strangers(told: str, document: Json) -> list[str]:
    """Return the numbers of ``told`` that are no number of ``document``.

    Dates, times and names are no numbers; texts of the document prove none.
    """
    numbers = {leaf for leaf in leaves(document) if isinstance(leaf, int | float)}
    known = {f"{each:,.{places}f}" for each in numbers for places in (0, 1, 2)}
    text = re.sub(r"\d{4}-\d\d-\d\d|\d\d:\d\d", "", told)
    return [each for each in NUMBER.findall(text) if each not in known]


@pytest.mark.parametrize("file", CLUSTERS, ids=lambda file: file.stem)
@pytest.mark.parametrize("at", [(), ("--at", AT)], ids=["any-time", "dated"])
def test_each_figure_of_the_opening_lines_is_one_of_the_json(
    file: Path, at: tuple[str, ...], ultrascale: Ultrascale
) -> None:
    told = ultrascale("plan", file, *at).stdout
    document = json.loads(ultrascale("plan", file, *at, "--json").stdout)

    lines = told.splitlines()
    assert 8 <= len(lines) <= 12
    assert max(map(len, lines)) <= 80
    assert strangers(told, document) == []
    assert [line.split()[0] for line in lines if line[0] != " "][1:] == [
        "Why",
        "Raise",
        "Money",
        "Window",
        "Risk",
        "More",
    ]


def test_a_figure_that_the_json_lacks_is_found() -> None:
    assert strangers("of 12.5 on 2026-01-01 at 10:30", {"value": 12.5}) == []
    assert strangers("of 12.6", {"value": 12.5, "formula": "12.6"}) == ["12.6"]


def test_long_names_and_paths_stay_within_the_lines(ultrascale: Ultrascale, tmp_path: Path) -> None:
    """A command that has no room for the path still tells where it goes."""
    pools = [
        pool_document(
            name=f"pretraining-on-reserved-capacity-in-{number}",
            purchase=CAPACITY_BLOCK | {"reservation": f"cr-0123456789abcdef{number}"},
        )
        for number in range(5)
    ]
    folder = tmp_path / ("folder-" * 12)
    folder.mkdir()
    file = folder / "cluster.yaml"
    file.write_text(as_text(make_document(pools=[SYSTEM_POOL, *pools])))

    lines = ultrascale("plan", file).stdout.splitlines()

    assert len(lines) <= 12
    assert max(map(len, lines)) <= 80
    assert "        ultrascale preflight FILE --request-quotas" in lines


def money_of(ultrascale: Ultrascale, file: Path, **changes: Any) -> tuple[str, Any]:
    """Write a cluster file; return the words of money of its answer, and the same as JSON."""
    file.write_text(as_text(make_document(karpenter={"version": "1.15.2"}, **changes)))
    lines = ultrascale("plan", file).stdout.splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 80
    (first,) = (number for number, line in enumerate(lines) if line.startswith("Money"))
    more = takewhile(lambda line: line[0] == " " and "ultrascale " not in line, lines[first + 1 :])
    told = " ".join(line[8:] for line in (lines[first], *more))
    return told, json.loads(ultrascale("plan", file, "--json").stdout)["answer"]["money"]


def test_a_sum_that_lacks_a_price_is_the_least_and_says_of_how_many_nodes(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """A seventh of the price would look like a cheap Region."""
    dear = pool_document(instance_types=["g6e.48xlarge"], purchase=ON_DEMAND)

    told, money = money_of(ultrascale, tmp_path / "cluster.yaml", pools=[SYSTEM_POOL, dear])

    hourly, monthly = (money[key]["value"] for key in ("usd_per_hour", "usd_per_month"))
    assert (money["nodes"], money["nodes_at_first"], money["nodes_priced"]) == (20, 2, 4)
    assert told.startswith(
        f"20 nodes at most, 2 at first: at least {hourly:,.2f} USD/hour, {monthly:,.0f} USD/month "
        f"for 4 of them; no price of {money['without_count']} parts, such as g6e.48xlarge, "
    )
    assert told.endswith(", without usage")
    assert "..." not in told


def test_a_sum_without_any_node_is_no_headline(ultrascale: Ultrascale, tmp_path: Path) -> None:
    """NAT gateways alone have a price there: 73 dollars a month for eight nodes of P5."""
    system = SYSTEM_POOL | {"instance_types": ["m7i.2xlarge"]}
    dear = pool_document(instance_types=["g6e.48xlarge"], purchase=ON_DEMAND)
    file = tmp_path / "cluster.yaml"

    told, money = money_of(ultrascale, file, pools=[system, dear])

    assert money["usd_per_hour"]["value"] > 0
    assert told.startswith("20 nodes at most, 2 at first: no node has a known price; no price of ")
    assert "such as g6e.48xlarge, m7i.2xlarge, " in told
    assert "USD" not in told
    ultrascale("report", file, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "USD an hour, 0 of 20 nodes" in page
    assert page.count(">unknown<") >= 2


def test_a_sum_of_all_prices_is_the_price(ultrascale: Ultrascale, tmp_path: Path) -> None:
    for file in (ROOT / "clusters" / "serving.yaml", ROOT / "clusters" / "existing-estate.yaml"):
        told = " ".join(ultrascale("plan", file).stdout.split())
        money = json.loads(ultrascale("plan", file, "--json").stdout)["answer"]["money"]
        assert money["lacking"] == money["usd_per_hour"]["without"] == []
        assert f"at first: {money['usd_per_hour']['value']:,.2f} USD/hour" in told
        assert "at least" not in told
        assert "no price" not in told


def test_a_sum_with_spot_at_on_demand_prices_says_so(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """Spot may cost less than what is counted, and parts without a price cost more."""
    spot = pool_document(name="spot", purchase=SPOT, provisioner="karpenter", nodes={"max": 2})
    block = pool_document(purchase=CAPACITY_BLOCK)
    file = tmp_path / "cluster.yaml"

    alone, _ = money_of(ultrascale, file, pools=[SYSTEM_POOL, block])
    both, money = money_of(ultrascale, file, pools=[SYSTEM_POOL, spot, block])

    assert money["spot_at_on_demand"] == ["spot"]
    assert "train (paid up front)" in both
    assert "; Spot at On-Demand prices; " in both
    assert "Spot" not in alone
    assert "total, Spot as On-Demand" in ultrascale("plan", file, "pools").stdout
    ultrascale("report", file, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert re.search(r"USD an hour, \d+ of \d+ nodes, Spot as On-Demand", page)
    assert "all nodes, Spot at On-Demand prices" in page


def test_only_quotas_beyond_their_default_are_raised_each_by_its_command(
    ultrascale: Ultrascale,
) -> None:
    file = ROOT / "clusters" / "hybrid-hyperpod.yaml"
    answer = json.loads(ultrascale("plan", file, "--json").stdout)["answer"]

    codes = [quota["code"] for quota in answer["quotas"]]
    assert answer["quota_count"] == len(codes) == 3
    assert all(quota["needed"] > quota["default"] for quota in answer["quotas"])
    assert answer["quotas"][0]["command"] == (
        "aws service-quotas request-service-quota-increase --service-code ec2 "
        f"--quota-code {codes[0]} --desired-value 1536 --region us-east-1"
    )


def test_the_next_window_is_the_first_that_is_not_over(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    later = CAPACITY_BLOCK | {
        "starts": "2027-02-01T11:30:00Z",
        "ends": "2027-02-08T11:30:00Z",
        "reservation": "cr-0123456789abcdef1",
    }
    pools = [
        pool_document(name="second", purchase=later),
        pool_document(name="first", purchase=CAPACITY_BLOCK),
    ]
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(make_document(pools=[SYSTEM_POOL, *pools])))

    def next_pool(*at: str) -> Any:
        window = json.loads(ultrascale("plan", file, "--json", *at).stdout)["answer"]["window"]
        return window and window["pool"]

    assert next_pool() == "first"
    assert next_pool("--at", "2027-01-20T00:00Z") == "second"
    assert next_pool("--at", "2028-01-01T00:00Z") is None
    told = ultrascale("plan", file, "--at", "2027-01-20T00:00Z").stdout
    assert told.startswith("research in us-west-2: does not fit: a window is over\n")


def test_tables_come_by_name_and_all_of_them_by_one_option(ultrascale: Ultrascale) -> None:
    opening = ultrascale("plan", CLUSTERS[0]).stdout
    named = ultrascale("plan", CLUSTERS[0], "money", "pools").stdout
    everything = ultrascale("plan", CLUSTERS[0], "--all").stdout
    unknown = ultrascale("plan", CLUSTERS[0], "quots", "pools", "monney")
    data = ultrascale("plan", CLUSTERS[0], "keys", "pools", "--json")

    assert named.startswith(opening)
    assert everything.startswith(opening)
    assert "bought as" in named
    assert "/28 prefixes" not in named
    assert "/28 prefixes" in everything
    assert named.count("auto-mode in us-east-2") == 2
    assert (unknown.returncode, unknown.stdout, data.returncode) == (64, "", 64)
    first, second = unknown.stderr.splitlines()
    assert first.startswith("TABLE: no table of that name, got 'quots'; write one of: pools, ")
    assert "'monney'" in second
    assert "pools: --json prints everything, or the table keys alone" in data.stderr


def test_a_larger_tier_is_named_beside_the_quotas_to_raise(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """A reader who asks for the quotas alone would launch on a tier that is too small."""
    system, fleet = FLEET_BEYOND_LIMITS["pools"]
    trainium = {"instance_types": ["trn1.32xlarge"], "nodes": {"static": 3_000}}
    file = tmp_path / "cluster.yaml"
    document = FLEET_BEYOND_LIMITS | {"pools": [system, fleet | trainium]}
    file.write_text(as_text(make_document(**document)))
    opening = ultrascale("plan", file).stdout.splitlines()[0]
    assert ": fits, with tier-xl as its control plane, once " in opening


def test_a_window_of_the_past_is_over_without_a_time_to_check_for(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """The last year's file must not pass for one to pay for."""
    past = CAPACITY_BLOCK | {"starts": "2025-12-01T11:30:00Z", "ends": "2025-12-08T11:30:00Z"}
    file = tmp_path / "cluster.yaml"
    pool = pool_document(name="last-year", purchase=past)
    file.write_text(as_text(make_document(pools=[SYSTEM_POOL, pool])))

    answer = ultrascale("plan", file)
    told = json.loads(ultrascale("plan", file, "--json").stdout)
    page = ultrascale("report", file, "--markdown", "-o", "-").stdout

    assert answer.returncode == 1
    assert "the window of last-year is over at 2026-11-22 00:00 UTC" in answer.stderr
    assert answer.stdout.splitlines()[0].endswith(": does not fit: a window is over")
    assert (told["answer"]["verdict"], told["answer"]["window"]) == ("over", None)
    # Equal input gives equal output, a minute later as well.
    assert told["at"] is None
    assert "hours_left" not in json.dumps(told)
    assert "Does not fit: a window is over" in page
