"""`ultrascale upgrade-plan`, as its user sees it."""

import json
import re
from pathlib import Path

import pytest

from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from tests.support.pools import as_text, make_document
from ultrascale.plan import load, names
from ultrascale.plan.upgrade.pools import pool_upgrades
from ultrascale.plan.upgrade.report import upgrade_steps


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster file, beside what it was synthesized to."""
    monkeypatch.chdir(tmp_path)
    synthesized("research")
    write("- {}")
    path = tmp_path / "cluster.yaml"
    path.write_text(as_text(make_document()))
    return path


def synthesized(name: str) -> None:
    Path("cdk.out").mkdir(exist_ok=True)
    Path("cdk.out/manifest.json").write_text("{}")
    template = {"Description": names.stack_description(name)}
    Path("cdk.out/research-network.template.json").write_text(json.dumps(template))


def write(text: str) -> None:
    Path("dist").mkdir(exist_ok=True)
    Path("dist/platform.k8s.yaml").write_text(text)


def test_the_steps_of_an_upgrade_come_in_their_order(ultrascale: Ultrascale, file: Path) -> None:
    answer = ultrascale("upgrade-plan", file, "--to", "1.36")

    steps = [line.strip() for line in answer.stdout.splitlines() if re.match(r"  \d+\. ", line)]
    assert answer.returncode == 0
    assert [step.partition(".")[0] for step in steps] == [str(n + 1) for n in range(len(steps))]
    assert f'write `version: "1.36"` under `kubernetes` in {file}' in answer.stdout
    assert (
        "1.35: in standard support until 2027-03-27, then for $0.50 an hour more until 2028-03-27"
    ) in answer.stdout
    assert "the way back: within 7 days of an upgrade" in answer.stdout
    unknown = answer.stdout.partition("not known here:")[2]
    assert "free addresses of the control plane: `ultrascale preflight` asks" in unknown
    assert "manifests of your own and of charts: --also FOLDER reads them" in unknown


OLD = "apiVersion: storage.k8s.io/v1alpha1\nkind: VolumeAttributesClass\nmetadata: {name: mine}\n"


@pytest.mark.parametrize(
    "text", [OLD, "kind: List\nitems:\n- " + OLD.strip().replace("\n", "\n  ")]
)
@pytest.mark.parametrize("place", ["own", "own/nested/a.yml"])
def test_manifests_of_ones_own_are_read_as_well(
    ultrascale: Ultrascale, file: Path, text: str, place: str
) -> None:
    Path("own/nested").mkdir(parents=True)
    Path("own/nested/a.yml").write_text(text)
    answer = ultrascale("upgrade-plan", file, "--to", "1.36", "--also", place)
    assert answer.returncode == 3
    assert "own/nested/a.yml: VolumeAttributesClass mine: storage.k8s.io/v1alpha1" in answer.stdout
    assert "manifests of your own" not in answer.stdout
    assert "in this order" not in answer.stdout


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("kind: {{ .Values.kind }}", "a.yaml: not YAML; render it first (`helm template`)"),
        ("a: [", "a.yaml: not YAML; "),
        ("{kind: List, items: [text]}", "a.yaml: an item of a List is no object, got 'text'"),
        ("{kind: Pod, metadata: mine}", "a.yaml: metadata is no mapping, got 'mine'"),
        (None, "--also: no manifests in own/a.yaml; write a file or a folder"),
    ],
)
def test_manifests_that_cannot_be_read_are_no_clean_ones(
    ultrascale: Ultrascale, file: Path, text: str | None, what: str
) -> None:
    Path("own").mkdir()
    if text is not None:
        Path("own/a.yaml").write_text(text)
    answer = ultrascale("upgrade-plan", file, "--to", "1.36", "--also", "own/a.yaml")
    assert answer.returncode == 1
    assert what in answer.stderr


def test_programs_read_it_as_json(ultrascale: Ultrascale, file: Path) -> None:
    found = json.loads(ultrascale("upgrade-plan", file, "--to", "1.36", "--json").stdout)
    assert found["support"][1]["standard_ends"] == "2027-08-02"
    assert found["steps"]
    assert "manifests of your own and of charts: --also FOLDER reads them" in found["unknown"]
    assert [each["pool"] for each in found["pools"]] == ["system", "train"]


@pytest.mark.parametrize(
    ("gone", "says"),
    [
        # Of its stacks one may be called as one of this file's.
        (None, "cdk.out: synthesized from another cluster file"),
        ("cdk.out/manifest.json", "ultrascale synth"),
        ("dist/platform.k8s.yaml", "ultrascale synth"),
    ],
)
def test_nothing_is_said_of_what_is_not_synthesized_from_this_file(
    ultrascale: Ultrascale, file: Path, gone: str | None, says: str
) -> None:
    if gone:
        Path(gone).unlink()
    else:
        synthesized("other")
    answer = ultrascale("upgrade-plan", file, "--to", "1.36")
    assert answer.returncode == 1
    assert says in answer.stderr


def test_every_command_that_the_steps_name_is_one_of_the_program(ultrascale: Ultrascale) -> None:
    plan = load(ROOT / "clusters" / "mixed-capacity.yaml")
    steps = upgrade_steps(
        plan, pool_upgrades(plan.nodes, plan.all_pools, "1.36"), then="1.36", file="c.yaml"
    )

    commands = {
        each.split()[0]: each for step in steps for each in re.findall("`ultrascale ([^`]+)`", step)
    }

    assert {*commands} == {"deploy", "preflight", "roll", "scale", "status"}
    for each in commands.values():
        assert ultrascale(*each.split(), "--help").returncode == 0, each


def test_an_assembly_that_was_broken_off_is_refused(ultrascale: Ultrascale, file: Path) -> None:
    Path("cdk.out/research-network.template.json").write_text('{"Description"')
    answer = ultrascale("upgrade-plan", file, "--to", "1.36")
    assert answer.returncode == 1
    assert "research-network.template.json: not JSON" in answer.stderr
