"""Cluster files from which a new cluster file can start, by short names."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from ultrascale.frozen import Frozen
from ultrascale.resources import resource


class Start(Frozen):
    """A cluster file to start from."""

    file: str  # The file, as a path in the product's repository
    summary: str  # The cluster in a few words
    jobs: tuple[str, ...] = ()  # Job files for it, as paths in the product's repository
    needs_grants: bool = (
        False  # Whether `plan` ends with 2 until AWS grants a limit above the published one
    )

    @property
    def path(self) -> Path:
        """Path of the file on this machine."""
        return resource(self.file)


_OWN = "ultrascale/init/starts"
STARTS: Mapping[str, Start] = MappingProxyType(
    {
        "minimal": Start(file=f"{_OWN}/minimal.yaml", summary="two system nodes, one-GPU nodes"),
        "trainium": Start(
            file="clusters/trainium-bert.yaml",
            summary="BERT on trn1.32xlarge, the AWS tutorial",
            jobs=("jobs/bert-data.yaml", "jobs/bert-pretrain.yaml", "jobs/tensorboard.yaml"),
        ),
        "hopper": Start(
            file=f"{_OWN}/hopper.yaml",
            summary="p5.48xlarge with EFA and Lustre",
            jobs=(
                f"{_OWN}/hopper-jobs/synthetic-data.yaml",
                f"{_OWN}/hopper-jobs/pretrain.yaml",
            ),
        ),
        "hybrid": Start(
            file="clusters/hybrid-hyperpod.yaml",
            summary="HyperPod on a training plan, and bursts on EKS",
        ),
        "mixed": Start(
            file="clusters/mixed-capacity.yaml",
            summary="every purchase option, reserved and burst",
        ),
        "teams": Start(
            file="clusters/llm-kueue.yaml",
            summary="teams in queues of Kueue: reserved nodes, bursts, services",
        ),
        "serving": Start(
            file="clusters/serving.yaml",
            summary="model servers on GPUs, Spot nodes and Inferentia",
        ),
        "existing": Start(
            file="clusters/existing-estate.yaml",
            summary="a VPC, keys and a file system that exist, without internet",
        ),
        "auto-mode": Start(file="clusters/auto-mode.yaml", summary="EKS Auto Mode"),
        "ultra": Start(
            file="clusters/ultra-100k.yaml",
            summary="100,000 nodes: `plan` says what AWS has to grant first",
            needs_grants=True,
        ),
    }
)
