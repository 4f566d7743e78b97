"""Tests of post-training, which `make posttrain` runs in an environment of their own."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

# `make test` has no TRL: its dependencies are a gigabyte.
collect_ignore_glob = [] if find_spec("trl") else ["test_*.py"]
# Before transformers is imported: nothing here is asked of a hub.
os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model of random weights."""
    import toys

    return toys.model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of chats, in each of which a word is repeated."""
    import toys

    return toys.write(tmp_path_factory.mktemp("chats"), toys.chats(2000))
