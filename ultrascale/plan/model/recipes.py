"""Recipe of a job: the division of its model, and what each device holds of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Memory of the device that holds most, in bytes.

    Attributes:
        states: Its share of parameters, gradients and the optimizer's moments.
        gathered: Parameters and gradients that it holds whole for a while.
        activations: Results of layers that the backward pass needs.
        logits: Scores over the vocabulary, and their gradients.
        reserved: What the allocator keeps beside these.
        device: Memory of a device that a program can use.
    """

    states: int
    gathered: int
    activations: int
    logits: int
    reserved: int
    device: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.states + self.gathered + self.activations + self.logits + self.reserved

    @property
    def fits(self) -> bool:
        """Whether a device has so much."""
        return self.total <= self.device


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipePlan:
    """A recipe on the nodes of a job.

    Attributes:
        name: Its name.
        model: Model that it trains.
        purpose: What it does with the model.
        engine: Program that runs it, with its version.
        accelerator: Accelerator of its nodes.
        nodes: Nodes.
        devices: Processes in all, one a device.
        tensor: Devices that share each matrix.
        pipeline: Groups of layers one after another.
        context: Devices that share each sequence.
        expert: Devices that share the experts of a layer.
        shard: Devices that share parameters and data.
        replicate: Groups of devices that each hold all parameters.
        recomputation: Activations that are computed again: `none`, `selective` or `full`.
        sequence: Tokens of a sequence.
        local_batch: Sequences of a group that shares the data, in one pass.
        global_batch: Sequences of a step.
        steps: Steps of the run.
        parameters: Parameters of the model.
        memory: Memory of a device.
        checkpoint_bytes: Size of a checkpoint.
        step_seconds: Seconds of a step, estimated.
        follows: Address of a published run of this division; empty where there is none.
    """

    name: str
    model: str
    purpose: str
    engine: str
    accelerator: str
    nodes: int
    devices: int
    tensor: int
    pipeline: int
    context: int
    expert: int
    shard: int
    replicate: int
    recomputation: str
    sequence: int
    local_batch: int
    global_batch: int
    steps: int
    parameters: int
    memory: MemoryPlan
    checkpoint_bytes: int
    step_seconds: float
    follows: str

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
