"""Weights of a model: reading and writing files of other runs and of Hugging Face."""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint import CheckpointException, HuggingFaceStorageWriter
from torch.distributed.checkpoint._hf_utils import SHARDED_DIR_NAME
from torchtitan.components.checkpointer.base import ModelWrapper

from ultrascale_training import checkpoints
from ultrascale_training.agreement import agree
from ultrascale_training.checkpoints import Checkpoint
from ultrascale_training.checkpoints.manifest import MANIFEST
from ultrascale_training.errors import TrainingError

_log = logging.getLogger("ultrascale_training")
# Other files in a Hugging Face folder: configuration and tokenizer.
_COMPANIONS = (".json", ".txt", ".model", ".jinja")
_INDEX = "model.safetensors.index.json"
# Names as in published models: https://huggingface.co/Qwen/Qwen3-32B/tree/main
_FILE_BYTES = 4 << 30
_THREADS = 8


class Weights:
    """The weights of this run's model.

    Args:
        parts: Stages of the model on this rank.
        adapter: Translates to the model's names at Hugging Face; None if there are none.
        recipe: Name of the recipe that trains the model.
        group: Group of all ranks, for tensors of the host.
    """

    def __init__(
        self,
        parts: list[nn.Module],
        adapter: Any,  # noqa: ANN401 - TorchTitan's adapters have no common type
        *,
        recipe: str,
        group: dist.ProcessGroup,
    ) -> None:
        self._model = ModelWrapper(parts)
        self._adapter, self._recipe, self._group = adapter, recipe, group

    def begin_with(self, location: str) -> None:
        """Load the weights at ``location``, and nothing else; a collective of all ranks.

        Raises:
            TrainingError: There are no weights, or they belong to another model.
        """
        if "://" in location or (Path(location) / MANIFEST).is_file():
            found = checkpoints.open_checkpoint(location)
            checkpoints.verify(found, self._group)
            self._take(found)
        elif self._adapter is None or not [*Path(location).glob("*.safetensors")]:
            raise TrainingError(
                "--load: neither weights of Hugging Face (*.safetensors) nor a checkpoint step-… "
                f"are there, got {location!r}"
            )
        else:
            self._read_published(location)
        _log.info("begins with the weights of %s", location)

    def _take(self, found: Checkpoint) -> None:
        try:
            saved = found.about["identity"]["--recipe"]
        except (KeyError, TypeError):
            raise TrainingError(f"--load: {found.location} is of another program") from None
        if saved != self._recipe:
            raise TrainingError(
                f"--load: {found.location} is of {saved}, and --recipe trains {self._recipe}"
            )
        weights = self._model.state_dict()
        checkpoints.load(found, weights, group=self._group)
        self._model.load_state_dict(weights)

    def export(self, folder: Path, *, companions: str | None) -> None:
        """Write the weights for Hugging Face; a collective of all ranks, after the last step.

        Args:
            folder: Folder that all nodes mount.
            companions: Hugging Face folder whose configuration and tokenizer are copied.

        Raises:
            TrainingError: The model has no names at Hugging Face.
        """
        if self._adapter is None:
            raise TrainingError("--export: TorchTitan knows no Hugging Face names of this model")
        named: dict[str, Tensor] = self._adapter.to_hf(
            {
                name: value.to(torch.bfloat16) if value.is_floating_point() else value
                for name, value in self._model.state_dict().items()
            }
        )
        # The parts of all ranks form one model, which files of a killed export would corrupt.
        parts = folder / SHARDED_DIR_NAME
        agree(self._group, lambda: shutil.rmtree(parts, ignore_errors=True))
        dcp.save(
            named,
            storage_writer=HuggingFaceStorageWriter(
                path=str(folder),
                fqn_to_index_mapping=self._files_of(named),
                save_distributed=True,
                enable_consolidation=True,
                thread_count_consolidation=_THREADS,
            ),
            process_group=self._group,
        )
        agree(self._group, lambda: _finish(folder, companions))
        _log.info("exported to %s", folder)

    def _files_of(self, named: Mapping[str, Tensor]) -> dict[str, int]:
        """Return the number of the file, from 1, that each tensor of any rank goes to."""
        sizes: list[dict[str, int]] = [{}] * dist.get_world_size(self._group)
        own = {name: value.numel() * value.element_size() for name, value in named.items()}
        dist.all_gather_object(sizes, own, group=self._group)
        files, number, used = dict[str, int](), 1, 0
        for name, size in {name: size for part in sizes for name, size in part.items()}.items():
            if used and used + size > _FILE_BYTES:
                number, used = number + 1, 0
            files[name], used = number, used + size
        return files

    def _read_published(self, location: str) -> None:
        named = self._adapter.to_hf(self._model.state_dict())
        reader = self._adapter.get_hf_storage_reader(location, False)
        try:
            dcp.load(named, storage_reader=reader, process_group=self._group)
        except CheckpointException as error:
            causes = [cause for cause, _ in error.failures.values()]
            # A failing file system may recover; names and shapes stay the same.
            if any(isinstance(cause, OSError) for cause in causes):
                raise
            raise TrainingError(
                f"--load: the weights of {location!r} are not those of {self._recipe}: {causes[0]}"
            ) from None
        self._model.load_state_dict(self._adapter.from_hf(named))


def _finish(folder: Path, companions: str | None) -> None:
    shutil.rmtree(folder / SHARDED_DIR_NAME)
    if companions is not None and "://" not in companions:
        for path in sorted(Path(companions).iterdir()):
            if path.suffix in _COMPANIONS and path.name not in (_INDEX, MANIFEST):
                shutil.copyfile(path, folder / path.name)
