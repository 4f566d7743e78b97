"""`ultrascale network needs`: a page that somebody without the file can work from."""

import json
from pathlib import Path

import pytest
import yaml

from tests.support.account import fake_account
from tests.support.command_line import Ultrascale
from tests.support.described_vpcs import answers
from tests.support.existing_vpc import OWNER, VPC, existing_document
from ultrascale.account import Account

NODES = "subnet-0a1b2c3d4e5f60021"


def write(folder: Path) -> Path:
    """Write a file whose network lacks nearly every endpoint."""
    path = folder / "estate.yaml"
    document = existing_document(egress="none", endpoints={"present": ["ec2"]})
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_page_is_there_before_the_network_is(tmp_path: Path, ultrascale: Ultrascale) -> None:
    answer = ultrascale("network", "needs", str(write(tmp_path)), "--markdown")

    assert (answer.returncode, answer.stderr) == (0, "")
    headings = [line for line in answer.stdout.splitlines() if line.startswith("## ")]
    assert headings == [
        *("## VPC", "## DNS and DHCP", "## Subnets", "## Routes", "## Endpoints"),
        *("## Security groups", "## Tags", "## Quotas"),
    ]
    assert "| com.amazonaws.us-east-1.lambda | interface, private DNS names | to make |" in (
        answer.stdout
    )


def test_programs_read_the_same(tmp_path: Path, ultrascale: Ultrascale) -> None:
    path = str(write(tmp_path))
    text, data = (
        ultrascale("network", "needs", path),
        ultrascale("network", "needs", path, "--json"),
    )
    needs = json.loads(data.stdout)["needs"]
    assert (text.returncode, data.returncode) == (0, 0)
    assert all(need["subject"] in text.stdout for need in needs)


def test_a_mistake_of_the_file_is_told_as_by_check(tmp_path: Path, ultrascale: Ultrascale) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(existing_document(egress="nowhere")))
    answer = ultrascale("network", "needs", str(path))
    assert answer.returncode == 1
    assert "network.egress" in answer.stderr


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the credentials be those of an account that shares the VPC of `existing_vpc`."""

    def connect(region: str, profile: str | None = None) -> Account:
        del profile
        return fake_account(answers(owner=OWNER, available={NODES: 4000}), region=region)[0]

    monkeypatch.setattr("ultrascale.account.connect", connect)


@pytest.mark.usefixtures("account")
def test_recorded_facts_are_in_the_file_and_what_cannot_be_seen_is_said(
    tmp_path: Path, ultrascale: Ultrascale
) -> None:
    path = tmp_path / "estate.yaml"
    path.write_text(yaml.safe_dump(existing_document(egress="transit-gateway")))

    answer = ultrascale("network", "record", VPC, str(path))

    assert answer.returncode == 0
    assert f"  {NODES}: free_addresses 4000\n" in answer.stdout
    assert f"{NODES}: 163 free /28 blocks are certain" in " ".join(answer.stderr.split())
    subnets = yaml.safe_load(path.read_text())["network"]["subnets"]
    by_id = {subnet["id"]: subnet for subnet in subnets}
    assert (by_id[NODES]["free_addresses"], by_id[NODES]["free_prefixes"]) == (4000, 163)
    again = ultrascale("network", "record", VPC, str(path))
    assert again.stdout == f"{path}: every recorded fact is as it was\n"


@pytest.mark.usefixtures("account")
def test_without_a_file_the_section_of_a_new_one_is_printed(ultrascale: Ultrascale) -> None:
    answer = ultrascale("network", "record", VPC, "--region", "us-east-1")
    assert answer.returncode == 0
    network = yaml.safe_load(answer.stdout)["network"]
    assert network["vpc"]["owner"] == OWNER
    assert len(network["subnets"]) == 5


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--region: which Region the VPC is in"),
        (("FILE", "--region", "us-east-1"), "--region: the file names its Region"),
    ],
)
def test_the_region_is_said_once(
    words: tuple[str, ...], told: str, tmp_path: Path, ultrascale: Ultrascale
) -> None:
    path = str(write(tmp_path))
    answer = ultrascale("network", "record", VPC, *(path if w == "FILE" else w for w in words))
    assert answer.returncode == 64
    assert told in answer.stderr


@pytest.mark.usefixtures("account")
def test_a_file_with_a_vpc_of_its_own_has_nothing_to_record(ultrascale: Ultrascale) -> None:
    answer = ultrascale("network", "record", VPC, "clusters/auto-mode.yaml")
    assert answer.returncode == 1
    assert "network: no vpc; leave FILE out to get its keys" in answer.stderr
