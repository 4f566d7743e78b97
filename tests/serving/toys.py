"""Toy language models of random weights, with a tokenizer of their own."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = 509


def write_toy(folder: Path) -> None:
    """Write a Llama of two layers, which vLLM loads as any other model, into ``folder``."""
    words = ["<unk>", "<s>", "</s>", *(f"w{number}" for number in range(WORDS))]
    vocabulary = {word: number for number, word in enumerate(words)}
    splitter = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    splitter.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=splitter, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    tokenizer.chat_template = "{% for each in messages %}{{ each['content'] }} {% endfor %}"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
        dtype="float32",
    )
    LlamaForCausalLM(shape).save_pretrained(folder)
