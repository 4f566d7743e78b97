"""Checkpoints that transformers' trainer writes, each with a manifest of ours once it is whole."""

from collections.abc import Mapping

import torch.distributed as dist

from ultrascale_training.checkpoints.directory import DirectoryStore
from ultrascale_training.checkpoints.hashing import sum_of
from ultrascale_training.checkpoints.manifest import MANIFEST, FileSum, Manifest, encode
from ultrascale_training.errors import TrainingError
from ultrascale_training.restarts import LEDGER


class SealedStore(DirectoryStore):
    """Checkpoints in the folders that transformers' trainer writes, with our manifest in each."""

    NAME = r"checkpoint-\d+"

    def prepare(self, *, clean: bool = True) -> None:
        """Test the directory, and delete what killed runs have left, incomplete saves among it.

        Raises:
            TrainingError: As in the base class, or another program wrote checkpoints there.
        """
        for name in self.named():
            if (self.path / name / MANIFEST).exists():
                continue
            if not (self.path / LEDGER).exists():
                raise TrainingError(
                    f"--output_dir: {self.location}/{name} has no {MANIFEST}, so another program "
                    "wrote it; name another folder, and begin there with "
                    f"--resume_from_checkpoint={self.location}/{name}"
                )
            (self.path / name).rename(self.path / f"partial-{name}")
        super().prepare(clean=clean)

    def seal(self, step: int, about: Mapping[str, object], group: dist.ProcessGroup) -> None:
        """Write the sums of a complete checkpoint, then delete old ones; a collective."""
        dist.barrier(group)
        name, rank, world = f"checkpoint-{step}", dist.get_rank(), dist.get_world_size()
        names = sorted({*self.objects.sizes(f"{name}/")} - {f"{name}/{MANIFEST}"})
        sums: dict[str, FileSum] = {}
        for path in names[rank::world]:
            with self.objects.open(path) as stream:
                sums[path.removeprefix(f"{name}/")] = sum_of(stream)
        shares: list[dict[str, FileSum]] = [{} for _ in range(world)]
        dist.all_gather_object(shares, sums, group=group)
        if rank == 0:
            files = {path: file for share in shares for path, file in share.items()}
            manifest = encode(Manifest(step=step, about=about, files=files))
            self.objects.put(f"{name}/{MANIFEST}", manifest)
            self.make_way()
