"""Make token files of text: ``python -m ultrascale_training.titan.prepare``.

Each line of a ``.txt`` file is a document, and so is the ``text`` of each object that is a line of
a ``.jsonl`` file. All of it is plain text: documents that hold the token that ends one are refused.
"""

import argparse
import hashlib
import json
import logging
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ultrascale_training.errors import TrainingError
from ultrascale_training.titan.tokens import (
    SHARD_TOKENS,
    TokenIndex,
    TokenWriter,
    read_token_index,
    verify_shard,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_log = logging.getLogger("ultrascale_training")
# End tokens of the Llama 3 and Qwen3 tokenizers, for a folder that does not state its own.
# Sources: https://huggingface.co/meta-llama/Llama-3.1-8B and https://huggingface.co/Qwen/Qwen3-8B
_ENDS = ("<|end_of_text|>", "<|endoftext|>", "</s>")
_BATCH = 512
_NO_CHARACTERS = (
    "with bytes or \\u escapes that are no characters",
    "convert files to UTF-8, as by iconv -f LATIN1 -t UTF-8, and correct escapes",
)
_NO_TEXT = (
    "without text as a string in a JSON object",
    "correct them; the recipe sft trains on prompts and chats",
)
_PLACES = 5


class Document(NamedTuple):
    """A document: its text, and its line in the file."""

    text: str
    place: str


class _Refusals:
    """Refused records, by mistake and remedy."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._places: dict[tuple[str, str], list[str]] = defaultdict(list)

    def __bool__(self) -> bool:
        """Return whether any record is refused."""
        return bool(self._counts)

    def add(self, mistake: tuple[str, str], place: str) -> None:
        """Count a refused record; keep its place if it is among the first."""
        self._counts[mistake] += 1
        if len(self._places[mistake]) < _PLACES:
            self._places[mistake].append(place)

    def __str__(self) -> str:
        """Return a line for each mistake: number of records, first places, remedy."""
        return "\n".join(
            f"--input: {count} record{'s' if count > 1 else ''} {wrong}: "
            f"{', '.join(self._places[wrong, remedy])}"
            f"{', …' if count > _PLACES else ''}; {remedy}"
            for (wrong, remedy), count in self._counts.items()
        )


def main(arguments: Sequence[str] | None = None) -> TokenIndex:
    """Prepare a dataset, and return its index.

    Raises:
        TrainingError: All mistakes in the arguments, or all in the input.
    """
    parser = argparse.ArgumentParser(
        prog="python -m ultrascale_training.titan.prepare", description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    add("--tokenizer", type=Path, required=True, help="folder with the model's tokenizer.json")
    add("--input", type=Path, nargs="+", required=True, help=".txt and .jsonl files")
    add("--output", type=Path, required=True, help="new folder for the token files")
    add(
        "--verify",
        action=_Verify,
        type=Path,
        metavar="FOLDER",
        help="compare all bytes of a folder of token files with their sums, and end",
    )
    add("--end", help="token that ends a document (default: the one in tokenizer_config.json)")
    add("--shard-tokens", type=int, default=SHARD_TOKENS, help=f"(default {SHARD_TOKENS})")
    values = parser.parse_args(arguments)
    path = values.tokenizer / "tokenizer.json"
    mistakes = [
        f"--input: is no .txt or .jsonl file, got {str(file)!r}"
        for file in values.input
        if file.suffix not in (".txt", ".jsonl") or not file.is_file()
    ]
    if not path.is_file():
        mistakes.append(
            f"--tokenizer: has no tokenizer.json, got {str(values.tokenizer)!r}; name the folder "
            "of the model that is to be trained"
        )
    if mistakes:
        raise TrainingError("\n".join(mistakes))
    tokenizer = _tokenizer(path)
    end = _end(values.tokenizer, tokenizer, values.end)
    writer = TokenWriter(
        values.output,
        # Ids may have gaps, so there may be fewer tokens than the largest id.
        vocabulary=max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1,
        end=end,
        tokenizer=hashlib.sha256(path.read_bytes()).hexdigest(),
        shard_tokens=values.shard_tokens,
    )
    try:
        _write(writer, values.input, tokenizer, end)
        index = writer.close()
    except BaseException:
        # The next run needs an empty folder.
        writer.discard()
        raise
    _log.info("%d tokens in %d shards: %s", index.tokens, len(index.shards), values.output)
    return index


class _Verify(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, _: object, values: object, __: str | None = None
    ) -> None:
        folder = Path(str(values))
        shards = read_token_index(folder).shards
        # hashlib reads and sums outside of Python's lock.
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            ends = [threads.submit(verify_shard, folder, shard) for shard in shards]
        wrong = [str(error) for end in ends if (error := end.exception()) is not None]
        if wrong:
            raise TrainingError("\n".join(wrong))
        parser.exit(message=f"{len(shards)} shards are as they were written: {folder}\n")


def _write(writer: TokenWriter, files: Sequence[Path], tokenizer: "Tokenizer", end: int) -> None:
    """Write the tokens of all documents in ``files``.

    Raises:
        TrainingError: Files have mistakes; the message lists all.
    """
    end_inside = (
        f"with {tokenizer.id_to_token(end)!r}, the token that ends a document",
        "take it out of them, or name a token that no record holds by --end",
    )
    begin = _begin(tokenizer)
    refused = _Refusals()
    for batch in _batches(each for file in files for each in _documents(file, refused)):
        # The library, written in Rust, encodes on all cores in parallel.
        texts = tokenizer.encode_batch([each.text for each in batch], add_special_tokens=False)
        for document, text in zip(batch, texts, strict=True):
            if end in text.ids:
                refused.add(end_inside, document.place)
            if not refused:
                writer.add([*begin, *text.ids])
    if refused:
        raise TrainingError(str(refused))


def _tokenizer(path: Path) -> "Tokenizer":
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise TrainingError("the package tokenizers is missing; install it") from None
    return Tokenizer.from_file(str(path))


def _end(folder: Path, tokenizer: "Tokenizer", asked: str | None) -> int:
    names = [asked] if asked is not None else [*_configured_tokens(folder), *_ENDS]
    for name in names:
        number = tokenizer.token_to_id(name)
        if number is not None:
            return number
    raise TrainingError(
        f"--end: the tokenizer has none of the tokens {', '.join(names)}; name the one that ends a "
        "document"
    )


def _configured_tokens(folder: Path) -> Iterator[str]:
    path = folder / "tokenizer_config.json"
    found = json.loads(path.read_text()).get("eos_token") if path.is_file() else None
    # In older files the token is an object.
    if found is not None:
        yield found["content"] if isinstance(found, dict) else found


def _begin(tokenizer: "Tokenizer") -> Sequence[int]:
    """Return the tokens that ``tokenizer`` puts before every text."""
    some = tokenizer.encode("a")
    added = takewhile(lambda pair: pair[1], zip(some.ids, some.special_tokens_mask, strict=True))
    return [token for token, _ in added]


def _documents(path: Path, refused: _Refusals) -> Iterator[Document]:
    # Bytes that are not UTF-8 become surrogates, which JSON may hold as escapes, too.
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        for number, line in enumerate(file, 1):
            place = f"{path}:{number}"
            if not line.strip():
                continue
            text = line.rstrip("\n") if path.suffix == ".txt" else _text_of(line)
            if text is None:
                refused.add(_NO_TEXT, f"{place} {line.strip()[:60]!r}")
            elif _has_surrogates(text):
                refused.add(_NO_CHARACTERS, place)
            else:
                yield Document(text, place)


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _text_of(line: str) -> str | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    text = record.get("text") if isinstance(record, dict) else None
    return text if isinstance(text, str) else None


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    for document in documents:
        batch.append(document)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    try:
        main()
    except TrainingError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
