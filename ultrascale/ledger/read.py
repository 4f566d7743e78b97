"""The ledger's files, gzip JSON lines in a folder a day, from a folder or a bucket."""

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from ultrascale.account import Account
from ultrascale.documents import parse_json
from ultrascale.errors import ConfigError, Diagnostic, UnansweredError, UsageError
from ultrascale.lambdas.ledger import DAY, PREFIX, STATE, VERSION, ReservationRow, Row
from ultrascale.lambdas.ledger_state import State, advance

S3 = "s3://"
_READERS = 16
_GZIP = 31
_ABSENT = "NoSuchKey"
_DECODER = msgspec.json.Decoder()
# A key of rows of reservations alone; most rows are of nodes, which are not decoded.
_RESERVATION = b'"bought"'


class Blob(NamedTuple):
    """A file of the ledger, as it is stored."""

    name: str  # Its path
    day: date  # Its day
    content: bytes  # Its bytes


def start_of(day: date) -> int:
    """Return the first second of a day in UTC, since the epoch."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def days_of(starts: int, ends: int) -> Sequence[date]:
    """Return the days of a period in UTC."""
    first = datetime.fromtimestamp(starts, UTC).date()
    return [first + timedelta(days=count) for count in range(-(-ends // DAY) - starts // DAY)]


def files_of(
    source: str, cluster: str, days: Collection[date], account_of: Callable[[], Account]
) -> Mapping[date, Sequence[Blob]]:
    """Return the files of each day, in their order.

    Where the function stopped within a day, its open intervals end as it would end them.

    Raises:
        UsageError: There is no such folder.
        UnansweredError: S3 refused to list or to read the bucket.
    """
    names = {f"day={day}": day for day in days}
    files: dict[date, list[Blob]] = {day: [] for day in days}
    for blob in (_s3_blobs if source.startswith(S3) else _disk_blobs)(source, names, account_of):
        files[blob.day].append(blob)
    with suppress(UsageError, ConfigError):
        state = state_of(source, account_of)
        late = {**state.files}
        if (day := datetime.fromtimestamp(state.at, UTC).date()) in files:
            last = [blob for blobs in files.values() for blob in blobs][-1:]
            every = max((rows_of(blob, cluster)[0] for blob in last), default=0)
            head = {"cluster": cluster, "region": "", "account": ""}
            after = advance(state, (), start_of(day) + DAY, every, head)
            late |= {} if after is None else after.files
        known = {tuple(blob.name.split("/")[-2:]) for blobs in files.values() for blob in blobs}
        for key, content in late.items():
            if (place := tuple(key.split("/")[-2:])) not in known and place[0] in names:
                files[names[place[0]]].append(Blob(key, names[place[0]], content))
    return files


def _disk_blobs(source: str, days: Mapping[str, date], _: object) -> Iterator[Blob]:
    if not (folder := Path(source)).is_dir():
        raise UsageError([f"--source: there is no folder {source}; name that of the ledger"])
    for file in sorted(folder.glob("**/day=*/*.json.gz")):
        if file.parent.name in days:
            yield Blob(str(file), days[file.parent.name], file.read_bytes())


def _s3_blobs(
    source: str, days: Mapping[str, date], account_of: Callable[[], Account]
) -> Iterator[Blob]:
    account, bucket, prefix = _open_source(source, account_of)

    def read(key: str) -> Blob:
        return Blob(f"{S3}{bucket}/{key}", days[key.split("/")[-2]], _content(account, bucket, key))

    listing = account.client("s3").list_objects_v2
    keys = sorted(
        key
        for month in sorted({name[:11] for name in days})
        for page in account.ask_pages(listing, Bucket=bucket, Prefix=prefix + month)
        for item in page["Contents"]
        if (key := item.get("Key", "")).split("/")[-2] in days
    )
    with ThreadPoolExecutor(_READERS) as readers:
        yield from readers.map(read, keys)


def _open_source(source: str, account_of: Callable[[], Account]) -> tuple[Account, str, str]:
    """Return the account that reads a source in S3, its bucket, and the prefix of its keys."""
    bucket, _, prefix = source.removeprefix(S3).partition("/")
    return account_of(), bucket, f"{prefix.rstrip('/')}/".lstrip("/")


def _content(account: Account, bucket: str, key: str) -> bytes:
    return account.ask(account.client("s3").get_object, Bucket=bucket, Key=key)["Body"].read()


def state_of(source: str, account_of: Callable[[], Account]) -> State:
    """Return the state of the function that writes the ledger.

    Raises:
        UsageError: The ledger has none.
        ConfigError: A newer function wrote it.
        UnansweredError: S3 refused to read the bucket.
    """
    name = STATE.removeprefix(PREFIX)
    if source.startswith(S3):
        account, bucket, prefix = _open_source(source, account_of)
        try:
            content = _content(account, bucket, prefix + name)
        except UnansweredError as error:
            if error.code != _ABSENT:
                raise
            raise UsageError([f"--source: {source} has no {name}"]) from None
    elif files := sorted(Path(source).glob(f"**/{name}")):
        content = files[0].read_bytes()
    else:
        raise UsageError([f"--source: {source} has no {name}; copy it with the ledger's days"])
    try:
        return State.parse(content)
    except (OSError, EOFError, ValueError) as error:
        raise _refusal(Blob(name, date.min, b""), str(error)) from None


def rows_of(blob: Blob, cluster: str) -> tuple[int, list[Row]]:
    """Return the sampling interval and the rows of a file.

    Raises:
        ConfigError: It is no whole file of the ledger of ``cluster``, or has a newer format.
    """
    try:
        head, *rows = _DECODER.decode_lines(zlib.decompress(blob.content, _GZIP))
        version, name, every = head["v"], head["cluster"], head["every"]
    except (ValueError, KeyError, zlib.error) as error:
        raise _refusal(blob, f"no whole file of a ledger: {error}") from None
    if version != VERSION:
        raise _refusal(blob, f"format {version} of the ledger, not {VERSION}; upgrade ultrascale")
    if name != cluster:
        raise _refusal(blob, f"the ledger of cluster {name!r}, not of {cluster!r}")
    return every, rows


def _refusal(blob: Blob, words: str) -> ConfigError:
    return ConfigError([Diagnostic(message=words, file=blob.name, code="ledger")])


def reservations_of(blob: Blob) -> Iterator[ReservationRow]:
    """Yield the rows of reservations of a file; none of one that `rows_of` refuses."""
    try:
        head, *lines = zlib.decompress(blob.content, _GZIP).splitlines()
        if parse_json(head)["v"] == VERSION:
            yield from (parse_json(line) for line in lines if _RESERVATION in line)
    except (ValueError, KeyError, zlib.error):
        return
