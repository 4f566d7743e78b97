"""Make a dataset: ``python -m ultrascale_bert.prepare_data``.

One of: a small synthetic corpus, raw text, or an archive of tokenized shards such as that of the
AWS tutorial. ``dataset.json`` is written last; where it is, a second call has nothing to do.
"""

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random

from ultrascale_bert import corpus, download, synthetic
from ultrascale_bert.examples import ExampleMaker, Vocabulary
from ultrascale_bert.shards import INDEX, Index, MadeBy, read_index
from ultrascale_bert.writing import Records, ShardWriter, records
from ultrascale_training.errors import TrainingError

_log = logging.getLogger("ultrascale_bert")
# The synthetic vocabulary: five special tokens, then words.
_SYNTHETIC = Vocabulary(size=1005, pad=0, cls=2, sep=3, mask=4, first_word=5)
_DOCUMENTS_AT_A_TIME = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the dataset that the command line asks for and return the exit status."""
    asked = _parser().parse_args(arguments)
    directory: Path = asked.output_dir
    try:
        _refuse_mistakes(asked)
        made_by = _made_by(asked)
        if (directory / INDEX).exists():
            _refuse_another(directory, made_by)
            download.tidy(directory)
            _log.info("%s is complete; nothing to do", directory)
            return 0
        directory.mkdir(parents=True, exist_ok=True)
        index = _make(asked, made_by)
    except TrainingError as error:
        print(error, file=sys.stderr)
        return 2
    _log.info("%s: %d rows in %d shards", directory, index.rows, len(index.shards))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ultrascale_bert.prepare_data",
        description="Make a dataset of tokenized sentence pairs for BERT.",
        allow_abbrev=False,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--synthetic", action="store_true", help="a small corpus, for trials")
    source.add_argument("--corpus", type=Path, nargs="+", help="text files or directories of them")
    source.add_argument("--from", dest="source", help="s3:// or https:// of a tar of shards")
    parser.add_argument("--output-dir", "--output_dir", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=400, help="of the synthetic corpus")
    vocabulary = parser.add_mutually_exclusive_group()
    vocabulary.add_argument("--vocab", type=Path, help="vocab.txt of a BERT model")
    vocabulary.add_argument("--train-vocab", type=int, metavar="SIZE", help="learn it instead")
    parser.add_argument("--seq-len", "--seq_len", type=int, default=128)
    parser.add_argument("--max-pred-len", "--max_pred_len", type=int, default=20)
    parser.add_argument("--passes", type=int, default=5, help="times that text is masked anew")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--seed", type=int, default=12349)
    parser.add_argument("--processes", type=int, default=1, help="text files at a time")
    return parser


def _refuse_mistakes(asked: argparse.Namespace) -> None:
    lowest = {
        "documents": 2,
        "seq_len": 8,
        "max_pred_len": 1,
        "passes": 1,
        "shards": 1,
        "seed": 0,
        "processes": 1,
    }
    mistakes = [
        f"--{name.replace('_', '-')}: must be at least {number}, got {getattr(asked, name)}"
        for name, number in lowest.items()
        if getattr(asked, name) < number
    ]
    if asked.corpus and not asked.vocab and not asked.train_vocab:
        mistakes.append("--vocab: missing; name the vocab.txt of a BERT model, or --train-vocab")
    if mistakes:
        raise TrainingError("\n".join(mistakes))


def _made_by(asked: argparse.Namespace) -> MadeBy:
    if asked.source:
        return {"from": asked.source}
    common = ("seq_len", "max_pred_len", "passes", "shards", "seed")
    made_by = {name: getattr(asked, name) for name in common}
    if asked.synthetic:
        return {"synthetic": asked.documents, **made_by}
    return {
        "corpus": [str(path) for path in asked.corpus],
        "vocab": str(asked.vocab or asked.train_vocab),
        **made_by,
    }


def _refuse_another(directory: Path, made_by: MadeBy) -> None:
    before = read_index(directory).made_by
    if before != made_by:
        raise TrainingError(
            f"--output-dir: {directory} holds a dataset made by {before}, got {made_by}; "
            "use another directory, or delete that one"
        )


def _make(asked: argparse.Namespace, made_by: MadeBy) -> Index:
    if asked.source:
        return download.fetch(asked.source, asked.output_dir, made_by=made_by)
    if asked.synthetic:
        maker = _maker(asked, _SYNTHETIC)
        parts = _synthetic_rows(asked, maker)
    else:
        files = corpus.text_files(asked.corpus)
        file: Path = asked.vocab or corpus.train_vocabulary(
            files, size=asked.train_vocab, to=asked.output_dir
        )
        maker = _maker(asked, corpus.read_vocabulary(file))
        parts = _corpus_rows(asked, maker, files, file)
    writer = ShardWriter(asked.output_dir, shards=asked.shards, maker=maker, seed=asked.seed)
    for part in parts:
        writer.add(part)
    return writer.finish(made_by)


def _maker(asked: argparse.Namespace, vocabulary: Vocabulary) -> ExampleMaker:
    return ExampleMaker(
        vocabulary=vocabulary, seq_len=asked.seq_len, max_pred_len=asked.max_pred_len
    )


def _synthetic_rows(asked: argparse.Namespace, maker: ExampleMaker) -> Iterator[Records]:
    words = maker.vocabulary.size - maker.vocabulary.first_word
    documents = [
        [[word + maker.vocabulary.first_word for word in sentence] for sentence in document]
        for document in synthetic.documents(count=asked.documents, words=words, seed=asked.seed)
    ]
    for number in range(asked.passes):
        random = Random(f"{asked.seed} {number}")
        for start in range(0, len(documents), _DOCUMENTS_AT_A_TIME):
            some = documents[start : start + _DOCUMENTS_AT_A_TIME]
            yield records(list(maker.examples(some, random)), maker)


def _corpus_rows(
    asked: argparse.Namespace, maker: ExampleMaker, files: Sequence[Path], vocabulary: Path
) -> Iterator[Records]:
    tasks = [
        corpus.FileTask(
            file=file,
            vocabulary_file=vocabulary,
            maker=maker,
            seed=f"{asked.seed} {number} {place}",
        )
        for number in range(asked.passes)
        for place, file in enumerate(files)
    ]
    with ProcessPoolExecutor(asked.processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(corpus.FileTask.rows, tasks)


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    sys.exit(main())
