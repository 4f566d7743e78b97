"""Folders beside the cluster file that images are built from, and the record that went."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from tests.support.pools import as_text, make_document
from ultrascale import config, plan
from ultrascale.errors import ConfigError, UltrascaleError
from ultrascale.own_images import files_of

KEY = "images.builds.llm: "
PAGE = ROOT / "docs" / "images.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A cluster file whose image is built from the folder `mine` beside it."""
    path = tmp_path / "clusters" / "cluster.yaml"
    mine = path.parent / "mine"
    mine.mkdir(parents=True)
    (mine / "Dockerfile").write_text("FROM a\nUSER 5\n")
    path.write_text(as_text(make_document(images=images("./mine"))))
    return path


def images(folder: str) -> dict[str, object]:
    return {"repositories": ["llm"], "builds": {"llm": folder}}


def lines(file: Path) -> list[str]:
    """Return what is wrong with a cluster file, each with its key."""
    with pytest.raises(ConfigError) as refused:
        plan.load(file)
    return [each.keyed for each in refused.value.diagnostics]


def test_the_folder_is_built_whose_path_the_file_states(file: Path) -> None:
    (build,) = plan.load(file).images.builds

    assert build.own is not None
    assert (build.own.location, build.non_root) == (file.parent / "mine", True)


def gone(mine: Path) -> None:
    (mine / "Dockerfile").unlink()
    mine.rmdir()


def file_instead(mine: Path) -> None:
    gone(mine)
    mine.write_text("")


def without_dockerfile(mine: Path) -> None:
    (mine / "Dockerfile").rename(mine / "dockerfile.txt")


def linked_folder(mine: Path) -> None:
    outside = mine.parents[1] / "outside"
    mine.rename(outside)
    mine.symlink_to(outside)


def link_that_leaves(mine: Path) -> None:
    secret = mine.parents[1] / "id_rsa"
    secret.write_text("secret")
    (mine / "key").symlink_to(secret)


def folder_that_leaves(mine: Path) -> None:
    (mine / "data").symlink_to(mine.parent)


def link_to_a_folder(mine: Path) -> None:
    (mine / "real").mkdir()
    (mine / "linked").symlink_to("real")


def broken_link(mine: Path) -> None:
    (mine / "gone").symlink_to("nothing")


def socket(mine: Path) -> None:
    os.mkfifo(mine / "pipe")


COPY = "copy what it leads to: a build gets the files of its folder alone"
WRONG: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "no folder": (gone, "no folder MINE", "make it, with a Dockerfile in it, or correct the path"),
    "a file": (file_instead, "no folder MINE", "or correct the path"),
    "no Dockerfile": (without_dockerfile, "no Dockerfile in MINE", "add MINE/Dockerfile"),
    "a linked folder": (linked_folder, "MINE is a link that leaves the folder of the", COPY),
    "a link that leaves": (link_that_leaves, "MINE/key is a link that leaves the folder", COPY),
    "a folder that leaves": (folder_that_leaves, "MINE/data is a link that leaves", COPY),
    "a link to a folder": (link_to_a_folder, "MINE/linked is a link to a folder", COPY),
    "a broken link": (broken_link, "MINE/gone is no file that can be read", "take it out"),
    "a pipe": (socket, "MINE/pipe is no file that can be read", "take it out of the folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_build_would_not_get_is_refused_at_the_key(file: Path, case: str) -> None:
    change, wrong, todo = WRONG[case]
    mine = file.parent / "mine"
    change(mine)

    (line,) = lines(file)

    assert line.startswith(KEY + wrong.replace("MINE", str(mine)))
    assert todo.replace("MINE", str(mine)) in line
    assert "got './mine'" in line


def test_a_link_within_the_folder_is_the_file_that_it_leads_to(file: Path) -> None:
    mine = file.parent / "mine"
    (mine / "v1.sh").write_text("true\n")
    before = plan.load(file).images.builds[0].tag
    (mine / "start.sh").symlink_to("v1.sh")

    planned = plan.load(file)

    assert planned.images.builds[0].tag != before
    assert planned.images.builder is not None
    assert planned.images.builder.sources["own/mine/start.sh"] == mine / "start.sh"


def test_a_dockerfile_that_is_no_text_is_refused(file: Path) -> None:
    (file.parent / "mine" / "Dockerfile").write_bytes(b"\xff\xfe")

    (line,) = lines(file)

    assert line.startswith(f"{KEY}a folder that cannot be read: ")


def test_mistakes_of_folders_are_told_with_the_others(file: Path) -> None:
    file.write_text(as_text(make_document(images=images("./other"), name="NO")))

    assert {line.partition(":")[0] for line in lines(file)} == {"name", "images.builds.llm"}


def test_a_file_that_is_at_hand_as_text_has_no_folder(file: Path) -> None:
    cluster = config.loads(file.read_text())

    with pytest.raises(UltrascaleError, match=r"images\.builds\.llm: no folder \./mine is known"):
        plan.plan_cluster(cluster)


def test_the_folders_of_a_file_are_known_before_they_are_there(file: Path) -> None:
    gone(file.parent / "mine")

    assert config.own_folders(file) == ("./mine",)


# --- the record of `ultrascale eject` ------------------------------------------------------------

EJECTED = {
    "images/nvidia": "state images.builds.REPOSITORY: ./images/nvidia, and let its Dockerfile copy "
    "from that folder alone",
    "training": "copy it into a folder of images.builds whose Dockerfile installs it",
    "backend/rules": "write what backend/rules.yaml holds as backend.rules",
    "charts/training-job": "go on to name it by its path",
    "jobs": "go on to name it by its path",
}


@pytest.mark.parametrize("command", ["check", "plan", "synth", "submit"])
def test_a_file_beside_a_record_of_copies_is_refused_with_what_to_do(
    file: Path, ultrascale: Ultrascale, command: str
) -> None:
    entry: dict[str, object] = {"version": "0.1.0", "files": {}}
    record = file.parent / "ejected.json"
    record.write_text(json.dumps(dict.fromkeys(EJECTED, entry)))

    more = ["job", "--dry-run"] if command == "submit" else []
    answer = ultrascale(command, file, *more)

    assert answer.returncode == 1
    for name, todo in EJECTED.items():
        line = f"{record}: {name}: copies of the product's files are not read any more; {todo}"
        assert line in answer.stderr
    assert answer.stderr.count("then delete ejected.json") == len(EJECTED)


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_a_record_of_nothing_is_refused_too(file: Path, content: str) -> None:
    (file.parent / "ejected.json").write_text(content)

    assert [line.rpartition("; ")[2] for line in lines(file)] == ["delete ejected.json"]


# --- docs/images.md ------------------------------------------------------------------------------


def test_the_folder_of_the_page_has_all_that_its_dockerfile_copies(tmp_path: Path) -> None:
    section = PAGE.read_text().split("## A Dockerfile of your own\n")[1]
    commands = section.split("```sh\n")[1].split("```")[0]
    python = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{python}{os.pathsep}{os.environ['PATH']}"}

    subprocess.run(["bash", "-euc", commands], cwd=tmp_path, env=environment, check=True)

    mine = tmp_path / "mine"
    sent = files_of(mine)
    copied = re.findall(r"^COPY ([^-]\S*) ", (mine / "Dockerfile").read_text(), re.MULTILINE)
    assert copied == ["wheel-requirements.txt", "examples/bert", "training", "requirements.txt"]
    assert all(any(path.startswith(name) for path in sent) for name in copied)
