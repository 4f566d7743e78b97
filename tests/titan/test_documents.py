"""A model sees its document from the first token on, and no other document."""

import math
import random
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
import worlds
from numpy.typing import NDArray
from torch.nn.attention.flex_attention import create_mask
from toys import arguments, losses

from ultrascale_training.titan.tokens import TokenData, TokenWriter

END, ASKS, ANSWERS, FIRST_WORD, WORDS = 0, 1, 2, 3, 16


def test_an_answer_is_learned_from_a_question_that_an_end_token_ends(tmp_path: Path) -> None:
    # As chats are written where one token ends both turns and documents.
    writer = TokenWriter(tmp_path / "data", vocabulary=2048, end=END, tokenizer="none")
    dice = random.Random(1)
    for _ in range(6000):
        word = FIRST_WORD + dice.randrange(WORDS)
        writer.add([ASKS, word, END, ANSWERS, word])
    writer.close()
    given = arguments(
        *("llama3-toy", tmp_path / "data", tmp_path),
        steps=80,
        training__seq_len=96,
        training__local_batch_size=8,
    )

    worlds.run(1, given, tmp_path)

    # Of five tokens that follow, a word is drawn, another is asked for, and three are certain.
    a_word = math.log(WORDS) / 5
    assert losses(tmp_path)[80] < 1.2 * a_word


@pytest.mark.parametrize("family", ["llama3", "qwen3"])
def test_a_token_attends_to_its_document_alone(family: str, tmp_path: Path) -> None:
    dice = random.Random(2)
    writer = TokenWriter(tmp_path, vocabulary=8, end=END, tokenizer="none")
    document_of: list[int] = []
    for number in range(60):
        tokens = [dice.randrange(8) for _ in range(dice.randrange(20))]
        document_of += [number] * (len(tokens) + 1)
        writer.add(tokens)
    data = TokenData(tmp_path, writer.close(), seq_len=32)
    rows = data.rows(range(len(data)))
    # Elsewhere, as threads of torch that have worked here would not be in the processes of runs.
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as process:
        seen = process.submit(mask_of, family, rows.positions).result()

    documents = np.array(document_of[: rows.positions.size]).reshape(-1, 32)
    same = documents[:, :, None] == documents[:, None, :]
    assert np.array_equal(seen, np.tril(same))


def mask_of(family: str, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the tokens that TorchTitan lets each token attend to: sequence, query, key."""
    registry = import_module(f"torchtitan.models.{family}").model_registry
    with torch.device("meta"):
        model = registry("debugmodel").model.build()
    mask = model.get_attention_masks(torch.from_numpy(positions))
    return create_mask(mask.mask_mod, len(positions), 1, 32, 32, device="cpu")[:, 0].numpy()
