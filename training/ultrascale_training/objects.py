"""Small files of a run by name: in a directory, or in a bucket of S3.

``torch`` is not needed. A bucket is reached through AWS's own connector for PyTorch (extra ``s3``),
whose client is written in Rust and signs with the pod's credentials. Source:
https://github.com/awslabs/s3-connector-for-pytorch
"""

import os
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

from ultrascale_training.errors import TrainingError

_SCHEME = "s3://"
# Size of a part. Each part is a request, and S3 allows 3,500 a second below a prefix: the
# connector's own 8 MiB would limit all workers together to 29 GB a second.
# Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html
_PART_BYTES = 64 << 20


class Objects(Protocol):
    """Files below a place, by names that may contain slashes."""

    @property
    def location(self) -> str:
        """Directory or ``s3://bucket/prefix``, without a slash at its end."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Write a file as a whole: a reader sees the old content or the new content."""
        ...

    def get(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is no such file."""
        ...

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the bytes of every file whose name begins with ``below``, by name."""
        ...

    def names(self, below: str = "") -> Sequence[str]:
        """Return the sorted names of the files whose name begins with ``below``."""
        ...

    def folders(self) -> Sequence[str]:
        """Return the names of the folders directly in the place."""
        ...

    def open(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Return a context manager of a stream that reads a file.

        Raises:
            FileNotFoundError: There is no such file.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
        ...


def is_bucket(location: str | os.PathLike[str]) -> bool:
    """Return whether ``location`` is in S3."""
    return os.fspath(location).startswith(_SCHEME)


def open_objects(location: str | os.PathLike[str]) -> Objects:
    """Return the files below a directory or below ``s3://bucket/prefix``.

    Raises:
        TrainingError: The location is malformed, or the connector for S3 is not installed.
    """
    if is_bucket(location):
        return BucketObjects(os.fspath(location))
    return LocalObjects(Path(location))


class LocalObjects:
    """Files below a directory; the directory is made at the first `put`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def location(self) -> str:
        """Path of the directory."""
        return str(self._path)

    def put(self, name: str, content: bytes) -> None:
        """Write a file, and rename it to its name once it is on the disk."""
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    def get(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is no such file."""
        try:
            return (self._path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the bytes of every file whose name begins with ``below``, by name."""
        # Only the folder that ``below`` names is searched, not the whole output of a run.
        root = self._path / below.rpartition("/")[0]
        sizes: dict[str, int] = {}
        for path in root.rglob("*"):
            name = path.relative_to(self._path).as_posix()
            # Another worker may rename its partial file, or delete an old one, during the listing.
            with suppress(FileNotFoundError):
                if name.startswith(below) and path.is_file():
                    sizes[name] = path.stat().st_size
        return sizes

    def names(self, below: str = "") -> Sequence[str]:
        """Return the sorted names of the files whose name begins with ``below``."""
        return sorted(self.sizes(below))

    def folders(self) -> Sequence[str]:
        """Return the names of the folders directly in the directory."""
        found = self._path.iterdir() if self._path.is_dir() else ()
        return [path.name for path in found if path.is_dir()]

    @contextmanager
    def open(self, name: str) -> Generator[IO[bytes]]:
        """Open a file for reading."""
        with (self._path / name).open("rb", buffering=0) as file:
            yield file

    def delete(self, name: str) -> None:
        """Delete a file if it exists; also its folder if that is empty then, as in a bucket."""
        path = self._path / name
        path.unlink(missing_ok=True)
        if path.parent != self._path:
            with suppress(OSError):
                path.parent.rmdir()


class BucketObjects:
    """Objects below ``s3://bucket/prefix``.

    ``AWS_REGION`` states the Region; EKS sets it in a pod that has an identity. As with the AWS
        SDKs,
    ``AWS_ENDPOINT_URL_S3`` names another service with S3's protocol. Source:
    https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
    """

    def __init__(self, location: str) -> None:
        bucket, _, prefix = location.removeprefix(_SCHEME).partition("/")
        if not bucket:
            raise TrainingError(
                f"the output names no bucket, got {location!r}; write s3://BUCKET/PREFIX"
            )
        self.bucket, self.prefix = bucket, prefix.strip("/")
        self.client, self.region = _client()

    @property
    def location(self) -> str:
        """``s3://bucket/prefix``."""
        return f"{_SCHEME}{self.bucket}/{self.prefix}".rstrip("/")

    def put(self, name: str, content: bytes) -> None:
        """Write an object; S3 shows it whole or not at all."""
        with self.client.put_object(self.bucket, self._key(name)) as stream:
            stream.write(content)

    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if there is no such object."""
        try:
            with self.open(name) as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return the bytes of every object whose name begins with ``below``, by name."""
        pages = self.client.list_objects(self.bucket, self._key(below))
        skipped = len(self._key(""))
        return {found.key[skipped:]: found.size for page in pages for found in page.object_info}

    def names(self, below: str = "") -> Sequence[str]:
        """Return the sorted names of the objects whose name begins with ``below``."""
        return sorted(self.sizes(below))

    def folders(self) -> Sequence[str]:
        """Return the first folders of the objects' names below this place."""
        own = self._key("")
        pages = self.client.list_objects(self.bucket, own, delimiter="/")
        return [found[len(own) :].rstrip("/") for page in pages for found in page.common_prefixes]

    @contextmanager
    def open(self, name: str) -> Generator[IO[bytes]]:
        """Open an object for reading."""
        try:
            # Requesting the size raises an error here, not at the first read.
            self.client.head_object(self.bucket, self._key(name))
        except self._service_error() as error:
            if "not found" in str(error):
                raise FileNotFoundError(f"{self.location}/{name}") from None
            raise
        with self.client.get_object(self.bucket, self._key(name)) as stream:
            yield stream

    def delete(self, name: str) -> None:
        """Delete an object if it exists."""
        self.client.delete_object(self.bucket, self._key(name))

    def _key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name

    @staticmethod
    def _service_error() -> type[Exception]:
        from s3torchconnectorclient._mountpoint_s3_client import S3Exception

        return S3Exception


def _client() -> tuple[Any, str]:
    try:
        from s3torchconnector import S3ClientConfig
        from s3torchconnector._s3client import S3Client
    except ModuleNotFoundError:
        raise TrainingError(
            "an output in S3 needs AWS's connector for PyTorch, which is not installed; "
            "install s3torchconnector[dcp] 1.5"
        ) from None
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise TrainingError(
            "AWS_REGION: an output in S3 needs the region of its bucket, and the variable is not "
            "set; set it in the job's environment"
        )
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3")
    configuration = S3ClientConfig(force_path_style=endpoint is not None, part_size=_PART_BYTES)
    return S3Client(region, endpoint=endpoint, s3client_config=configuration), region
