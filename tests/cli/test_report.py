"""`ultrascale report`, as its user sees it."""

import json
from pathlib import Path

import pytest

from tests.support.assemblies import described, write_assembly
from tests.support.changes import Body, body, launch_template, node_group, template
from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from tests.support.pages import at_path, read_page
from tests.support.pools import as_text, make_document

TRAINIUM = ROOT / "clusters" / "trainium-bert.yaml"
AT = "2026-12-02T00:00Z"
BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
LUSTRE = "AWS::FSx::FileSystem"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each command in a folder of its own, into which it may write."""
    monkeypatch.chdir(tmp_path)


def test_a_page_is_written_whose_figures_the_command_plan_prints(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    answer = ultrascale("report", TRAINIUM, "--at", AT)
    document = json.loads(ultrascale("plan", TRAINIUM, "--json", "--at", AT).stdout)

    assert (answer.returncode, answer.stdout) == (0, "")
    assert answer.stderr == "wrote report.html\n"
    page = read_page((tmp_path / "report.html").read_text())
    figures = [element.attributes for element in page.walk() if "data-figure" in element.attributes]
    assert len(figures) > 100
    for attributes in figures:
        told = at_path(document, attributes["data-figure"])
        shown = attributes.get("value", attributes.get("data-value"))
        assert shown == ("" if told is None else str(told))


def test_markdown_and_standard_output_are_there_for_a_pull_request(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    answer = ultrascale("report", TRAINIUM, "--markdown", "-o", "-")
    assert answer.returncode == 0
    assert answer.stdout.startswith("## trainium-bert in us-west-2\n")
    assert answer.stderr == ""
    assert [*tmp_path.iterdir()] == []
    assert ultrascale("report", TRAINIUM, "--markdown").returncode == 0
    assert (tmp_path / "report.md").read_text() == answer.stdout


def test_an_older_page_is_replaced_as_a_whole_and_keeps_its_mode(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text("old" * 100_000)
    page.chmod(0o640)
    assert ultrascale("report", TRAINIUM, "-o", page).returncode == 0
    assert "old" * 9 not in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o640
    assert [*tmp_path.iterdir()] == [page]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (".", "--output: is a folder, got .; name a file in it"),
        ("away/report.html", "--output: there is no folder away; make it first"),
        ("cluster.yaml", "--output: is the cluster file, got cluster.yaml; name another file"),
        ("link.html", "--output: is the cluster file, got link.html; name another file"),
    ],
)
def test_nothing_is_written_where_a_page_has_no_place(
    output: str, said: str, ultrascale: Ultrascale, tmp_path: Path
) -> None:
    text = as_text(make_document())
    (tmp_path / "cluster.yaml").write_text(text)
    (tmp_path / "link.html").symlink_to("cluster.yaml")
    answer = ultrascale("report", "cluster.yaml", "-o", output)
    assert (answer.returncode, answer.stderr.strip()) == (1, said)
    assert (tmp_path / "cluster.yaml").read_text() == text
    assert len([*tmp_path.iterdir()]) == 2


def test_a_full_disk_leaves_the_older_page(
    ultrascale: Ultrascale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    answer = ultrascale("report", TRAINIUM, "-o", page)

    assert answer.returncode == 1
    assert "nothing was written: no space left on device" in answer.stderr
    assert page.read_text() == "old"
    assert [*tmp_path.iterdir()] == [page]


def saved(folder: Path, **stacks: dict[str, Body]) -> Path:
    """Write an assembly of ``stacks`` beside the cluster's, and return its folder."""
    templates = {f"research-{name}": template(body) for name, body in stacks.items()}
    templates["research-cluster"] = template({})
    return write_assembly(folder, {name: described(each) for name, each in templates.items()})


def test_the_guard_says_what_a_deployment_would_lose_and_open(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    (tmp_path / "cluster.yaml").write_text(as_text(make_document()))
    old, new = (
        saved(
            tmp_path / scheme,
            storage={"A": body(LUSTRE, {"SubnetIds": [scheme]})},
            **{"serving-front": {"B": body(BALANCER, {"Scheme": scheme})}},
        )
        for scheme in ("internal", "internet-facing")
    )
    options = ("--against", old, "--assembly", new)

    answer = ultrascale("report", "cluster.yaml", *options)
    told = ultrascale("report", "cluster.yaml", *options, "--markdown", "-o", "-").stdout

    assert answer.returncode == 0
    page = read_page((tmp_path / "report.html").read_text())
    (section,) = (part for part in page.all("section") if part.attributes["id"] == "changes")
    assert "loses data: the file system and all files on it" in section.text
    assert "the file system and all files on it" in told
    for text in (section.text, told):
        assert "Refused: exposes, loses data" in text
    assert "exposes: Scheme: internal -> internet-facing" in told.replace("\\", "")


def test_figures_of_running_nodes_are_those_of_diff(ultrascale: Ultrascale, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(as_text(make_document()))
    old, new = (
        saved(tmp_path / types, train={"Template": launch_template(types), "Group": node_group()})
        for types in ("p5.48xlarge", "p5en.48xlarge")
    )
    options = ("--against", old, "--assembly", new)

    ultrascale("report", "cluster.yaml", *options)
    document = json.loads(ultrascale("diff", "cluster.yaml", *options, "--json").stdout)

    page = read_page((tmp_path / "report.html").read_text())
    told = {
        element.attributes["data-figure"]: element.attributes["value"]
        for element in page.all("data")
        if element.attributes["data-figure"].startswith("diff.")
    }
    assert told
    for path, value in told.items():
        number = at_path(document, path.removeprefix("diff."))
        assert value == ("" if number is None else str(number))
