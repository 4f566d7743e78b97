"""`ultrascale advise`, as its user sees it."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import Terminal, Ultrascale
from ultrascale.cli.advise import NOTHING
from ultrascale.plan.advice import REQUIRED

ASKED = (
    *("advise", "--workload", "fine-tuning", "--type", "p4d.24xlarge", "--nodes", "16"),
    *("--region", "us-east-1", "--zone", "us-east-1a", "--days", "7"),
    *("--starts", "2026-12-01T00:00Z", "--at", "2026-11-21T12:00Z"),
)


def test_an_answer_says_what_to_buy_how_and_what_for(ultrascale: Ultrascale) -> None:
    answer = ultrascale(*ASKED)

    assert (answer.returncode, answer.stderr) == (0, "")
    rows = [line.split() for line in answer.stdout.splitlines()]
    block = ["buy", "capacity-block", "managed-node-group", "p4d.24xlarge", "us-east-1a", "16"]
    assert [*block, "167.3", "unknown", "P2"] in rows
    assert ["L-2C8F52B3", "Concurrent", "P4d", "Capacity", "Blocks", "per", "account"] in [
        row[:7] for row in rows
    ]
    (on_demand,) = [line.split() for line in answer.stdout.splitlines() if "L-417A185B" in line]
    assert on_demand[-7:] == ["0", "vCPUs", "request", "1,536", "in", "Service", "Quotas"]
    assert "AWS does not say whether it counts blocks or vCPUs" in " ".join(answer.stdout.split())
    assert (
        "    ultrascale capacity --option capacity-block --region us-east-1 --type p4d.24xlarge "
        "--count 16 --days 7 --starts 2026-12-01T00:00Z --zone us-east-1a\n" in answer.stdout
    )
    assert "on-demand: 59,022 in all: 16 nodes x 168 hours x $21.9576" in answer.stdout
    assert "training-plan on hyperpod, p4d.24xlarge in us-east-1a: legal: P2" in answer.stdout
    assert "odcr on managed-node-group, p4d.24xlarge in us-east-1a: legal: last" in answer.stdout


def test_check_accepts_the_pools_within_a_cluster_file(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"

    file.write_text(ultrascale(*ASKED, "--cluster-file").stdout)

    assert ultrascale("check", file).returncode == 0
    pools = yaml.safe_load(file.read_text())["pools"]
    told = ultrascale(*ASKED).stdout
    assert [pool["name"] for pool in pools[1:]] == [
        f"fine-tuning-{option}" for option in ("capacity-block", "on-demand", "spot")
    ]
    assert all(f"- name: {pool['name']}" in told for pool in pools[1:])


def test_programs_read_all_of_it_as_json(ultrascale: Ultrascale) -> None:
    document = json.loads(ultrascale(*ASKED, "--json").stdout)

    choice = document["choice"]
    assert choice["judged"]["candidate"]["option"] == "capacity-block"
    assert choice["judged"]["place"]["code"] == "P2"
    assert (choice["cost"]["low"], choice["cost"]["high"]) == (None, None)
    assert [step["judged"]["candidate"]["option"] for step in document["fallback"]] == [
        *("on-demand", "spot")
    ]
    assert document["question"]["starts"] == "2026-12-01T00:00:00+00:00"
    assert yaml.safe_load(document["fragment"]).keys() == {"pools"}


def test_nothing_legal_has_a_status_of_its_own(ultrascale: Ultrascale) -> None:
    answer = ultrascale(*ASKED, "--no-hyperpod", "--coupled", "--type", "g6.xlarge")
    nothing = ultrascale(
        *(each.replace("p4d.24xlarge", "g6.xlarge") for each in ASKED), "--coupled"
    )
    assert answer.returncode == 0
    assert nothing.returncode == NOTHING
    assert nothing.stderr.startswith("nothing fits")
    assert "H10: g6.xlarge has no EFA" in nothing.stdout


def test_all_mistakes_are_told_at_once_and_nothing_else(ultrascale: Ultrascale) -> None:
    answer = ultrascale("advise", "--type", "p5.48xlrage", "--nodes", "0", "--image", "windows")
    assert (answer.returncode, answer.stdout) == (64, "")
    assert [line.split(":")[0] for line in answer.stderr.splitlines()] == [
        *("--workload", "--region", "--zone", "--days", "--image", "--nodes", "--type")
    ]


def test_a_person_is_asked_for_what_is_missing(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = "development\ng6e.12xlarge, g6.12xlarge\nmany\n2\nus-east-1\nus-east-1a\nsteady\n"
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    answer = ultrascale("advise", "--at", "2026-11-21T12:00Z", "--json")
    assert answer.returncode == 0
    asked = json.loads(answer.stdout)["question"]
    assert (asked["nodes"], asked["days"]) == (2, None)
    assert asked["instance_types"] == ["g6e.12xlarge", "g6.12xlarge"]
    assert all(text in answer.stderr for text in REQUIRED.values())
