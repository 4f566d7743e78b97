"""`ultrascale init`: from an empty folder to a file that passes, or to nothing at all."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from packaging.requirements import Requirement

from tests.support.command_line import Ultrascale
from ultrascale import config, new_files, plan
from ultrascale.init import STARTS
from ultrascale.jobs.preparation import prepare
from ultrascale.release import PRODUCT

ROLE = "arn:aws:iam::444455556666:role/Admins"
WORKFLOW = ".github/workflows/ultrascale.yaml"
WHEEL = "ultrascale-1.2.3-py3-none-any.whl"
ADDRESS = f"https://example.com/tools/{WHEEL}#sha256={sha256(b'wheel').hexdigest()}"
COMMIT = f"git+https://example.com/ultrascale.git@{'0a1b2c3d' * 5}"
Terminal = Callable[[str], None]


_ADDRESS, _, _DIGEST = ADDRESS.partition("#sha256=")
_OF_GIT = {"vcs_info": {"vcs": "git", "commit_id": "0a1b2c3d" * 5}}
# As pip records it: the URL, what it knows of it, and the line of requirements.txt for it.
_RECORDS: tuple[tuple[str, Mapping[str, object], str | None], ...] = (
    (f"file://FOLDER/{WHEEL}", {}, f"./{WHEEL}[tested]"),
    # As a temporary folder of macOS.
    (f"file://LINK/{WHEEL}", {}, f"./{WHEEL}[tested]"),
    (
        _ADDRESS,
        {"archive_info": {"hashes": {"sha256": _DIGEST}}},
        f"ultrascale[tested] @ {ADDRESS}",
    ),
    ("https://example.com/ultrascale.git", _OF_GIT, f"ultrascale[tested] @ {COMMIT}"),
    # Its content may be another one tomorrow.
    (_ADDRESS, {"archive_info": {}}, None),
    # Another machine has none of these.
    ("file:///home/me/checkout", {"dir_info": {"editable": True}}, None),
    ("file:///home/me/clone.git", _OF_GIT, None),
    (f"file:///home/me/{WHEEL}", {"archive_info": {}}, None),
)


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
        ".gitignore",
        ".ultrascale/cluster.schema.json",
        "README.md",
        "cdk.json",
        "my-cluster.yaml",
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
    ultrascale("init", "my-cluster", "--yes", "--source", COMMIT)

    workflow = yaml.safe_load((folder / WORKFLOW).read_text())
    job = workflow["jobs"]["check"]
    runs = "\n".join(step.get("run", "") for step in job["steps"])
    assert job["env"]["CLUSTER"] == "my-cluster.yaml"
    assert "pip install -r requirements.txt" in runs
    assert 'ultrascale check --format github "$CLUSTER"' in runs
    assert 'ultrascale plan "$CLUSTER"' in runs
    assert 'ultrascale diff "$CLUSTER" --against' in runs
    # Old facts hold up no change of the file.
    (facts,) = (step for step in job["steps"] if "ultrascale facts" in step.get("run", ""))
    assert facts["if"] == "github.event_name == 'schedule'"
    assert workflow[True]["schedule"]
    # A branch's name is a stranger's text: it must not become part of a script.
    assert "${{" not in runs


@pytest.mark.parametrize("start", ["minimal", "ultra"])
def test_ci_of_a_fresh_start_reports_and_passes(
    start: str, folder: Path, ultrascale: Ultrascale
) -> None:
    """`plan` of the largest start ends with 2 until AWS has granted what it needs."""
    ultrascale("init", "--from", start, "--source", COMMIT)

    workflow = yaml.safe_load((folder / WORKFLOW).read_text())
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


class TestSource:
    """CI installs a file of known content: somebody else may own a name."""

    @pytest.fixture
    def wheel(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        wheel = tmp_path_factory.mktemp("dist") / WHEEL
        wheel.write_bytes(b"wheel")
        return wheel

    @pytest.fixture
    def record(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
        """Let pip have recorded what the product was installed from."""

        def installed(**record: object) -> None:
            found = Mock(read_text=Mock(return_value=json.dumps(record)))
            monkeypatch.setattr("ultrascale.init.source.distribution", Mock(return_value=found))

        return installed

    @staticmethod
    def steps(folder: Path) -> list[str]:
        steps = yaml.safe_load((folder / WORKFLOW).read_text())["jobs"]["check"]["steps"]
        return [step.get("run", step.get("uses")) for step in steps]

    def test_a_wheel_is_copied_and_held_to_its_digest(
        self, folder: Path, wheel: Path, ultrascale: Ultrascale
    ) -> None:
        answer = ultrascale("init", "--yes", "--source", wheel)

        assert answer.returncode == 0
        assert (folder / WHEEL).read_bytes() == b"wheel"
        assert (folder / "requirements.txt").read_text() == f"./{WHEEL}[tested]\n"
        *_, compare, install = self.steps(folder)[:4]
        assert install == "pip install -r requirements.txt"
        for content, status in ((b"wheel", 0), (b"another", 1)):
            (folder / WHEEL).write_bytes(content)
            assert subprocess.run(["bash", "-ec", compare], check=False).returncode == status

    def test_an_object_is_fetched_by_a_role_and_held_to_its_digest(
        self, folder: Path, ultrascale: Ultrascale
    ) -> None:
        digest = sha256(b"wheel").hexdigest()

        place = f"s3://artifacts/tools/{WHEEL}#sha256={digest}"
        answer = ultrascale("init", "--yes", "--region", "eu-central-1", "--source", place)

        assert "set the repository's variable ULTRASCALE_ROLE" in answer.stdout
        assert (folder / "requirements.txt").read_text() == f"./{WHEEL}[tested]\n"
        assert self.steps(folder)[2:6] == [
            "aws-actions/configure-aws-credentials@v5",
            f"aws s3 cp --only-show-errors s3://artifacts/tools/{WHEEL} .",
            f'echo "{digest}  {WHEEL}" | sha256sum --check',
            "pip install -r requirements.txt",
        ]
        workflow = yaml.safe_load((folder / WORKFLOW).read_text())
        assert workflow["permissions"] == {"contents": "read", "id-token": "write"}
        assert workflow["jobs"]["check"]["steps"][2]["with"]["aws-region"] == "eu-central-1"
        assert f"/{PRODUCT}-*.whl" in (folder / ".gitignore").read_text().splitlines()

    @pytest.mark.parametrize("place", [COMMIT, ADDRESS, f"{COMMIT}#subdirectory=tools/us"])
    def test_an_address_and_a_commit_are_pinned_by_themselves(
        self, place: str, folder: Path, ultrascale: Ultrascale
    ) -> None:
        assert ultrascale("init", "--yes", "--source", place).returncode == 0
        requirement = (folder / "requirements.txt").read_text()
        assert requirement == f"ultrascale[tested] @ {place}\n"
        assert Requirement(requirement.strip()).url == place
        assert self.steps(folder)[2] == "pip install -r requirements.txt"

    @pytest.mark.parametrize(
        ("place", "told"),
        [
            ("ultrascale", "registered on no public index"),
            ("ultrascale[tested]==0.1.0", "registered on no public index"),
            ("0.1.0", "registered on no public index"),
            (".", "no place of a wheel"),
            (WHEEL, "no such file"),
            ("boto3-1.44.5-py3-none-any.whl", "no such file"),
            (f"http://example.com/{WHEEL}", "not the path of a wheel"),
            (f"https://example.com/{WHEEL}", "may have another wheel tomorrow"),
            (f"s3://artifacts/{WHEEL}", "may be another wheel tomorrow"),
            (f"s3://artifacts/{WHEEL}#sha256=abc", "not a SHA-256 digest"),
            ("git+https://example.com/ultrascale.git@main", "no commit"),
            ("git+https://example.com/ultrascale.git", "no commit"),
            ("git+https://example.com/$(id)@" + "0" * 40, "no commit"),
            ("git+https://secret@example.com/u.git@" + "0" * 40, "a login"),
            ("git+ssh://git:secret@example.com/u.git@" + "0" * 40, "a login"),
        ],
    )
    def test_a_place_that_may_change_is_refused(
        self, place: str, told: str, folder: Path, ultrascale: Ultrascale
    ) -> None:
        answer = ultrascale("init", "--yes", "--source", place)
        assert answer.returncode == 64
        assert answer.stderr.startswith("--source: ")
        assert told in answer.stderr
        assert "secret" not in answer.stderr
        assert names(folder) == set()

    def test_a_wheel_of_another_digest_is_refused(
        self, folder: Path, wheel: Path, ultrascale: Ultrascale
    ) -> None:
        answer = ultrascale("init", "--yes", "--source", f"{wheel}#sha256={'0' * 64}")
        assert f"its digest is {sha256(b'wheel').hexdigest()}" in answer.stderr
        assert names(folder) == set()

    def test_the_place_that_pip_recorded_is_the_default(
        self,
        folder: Path,
        ultrascale: Ultrascale,
        record: Callable[..., None],
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        link = tmp_path_factory.mktemp("links") / "folder"
        link.symlink_to(folder)
        (folder / WHEEL).write_bytes(b"wheel")
        for number, (url, more, line) in enumerate(_RECORDS):
            url = url.replace("FOLDER", str(folder)).replace("LINK", str(link))
            record(url=url, **more)
            is_there = line is not None and line.startswith("./")
            place = folder if is_there else folder / f"new-{number}"
            for name in names(folder) - {WHEEL}:
                (folder / name).unlink()
            shutil.rmtree(folder / ".github", ignore_errors=True)
            assert ultrascale("init", "--yes", "--to", place).returncode == 0
            written = place / "requirements.txt"
            assert (written.read_text() if written.exists() else None) == (line and f"{line}\n")
            if not is_there:
                shutil.rmtree(place)


def test_options_answer_every_question(folder: Path, ultrascale: Ultrascale) -> None:
    answer = ultrascale(
        *("init", "my-cluster", "--from", "hybrid", "--region", "eu-central-1"),
        *("--zones", "eu-central-1b,eu-central-1c", "--admin", ROLE),
        *("--allow-from", "52.94.0.0/22"),
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
    answering(f"trainum\ntrainium\nus-wset-2\nus-east-1\nus-east-1a\n\nme\n{ROLE}\n0.0.0.0/0\nnone")

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


def test_a_fresh_repository_with_an_environment_in_it_counts_as_empty(
    folder: Path, ultrascale: Ultrascale
) -> None:
    (folder / ".git").mkdir()
    (folder / "env").mkdir()
    (folder / "env" / "pyvenv.cfg").write_text("")
    (folder / "ultrascale-0.1.0-py3-none-any.whl").write_text("")
    assert ultrascale("init", "my-cluster", "--yes").returncode == 0
    assert (folder / "my-cluster.yaml").is_file()


@pytest.mark.parametrize(
    ("taken", "says"),
    [
        ("main.tf", "not empty, it has main.tf; nothing was written"),
        (".gitignore", "it has .gitignore already"),
        (WORKFLOW, f"it has {WORKFLOW} already"),
    ],
)
def test_a_file_of_the_user_is_told_before_anything_is_asked_and_stays(
    taken: str, says: str, folder: Path, ultrascale: Ultrascale, answering: Terminal
) -> None:
    (folder / taken).parent.mkdir(parents=True, exist_ok=True)
    (folder / taken).write_text("mine")
    answering("\n" * 5)
    answer = ultrascale("init")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert says in answer.stderr
    assert names(folder) == {taken}
    assert (folder / taken).read_text() == "mine"


def test_a_new_folder_is_made_where_there_can_be_one(folder: Path, ultrascale: Ultrascale) -> None:
    (folder / "file").write_text("")
    for place in ("file", "file/below", "/proc/none"):
        answer = ultrascale("init", "my-cluster", "--yes", "--to", place)
        assert answer.returncode == 1
        assert "--to" in answer.stderr
        assert "Traceback" not in answer.stderr
    assert ultrascale("init", "my-cluster", "--yes", "--to", "a/b").returncode == 0
    assert (folder / "a/b/my-cluster.yaml").is_file()


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
