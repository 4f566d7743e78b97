"""Token files: what a language model reads of text, at any number of processes."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import json
import resource
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

import tokenizers

from ultrascale_training.errors import TrainingError
from ultrascale_training.titan import arguments, prepare, tokens
from ultrascale_training.titan.tokens import (
    IGNORED,
    TokenData,
    TokenWriter,
    check_shards,
    read_token_index,
)

pytestmark = pytest.mark.training
END = 0


def _write(
    folder: Path, documents: Sequence[Sequence[int]], *, shard_tokens: int, seq_len: int
) -> TokenData:
    writer = TokenWriter(
        folder, vocabulary=100, end=END, tokenizer="none", shard_tokens=shard_tokens
    )
    for document in documents:
        writer.add(document)
    writer.close()
    return TokenData(folder, read_token_index(folder), seq_len=seq_len)


def _dataset(
    folder: Path, documents: Sequence[Sequence[int]], *, shard_tokens: int = 1 << 20
) -> TokenData:
    return _write(folder, documents, shard_tokens=shard_tokens, seq_len=4)


def test_a_document_neither_predicts_nor_continues_the_one_before(tmp_path: Path) -> None:
    rows = _dataset(tmp_path, [[5, 6], [7, 8, 9, 10]]).rows([0])
    assert rows.inputs.tolist() == [[5, 6, END, 7]]
    assert rows.labels.tolist() == [[6, END, IGNORED, 8]]
    assert rows.positions.tolist() == [[0, 1, 2, 0]]


def test_an_end_token_inside_a_document_cuts_nothing(tmp_path: Path) -> None:
    rows = _dataset(tmp_path, [[5, END, 6], [7, 8]]).rows([0])
    assert rows.inputs.tolist() == [[5, END, 6, END]]
    assert rows.labels.tolist() == [[END, 6, END, IGNORED]]
    assert rows.positions.tolist() == [[0, 1, 2, 3]]


def test_data_of_other_bounds_are_other_data(tmp_path: Path) -> None:
    one = _dataset(tmp_path / "one", [[5, END, 6, 7, 8]]).index
    two = _dataset(tmp_path / "two", [[5], [6, 7, 8]]).index
    assert one.tokens == two.tokens
    assert one.fingerprint != two.fingerprint


class _Token(NamedTuple):
    document: int
    place: int
    token: int


def _sequences(
    documents: Sequence[Sequence[int]], *, shard_tokens: int, seq_len: int
) -> list[list[_Token]]:
    """Return the sequences, each with the token that follows it, by counting tokens one by one."""
    shards: list[list[_Token]] = [[]]
    for number, document in enumerate(documents):
        if len(shards[-1]) >= shard_tokens:
            shards.append([])
        for place, token in enumerate([*document, END]):
            shards[-1].append(_Token(number, place, token))
    return [
        shard[start : start + seq_len + 1]
        for shard in shards
        for start in range(0, len(shard) - seq_len, seq_len)
    ]


@given(
    documents=st.lists(st.lists(st.integers(0, 5), max_size=9), min_size=1, max_size=12),
    shard_tokens=st.integers(1, 40),
    seq_len=st.integers(1, 12),
)
@example(documents=[[END] * 3, [END]], shard_tokens=40, seq_len=2)
def test_sequences_are_those_that_a_count_of_tokens_gives(
    documents: list[list[int]], shard_tokens: int, seq_len: int
) -> None:
    expected = _sequences(documents, shard_tokens=shard_tokens, seq_len=seq_len)
    with TemporaryDirectory() as folder:
        if not expected:
            with pytest.raises(TrainingError, match="no shard"):
                _write(Path(folder), documents, shard_tokens=shard_tokens, seq_len=seq_len)
            return
        data = _write(Path(folder), documents, shard_tokens=shard_tokens, seq_len=seq_len)
        rows = data.rows(range(len(data)))
    assert rows.inputs.tolist() == [[each.token for each in row[:-1]] for row in expected]
    # A document that began before the sequence counts from the sequence's first token.
    assert rows.positions.tolist() == [
        [min(each.place, index) for index, each in enumerate(row[:-1])] for row in expected
    ]
    assert rows.labels.tolist() == [
        [
            after.token if after.document == each.document else IGNORED
            for each, after in pairwise(row)
        ]
        for row in expected
    ]


def test_data_of_an_earlier_release_are_read_but_for_prompts(tmp_path: Path) -> None:
    made = _dataset(tmp_path, [[5, 6, 7, 8]]).index
    path = tmp_path / "tokens.json"
    index = json.loads(path.read_text())
    for name in (None, "learned-00000.npy"):
        shards = [shard | {"learned": name} for shard in index["shards"]]
        path.write_text(json.dumps(index | {"shards": shards}))
        if name is None:
            assert read_token_index(tmp_path) == made
    with pytest.raises(TrainingError, match="is of prompts, which are not learned"):
        read_token_index(tmp_path)


@pytest.mark.parametrize(
    ("form", "said"),
    [(1, "does not hold where documents end; prepare the data again"), (3, "update the training")],
)
def test_data_of_another_format_are_refused(form: int, said: str, tmp_path: Path) -> None:
    _dataset(tmp_path, [[5, 6, 7, 8]])
    index = json.loads((tmp_path / "tokens.json").read_text())
    (tmp_path / "tokens.json").write_text(json.dumps(index | {"format": form}))
    with pytest.raises(TrainingError, match=said):
        read_token_index(tmp_path)


def test_files_of_two_datasets_are_not_read_as_one(tmp_path: Path) -> None:
    data = _dataset(tmp_path / "one", [[5, 6, 7, 8, 9]])
    other = _dataset(tmp_path / "two", [[5, 6, 7, 8]])
    bounds = other.index.shards[0].documents
    (tmp_path / "one" / bounds).write_bytes((tmp_path / "two" / bounds).read_bytes())
    with pytest.raises(TrainingError, match=r"documents-00000\.npy do not hold the 6 tokens"):
        data.rows([0])


@pytest.mark.parametrize("kind", ["tokens", "documents"])
@pytest.mark.parametrize("left", [0, 40, 128, -1])
def test_a_shard_that_was_cut_ends_a_run_at_its_start_and_not_after_days(
    kind: str, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path, [[1, 2, 3]] * 9, shard_tokens=4, seq_len=2)
    # Of a shard whose sum this worker does not read.
    file = tmp_path / f"{kind}-00007.npy"
    file.write_bytes(file.read_bytes()[:left])
    monkeypatch.setenv("WORLD_SIZE", "3")

    for rank in ("0", "2"):
        monkeypatch.setenv("RANK", rank)
        check_shards(tmp_path)
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(TrainingError, match=rf"{kind}-00007.* do not hold the 4 tokens"):
        check_shards(tmp_path)


@pytest.mark.parametrize("kind", ["tokens", "documents"])
def test_a_flipped_bit_in_a_shard_is_named_at_a_start_or_by_a_look_at_all_of_it(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path, [[1, 2, 3, 4, 5]] * 8, shard_tokens=12, seq_len=2)
    _flip(tmp_path / f"{kind}-00001.npy")

    with pytest.raises(TrainingError, match=rf"{kind}-00001\.npy.* differ from what was written"):
        check_shards(tmp_path)

    # A start reads only so many: the two first ones of each worker.
    _flip(tmp_path / f"{kind}-00001.npy")
    _flip(tmp_path / f"{kind}-00002.npy")
    _flip(tmp_path / f"{kind}-00003.npy")
    check_shards(tmp_path)
    with pytest.raises(TrainingError) as told:
        prepare.main(["--verify", str(tmp_path)])
    assert [line.count(f"{kind}-0000") for line in str(told.value).splitlines()] == [1, 1]

    _flip(tmp_path / f"{kind}-00002.npy")
    _flip(tmp_path / f"{kind}-00003.npy")
    with pytest.raises(SystemExit) as ended:
        prepare.main(["--verify", str(tmp_path)])
    assert ended.value.code == 0
    assert "4 shards are as they were written" in capsys.readouterr().err


def test_terabytes_of_shards_are_not_read_at_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = _dataset(tmp_path, [[5, 6, 7, 8]] * 300, shard_tokens=5).index
    read: list[str] = []

    def note(_: Path, shard: tokens.TokenShard) -> None:
        read.append(shard.file)

    monkeypatch.setattr(tokens, "verify_shard", note)
    monkeypatch.setenv("WORLD_SIZE", "200")
    for rank in range(200):
        monkeypatch.setenv("RANK", str(rank))
        check_shards(tmp_path)

    assert sorted(read) == [shard.file for shard in index.shards[:256]]


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    # The first one behind the header.
    content[128] ^= 1
    file.write_bytes(content)


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
    made.add_special_tokens(["<end>"])
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


def test_data_of_more_files_than_a_process_may_open_are_read(tmp_path: Path) -> None:
    data = _dataset(tmp_path, [range(start, start + 8) for start in range(1, 90)], shard_tokens=9)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    now_open = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (now_open + 40, hard))
    try:
        data = TokenData(tmp_path, data.index, seq_len=4)
        rows = data.rows(range(len(data)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(data.index.shards) == 89
    assert rows.inputs.shape == (178, 4)


@pytest.mark.parametrize("kind", ["tokens", "documents"])
def test_the_first_worker_alone_looks_for_each_file_of_the_data(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path, [[1, 2, 3]] * 4, shard_tokens=4, seq_len=2)
    (tmp_path / f"{kind}-00001.npy").unlink()

    with pytest.raises(TrainingError, match=rf"1 files .* missing, the first is {kind}-00001"):
        read_token_index(tmp_path)

    monkeypatch.setenv("RANK", "7")
    assert len(read_token_index(tmp_path).shards) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"body": "two"}', "1 record without text"),
        ("two", "1 record without text"),
        ("5", "1 record without text"),
        ('{"text": 5}', "1 record without text"),
        ('{"text": null}', "1 record without text"),
        ('{"prompt": "what", "completion": "six"}', r"1 record without text .* recipe sft trains"),
        ('{"messages": [{"content": "two"}]}', r"1 record without text .* recipe sft trains"),
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


def test_other_columns_than_the_text_change_nothing(tokenizer: Path, tmp_path: Path) -> None:
    source = tmp_path / "mixed.jsonl"
    source.write_text(json.dumps({"source": None, "text": "two plus four"}))
    output = tmp_path / "tokens"
    prepare.main([f"--tokenizer={tokenizer}", f"--input={source}", f"--output={output}"])
    assert TokenData(output, read_token_index(output), seq_len=3).rows([0]).labels.tolist() == [
        [4, 5, END]
    ]


def test_all_records_that_cannot_be_prepared_are_counted_and_nothing_is_left(
    tokenizer: Path, tmp_path: Path
) -> None:
    text, lines = tmp_path / "a.txt", tmp_path / "b.jsonl"
    text.write_text("what is two\n" * 600 + "two <end> four\n")
    records = [
        {"text": "what is two <end>"},
        {"text": "<end> six"},
        {"messages": []},
        {"text": "what is two six"},
    ]
    lines.write_text("".join(f"{json.dumps(record)}\n" for record in records) + "two\n")
    output = tmp_path / "tokens"
    command = [f"--tokenizer={tokenizer}", "--input", str(text), str(lines)]
    command += [f"--output={output}", "--shard-tokens=100"]

    with pytest.raises(TrainingError) as raised:
        prepare.main(command)

    assert sorted(str(raised.value).splitlines()) == [
        f"--input: 2 records without text as a string in a JSON object: {lines}:3 "
        f"'{{\"messages\": []}}', {lines}:5 'two'; correct them; the recipe sft trains on prompts "
        "and chats",
        f"--input: 3 records with '<end>', the token that ends a document: {text}:601, {lines}:1, "
        f"{lines}:2; take it out of them, or name a token that no record holds by --end",
    ]
    assert list(output.iterdir()) == []

    text.write_text("what is two\n" * 600)
    lines.write_text(json.dumps(records[3]))
    assert prepare.main(command).tokens == 600 * 4 + 5


def test_characters_that_no_tokenizer_takes_are_refused_beside_the_other_mistakes(
    tokenizer: Path, tmp_path: Path
) -> None:
    text, lines = tmp_path / "latin.txt", tmp_path / "b.jsonl"
    text.write_bytes(b"what is two\n" * 60 + "zw\xf6lf\n".encode("latin-1") + b"two <end>\n")
    lines.write_text('{"text": "\\ud83d\\ude00"}\n{"text": "two \\ud800"}\n')
    output = tmp_path / "tokens"
    command = [f"--tokenizer={tokenizer}", "--input", str(text), str(lines)]

    with pytest.raises(TrainingError) as raised:
        prepare.main([*command, f"--output={output}", "--shard-tokens=100"])

    assert sorted(str(raised.value).splitlines()) == [
        f"--input: 1 record with '<end>', the token that ends a document: {text}:62; "
        "take it out of them, or name a token that no record holds by --end",
        f"--input: 2 records with bytes or \\u escapes that are no characters: {text}:61, "
        f"{lines}:2; convert files to UTF-8, as by iconv -f LATIN1 -t UTF-8, and correct escapes",
    ]
    assert list(output.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text"), [("a.txt", "two plus four\n"), ("a.jsonl", '{"text": "two plus four"}\n')]
)
def test_a_mark_of_utf_8_is_no_text(name: str, text: str, tokenizer: Path, tmp_path: Path) -> None:
    source, output = tmp_path / name, tmp_path / "tokens"
    source.write_text(text, encoding="utf-8-sig")
    prepare.main([f"--tokenizer={tokenizer}", f"--input={source}", f"--output={output}"])
    data = TokenData(output, read_token_index(output), seq_len=3)
    assert data.rows([0]).inputs.tolist() == [[3, 4, 5]]


@pytest.mark.parametrize(
    "text",
    # A shard that the disk does not take, and an index.
    ["what is two\n" * 60 + "what " * 5_000, "what is two\n" * 600],
)
def test_a_disk_that_is_full_leaves_no_file_behind(
    text: str, tokenizer: Path, tmp_path: Path
) -> None:
    source, output = tmp_path / "a.txt", tmp_path / "tokens"
    source.write_text(text)
    command = [f"--tokenizer={tokenizer}", f"--input={source}", f"--output={output}"]
    command.append("--shard-tokens=80")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        with pytest.raises(OSError, match=r"File too large|written"):
            prepare.main(command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert list(output.iterdir()) == []
    assert len(prepare.main(command).shards) > 3


def test_a_run_that_is_interrupted_leaves_no_file_behind(
    tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = tmp_path / "a.txt", tmp_path / "tokens"
    source.write_text("what is two\n" * 60)
    command = [f"--tokenizer={tokenizer}", f"--input={source}", f"--output={output}"]
    command.append("--shard-tokens=80")

    def interrupt(_: int) -> None:
        assert list(output.iterdir())
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        # At the end, when all shards are written.
        patched.setattr(tokens.os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            prepare.main(command)

    assert list(output.iterdir()) == []
    assert prepare.main(command).tokens == 240


def test_tokens_whose_ids_have_gaps_are_stored_whole(tokenizer: Path, tmp_path: Path) -> None:
    made = json.loads((tokenizer / "tokenizer.json").read_text())
    made["model"]["vocab"]["six"] = 70_000
    (tmp_path / "tokenizer.json").write_text(json.dumps(made))
    source, output = tmp_path / "a.txt", tmp_path / "tokens"
    source.write_text("two plus six\n")
    command = [f"--tokenizer={tmp_path}", f"--input={source}", f"--output={output}"]
    assert prepare.main([*command, "--end=<end>"]).vocabulary == 70_001
    data = TokenData(output, read_token_index(output), seq_len=3)
    assert data.rows([0]).inputs.tolist() == [[3, 4, 70_000]]


def test_turns_may_end_with_another_token_than_documents(tokenizer: Path, tmp_path: Path) -> None:
    source = tmp_path / "templated.jsonl"
    source.write_text(json.dumps({"text": "two plus <end> four <end>"}))
    output = tmp_path / "tokens"
    prepare.main(
        [f"--tokenizer={tokenizer}", f"--input={source}", f"--output={output}", "--end=six"]
    )
    rows = TokenData(output, read_token_index(output), seq_len=5).rows([0])
    assert rows.positions.tolist() == [[0, 1, 2, 3, 4]]
    assert rows.labels.tolist() == [[4, END, 5, END, 6]]


def test_a_tokenizer_that_frames_texts_itself_begins_documents_alone(
    tokenizer: Path, tmp_path: Path
) -> None:
    framing = tokenizers.Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    framing.post_processor = tokenizers.processors.TemplateProcessing(
        single="is $A <end>", special_tokens=[("is", 2), ("<end>", END)]
    )
    framing.save(str(tmp_path / "tokenizer.json"))
    source = tmp_path / "questions.jsonl"
    source.write_text('{"text": "two plus four"}\n{"text": "six"}\n')
    output = tmp_path / "tokens"
    prepare.main(
        [f"--tokenizer={tmp_path}", f"--input={source}", f"--output={output}", "--end=<end>"]
    )
    rows = TokenData(output, read_token_index(output), seq_len=7).rows([0])
    assert rows.inputs.tolist() == [[2, 3, 4, 5, END, 2, 6]]
    assert rows.labels.tolist() == [[3, 4, 5, END, IGNORED, 6, END]]


def test_every_file_that_cannot_be_read_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as raised:
        prepare.main(
            ["--tokenizer=/none", "--input", "/none.txt", "/a.csv", f"--output={tmp_path}"]
        )
    assert str(raised.value) == (
        "--input: is no .txt or .jsonl file, got '/none.txt'\n"
        "--input: is no .txt or .jsonl file, got '/a.csv'\n"
        "--tokenizer: has no tokenizer.json, got '/none'; name the folder of the model that is to "
        "be trained"
    )


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
