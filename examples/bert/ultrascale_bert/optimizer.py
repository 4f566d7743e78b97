"""AdamW as BERT uses it, and its learning rate."""

import torch
from torch import Tensor, nn

_BETAS = (0.9, 0.999)
# The value of BERT's released code; torch's default of 1e-8 drowns in the rounding of bfloat16.
_EPSILON = 1e-6


def learning_rate(step: int, *, peak: float, warmup: int, steps: int) -> float:
    """Return the rate of ``step``, counted from 0: linear warm-up, then linear decay to 0."""
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * max(0.0, (steps - step) / (steps - warmup))


def make(model: nn.Module, *, weight_decay: float) -> torch.optim.Optimizer:
    """Return an AdamW whose state exists from the start, so that a checkpoint can be read into it.

    Biases and the weights of layer normalization do not decay, as in the released code.
    """
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    kind = _HalfPrecisionAdamW if parameters[0].dtype == torch.bfloat16 else torch.optim.AdamW
    optimizer = kind(groups, lr=0.0, betas=_BETAS, eps=_EPSILON)
    for parameter in parameters:
        optimizer.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32),
            "exp_avg": torch.zeros_like(parameter, dtype=torch.float32),
            "exp_avg_sq": torch.zeros_like(parameter, dtype=torch.float32),
        }
    return optimizer


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of every parameter."""
    for group in optimizer.param_groups:
        group["lr"] = rate


class _HalfPrecisionAdamW(torch.optim.AdamW):
    """AdamW for weights in bfloat16, with its state and its arithmetic in single precision.

    The last step rounds to bfloat16: on Neuron stochastically, without which it would not work.
    Values that change from step to step go in as tensors: as numbers they could become part of an
    XLA graph, which would then be compiled anew for each step.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore - no closure is supported
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    gradient = parameter.grad.float()
                    self._update(parameter, gradient, group["lr"], group["weight_decay"])

    def _update(self, parameter: Tensor, gradient: Tensor, rate: float, decay: float) -> None:
        state = self.state[parameter]
        state["step"] += 1
        count = float(state["step"])
        first, second = _BETAS
        numbers = torch.tensor(
            [1 - rate * decay, rate / (1 - first**count), 1 / (1 - second**count)]
        ).to(parameter.device)
        state["exp_avg"].mul_(first).add_(gradient, alpha=1 - first)
        state["exp_avg_sq"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        denominator = (state["exp_avg_sq"] * numbers[2]).sqrt_().add_(_EPSILON)
        updated = parameter.float() * numbers[0] - numbers[1] * state["exp_avg"] / denominator
        parameter.copy_(updated)
