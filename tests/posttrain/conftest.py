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


@pytest.fixture(scope="session")
def tuned(model: Path, chats: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model that SFT has taught to repeat the user's word."""
    import worlds

    output = tmp_path_factory.mktemp("tuned") / "sft"
    words = [
        *(f"--model_name_or_path={model}", f"--dataset_name={chats}", "--max_steps=200"),
        *("--learning_rate=3e-3", "--per_device_train_batch_size=16", "--seed=3"),
    ]
    worlds.run(2, "sft", words, output)
    return output
