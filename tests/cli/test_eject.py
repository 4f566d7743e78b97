"""`ultrascale eject`: a user's own Dockerfile is what is built, and nothing of theirs is lost."""

import json
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from ultrascale import eject as ejecting
from ultrascale import new_files, plan
from ultrascale.ejected import EJECTABLE, RECORD
from ultrascale.resources import resource

IMAGE = "images/neuron"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a user's folder, which is the current one, with a cluster file."""
    text = (ROOT / "clusters" / "trainium-bert.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entries(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def tags(file: str = "mine.yaml") -> dict[str, str]:
    return {build.repository: build.tag for build in plan.load(Path(file)).image_builds}


def sources(file: str = "mine.yaml") -> dict[str, Path]:
    builder = plan.load(Path(file)).image_builder
    assert builder is not None
    return dict(builder.sources)


def test_a_fresh_copy_builds_the_same_image(folder: Path, ultrascale: Ultrascale) -> None:
    before = tags()

    answer = ultrascale("eject", IMAGE)

    assert (answer.returncode, answer.stderr) == (0, "")
    assert "images/neuron: yours, used by cluster files in ." in answer.stdout
    own = resource(IMAGE)
    for path in ("Dockerfile", "requirements.txt"):
        assert (folder / IMAGE / path).read_bytes() == (own / path).read_bytes()
    assert tags() == before


def test_a_changed_dockerfile_is_built_under_a_tag_of_its_own(
    folder: Path, ultrascale: Ultrascale
) -> None:
    before = tags()
    ultrascale("eject", IMAGE)
    with (folder / IMAGE / "Dockerfile").open("a") as dockerfile:
        dockerfile.write("ENV MINE=1\n")
    (folder / IMAGE / "extra.sh").write_text("true\n")

    after = tags()

    assert {name for name in after if after[name] != before[name]} == {"bert-pretrain"}
    staged = sources()
    assert staged[f"{IMAGE}/Dockerfile"] == Path(IMAGE) / "Dockerfile"
    assert staged[f"{IMAGE}/extra.sh"] == Path(IMAGE) / "extra.sh"
    assert staged["images/tensorboard/Dockerfile"] == resource("images/tensorboard/Dockerfile")


def test_whatever_a_user_adds_to_an_image_is_built_but_not_what_tools_leave(
    folder: Path, ultrascale: Ultrascale
) -> None:
    """A Dockerfile may COPY from `dist` or `build`; without the file its build would fail."""
    ultrascale("eject", IMAGE, "training")
    before = tags()
    left = (".DS_Store", "__pycache__/a.pyc", ".pytest_cache/b", ".ruff_cache/c")
    for path in (*(f"{IMAGE}/{name}" for name in left), "training/build/lib/d.py"):
        (folder / path).parent.mkdir(exist_ok=True, parents=True)
        (folder / path).write_text("left")
    assert tags() == before

    for path in ("dist/my.whl", "build/fix.patch"):
        (folder / IMAGE / path).parent.mkdir()
        (folder / IMAGE / path).write_text("mine")

    assert tags()["bert-pretrain"] != before["bert-pretrain"]
    staged = sources()
    assert {f"{IMAGE}/dist/my.whl", f"{IMAGE}/build/fix.patch"} <= staged.keys()
    assert not [path for path in staged if path.endswith(left) or "training/build" in path]


def test_a_program_that_becomes_executable_makes_a_new_image(
    folder: Path, ultrascale: Ultrascale
) -> None:
    ultrascale("eject", IMAGE)
    (folder / IMAGE / "entrypoint.sh").write_text("exec train\n")
    (folder / IMAGE / "entrypoint.sh").chmod(0o644)
    before = tags()

    (folder / IMAGE / "entrypoint.sh").chmod(0o755)

    assert {name for name, tag in tags().items() if tag != before[name]} == {"bert-pretrain"}


def test_a_file_that_the_user_removed_is_no_source_any_more(
    folder: Path, ultrascale: Ultrascale
) -> None:
    ultrascale("eject", "training")
    (folder / "training/ultrascale_training/examples.py").unlink()

    assert "training/ultrascale_training/examples.py" not in sources()
    assert "training/ultrascale_training/start.py" in sources()


def test_a_folder_that_was_never_ejected_changes_nothing(folder: Path) -> None:
    before = tags()
    (folder / IMAGE).mkdir(parents=True)
    (folder / IMAGE / "Dockerfile").write_text("FROM scratch\n")

    assert tags() == before


def test_check_says_that_the_copy_is_used(folder: Path, ultrascale: Ultrascale) -> None:
    assert IMAGE not in ultrascale("check", "mine.yaml").stderr
    ultrascale("eject", IMAGE)

    answer = ultrascale("check", "mine.yaml")

    assert answer.returncode == 0
    assert f"{IMAGE} is your copy in {IMAGE}" in answer.stderr
    assert "changed" not in answer.stderr
    assert f"note: {IMAGE} is your copy" in ultrascale("plan", "mine.yaml").stderr
    decisions = json.loads(ultrascale("plan", "mine.yaml", "--json").stdout)["decisions"]
    (used,) = (each for each in decisions if each["subjects"] == [IMAGE])
    assert used["choice"] == "your copy beside the cluster file is used"


def age(folder: Path) -> None:
    """Make the record one of a version whose Dockerfile was another."""
    record = json.loads((folder / RECORD).read_text())
    record[IMAGE] |= {"version": "0.0.1"}
    record[IMAGE]["files"]["Dockerfile"] = "0" * 64
    (folder / RECORD).write_text(json.dumps(record))


def test_check_warns_when_ours_has_changed_until_the_user_has_reviewed_it(
    folder: Path, ultrascale: Ultrascale
) -> None:
    ultrascale("eject", IMAGE)
    age(folder)

    warned = ultrascale("check", "mine.yaml").stderr
    assert f"warning: {IMAGE} was ejected from ultrascale 0.0.1" in warned
    assert "has changed Dockerfile since" in warned
    assert "`ultrascale eject images/neuron --reviewed`" in warned
    assert "ours has changed since" in " ".join(ultrascale("eject", "--list").stdout.split())

    assert ultrascale("eject", IMAGE, "--reviewed").returncode == 0
    assert "warning" not in ultrascale("check", "mine.yaml").stderr


def test_rules_of_the_backend_are_read_from_the_copy(folder: Path, ultrascale: Ultrascale) -> None:
    text = (ROOT / "clusters" / "hybrid-hyperpod.yaml").read_text()
    text = text.replace("  namespace: backend\n", "  namespace: backend\n  image: backend\n")
    text = text.replace("jobs:\n", "images: {repositories: [backend]}\n\njobs:\n", 1)
    (folder / "mine.yaml").write_text(text)
    assert ultrascale("eject", "backend/rules").returncode == 0
    before = tags()
    rules = folder / "backend" / "rules.yaml"

    rules.write_text(rules.read_text().replace("template: research}", "template: nothing}"))
    refused = ultrascale("check", "mine.yaml")
    assert refused.returncode == 1
    number = 1 + next(n for n, t in enumerate(rules.read_text().splitlines()) if "nothing}" in t)
    assert re.match(rf"backend/rules\.yaml:{number}:\d+: rules\[", refused.stderr)

    rules.write_text(rules.read_text().replace("template: nothing}", "template: development}"))
    backend = plan.load(Path("mine.yaml")).backend
    assert backend is not None
    assert backend.application is not None
    assert "research-urgent" in backend.application.files["rules.yaml"]
    # They are configuration: a change of them builds no new image.
    assert tags() == before


def test_every_name_can_be_ejected_at_once(folder: Path, ultrascale: Ultrascale) -> None:
    answer = ultrascale("eject", *EJECTABLE)

    assert answer.returncode == 0
    assert all((folder / each.copy).exists() for each in EJECTABLE.values())
    assert not [path for path in entries(folder) if "__pycache__" in path or ".ultrascale-" in path]
    assert ultrascale("check", "mine.yaml").returncode == 0


def test_a_copy_for_files_of_another_folder_is_told(
    folder: Path, tmp_path: Path, ultrascale: Ultrascale
) -> None:
    answer = ultrascale("eject", IMAGE, "--to", tmp_path / "new" / "place")

    assert answer.returncode == 0
    assert (tmp_path / "new" / "place" / IMAGE / "Dockerfile").is_file()
    assert "those elsewhere do not use it" in answer.stderr


def test_what_is_there_is_never_overwritten(folder: Path, ultrascale: Ultrascale) -> None:
    (folder / "charts").mkdir()
    (folder / "charts" / "training-job").mkdir()
    values = folder / "charts" / "training-job" / "values.yaml"
    values.write_text("mine: 1\n")
    before = entries(folder)

    answer = ultrascale("eject", IMAGE, "charts/training-job")

    assert answer.returncode == 1
    assert "it has charts/training-job/values.yaml already" in answer.stderr
    assert entries(folder) == before
    assert values.read_text() == "mine: 1\n"


def test_a_second_eject_keeps_the_changed_copy(folder: Path, ultrascale: Ultrascale) -> None:
    ultrascale("eject", IMAGE)
    (folder / IMAGE / "Dockerfile").write_text("FROM mine\n")

    answer = ultrascale("eject", IMAGE)

    assert answer.returncode == 1
    assert "ejected already" in answer.stderr
    assert (folder / IMAGE / "Dockerfile").read_text() == "FROM mine\n"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_leaves_nothing_behind(
    error: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = entries(folder)
    renames = iter([None, None, error])

    def rename(self: Path, target: Path) -> None:
        if (wrong := next(renames)) is not None:
            raise wrong
        self.replace(target)

    monkeypatch.setattr(new_files.Path, "rename", rename)

    with pytest.raises((ejecting.UltrascaleError, KeyboardInterrupt)):
        ejecting.eject(["charts/training-job"], folder)

    assert entries(folder) == before


def test_ctrl_c_at_the_last_moment_leaves_copies_and_their_record_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record without its copies would refuse every cluster file of the folder."""
    replace = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        done = replace(self, target)
        signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(new_files.Path, "replace", interrupted)

    with pytest.raises(KeyboardInterrupt):
        ejecting.eject([IMAGE], folder)

    assert (folder / RECORD).is_file()
    assert (folder / IMAGE / "Dockerfile").is_file()
    assert not [path for path in entries(folder) if ".ultrascale-" in path]


BAD_NAMES = [
    (["images/nvdia"], "did you mean images/nvidia?"),
    (["images"], "write one of images/neuron, images/nvidia"),
    (["images/nvidia/Dockerfile"], "write one of images/nvidia"),
    (["../secrets"], "known: backend/rules"),
]


@pytest.mark.parametrize(("names", "told"), BAD_NAMES)
def test_a_name_that_cannot_be_ejected_is_told(
    names: list[str], told: str, folder: Path, ultrascale: Ultrascale
) -> None:
    before = entries(folder)

    answer = ultrascale("eject", *names)

    assert answer.returncode == 1
    assert told in answer.stderr
    assert entries(folder) == before


@pytest.mark.parametrize("words", [[], ["--list", IMAGE], ["--list", "--reviewed"]])
def test_wrong_use_is_told(words: list[str], folder: Path, ultrascale: Ultrascale) -> None:
    assert ultrascale("eject", *words).returncode == 64


BROKEN = [
    ("{", "cannot be read: no JSON"),
    ("[]", "not a record of ultrascale"),
    ('{"images/nvida": {"version": "1", "files": {}}}', "did you mean images/nvidia?"),
    ('{"gone": {"version": "1", "files": {}}}', "nothing that this version"),
    ('{"images/cpu": {"version": "1", "files": {}}}', "images/cpu is missing; restore it"),
    ('{"images/nvidia": {"version": "1", "files": {}}}', "Dockerfile is missing; restore it"),
]


@pytest.mark.parametrize(("record", "told"), BROKEN)
def test_a_copy_or_a_record_that_is_lost_is_no_silent_change_of_the_image(
    record: str, told: str, folder: Path, ultrascale: Ultrascale
) -> None:
    (folder / "images" / "nvidia").mkdir(parents=True)
    (folder / RECORD).write_text(record)

    answer = ultrascale("check", "mine.yaml")

    assert answer.returncode == 1
    assert told in answer.stderr
    assert RECORD in answer.stderr


def test_a_chart_that_nothing_here_reads_may_be_deleted(
    folder: Path, ultrascale: Ultrascale
) -> None:
    ultrascale("eject", "charts/training-job")
    shutil.rmtree(folder / "charts")

    assert ultrascale("check", "mine.yaml").returncode == 0
    assert "your copy" not in ultrascale("eject", "--list").stdout


def test_what_a_build_would_not_get_is_told(folder: Path, ultrascale: Ultrascale) -> None:
    ultrascale("eject", IMAGE)
    (folder / "elsewhere").mkdir()
    (folder / IMAGE / "linked").symlink_to(folder / "elsewhere")
    (folder / IMAGE / "gone").symlink_to(folder / "nowhere")

    answer = ultrascale("check", "mine.yaml")

    assert answer.returncode == 1
    for name in ("linked", "gone"):
        assert f"{IMAGE}/{name} is no file that can be read" in answer.stderr
