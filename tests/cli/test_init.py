"""`ultrascale init`: from an empty folder to a file that passes, or to nothing at all."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import Ultrascale
from ultrascale import config, new_files, plan
from ultrascale.init import STARTS
from ultrascale.jobs.preparation import prepare

ROLE = "arn:aws:iam::444455556666:role/Admins"
Terminal = Callable[[str], None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Answer what is asked on a terminal by the lines of a text."""

    def answer(lines: str) -> None:
        left = iter(lines.split("\n"))

        def read(prompt: str = "") -> str:
            sys.stdout.write(prompt)
            try:
                return next(left)
            except StopIteration:
                raise KeyboardInterrupt from None

        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        monkeypatch.setattr("typer._click.termui.visible_prompt_func", read)

    return answer


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def own_name(name: str) -> dict[str, object]:
    document = yaml.safe_load(STARTS[name].path.read_text())
    return {**document, "name": "my-cluster"}


@pytest.mark.parametrize("start", STARTS)
def test_what_is_written_passes_check_and_is_the_example(
    start: str, folder: Path, ultrascale: Ultrascale
) -> None:
    assert ultrascale("init", "my-cluster", "--from", start).returncode == 0

    assert ultrascale("check", "my-cluster.yaml").returncode == 0
    assert yaml.safe_load((folder / "my-cluster.yaml").read_text()) == own_name(start)
    for path in sorted((folder / "jobs").glob("*.yaml")):
        job = prepare(Path("my-cluster.yaml"), path, account="111122223333")
        assert job.objects
        assert "my-cluster.yaml jobs/" in path.read_text()
        assert "clusters/" not in path.read_text()


def test_it_writes_a_repository_that_holds_nothing_of_ours(
    folder: Path, ultrascale: Ultrascale
) -> None:
    answer = ultrascale("init", "my-cluster", "--yes")

    assert (answer.returncode, answer.stderr) == (0, "")
    assert names(folder) == {
        ".github/workflows/ultrascale.yaml",
        ".gitignore",
        ".ultrascale/cluster.schema.json",
        "README.md",
        "cdk.json",
        "my-cluster.yaml",
        "requirements.txt",
    }
    app = (folder / "cdk.json").read_text()
    assert json.loads(app) == {
        "app": "ultrascale app",
        "versionReporting": False,
        "notices": False,
        "context": {"cli-telemetry": False},
    }
    assert "kubernetes.admins is a stand-in" in answer.stdout
    assert "next: ultrascale check my-cluster.yaml" in answer.stdout


def test_ci_checks_plans_and_compares(folder: Path, ultrascale: Ultrascale) -> None:
    ultrascale("init", "my-cluster", "--yes")

    workflow = yaml.safe_load((folder / ".github/workflows/ultrascale.yaml").read_text())
    job = workflow["jobs"]["check"]
    runs = "\n".join(step.get("run", "") for step in job["steps"])
    assert job["env"]["CLUSTER"] == "my-cluster.yaml"
    assert "pip install -r requirements.txt" in runs
    assert 'ultrascale check --format github "$CLUSTER"' in runs
    assert 'ultrascale plan "$CLUSTER"' in runs
    assert 'ultrascale diff "$CLUSTER" --against' in runs
    # A branch's name is a stranger's text: it must not become part of a script.
    assert "${{" not in runs


@pytest.mark.parametrize("start", ["minimal", "ultra"])
def test_ci_of_a_fresh_start_reports_and_passes(
    start: str, folder: Path, ultrascale: Ultrascale
) -> None:
    """`plan` of the largest start ends with 2 until AWS has granted what it needs."""
    ultrascale("init", "--from", start)

    workflow = yaml.safe_load((folder / ".github/workflows/ultrascale.yaml").read_text())
    runs = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    (planning,) = (run for run in runs if "ultrascale plan" in run)
    (reporting,) = (run for run in runs if "ultrascale report" in run)
    assert runs.index(reporting) < runs.index(planning)
    assert ultrascale("plan", "my-cluster.yaml").returncode == (2 if start == "ultra" else 0)
    for status in (0, 1, 2):
        # As GitHub runs it, with a program that ends so.
        script = f"ultrascale() {{ return {status}; }}\n{planning}"
        ended = subprocess.run(["bash", "-e", "-c", script], check=False).returncode
        assert (ended == 0) == (status == 0 or (start == "ultra" and status == 2))


def test_the_requirement_pins_the_version_that_wrote_it(
    folder: Path,
    ultrascale: Ultrascale,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    class Installed:
        url: str | None = None

        def read_text(self, _: str) -> str | None:
            commit = {"vcs": "git", "commit_id": "0a1b2c"}
            of_git = {"vcs_info": commit} if str(self.url).endswith(".git") else {}
            return json.dumps({"url": self.url, **of_git}) if self.url else None

    installed = Installed()

    def distribution(_: str) -> Installed:
        return installed

    monkeypatch.setattr("ultrascale.init.repository.distribution", distribution)
    monkeypatch.setattr("ultrascale.release.VERSION", "1.2.3")
    wheel = "ultrascale-1.2.3-py3-none-any.whl"
    link = tmp_path_factory.mktemp("links") / "folder"
    link.symlink_to(folder)
    for url, line in (
        (None, "ultrascale[tested]==1.2.3"),
        (f"file://{folder}/{wheel}", f"./{wheel}[tested]"),
        # As a temporary folder of macOS.
        (f"file://{link}/{wheel}", f"./{wheel}[tested]"),
        (f"https://example.com/{wheel}", f"ultrascale[tested] @ https://example.com/{wheel}"),
        (
            "https://example.com/ultrascale.git",
            "ultrascale[tested] @ git+https://example.com/ultrascale.git@0a1b2c",
        ),
        # Another machine has none of these.
        ("file:///home/me/checkout", "ultrascale[tested]==1.2.3"),
        ("file:///home/me/clone.git", "ultrascale[tested]==1.2.3"),
        (f"file:///home/me/{wheel}", "ultrascale[tested]==1.2.3"),
    ):
        installed.url = url
        place = folder if line.startswith("./") else folder / f"new-{len(url or '')}"
        for name in names(folder):
            (folder / name).unlink()
        shutil.rmtree(folder / ".github", ignore_errors=True)
        answer = ultrascale("init", "--yes", "--to", place)
        assert answer.returncode == 0
        # The index may lack this version, or have somebody else's.
        is_elsewhere = str(url).startswith("file:///home")
        assert ("publish its wheel there, or copy the wheel" in answer.stdout) == is_elsewhere
        assert (place / "requirements.txt").read_text() == f"{line}\n"
        if place != folder:
            shutil.rmtree(place)


def test_options_answer_every_question(folder: Path, ultrascale: Ultrascale) -> None:
    answer = ultrascale(
        *("init", "my-cluster", "--from", "hybrid", "--region", "eu-central-1"),
        *(
            "--zones",
            "eu-central-1b,eu-central-1c",
            "--admin",
            ROLE,
            "--allow-from",
            "52.94.0.0/22",
        ),
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    cluster = config.load(folder / "my-cluster.yaml")
    assert cluster.network.zones == ("eu-central-1b", "eu-central-1c")
    assert {zone for pool in cluster.pools for zone in pool.zones} == set(cluster.network.zones)
    assert cluster.kubernetes.admins == (ROLE,)
    text = (folder / "my-cluster.yaml").read_text()
    assert "us-east-1" not in text
    assert "111122223333" not in text
    assert "stand-in" not in answer.stdout


def test_fewer_zones_than_the_example_has_are_enough(folder: Path, ultrascale: Ultrascale) -> None:
    answer = ultrascale("init", "--from", "mixed", "--zones", "us-east-2c, us-east-2a")

    assert answer.returncode == 0
    cluster = config.load(folder / "my-cluster.yaml")
    assert {zone for pool in cluster.pools for zone in pool.zones} == {"us-east-2c", "us-east-2a"}


@pytest.mark.parametrize("region", ["eu-west-1", "ap-northeast-1", "us-gov-west-1"])
@pytest.mark.parametrize("start", ["minimal", "trainium", "hopper", "auto-mode"])
def test_another_region_has_zones_of_its_own(
    start: str, region: str, folder: Path, ultrascale: Ultrascale
) -> None:
    answer = ultrascale("init", "--from", start, "--region", region)

    assert (answer.returncode, answer.stderr) == (0, "")
    planned = plan.load(folder / "my-cluster.yaml")
    assert planned.region == region
    assert all(zone.startswith(region) for pool in planned.all_pools for zone in pool.zones)


def test_six_questions_at_most_each_with_a_default(
    folder: Path, ultrascale: Ultrascale, answering: Terminal
) -> None:
    answering("\n" * 5)

    answer = ultrascale("init")

    assert answer.returncode == 0
    assert answer.stdout.count("]: ") == 6
    assert yaml.safe_load((folder / "my-cluster.yaml").read_text()) == own_name("minimal")


def test_an_answer_that_cannot_be_is_asked_again(
    folder: Path, ultrascale: Ultrascale, answering: Terminal
) -> None:
    answering(
        "\n".join(
            [
                *("trainum", "trainium", "us-wset-2", "us-east-1", "us-east-1a", ""),
                *("me", ROLE, "0.0.0.0/0", "none"),
            ]
        )
    )

    answer = ultrascale("init", "my-cluster")

    assert answer.returncode == 0
    told = answer.stdout + answer.stderr
    assert "did you mean trainium?" in told
    assert "did you mean us-west-2?" in told
    assert "opens the Kubernetes API to the whole internet" in told
    cluster = config.load(folder / "my-cluster.yaml")
    assert (cluster.region, cluster.kubernetes.admins) == ("us-east-1", (ROLE,))
    assert cluster.kubernetes.endpoint.public_cidrs == ()


def test_ctrl_c_in_the_questions_writes_nothing(
    folder: Path, ultrascale: Ultrascale, answering: Terminal
) -> None:
    answering("trainium\n")

    assert ultrascale("init", "my-cluster", "--to", "new").returncode != 0
    assert names(folder) == set()
    assert not (folder / "new").exists()


def test_without_a_terminal_it_says_how_to_go_on(folder: Path, ultrascale: Ultrascale) -> None:
    answer = ultrascale("init", "my-cluster")

    assert answer.returncode == 1
    assert "here is no terminal; add --yes, or --from" in answer.stderr
    assert names(folder) == set()


WRONG = [
    (["--from", "trainum"], "did you mean trainium?"),
    (["My_Cluster", "--yes"], "name"),
    (["../other", "--yes"], "name"),
    (["x" * 41, "--yes"], "name"),
    (["a: b", "--yes"], "name"),
    (["--yes", "--region", "us-wset-2"], "did you mean us-west-2?"),
    (["--yes", "--zones", "us-east-1a"], "zones"),
    (["--yes", "--zones", "us-west-2a,us-west-2b"], "zones"),
    (["--yes", "--zones", ""], "zones"),
    (["--from", "hybrid", "--region", "eu-north-1"], "task_governance"),
    (["--yes", "--region", "cn-north-1"], "Regions of China are not supported yet"),
    (["--yes", "--admin", "me"], "admins"),
    (["--yes", "--allow-from", "office"], "public_cidrs"),
    (["--yes", "--allow-from", "10.0.0.0/8"], "public_cidrs"),
]


@pytest.mark.parametrize(("words", "told"), WRONG)
def test_an_argument_that_makes_no_file_is_told(
    words: list[str], told: str, folder: Path, ultrascale: Ultrascale
) -> None:
    answer = ultrascale("init", *words)

    assert answer.returncode in (1, 64)
    assert told in answer.stderr
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_not_empty_stays_as_it_is(folder: Path, ultrascale: Ultrascale) -> None:
    (folder / "main.tf").write_text("mine")

    answer = ultrascale("init", "my-cluster", "--yes")

    assert answer.returncode == 1
    assert "not empty, it has main.tf; nothing was written" in answer.stderr
    assert "--to" in answer.stderr
    assert names(folder) == {"main.tf"}


def test_a_fresh_repository_with_an_environment_in_it_counts_as_empty(
    folder: Path, ultrascale: Ultrascale
) -> None:
    (folder / ".git").mkdir()
    (folder / "env").mkdir()
    (folder / "env" / "pyvenv.cfg").write_text("")
    (folder / "ultrascale-0.1.0-py3-none-any.whl").write_text("")

    assert ultrascale("init", "my-cluster", "--yes").returncode == 0
    assert (folder / "my-cluster.yaml").is_file()


def test_files_of_the_user_are_never_overwritten(folder: Path, ultrascale: Ultrascale) -> None:
    (folder / ".gitignore").write_text("mine")

    answer = ultrascale("init", "my-cluster", "--yes")

    assert answer.returncode == 1
    assert "it has .gitignore already" in answer.stderr
    assert names(folder) == {".gitignore"}
    assert (folder / ".gitignore").read_text() == "mine"


@pytest.mark.parametrize("taken", [".gitignore", ".github/workflows/ultrascale.yaml"])
def test_what_a_fresh_repository_has_is_told_before_anything_is_asked(
    taken: str, folder: Path, ultrascale: Ultrascale, answering: Terminal
) -> None:
    (folder / taken).parent.mkdir(parents=True, exist_ok=True)
    (folder / taken).write_text("mine")
    answering("\n" * 5)

    answer = ultrascale("init")

    assert answer.returncode == 1
    assert answer.stdout == ""
    assert f"it has {taken} already" in answer.stderr


def test_a_new_folder_is_made(folder: Path, ultrascale: Ultrascale) -> None:
    assert ultrascale("init", "my-cluster", "--yes", "--to", "a/b").returncode == 0
    assert (folder / "a/b/my-cluster.yaml").is_file()


def test_a_place_that_is_no_folder_is_told(folder: Path, ultrascale: Ultrascale) -> None:
    (folder / "file").write_text("")

    for place in ("file", "file/below", "/proc/none"):
        answer = ultrascale("init", "my-cluster", "--yes", "--to", place)
        assert answer.returncode == 1
        assert "--to" in answer.stderr
        assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("step", [0, 1, 4])
def test_a_full_disk_leaves_nothing_behind(
    step: int, folder: Path, ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def rename(self: Path, target: Path) -> None:
        if len(written) == step:
            raise OSError(28, "No space left on device")
        written.append(target)
        self.replace(target)

    monkeypatch.setattr(new_files.Path, "rename", rename)

    answer = ultrascale("init", "my-cluster", "--yes", "--to", "new")

    assert answer.returncode == 1
    assert "nothing was written: no space left on device" in answer.stderr
    assert list(folder.iterdir()) == []
