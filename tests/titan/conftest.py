"""Tests of the TorchTitan engine, which `make titan` runs in an environment of their own."""

import random
from importlib.util import find_spec
from pathlib import Path

import pytest

# `make test` has no TorchTitan: its pins of fsspec and others clash with those of development.
collect_ignore_glob = [] if find_spec("torchtitan") else ["test_*.py"]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of token files that a small model can learn something of."""
    # `make test` collects this file as well, and has no numpy.
    from ultrascale_training.titan.tokens import TokenWriter

    folder = tmp_path_factory.mktemp("data") / "tokens"
    writer = TokenWriter(folder, vocabulary=2048, end=0, tokenizer="none")
    dice = random.Random(1)
    for _ in range(400):
        start = dice.randrange(2000)
        writer.add([1 + (start + 3 * place) % 2000 for place in range(dice.randint(5, 90))])
    writer.close()
    return folder
