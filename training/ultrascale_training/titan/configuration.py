"""TorchTitan's configuration of a run: its recipe, with our data, checkpoints and reports."""

import contextlib
import dataclasses
import importlib
import io
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, cast

import tyro
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.components.quantization import Float8LinearConverter
from torchtitan.components.validate import Validator
from torchtitan.config.manager import ConfigManager, custom_registry
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.protocols.model_spec import ModelSpec
from torchtitan.trainer import Trainer

from ultrascale_training.errors import TrainingError
from ultrascale_training.titan.arguments import Arguments
from ultrascale_training.titan.checkpointer import Checkpointer
from ultrascale_training.titan.loader import NoTokenizer, TokenLoader
from ultrascale_training.titan.reports import Reports
from ultrascale_training.titan.tokens import check_shards
from ultrascale_training.titan.trainer import UltrascaleTrainer

_RECOMPUTE = {"none": lambda: None, "selective": SelectiveAC.Config, "full": FullAC.Config}
# Defaults: steps between two validations, and steps of a validation.
_VALIDATE_EVERY, _VALIDATE_STEPS = 500, 50


def configuration(arguments: Arguments) -> UltrascaleTrainer.Config:
    """Return the TorchTitan configuration that ``arguments`` describe.

    Raises:
        TrainingError: TorchTitan refuses an option; the message has its reason.
    """
    base = _recipe(arguments)
    parsed = _parsed_configuration(base, arguments)
    parsed.dump_folder = local_folder(arguments.output_dir)
    return parsed


def local_folder(output: str) -> str:
    """Return the folder for traces and metrics: the output, or a temporary folder for a bucket."""
    return output if "://" not in output else f"{tempfile.gettempdir()}/ultrascale-output"


def _recipe(arguments: Arguments) -> UltrascaleTrainer.Config:
    recipe = arguments.recipe
    package = f"torchtitan.models.{recipe.module}"
    models = importlib.import_module(package)
    configs = importlib.import_module(f"{package}.config_registry")
    base: Trainer.Config = getattr(configs, recipe.config)()
    spec = base.model_spec = _spec(models.model_registry, arguments)
    spec.model.layers = spec.model.layers[: recipe.layers]
    given = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
    loss = given["loss"]
    if hasattr(loss, "loss_fn"):
        loss.loss_fn.global_vocab_size = spec.model.vocab_size
    index = check_shards(arguments.data)
    if arguments.validation_data is not None:
        check_shards(arguments.validation_data)
    if index.vocabulary > spec.model.vocab_size:
        raise TrainingError(
            f"--data: its tokenizer has {index.vocabulary} tokens, and {recipe.name} "
            f"{spec.model.vocab_size}; prepare it with the model's own tokenizer"
        )
    given |= {
        "checkpoint": Checkpointer.Config(
            enable=True,
            interval=base.checkpoint.interval,
            store=arguments.output_dir,
            keep=arguments.keep,
            memory_every=arguments.memory_every,
            load=arguments.load,
            accept_new_data=arguments.accept_new_data,
        ),
        "dataloader": TokenLoader.Config(dataset_path=str(arguments.data), seed=arguments.seed),
        "metrics": Reports.Config(log_freq=base.metrics.log_freq, disable_color_printing=True),
        "tokenizer": NoTokenizer.Config(),
        "validator": _validator(arguments),
    }
    if recipe.schedule is not None:
        rate, warmup = recipe.schedule
        given |= {
            "optimizer": default_adamw(rate),
            "lr_scheduler": LRSchedulersContainer.Config(warmup_steps=warmup),
        }
    config = UltrascaleTrainer.Config(**given, recipe=recipe.name)
    config.debug.seed = arguments.seed
    config.debug.enable_structured_logging = False
    config.profiler.enable_profiling = False
    config.comm.save_traces_folder = "flight-recorder"
    if arguments.activation_checkpoint is not None:
        config.activation_checkpoint = _RECOMPUTE[arguments.activation_checkpoint]()
    return config


def _spec(model_registry: Callable[..., ModelSpec], arguments: Arguments) -> ModelSpec:
    converters = list[Any]()
    if arguments.matmul == "float8":
        if find_spec("torchao") is None:
            raise TrainingError(
                "--matmul: float8 needs torchao, which this image lacks; build it anew, or write "
                "--matmul=bf16"
            )
        # As llama3_405b of TorchTitan has it: its scores stay in BF16.
        compiled = "--compile.enable" in arguments.titan
        converters.append(
            Float8LinearConverter.Config(filter_fqns=["lm_head"], model_compile_enabled=compiled)
        )
    flavor = arguments.recipe.flavor
    return model_registry(flavor, **({"converters": converters} if converters else {}))


def _validator(arguments: Arguments) -> Validator.Config:
    data = arguments.validation_data or arguments.data
    return Validator.Config(
        enable=arguments.validation_data is not None,
        freq=_VALIDATE_EVERY,
        steps=_VALIDATE_STEPS,
        dataloader=TokenLoader.Config(dataset_path=str(data), shuffle=False),
    )


def _parsed_configuration(
    base: UltrascaleTrainer.Config, arguments: Arguments
) -> UltrascaleTrainer.Config:
    ConfigManager()  # This import registers the form of TorchTitan's lists.
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            parsed = tyro.cli(
                type(base),
                args=list(arguments.titan),
                default=base,
                registry=custom_registry,
                prog="TorchTitan",
            )
    except (ValueError, AssertionError) as error:
        raise TrainingError(f"TorchTitan refuses an option: {error}") from None
    except SystemExit:
        # The parser would print the mistake and end the process, which torchrun would start again.
        raise TrainingError(f"TorchTitan refuses an option:\n{told.getvalue()}") from None
    return cast(Any, parsed)
