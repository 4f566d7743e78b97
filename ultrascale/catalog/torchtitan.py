"""Names of the options that TorchTitan takes, and of the flags of the program that starts it.

Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/config/configs.py and
https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/trainer.py; tests hold them against
the installed release.
"""

from collections.abc import Mapping
from types import MappingProxyType

SECTIONS = frozenset(
    {
        "activation_checkpoint",
        "checkpoint",
        "comm",
        "compile",
        "dataloader",
        "debug",
        "loss",
        "lr_scheduler",
        "metrics",
        "optimizer",
        "override",
        "parallelism",
        "profiler",
        "tokenizer",
        "training",
        "validator",
    }
)
"""Sections of options; those of the model are not on the command line."""

OPTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "parallelism": frozenset(
            {
                "context_parallel_degree",
                "context_parallel_load_balancer",
                "context_parallel_ptrr_mask_key",
                "data_parallel_replicate_degree",
                "data_parallel_shard_degree",
                "enable_fsdp_symm_mem",
                "enable_sequence_parallel",
                "expert_parallel_degree",
                "fsdp_reshard_after_forward",
                "module_fqns_per_model_part",
                "pipeline_parallel_degree",
                "pipeline_parallel_first_stage_less_layers",
                "pipeline_parallel_last_stage_less_layers",
                "pipeline_parallel_layers_per_stage",
                "pipeline_parallel_microbatch_size",
                "pipeline_parallel_schedule",
                "pipeline_parallel_schedule_csv",
                "spmd_backend",
                "tensor_parallel_degree",
            }
        ),
        "training": frozenset(
            {
                "disable_cuda_graphs",
                "dtype",
                "enable_cpu_offload",
                "gc_debug",
                "gc_freq",
                "global_batch_size",
                "local_batch_size",
                "max_norm",
                "mixed_precision_param",
                "mixed_precision_reduce",
                "seq_len",
                "steps",
            }
        ),
    }
)
"""Options of the sections that a plan reads: a misspelled one would leave its default unsaid."""

FLAGS = frozenset(
    {
        "--accept-new-data",
        "--activation-checkpoint",
        "--data",
        "--export",
        "--keep",
        "--load",
        "--lora-alpha",
        "--lora-rank",
        "--memory-every",
        "--output-dir",
        "--recipe",
        "--seed",
        "--steps-this-run",
        "--validation-data",
    }
)
"""Flags of ``ultrascale_training.titan``, beside those that only print."""
