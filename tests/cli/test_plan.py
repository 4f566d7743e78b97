"""`ultrascale plan`, as its user sees it."""

import json
from pathlib import Path
from typing import Any

from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from tests.support.needs import FLEET_BEYOND_LIMITS
from tests.support.pools import (
    CAPACITY_BLOCK,
    ON_DEMAND,
    SYSTEM_POOL,
    as_text,
    make_document,
    pool_document,
)
from ultrascale.cli.output import BEYOND

MIXED = ROOT / "clusters" / "mixed-capacity.yaml"
HYBRID = ROOT / "clusters" / "hybrid-hyperpod.yaml"
QUOTA = "L-417A185B"


def test_a_plan_shows_pools_quotas_and_the_hours_that_are_of_use(ultrascale: Ultrascale) -> None:
    answer = ultrascale("plan", HYBRID, "--all", "--explain")

    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    rows = [line.split() for line in lines]
    bursts = ["eks-on-demand", "16", "1,536", "128", "0", "64", "80", "112", "351.32", "256,465"]
    assert bursts in rows
    assert ["hyperpod", "8", "768", "64", "0", "32", "40", "472", "unknown", "unknown"] in rows
    assert f"{QUOTA}   Running On-Demand P instances" in answer.stdout
    times = ["2026-12-01", "11:30", "2027-01-05", "10:30", "2027-01-05", "11:30"]
    assert ["hyperpod", "training-plan", *times, "839", "60"] in rows
    assert "hyperpod: no price: a training-plan is paid up front" in answer.stdout
    # The known part alone would be 0 minutes.
    assert ["to", "the", "first", "step,", "one", "after", "the", "other"] in [
        row[:8] for row in rows if row[8:] == ["unknown", "minutes"]
    ]
    at = lines.index(
        "eks-on-demand.usd_per_hour = 351.32 USD per hour: 16 nodes x $21.9576 of p4d.24xlarge "
        "On-Demand in us-east-1 on 2026-07-20"
    )
    assert lines[at + 1].startswith("    https://")
    assert (
        f"quota.{QUOTA} = 1,536 vCPUs: eks-on-demand: 16 nodes x 96 vCPUs of p4d.24xlarge" in lines
    )


def test_programs_read_all_of_it_as_json(ultrascale: Ultrascale) -> None:
    document = json.loads(ultrascale("plan", HYBRID, "--json").stdout)
    dated = json.loads(ultrascale("plan", MIXED, "--json", "--at", "2026-12-05T00:00+02:00").stdout)

    (need,) = (each for each in document["quotas"] if each["code"] == QUOTA)
    assert (need["needed"]["value"], need["default"], need["state"]) == (1536, 0, "ask")
    assert [pool["pool"] for pool in document["pools"]][:2] == ["system", "hyperpod"]
    assert document["pools"][1]["figures"]["usd_per_hour"]["value"] is None
    first = dated["calendar"][0]
    assert (document["at"], dated["at"]) == (None, "2026-12-04T22:00:00Z")
    assert (first["starts"], first["state"]) == ("2026-12-01T11:30:00Z", "running")


def beyond(folder: Path, *pools: dict[str, Any], **changes: Any) -> Path:
    """Write a file of more nodes than AWS publishes that it grants for a VPC."""
    own = FLEET_BEYOND_LIMITS | {"pools": [*FLEET_BEYOND_LIMITS["pools"], *pools], **changes}
    return written(folder, **own)


def written(folder: Path, **changes: Any) -> Path:
    file = folder / "cluster.yaml"
    file.write_text(as_text(make_document(**changes)))
    return file


def test_a_row_of_markdown_is_one_line_however_long_its_names(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """A cell that goes on in a second line is a row of its own to who shows the table."""
    names = ["gpu-pretraining-reserved-baseline-h100", "gpu-pretraining-reserved-second-h100"]
    reservations = ["cr-0123456789abcdef0", "cr-0123456789abcdef1"]
    blocks = [
        pool_document(name=name, purchase=CAPACITY_BLOCK | {"reservation": reservation})
        for name, reservation in zip(names, reservations, strict=True)
    ]
    reference = "case | 17\nof :key: [/]"
    file = beyond(tmp_path, *blocks, agreed_limits={"nau_per_vpc": 300_000, "reference": reference})

    answer = ultrascale(
        "plan", file, "--all", "--markdown", "--explain", "--at", "2026-12-05T00:00Z"
    )
    _, _, told, figures, _ = answer.stdout.split("```")

    assert answer.returncode == 0
    rows = [line.rstrip() for line in told.splitlines() if line.startswith("|")]
    assert all(row.endswith("|") for row in rows)
    unnamed = [row for row in rows if row.startswith("|  ")]  # one has no code
    assert len(unnamed) == 1
    assert "published or quota" in told
    # pools, checkpoints, windows, repair, load, money, volumes
    assert sum(names[0] in row for row in rows) == 7
    assert "agreed: 300,000, case \\| 17 of :key: [/] |" in told
    assert told.lstrip().startswith("## research in us-west-2 at 2026-12-05")
    assert f"\n- {names[0]}" in told
    assert f"{names[0]}.vcpus = " in figures


def test_what_no_published_limit_allows_is_said_and_ends_with_a_status_of_its_own(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """The file is right all the same: only AWS can say whether it grants it."""
    file = beyond(tmp_path)

    assert ultrascale("check", file).returncode == 0
    answer = ultrascale("plan", file, "--all")

    assert answer.returncode == BEYOND
    assert "more than AWS publishes" in answer.stdout
    told = answer.stderr.removeprefix(f"{file}: ").strip()
    assert told.startswith("Network Address Usage (L-BB24F6E5): 280,")
    assert "256,000" in told
    assert "ask your account team" in told
    # A review reads the page, and not what the command said beside it.
    assert f"- {told}.\n" in ultrascale("plan", file, "--all", "--markdown").stdout


def test_what_aws_has_agreed_to_is_shown_and_may_be_enough(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    agreed, little = (
        ultrascale("plan", beyond(tmp_path, agreed_limits={**LIMITS, "nau_per_vpc": nau}), "--all")
        for nau in (300_000, 270_000)
    )
    file = tmp_path / "cluster.yaml"
    limits = {"nau_per_vpc": 1_400_000, "pods": 900_000, "database_gb": 32, "reference": "case 18"}
    largest = (ROOT / "clusters" / "ultra-100k.yaml").read_text()
    file.write_text(f"{largest}\nagreed_limits: {limits}\n")
    ultra = ultrascale("plan", file, "--all")

    assert (agreed.returncode, agreed.stderr) == (ultra.returncode, ultra.stderr) == (0, "")
    assert "256,000   agreed: 300,000, case 17" in agreed.stdout
    assert "agreed: 1,400,000, case 18" in ultra.stdout
    assert little.returncode == BEYOND
    assert "needed, of which 270,000 are agreed" in little.stderr


LIMITS = {"reference": "case 17"}


def test_a_reason_that_many_pools_share_names_a_few_of_them(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    pools = [
        pool_document(name=f"pool-{number}", purchase=ON_DEMAND, nodes={"max": 1})
        for number in range(12)
    ]
    zones = ["sa-east-1a", "sa-east-1b"]
    network = {"vpc_cidr": "10.0.0.0/16", "zones": zones}
    own = [SYSTEM_POOL, *({**pool, "zones": zones[:1]} for pool in pools)]
    file = written(tmp_path, pools=own, region="sa-east-1", network=network)

    told = ultrascale("plan", file, "--all").stdout

    assert "pool-6, pool-7 and 4 more: no price: no On-Demand price of p5.48xlarge" in told
    assert "things beside nodes have no price: EKS cluster, NAT gateways" in told
    assert "Prices that are missing: ultrascale prices sa-east-1 FILE -o prices.csv" in told


def test_windows_are_held_against_the_time_that_is_given(ultrascale: Ultrascale) -> None:
    answer = ultrascale("plan", MIXED, "--all", "--at", "2026-12-05T23:30+01:00")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "\nmixed-capacity in us-east-2 at 2026-12-05 22:30 UTC\n" in answer.stdout
    assert "running, 324.3 usable hours left" in answer.stdout


def test_a_window_that_is_over_is_a_mistake_of_the_file_and_named_where_it_stands(
    ultrascale: Ultrascale,
) -> None:
    """The plan is printed all the same: what it says of the rest is of use."""
    answer = ultrascale("plan", MIXED, "--all", "--at", "2026-12-16T00:00Z")

    assert answer.returncode == 1
    first, second = answer.stderr.splitlines()
    assert first == (
        f"{MIXED}:35:7: pools[gpu-reserved-block].purchase.ends: the window of "
        "gpu-reserved-block is over "
        "at 2026-12-16 "
        "00:00 UTC, got '2026-12-15T11:30:00Z'; write the window and the reservation that follow "
        "it, or take the pool out"
    )
    assert second.startswith(f"{MIXED}:55:7: pools[gpu-block-mng].purchase.ends: ")
    assert "L-7A658B76" in answer.stdout


def test_a_window_that_is_over_is_worse_than_a_limit(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """A gate that lets 2 pass, as agreed by word of mouth, must not let a dead block pass."""
    file = beyond(tmp_path, pool_document(name="block", purchase=CAPACITY_BLOCK))
    assert ultrascale("plan", file, "--all", "--at", "2026-12-02T00:00Z").returncode == BEYOND
    answer = ultrascale("plan", file, "--all", "--at", "2027-01-01T00:00Z")
    assert answer.returncode == 1
    assert "256,000" in answer.stderr
    assert "is over at 2027-01-01" in answer.stderr


def test_who_is_let_in_is_shown_with_what_each_may_do(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """A reviewer of the file sees who reads Secrets, and whose jobs may take which nodes."""
    role = "arn:aws:iam::111122223333:role/"
    access = [
        {"role": f"{role}R", "policy": "edit", "queue": "research"},
        {"role": f"{role}R", "policy": "view"},
        {"role": f"{role}T", "policy": "admin", "namespaces": ["training"]},
    ]
    kubernetes = {"admins": [f"{role}A"], "access": access}
    scheduling = {"queueing": "kueue", "queues": [{"name": "research"}]}
    file = written(tmp_path, kubernetes=kubernetes, scheduling=scheduling)

    told = ultrascale("plan", file, "access", "--markdown").stdout

    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in told.splitlines()]
    everywhere = "the whole cluster"
    assert [each for each in rows if each and each[0].startswith(role)] == [
        [f"{role}A", "AmazonEKSClusterAdminPolicy", everywhere, "any"],
        [f"{role}R", "AmazonEKSEditPolicy", "training", "research"],
        [f"{role}R", "AmazonEKSViewPolicy", everywhere, "sends none"],
        [f"{role}T", "AmazonEKSAdminPolicy", "training", "any"],
    ]


def test_callers_of_the_backend_are_shown_with_what_each_may_submit(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """A reviewer of the file sees every caller who could take its reserved nodes."""
    namespace = "system:serviceaccounts:backend"
    identity = {
        "issuer": "https://login.example.com",
        "admins": ["platform"],
        "rights": {namespace: {"priority": "high"}, "guests": {"kinds": ["training"]}},
    }

    def shown(**keys: object) -> str:
        jobs = {"tune": {"node_selector": {"node-type": "train"}}}
        file = written(tmp_path, jobs=jobs, backend={"submits_to": ["tune"], **keys})
        return ultrascale("plan", file, "--all", "--markdown").stdout

    told = shown(identity=identity)

    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in told.splitlines()]
    own = "its own"
    assert ["platform", "everything", "every template", "every priority", "all"] in rows
    assert [namespace, "training and batch", "tune", "high", own] in rows
    assert ["guests", "training", "tune", "no priority", own] in rows
    assert "and users of https://login.example.com" in told
    assert "refuses all of them, as backend.identity names neither" in shown()


def test_owners_of_keys_are_sent_statements_that_name_the_account_and_the_grant(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    """A security team pastes them: words of ours among them would be refused by KMS."""
    key = "arn:aws:kms:us-west-2:444455556666:key/11111111-2222-4333-8444-555555555501"
    file = written(tmp_path, account="111122223333", keys={"volumes": key})

    (sent,) = json.loads(ultrascale("plan", file, "keys", "--json").stdout)
    shown = ultrascale("plan", file, "keys", "notes", "--markdown").stdout

    assert (sent["key"], sent["uses"]) == (key, ["volumes"])
    allowed = {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}
    assert all(each.keys() <= allowed for each in sent["statements"])
    assert "ACCOUNT" not in json.dumps(sent)
    (grant,) = sent["grants"]
    assert grant.startswith(f"aws kms create-grant --region us-west-2 --key-id {key} ")
    assert "| volumes | AWSServiceRoleForAutoScaling |" in " ".join(shown.split())
    assert grant in shown


def test_the_documented_keys_are_the_ones_that_programs_find(ultrascale: Ultrascale) -> None:
    """A gate reads them: docs/plan.md is what it was written by."""
    document = json.loads(ultrascale("plan", HYBRID, "--json", "--at", "2026-12-02T00:00Z").stdout)
    told = (ROOT / "docs" / "plan.md").read_text().partition("## For programs")[2]
    listed = [document[key][0] for key in ("pools", "subnets", "calendar", "quotas", "load")]
    figures = [document["totals"], document["launch"]]
    figures += [each["figures"] for each in document["money"]["pools"]]
    parts = [document["control_plane"], document["money"], *listed]
    figures += [part["figures"] for part in parts if "figures" in part]

    keys = {key for part in (*parts, document["quotas"][0]["needed"], document) for key in part}
    assert sorted(key for key in keys if key not in told) == []
    numbers = {key for part in figures for key in part if not key.startswith("database.")}
    assert sorted(key for key in numbers if f"`{key}`" not in told) == []


def test_a_file_with_mistakes_is_refused_as_check_refuses_it(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    file = written(tmp_path, region="us-west-9")
    answer, checked = ultrascale("plan", file), ultrascale("check", file)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == checked.stderr
