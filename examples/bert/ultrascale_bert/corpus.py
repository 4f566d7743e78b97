"""Raw text: one sentence a line, an empty line between documents, as BERT's own tools read it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from ultrascale_bert.examples import ExampleMaker, Vocabulary
from ultrascale_bert.writing import Records, records
from ultrascale_training.errors import TrainingError

VOCABULARY_FILE = "vocab.txt"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def text_files(paths: Sequence[Path]) -> Sequence[Path]:
    """Return the files at ``paths`` and in the directories among them, sorted.

    Raises:
        TrainingError: With every missing path, or if there is no file at all.
    """
    missing = [
        f"--corpus: no such file or directory, got {str(p)!r}" for p in paths if not p.exists()
    ]
    files = sorted(
        file
        for path in paths
        for file in ([path] if path.is_file() else path.rglob("*"))
        if file.is_file() and not file.name.startswith(".")
    )
    if missing or not files:
        names = [str(path) for path in paths]
        raise TrainingError("\n".join(missing or [f"--corpus: no files are in {names}"]))
    return files


def train_vocabulary(files: Sequence[Path], *, size: int, to: Path) -> Path:
    """Learn a lower-case WordPiece vocabulary of ``size`` tokens and return its file."""
    tokenizer = _tokenizers().BertWordPieceTokenizer(lowercase=True)
    tokenizer.train(
        [str(file) for file in files],
        vocab_size=size,
        special_tokens=list(_SPECIAL),
        show_progress=False,
    )
    path = to / VOCABULARY_FILE
    by_id = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    path.write_text("".join(f"{token}\n" for token, _ in by_id))
    return path


def read_vocabulary(path: Path) -> Vocabulary:
    """Return the ids of a vocabulary file, one token a line.

    Raises:
        TrainingError: The file is not there or lacks a special token.
    """
    if not path.is_file():
        raise TrainingError(f"--vocab: no such file, got {str(path)!r}")
    tokens = path.read_text().splitlines()
    missing = [token for token in _SPECIAL if token not in tokens]
    if missing:
        raise TrainingError(
            f"--vocab: {path} lacks {', '.join(missing)}; use the vocab.txt of a BERT model"
        )
    ids = {token: tokens.index(token) for token in _SPECIAL}
    return Vocabulary(
        size=len(tokens),
        pad=ids["[PAD]"],
        cls=ids["[CLS]"],
        sep=ids["[SEP]"],
        mask=ids["[MASK]"],
        # In published vocabularies the tokens before [MASK] are unused or special.
        first_word=ids["[MASK]"] + 1,
    )


@dataclass(frozen=True, kw_only=True)
class FileTask:
    """One pass over one text file; a process of its own runs it."""

    file: Path
    vocabulary_file: Path
    maker: ExampleMaker
    seed: str

    def rows(self) -> Records:
        """Return the rows of the file; a pass with another seed pairs and masks anew."""
        tokenizer = _tokenizers().BertWordPieceTokenizer(str(self.vocabulary_file), lowercase=True)
        documents = [
            [ids for ids in self._ids(tokenizer, sentences) if ids]
            for sentences in _documents(self.file)
        ]
        random = Random(self.seed)
        examples = self.maker.examples([document for document in documents if document], random)
        return records(list(examples), self.maker)

    def _ids(self, tokenizer: Any, sentences: list[str]) -> Iterator[list[int]]:
        for encoded in tokenizer.encode_batch(sentences, add_special_tokens=False):
            yield encoded.ids


def _documents(file: Path) -> Iterator[list[str]]:
    document: list[str] = []
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                document.append(line.strip())
            elif document:
                yield document
                document = []
    if document:
        yield document


def _tokenizers() -> Any:
    try:
        import tokenizers
    except ModuleNotFoundError:
        raise TrainingError("--corpus: needs the package tokenizers; install it") from None
    return tokenizers
