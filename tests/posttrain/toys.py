"""Toys: a chat that repeats a word, a tokenizer of its words, and models of random weights."""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = tuple(f"word{number}" for number in range(16))
_MARKS = ("<pad>", "<unk>", "<user>", "<assistant>", "<end>")
_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<' + message['role'] + '> ' + message['content'] + ' <end> ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)


def model(folder: Path, *, hidden: int = 64, layers: int = 2, seed: int = 0) -> Path:
    """Write a Llama of random weights with its tokenizer, as Hugging Face's folders are."""
    vocabulary = {word: number for number, word in enumerate((*_MARKS, *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    whole = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", unk_token="<unk>"
    )
    whole.chat_template = _TEMPLATE
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=64,
        pad_token_id=vocabulary["<pad>"],
        eos_token_id=vocabulary["<end>"],
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    whole.save_pretrained(folder)
    return folder


def said(role: str, word: str) -> Mapping[str, str]:
    """Return a message of a chat."""
    return {"role": role, "content": word}


def chats(count: int, *, seed: int = 0) -> Sequence[Mapping[str, Any]]:
    """Return rows for SFT: the assistant repeats the user's word."""
    dice = random.Random(seed)
    return [
        {"messages": [said("user", word), said("assistant", word)]}
        for word in (dice.choice(WORDS) for _ in range(count))
    ]


def prompts(count: int, *, seed: int = 0) -> Sequence[Mapping[str, Any]]:
    """Return rows for GRPO and distillation."""
    dice = random.Random(seed)
    return [{"prompt": [said("user", dice.choice(WORDS))]} for _ in range(count)]


def pairs(count: int, *, seed: int = 0) -> Sequence[Mapping[str, Any]]:
    """Return rows for DPO: the chosen answer has a word of the first half."""
    dice = random.Random(seed)
    half = len(WORDS) // 2
    return [
        {
            "prompt": [said("user", dice.choice(WORDS))],
            "chosen": [said("assistant", dice.choice(WORDS[:half]))],
            "rejected": [said("assistant", dice.choice(WORDS[half:]))],
        }
        for _ in range(count)
    ]


def write(folder: Path, rows: Iterable[Mapping[str, Any]], *, split: str = "train") -> Path:
    """Write rows as JSON lines, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"{split}.jsonl").write_text(lines)
    return folder


def reward(completions: Sequence[Sequence[Mapping[str, str]]], **_: object) -> list[float]:
    """Return 1 for an answer with the first word, which a fifth has by chance."""
    return [float(WORDS[0] in answer[0]["content"].split()) for answer in completions]


def answers(folder: Path, words: Sequence[str] = WORDS) -> float:
    """Return the share of words that a model repeats, by its most likely tokens."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    likely = _likely(folder, words).argmax(-1)
    return sum(map(str.__eq__, words, map(tokenizer.decode, likely))) / len(words)


def _likely(folder: Path, words: Sequence[str]) -> torch.Tensor:
    """Return the logarithms of the probabilities of an answer's first token, by word."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    texts = [
        tokenizer.apply_chat_template(
            [said("user", word)], tokenize=False, add_generation_prompt=True
        )
        for word in words
    ]
    with torch.no_grad():
        scores = LlamaForCausalLM.from_pretrained(folder)(
            tokenizer(texts, return_tensors="pt")["input_ids"]
        ).logits
    return scores[:, -1].log_softmax(-1)


def distance(student: Path, teacher: Path, words: Sequence[str] = WORDS) -> float:
    """Return the mean divergence of a student's answers to words from a teacher's."""
    teaching, learning = (_likely(folder, words) for folder in (teacher, student))
    return float((teaching.exp() * (teaching - learning)).sum(-1).mean())
