"""`ultrascale network needs`: a page that somebody without the file can work from."""

import json
from pathlib import Path

import yaml

from tests.support.command_line import Ultrascale
from tests.support.existing_vpc import existing_document


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


def test_one_form_is_chosen(tmp_path: Path, ultrascale: Ultrascale) -> None:
    answer = ultrascale("network", "needs", str(write(tmp_path)), "--json", "--markdown")

    assert answer.returncode == 64
    assert "--markdown: --json prints no tables" in answer.stderr


def test_a_mistake_of_the_file_is_told_as_by_check(tmp_path: Path, ultrascale: Ultrascale) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(existing_document(egress="nowhere")))

    answer = ultrascale("network", "needs", str(path))

    assert answer.returncode == 1
    assert "network.egress" in answer.stderr
