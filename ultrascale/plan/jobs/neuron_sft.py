"""Fine-tune on Trainium by optimum-neuron 0.4.5 with TRL 0.24.0, which have no command line for it.

Source: https://github.com/huggingface/optimum-neuron/tree/v0.4.5/examples/training (2026-11-30)
"""

# pyright: basic, reportMissingImports=false
import os
import sys


def main() -> None:
    """Train, and save the model."""
    output = os.environ.get("ULTRASCALE_OUTPUT", "/tmp")
    flags = f"--model-type transformer --retry_failed_compilation --cache_dir={output}/neuron-cache"
    preset = {"NEURON_CC_FLAGS": flags, "NEURON_FUSE_SOFTMAX": "1", "HF_HUB_OFFLINE": "1"}
    # Compiler and hub read their variables when they are imported.
    os.environ.update({**preset, **os.environ})
    import torch
    from datasets import load_dataset
    from optimum.neuron import NeuronSFTConfig, NeuronSFTTrainer
    from optimum.neuron.models.training import NeuronModelForCausalLM
    from transformers import AutoTokenizer
    from trl import ModelConfig, ScriptArguments, TrlParser, get_peft_config

    parser = TrlParser((ScriptArguments, NeuronSFTConfig, ModelConfig))
    words = [f"--output_dir={output}", *sys.argv[1:]]
    script, options, chosen = parser.parse_args_and_config(words)
    name, rows = chosen.model_name_or_path, load_dataset(script.dataset_name)
    settings: dict[str, object] = {"torch_dtype": torch.bfloat16 if options.bf16 else torch.float32}
    settings["attn_implementation"] = chosen.attn_implementation or "flash_attention_2"
    trainer = NeuronSFTTrainer(
        model=NeuronModelForCausalLM.from_pretrained(name, options.trn_config, **settings),
        args=options,
        train_dataset=rows[script.dataset_train_split],
        processing_class=AutoTokenizer.from_pretrained(name),
        peft_config=get_peft_config(chosen),
    )
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
