"""Make token files of text: ``python -m ultrascale_training.titan.prepare``.

A ``.txt`` file holds a document a line. A ``.jsonl`` file holds an object a line, with ``text``, or
with ``prompt`` and ``completion``: then the model learns the completion, and the prompt is context.
"""

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ultrascale_training.errors import TrainingError
from ultrascale_training.titan.tokens import SHARD_TOKENS, TokenIndex, TokenWriter

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_log = logging.getLogger("ultrascale_training")
# Of the Llama 3 and Qwen3 tokenizers; used where the folder does not say which token it is.
# Sources: https://huggingface.co/meta-llama/Llama-3.1-8B and https://huggingface.co/Qwen/Qwen3-8B
_ENDS = ("<|end_of_text|>", "<|endoftext|>", "</s>")
_BATCH = 512


class Document(NamedTuple):
    """A document: what is context only, and what is learned."""

    context: str
    text: str


def main(arguments: Sequence[str] | None = None) -> TokenIndex:
    """Prepare a dataset and return its index.

    Raises:
        TrainingError: With the first mistake in the arguments or the input.
    """
    parser = argparse.ArgumentParser(
        prog="python -m ultrascale_training.titan.prepare", description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    add("--tokenizer", type=Path, required=True, help="folder with the model's tokenizer.json")
    add("--input", type=Path, nargs="+", required=True, help=".txt and .jsonl files")
    add("--output", type=Path, required=True, help="new folder for the token files")
    add("--end", help="token that ends a document (default: as tokenizer_config.json says)")
    add("--shard-tokens", type=int, default=SHARD_TOKENS, help=f"(default {SHARD_TOKENS})")
    values = parser.parse_args(arguments)
    path = values.tokenizer / "tokenizer.json"
    if not path.is_file():
        raise TrainingError(
            f"--tokenizer: has no tokenizer.json, got {str(values.tokenizer)!r}; name the folder "
            "of the model that is to be trained"
        )
    tokenizer = _tokenizer(path)
    end = _end(values.tokenizer, tokenizer, values.end)
    writer = TokenWriter(
        values.output,
        vocabulary=tokenizer.get_vocab_size(),
        end=end,
        tokenizer=hashlib.sha256(path.read_bytes()).hexdigest(),
        shard_tokens=values.shard_tokens,
    )
    for documents in _batches(each for file in values.input for each in _documents(file)):
        # In parallel, over all cores: the library is written in Rust.
        contexts = tokenizer.encode_batch([each.context for each in documents])
        texts = tokenizer.encode_batch([each.text for each in documents], add_special_tokens=False)
        for document, context, text in zip(documents, contexts, texts, strict=True):
            learned = [False] * len(context.ids) + [True] * len(text.ids)
            writer.add([*context.ids, *text.ids], learned if document.context else None)
    index = writer.close()
    _log.info("%d tokens in %d shards: %s", index.tokens, len(index.shards), values.output)
    return index


def _tokenizer(path: Path) -> "Tokenizer":
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise TrainingError(
            "the package tokenizers is missing; pip install 'ultrascale-training[text]'"
        ) from None
    return Tokenizer.from_file(str(path))


def _end(folder: Path, tokenizer: "Tokenizer", asked: str | None) -> int:
    names = [asked] if asked is not None else [*_configured(folder), *_ENDS]
    for name in names:
        number = tokenizer.token_to_id(name)
        if number is not None:
            return number
    raise TrainingError(
        f"--end: the tokenizer has none of the tokens {', '.join(names)}; name the one that ends a "
        "document"
    )


def _configured(folder: Path) -> Iterator[str]:
    path = folder / "tokenizer_config.json"
    found = json.loads(path.read_text()).get("eos_token") if path.is_file() else None
    # Older files hold an object.
    if found is not None:
        yield found["content"] if isinstance(found, dict) else found


def _documents(path: Path) -> Iterator[Document]:
    if path.suffix not in (".txt", ".jsonl") or not path.is_file():
        raise TrainingError(f"--input: is no .txt or .jsonl file, got {str(path)!r}")
    with path.open() as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            yield (
                Document("", line.rstrip("\n"))
                if path.suffix == ".txt"
                else _record(line, where=f"{path}:{number}")
            )


def _record(line: str, *, where: str) -> Document:
    try:
        record = json.loads(line)
        if "completion" in record:
            return Document(str(record.get("prompt", "")), str(record["completion"]))
        return Document("", str(record["text"]))
    except (ValueError, KeyError, TypeError):
        raise TrainingError(
            f"{where}: wants a JSON object with text, or with prompt and completion, got "
            f"{line.strip()[:80]!r}"
        ) from None


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
