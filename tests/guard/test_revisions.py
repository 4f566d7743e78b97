"""`diff --against REVISION`: a pull request shows what its change does, without an account."""

import subprocess
from pathlib import Path

import pytest

from tests.support.assemblies import described, write_assembly
from tests.support.changes import body, template
from tests.support.command_line import Ultrascale
from tests.support.pools import as_text, make_document

BUCKET = "AWS::S3::Bucket"


def git(file: Path, *arguments: str) -> None:
    """Run Git in the repository of a cluster file."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *arguments], cwd=file.parents[1], check=True)


def commit(file: Path) -> None:
    """Commit all of the repository of a cluster file."""
    git(file, "add", ".")
    git(file, "commit", "-qm", "all")


def git_object(file: Path, name: str) -> str:
    """Return the hash of an object of the repository of a cluster file."""
    command = ["git", "rev-parse", name]
    return subprocess.check_output(command, cwd=file.parents[1], text=True).strip()


@pytest.fixture
def seen() -> list[dict[str, str]]:
    """The files that lay beside each file that was synthesized, with their text."""
    return []


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: list[dict[str, str]]) -> Path:
    """A cluster file in a repository of its own, changed since the only commit."""
    path = tmp_path / "repository" / "clusters" / "research.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(as_text(make_document()) + "# old\n")
    git(path, "init", "-q")
    commit(path)
    path.write_text(path.read_text().replace("# old", "# new"))

    def synthesize(file: Path, *, assembly: Path, manifests: Path) -> None:
        beside = {each.relative_to(file.parent): each for each in file.parent.glob("**/*")}
        seen.append({str(key): each.read_text() for key, each in beside.items() if each.is_file()})
        size = "old" if "# old" in file.read_text() else "new"
        changed = template({"A": body(BUCKET, {"BucketName": size})})
        stacks = {"research-storage": changed, "research-cluster": template({})}
        write_assembly(assembly, {name: described(each) for name, each in stacks.items()})

    monkeypatch.setattr("ultrascale.guard.sources.synthesize_into", synthesize)
    return path


def test_the_file_of_a_commit_is_the_old_state(ultrascale: Ultrascale, file: Path) -> None:
    answer = ultrascale("diff", file, "--against", "HEAD")

    first, note, *rest = answer.stdout.splitlines()
    assert answer.returncode == 3, answer.stderr
    assert first.startswith("research in us-west-2, against HEAD (")
    assert note == "The file of HEAD was synthesized by this version of ultrascale"
    assert "BucketName" in "\n".join(rest)


@pytest.mark.parametrize(
    ("revision", "told"),
    [
        ("nothing", "--against: neither a folder nor a revision of Git, got nothing"),
        ("--output=x", "--against: neither a folder nor a revision of Git, got --output=x"),
    ],
)
def test_a_name_that_is_nothing_is_told(
    ultrascale: Ultrascale, file: Path, revision: str, told: str
) -> None:
    answer = ultrascale("diff", file, f"--against={revision}")

    assert answer.returncode == 1
    assert told in answer.stderr


def test_a_file_that_was_not_there_is_told(ultrascale: Ultrascale, file: Path) -> None:
    other = file.with_name("other.yaml")
    other.write_text(file.read_text())

    answer = ultrascale("diff", other, "--against", "HEAD")

    assert answer.returncode == 1
    assert "HEAD has no file clusters/other.yaml" in answer.stderr


def test_a_file_without_a_repository_is_told(
    ultrascale: Ultrascale, file: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone.yaml"
    alone.write_text(file.read_text())

    answer = ultrascale("diff", alone, "--against", "HEAD")

    assert answer.returncode == 1
    assert "alone.yaml is in no Git repository" in answer.stderr


def test_the_rest_of_the_repository_is_left_where_it_is(ultrascale: Ultrascale, file: Path) -> None:
    """A link out of the repository, or gigabytes of data, may lie anywhere in it."""
    (file.parents[1] / "tool").symlink_to("/etc/hostname")
    file.with_name("other").symlink_to("/etc/hostname")
    commit(file)
    # Its content is at hand no more, as in a clone without blobs.
    (file.parents[1] / "large.bin").write_text("large")
    commit(file)
    found = git_object(file, "HEAD:large.bin")
    Path(file.parents[1], ".git", "objects", found[:2], found[2:]).unlink()
    file.write_text(file.read_text() + "# newer")

    answer = ultrascale("diff", file, "--against", "HEAD")

    assert answer.returncode == 0, answer.stderr


def test_folders_of_images_are_those_of_the_commit(
    ultrascale: Ultrascale, file: Path, seen: list[dict[str, str]]
) -> None:
    images = {"repositories": ["llm"], "builds": {"llm": "./images/mine"}}
    file.write_text(as_text(make_document(images=images)) + "# old\n")
    old = {"images/mine/Dockerfile": "FROM old", "images/mine/start/run.sh": "old"}
    for path, content in {**old, "images/other/Dockerfile": "FROM other"}.items():
        (file.parent / path).parent.mkdir(parents=True, exist_ok=True)
        (file.parent / path).write_text(content)
    commit(file)
    (file.parent / "images" / "mine" / "Dockerfile").write_text("FROM new")

    ultrascale("diff", file, "--against", "HEAD")

    assert {key: text for key, text in seen[0].items() if key != file.name} == old


def test_a_record_of_copies_in_the_commit_is_refused_there_too(
    ultrascale: Ultrascale, file: Path, seen: list[dict[str, str]]
) -> None:
    (file.parent / "ejected.json").write_text("{}")
    commit(file)
    (file.parent / "ejected.json").unlink()

    ultrascale("diff", file, "--against", "HEAD")

    assert "ejected.json" in seen[0]


def test_a_file_that_archives_leave_out_is_compared(ultrascale: Ultrascale, file: Path) -> None:
    (file.parents[1] / ".gitattributes").write_text("clusters export-ignore\n")
    commit(file)

    answer = ultrascale("diff", file, "--against", "HEAD~1")
    again = ultrascale("diff", file, "--against", "HEAD")

    assert answer.returncode == 3, answer.stderr
    assert again.returncode == 0, again.stderr


def test_a_file_that_was_a_link_is_told(ultrascale: Ultrascale, file: Path) -> None:
    text = file.read_text()
    file.unlink()
    file.symlink_to("/nowhere/research.yaml")
    commit(file)
    file.unlink()
    file.write_text(text)

    answer = ultrascale("diff", file, "--against", "HEAD")

    assert answer.returncode == 1
    assert "clusters/research.yaml is no regular file in HEAD" in answer.stderr
