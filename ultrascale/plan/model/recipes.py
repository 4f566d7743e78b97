"""Recipe of a job: the division of its model, and what each device holds of it."""

from ultrascale.frozen import Frozen


class MemoryPlan(Frozen):
    """Memory of the device that holds most, in bytes."""

    states: int  # Its share of parameters, gradients and the optimizer's moments
    gathered: int  # Parameters and gradients that it holds whole for a while
    activations: int  # Results of layers that the backward pass needs
    logits: int  # Scores over the vocabulary, and their gradients
    reserved: int  # What the allocator keeps beside these
    device: int  # Memory of a device that a program can use

    @property
    def total(self) -> int:
        """All of it."""
        return self.states + self.gathered + self.activations + self.logits + self.reserved

    @property
    def fits(self) -> bool:
        """Whether a device has so much."""
        return self.total <= self.device


class RecipePlan(Frozen):
    """A recipe on the nodes of a job."""

    name: str  # Its name
    model: str  # Model that it trains
    purpose: str  # What it does with the model
    engine: str  # Program that runs it, with its version
    accelerator: str  # Accelerator of its nodes
    nodes: int  # Nodes
    devices: int  # Processes in all, one a device
    tensor: int  # Devices that share each matrix
    pipeline: int  # Groups of layers one after another
    context: int  # Devices that share each sequence
    expert: int  # Devices that share the experts of a layer
    shard: int  # Devices that share parameters and data
    replicate: int  # Groups of devices that each hold all parameters
    recomputation: str  # Activations that are computed again: `none`, `selective` or `full`
    sequence: int  # Tokens of a sequence
    local_batch: int  # Sequences of a group that shares the data, in one pass
    global_batch: int  # Sequences of a step
    steps: int  # Steps of the run
    parameters: int  # Parameters of the model
    memory: MemoryPlan  # Memory of a device
    checkpoint_bytes: int  # Size of a checkpoint
    step_seconds: float  # Seconds of a step, estimated
    follows: str  # Address of a published run of this division; empty where there is none

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a step."""
        return self.sequence * self.global_batch

    @property
    def degrees(self) -> str:
        """Degrees above 1, of which the product is the number of devices."""
        return " x ".join(
            f"{name} {degree}"
            for name, degree in (
                ("replicate", self.replicate),
                ("shard", self.shard),
                ("context", self.context),
                ("tensor", self.tensor),
                ("pipeline", self.pipeline),
            )
            if degree > 1
        )
