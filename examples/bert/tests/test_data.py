"""Datasets: which rows make up a step, how shards are read, made and fetched."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

import numpy as np

from ultrascale_bert import prepare_data
from ultrascale_bert.examples import ExampleMaker, Vocabulary
from ultrascale_bert.loader import Loader, Part
from ultrascale_bert.shards import FIELDS, Dataset, read_index
from ultrascale_training.errors import TrainingError
from ultrascale_training.order import Order, Permutation, Slice, seed_of, share

pytestmark = pytest.mark.training
WORDS = Vocabulary(size=50, pad=0, cls=2, sep=3, mask=4, first_word=5)


@given(size=st.integers(1, 3000), seed=st.integers(0, 1 << 62))
def test_every_row_is_seen_once_in_an_epoch(size: int, seed: int) -> None:
    permutation = Permutation(size, seed=seed)

    assert sorted(permutation[index] for index in range(size)) == list(range(size))


def test_order_is_the_same_in_every_image_and_release() -> None:
    # A checkpoint says where the data stand by its step alone, so this must never change.
    assert [Permutation(10, seed=1)[index] for index in range(10)] == [6, 2, 1, 7, 3, 4, 8, 9, 5, 0]
    assert seed_of(1, step=2, micro_batch=3) == 7510213797696614745


@given(
    shards=st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(lambda s: max(s) >= 4),
    micro_batches=st.integers(1, 9),
    steps=st.integers(1, 12),
)
def test_no_slice_comes_twice_before_all_have_come(
    shards: list[int], micro_batches: int, steps: int
) -> None:
    order = Order(shards, rows=4, micro_batches=micro_batches, seed=3)
    taken = [order.slice_at(step, each) for step in range(steps) for each in range(micro_batches)]

    assert all(part.start + part.count <= shards[part.shard] for part in taken)
    epochs = [taken[at : at + order.slices] for at in range(0, len(taken), order.slices)]
    assert all(len(set(epoch)) == len(epoch) for epoch in epochs)
    if len(epochs) > 2 and order.slices > 8:
        assert epochs[0] != epochs[1]


@given(micro_batches=st.integers(1, 60), world=st.integers(1, 70))
def test_workers_share_all_micro_batches_and_do_the_same_number_of_them(
    micro_batches: int, world: int
) -> None:
    shares = [share(micro_batches, rank=rank, world=world) for rank in range(world)]

    assert len({len(mine) for mine in shares}) == 1
    real = [number for mine in shares for number in mine if number is not None]
    assert real == list(range(micro_batches))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "made"
    synthetic(path)
    return path


def synthetic(path: Path, *more: str) -> int:
    small = ("--documents", "40", "--shards", "3", "--seq-len", "32", "--max-pred-len", "5")
    return prepare_data.main(["--synthetic", "--output-dir", str(path), *small, *more])


def parts(data: Path, *, world: int, steps: int) -> Iterator[list[Part]]:
    index = read_index(data)
    rows = [shard.rows for shard in index.shards]
    loaders = [
        Loader(
            Dataset(data, index),
            Order(rows, rows=2, micro_batches=6, seed=7),
            micro_batches=6,
            rank=rank,
            world=world,
            step=0,
            until=steps,
        )
        for rank in range(world)
    ]
    for _ in range(steps):
        yield [loader.next() for loader in loaders]
    for loader in loaders:
        loader.close()


def real_rows(step: Sequence[Part]) -> list[list[int]]:
    return [
        row
        for part in step
        for micro_batch in part.micro_batches
        for row, weight in zip(
            micro_batch.batch.input_ids.tolist(), micro_batch.batch.weights.tolist(), strict=True
        )
        if weight
    ]


@pytest.mark.parametrize("world", [2, 4, 5, 8])
def test_samples_of_a_step_do_not_depend_on_the_number_of_workers(data: Path, world: int) -> None:
    steps = zip(parts(data, world=1, steps=4), parts(data, world=world, steps=4), strict=True)
    for (alone,), shared in steps:
        assert real_rows(shared) == real_rows([alone])
        assert sum(part.masked for part in shared) == alone.masked > 0


def test_worker_reads_no_more_than_its_share(data: Path) -> None:
    read: list[Slice] = []

    class Watched(Dataset):
        def read(self, part: Slice):
            read.append(part)
            return super().read(part)

    index = read_index(data)
    order = Order([s.rows for s in index.shards], rows=2, micro_batches=6, seed=7)
    loader = Loader(Watched(data, index), order, micro_batches=6, rank=1, world=3, step=0, until=5)
    for _ in range(5):
        loader.next()
    loader.close()

    assert read == [order.slice_at(step, number) for step in range(5) for number in (2, 3)]


def test_rows_are_as_bert_wants_them(data: Path) -> None:
    index = read_index(data)
    rows = Dataset(data, index).read(Slice(shard=0, start=0, count=index.shards[0].rows))

    lengths = rows.input_mask.sum(1)
    assert (rows.input_ids[:, 0] == 2).all()
    assert (rows.input_ids[np.arange(len(lengths)), lengths - 1] == 3).all()
    assert ((rows.input_ids == 3).sum(1) == 2).all()
    masked = rows.masked_lm_positions != 0
    assert (masked.sum(1) >= 1).all()
    assert (np.take_along_axis(rows.input_mask, rows.masked_lm_positions, 1)[masked] == 1).all()
    assert (rows.masked_lm_ids[masked] >= 5).all()
    tokens = np.take_along_axis(rows.input_ids, rows.masked_lm_positions, 1)[masked]
    assert 0.7 < (tokens == 4).mean() < 0.9
    assert 0.3 < rows.next_sentence_labels.mean() < 0.7
    assert (rows.segment_ids.max(1) == 1).all()


@given(seed=st.integers(0, 10_000), seq_len=st.integers(8, 64))
def test_examples_fit_and_can_be_unmasked(seed: int, seq_len: int) -> None:
    random = Random(seed)
    documents = [
        [
            [random.randrange(5, 50) for _ in range(random.randint(1, 12))]
            for _ in range(random.randint(1, 6))
        ]
        for _ in range(4)
    ]
    maker = ExampleMaker(vocabulary=WORDS, seq_len=seq_len, max_pred_len=4)
    sentences = " ".join(str(word) for document in documents for s in document for word in s)

    for example in maker.examples(documents, random):
        assert len(example.tokens) == len(example.segments) <= seq_len
        assert 1 <= len(example.positions) <= 4
        tokens = list(example.tokens)
        for position, masked in zip(example.positions, example.masked, strict=True):
            tokens[position] = masked
        assert tokens.count(3) == 2
        # Each segment stands in the text as it is here.
        first = tokens[1 : tokens.index(3)]
        assert " ".join(map(str, first)) in sentences


def test_hdf5_shards_of_the_tutorial_are_read_like_our_own(data: Path, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    index = read_index(data)
    whole = Slice(shard=1, start=0, count=index.shards[1].rows)
    rows = Dataset(data, index).read(whole)
    with h5py.File(tmp_path / "part_1.hdf5", "w") as file:
        for name in FIELDS:
            file.create_dataset(name, data=getattr(rows, name), dtype="i4", compression="gzip")

    found = read_index(tmp_path)

    assert (found.seq_len, found.max_pred_len, found.vocabulary) == (32, 5, 30522)
    part = Slice(shard=0, start=3, count=4)
    for name, values in Dataset(tmp_path, found).read(part)._asdict().items():
        assert (values == getattr(rows, name)[3:7]).all(), name


def test_shards_that_the_tutorial_keeps_for_tests_are_not_trained_on(
    data: Path, tmp_path: Path
) -> None:
    h5py = pytest.importorskip("h5py")
    index = read_index(data)
    rows = Dataset(data, index).read(Slice(shard=0, start=0, count=3))
    for kind in ("training", "test"):
        with h5py.File(tmp_path / f"wikicorpus_en_{kind}_0.hdf5", "w") as file:
            for name in FIELDS:
                file.create_dataset(name, data=getattr(rows, name))

    found = read_index(tmp_path)

    assert [shard.file for shard in found.shards] == ["wikicorpus_en_training_0.hdf5"]


@pytest.mark.parametrize("left", [0, 40, -1])
def test_shard_that_was_cut_ends_the_run_and_no_restart_is_tried(
    left: int, data: Path, tmp_path: Path
) -> None:
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    index = read_index(tmp_path)
    cut = tmp_path / index.shards[0].file
    cut.write_bytes(cut.read_bytes()[:left])

    with pytest.raises(TrainingError, match=f"{cut.name}: is no whole shard"):
        Dataset(tmp_path, index).read(Slice(shard=0, start=0, count=1))


def test_shard_that_lost_its_end_is_not_taken_for_a_short_one(data: Path, tmp_path: Path) -> None:
    index = read_index(data)
    for shard in index.shards:
        np.save(tmp_path / shard.file, np.load(data / shard.file)[:-1])
    last = Slice(shard=0, start=index.shards[0].rows - 1, count=1)

    with pytest.raises(TrainingError, match=r"ends before row .*prepare it again"):
        Dataset(tmp_path, index).read(last)


def test_half_a_dataset_is_none(data: Path, tmp_path: Path) -> None:
    (tmp_path / "shard-00000.npy").write_bytes((data / "shard-00000.npy").read_bytes())

    with pytest.raises(TrainingError, match=r"prepare_data"):
        read_index(tmp_path)


def test_second_call_leaves_a_complete_dataset_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synthetic(tmp_path) == 0
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}

    assert synthetic(tmp_path) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written
    assert synthetic(tmp_path, "--seed", "1") == 2
    assert "holds a dataset made by" in capsys.readouterr().err


def test_all_mistakes_of_a_dataset_are_told_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--corpus", "x", "--output-dir", str(tmp_path), "--shards", "0", "--seq-len", "3"]

    assert prepare_data.main(arguments) == 2
    told = capsys.readouterr().err
    assert re.findall(r"^--[a-z-]+", told, re.MULTILINE) == ["--seq-len", "--shards", "--vocab"]


def test_text_becomes_a_dataset_of_its_own_words(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    text = tmp_path / "text"
    text.mkdir()
    sentences = ["The quick brown fox jumps", "over the lazy dog", "and is glad", "for it"]
    (text / "a.txt").write_text("\n\n".join("\n".join(sentences) for _ in range(20)))
    output = tmp_path / "data"
    arguments = [*("--corpus", str(text), "--output-dir", str(output), "--train-vocab", "80")]
    arguments += [*("--seq-len", "32", "--max-pred-len", "5", "--shards", "1", "--passes", "1")]

    assert prepare_data.main(arguments) == 0
    index = read_index(output)
    assert index.rows >= 20
    tokens = (output / "vocab.txt").read_text().splitlines()
    assert len(tokens) == index.vocabulary <= 80
    rows = Dataset(output, index).read(Slice(shard=0, start=0, count=index.rows))
    np.put_along_axis(rows.input_ids, rows.masked_lm_positions, rows.masked_lm_ids, 1)
    text_of_rows = [
        "".join(tokens[token] for token in row[1:] if token).replace("##", "")
        for row in rows.input_ids
    ]
    assert any("overthelazydog" in row for row in text_of_rows)
