"""Archives of tokenized shards: fetched in spite of interruptions, and unpacked in one place."""

import http.server
import io
import tarfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from ultrascale_bert import download, prepare_data
from ultrascale_bert.shards import INDEX, read_index
from ultrascale_training.errors import TrainingError

pytestmark = pytest.mark.training


class Server(http.server.ThreadingHTTPServer):
    """Serves one object with ranges, as S3 does; breaks off after ``limit`` bytes of an answer."""

    def __init__(self, content: bytes, *, limit: int = 1 << 30, tag: str = '"one"') -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content, self.limit, self.tag = content, limit, tag
        self.ranges: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/data.tar"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride] - it is made for no other

    def do_GET(self) -> None:
        asked = self.headers["Range"]
        self.server.ranges.append(asked)
        if self.path != "/data.tar":
            self.send_error(403)
            return
        whole = asked is None or self.headers["If-Range"] != self.server.tag
        start = 0 if whole else int(str(asked).removeprefix("bytes=").removesuffix("-"))
        if start >= len(self.server.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(self.server.content)}")
            self.end_headers()
            return
        self.send_response(200 if whole else 206)
        self.send_header("Content-Length", str(len(self.server.content) - start))
        self.send_header("ETag", self.server.tag)
        self.end_headers()
        self.wfile.write(self.server.content[start : start + self.server.limit])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(server: Server) -> Generator[Server]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def archive(entries: dict[str, bytes], *, links: dict[str, str] | None = None) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, data in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return content.getvalue()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("made")
    small = ("--documents", "10", "--shards", "2", "--seq-len", "32", "--max-pred-len", "5")
    assert prepare_data.main(["--synthetic", "--output-dir", str(path), *small]) == 0
    return {f"wiki/{file.name}": file.read_bytes() for file in path.iterdir()}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(seconds: float) -> None:
        """Wait for nothing."""

    monkeypatch.setattr(download.time, "sleep", at_once)


def fetch(server: Server, to: Path) -> int:
    return prepare_data.main(["--from", server.url, "--output-dir", str(to)])


def test_archive_becomes_a_dataset_and_is_fetched_once(
    dataset: dict[str, bytes], tmp_path: Path
) -> None:
    with serving(Server(archive(dataset))) as server:
        assert fetch(server, tmp_path) == 0
        assert len(server.ranges) == 1
        assert {path.name for path in tmp_path.iterdir()} == {
            name.removeprefix("wiki/") for name in dataset
        }
        for name, content in dataset.items():
            if name.endswith(".npy"):
                assert (tmp_path / name.removeprefix("wiki/")).read_bytes() == content

        assert fetch(server, tmp_path) == 0
        assert len(server.ranges) == 1


def test_download_goes_on_where_it_was_cut_off(dataset: dict[str, bytes], tmp_path: Path) -> None:
    content = archive(dataset)
    with serving(Server(content, limit=len(content) // 3)) as server:
        assert fetch(server, tmp_path) == 0

    third = len(content) // 3
    assert server.ranges[:3] == [None, f"bytes={third}-", f"bytes={2 * third}-"]
    assert read_index(tmp_path).rows > 0


def test_download_starts_again_when_the_object_has_changed(
    dataset: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Server(bytes(90_000), limit=10_000, tag='"old"')) as server:
        assert fetch(server, tmp_path) == 2
    assert "run it again to go on" in capsys.readouterr().err
    assert not (tmp_path / INDEX).exists()

    with serving(Server(archive(dataset))) as server:
        assert fetch(server, tmp_path) == 0


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("../shard-00009.npy", "an entry outside of it"),
        ("/etc/shard-00009.npy", "an entry outside of it"),
        ("other/shard-00000.npy", "two entries of the archive"),
    ],
)
def test_archive_that_is_none_of_ours_makes_no_dataset(
    dataset: dict[str, bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    told: str,
) -> None:
    with serving(Server(archive({**dataset, name: b"bad"}))) as server:
        assert fetch(server, tmp_path / "data") == 2

    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert not (tmp_path / "data" / INDEX).exists()


def test_links_of_an_archive_are_not_followed(dataset: dict[str, bytes], tmp_path: Path) -> None:
    links = {"wiki/x.npy": "/etc/passwd", "wiki/y": ".."}
    with serving(Server(archive(dataset, links=links))) as server:
        assert fetch(server, tmp_path) == 0

    assert not (tmp_path / "x.npy").exists()
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize("content", [b"<html>", archive({"readme.txt": b""})])
def test_something_else_than_shards_is_refused(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Server(content)) as server:
        assert fetch(server, tmp_path) == 2

    assert "name another one" in capsys.readouterr().err


def test_public_object_is_fetched_without_credentials() -> None:
    found = download.url_of("s3://neuron-s3/training_datasets/wiki corpus.tar")

    assert found == "https://neuron-s3.s3.amazonaws.com/training_datasets/wiki%20corpus.tar"
    for source in ("s3://bucket", "ftp://host/data.tar", "/data.tar"):
        with pytest.raises(TrainingError, match="must be s3://bucket/key or https://"):
            download.url_of(source)
