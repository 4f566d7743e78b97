"""Token files: what a language model reads of text, at any number of processes."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

import tokenizers

from ultrascale_training.errors import TrainingError
from ultrascale_training.titan import arguments, prepare, tokens
from ultrascale_training.titan.tokens import (
    IGNORED,
    TokenData,
    TokenWriter,
    read_token_index,
)

pytestmark = pytest.mark.training
END = 0


def _dataset(
    folder: Path, documents: Sequence[Sequence[int]], *, shard_tokens: int = 1 << 20
) -> TokenData:
    writer = TokenWriter(
        folder, vocabulary=100, end=END, tokenizer="none", shard_tokens=shard_tokens
    )
    for document in documents:
        writer.add(document)
    writer.close()
    return TokenData(folder, read_token_index(folder), seq_len=4)


def test_a_document_neither_predicts_nor_continues_the_one_before(tmp_path: Path) -> None:
    rows = _dataset(tmp_path, [[5, 6], [7, 8, 9, 10]]).rows([0])
    assert rows.inputs.tolist() == [[5, 6, END, 7]]
    assert rows.labels.tolist() == [[6, END, IGNORED, 8]]
    assert rows.positions.tolist() == [[0, 1, 2, 0]]


def test_every_sequence_of_every_shard_is_read(tmp_path: Path) -> None:
    documents = [[start + place for place in range(8)] for start in range(1, 90, 8)]
    data = _dataset(tmp_path, documents, shard_tokens=18)
    read = data.rows(range(len(data))).inputs.ravel().tolist()
    stored = [token for document in documents for token in [*document, END]]
    assert len(data.index.shards) > 1
    assert len(read) == len(data) * 4 > len(stored) - 5 * len(data.index.shards)
    assert set(read) <= set(stored)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tokenizer of words."""
    folder = tmp_path_factory.mktemp("tokenizer")
    words = ["<end>", "what", "is", "two", "plus", "four", "six"]
    model = tokenizers.models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="is")
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    return folder


def test_data_of_more_files_than_a_process_may_map_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_OPEN_SHARDS", 2)
    data = _dataset(
        tmp_path, [range(start, start + 8) for start in range(1, 90, 8)], shard_tokens=9
    )
    assert len(data.index.shards) > 4

    mapped: list[int] = []
    for number in [*range(len(data)), *range(len(data))]:
        data.rows([number])
        mapped.append(Path("/proc/self/maps").read_text().count(f"{tmp_path}/tokens-"))

    assert set(mapped) == {1, 2}


def test_the_first_worker_alone_looks_for_each_file_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _dataset(tmp_path, [range(1, 20)] * 4, shard_tokens=18)
    (tmp_path / "tokens-00001.npy").unlink()

    with pytest.raises(TrainingError, match=r"1 shards .* missing, the first is tokens-00001"):
        read_token_index(tmp_path)

    monkeypatch.setenv("RANK", "7")
    assert len(read_token_index(tmp_path).shards) == 4


def test_a_prompt_is_context_and_a_completion_is_learned(tokenizer: Path, tmp_path: Path) -> None:
    source = tmp_path / "questions.jsonl"
    source.write_text(json.dumps({"prompt": "what is two plus four", "completion": "six"}) + "\n")
    output = tmp_path / "tokens"
    prepare.main([f"--tokenizer={tokenizer}", f"--input={source}", f"--output={output}"])
    rows = TokenData(output, read_token_index(output), seq_len=6).rows([0])
    assert rows.inputs.tolist() == [[1, 2, 3, 4, 5, 6]]
    assert rows.labels.tolist() == [[IGNORED] * 4 + [6, 0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"body": "two"}', "wants a JSON object with text"),
        ("two", "wants a JSON object with text"),
        ("", "no document"),
    ],
)
def test_input_that_holds_no_text_is_refused(
    text: str, said: str, tokenizer: Path, tmp_path: Path
) -> None:
    source = tmp_path / "bad.jsonl"
    source.write_text(text)
    with pytest.raises(TrainingError, match=said):
        prepare.main([f"--tokenizer={tokenizer}", f"--input={source}", f"--output={tmp_path}/t"])


def test_every_mistake_of_a_command_line_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ULTRASCALE_OUTPUT", raising=False)
    with pytest.raises(TrainingError) as raised:
        arguments.parse(
            [
                *("--recipe=llama4", "--keep=1", "--export=s3://models/a"),
                *("--dump-folder=/x", "--steps"),
            ]
        )
    told = [line.split(":")[0] for line in str(raised.value).splitlines()]
    assert told == [
        *("--recipe", "--data", "--output-dir", "--keep", "--export"),
        *("--dump-folder=/x", "'--steps'"),
    ]


@pytest.mark.parametrize(
    "option",
    [
        *(
            "--checkpoint.load_step=500",
            "--checkpoint.load-step=500",
            "--checkpoint.keep-latest-k=2",
        ),
        *("--checkpoint.no-last-save-model-only", "--checkpoint.load_only"),
        *("--metrics.enable-wandb", "--hf-assets-path=/models/a"),
    ],
)
def test_an_option_of_torchtitan_that_would_change_nothing_is_refused(option: str) -> None:
    given = ["--recipe=llama3-toy", "--data=/d", "--output-dir=/o"]
    with pytest.raises(TrainingError) as raised:
        arguments.parse([*given, option])
    (told,) = str(raised.value).splitlines()
    assert told.startswith(f"{option}: ")


def test_an_option_of_torchtitan_that_counts_is_passed_on() -> None:
    counts = ["--checkpoint.interval=7", "--metrics.log-freq=1", "--lr-scheduler.warmup-steps=1"]
    given = ["--recipe=llama3-toy", "--data=/d", "--output-dir=/o"]
    assert arguments.parse([*given, *counts]).titan == counts
