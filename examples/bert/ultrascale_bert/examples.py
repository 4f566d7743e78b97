"""Sentence pairs with masked tokens, made as BERT's own create_pretraining_data.py makes them.

Source: https://github.com/google-research/bert/blob/master/create_pretraining_data.py
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

Document = Sequence[Sequence[int]]

_MASKED_SHARE = 0.15
_SHORT_SHARE = 0.1
# [CLS], and [SEP] after each of the two segments.
_SPECIAL_TOKENS = 3


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Ids of the tokens that have a meaning of their own."""

    size: int
    pad: int
    cls: int
    sep: int
    mask: int
    first_word: int


@dataclass(frozen=True, kw_only=True)
class Example:
    """One row before it is padded."""

    tokens: Sequence[int]
    segments: Sequence[int]
    positions: Sequence[int]  # Places of masked tokens, ascending
    masked: Sequence[int]  # What stood there
    is_random_next: bool


@dataclass(frozen=True, kw_only=True)
class ExampleMaker:
    """Makes examples of at most ``seq_len`` tokens with at most ``max_pred_len`` masked ones."""

    vocabulary: Vocabulary
    seq_len: int
    max_pred_len: int

    def examples(self, documents: Sequence[Document], random: Random) -> Iterator[Example]:
        """Yield the examples of ``documents``; a random next sentence is of another one."""
        for number in range(len(documents)):
            yield from self._document_examples(documents, number, random)

    def _document_examples(
        self, documents: Sequence[Document], number: int, random: Random
    ) -> Iterator[Example]:
        room = self.seq_len - _SPECIAL_TOKENS
        document = documents[number]
        chunk: list[Sequence[int]] = []
        target = self._target(room, random)
        place = 0
        while place < len(document):
            chunk.append(document[place])
            if place == len(document) - 1 or sum(map(len, chunk)) >= target:
                first_count = random.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
                first = _joined(chunk[:first_count])
                is_random = len(documents) > 1 and (len(chunk) == 1 or random.random() < 0.5)
                if is_random:
                    second = _random_second(documents, number, target - len(first), random)
                    # The next example uses the unused sentences.
                    place -= len(chunk) - first_count
                else:
                    second = _joined(chunk[first_count:])
                if first and second:
                    yield self._example(*_fit(first, second, room, random), is_random, random)
                chunk, target = [], self._target(room, random)
            place += 1

    def _target(self, room: int, random: Random) -> int:
        return random.randint(2, room) if random.random() < _SHORT_SHARE else room

    def _example(
        self, first: Sequence[int], second: Sequence[int], is_random: bool, random: Random
    ) -> Example:
        words = self.vocabulary
        tokens = [words.cls, *first, words.sep, *second, words.sep]
        segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        maskable = [
            place for place, token in enumerate(tokens) if token not in (words.cls, words.sep)
        ]
        random.shuffle(maskable)
        count = min(self.max_pred_len, max(1, round(len(tokens) * _MASKED_SHARE)))
        positions = sorted(maskable[:count])
        masked = [tokens[place] for place in positions]
        for place in positions:
            tokens[place] = self._replacement(tokens[place], random)
        return Example(
            tokens=tokens,
            segments=segments,
            positions=positions,
            masked=masked,
            is_random_next=is_random,
        )

    def _replacement(self, token: int, random: Random) -> int:
        """Return ``[MASK]`` in 80%, the token in 10% and a random word in 10% of cases."""
        drawn = random.random()
        if drawn < 0.8:
            return self.vocabulary.mask
        if drawn < 0.9:
            return token
        return random.randrange(self.vocabulary.first_word, self.vocabulary.size)


def _joined(sentences: Sequence[Sequence[int]]) -> list[int]:
    return [token for sentence in sentences for token in sentence]


def _random_second(
    documents: Sequence[Document], but: int, length: int, random: Random
) -> list[int]:
    """Return sentences from a random place of another document, about ``length`` tokens of them."""
    number = random.randrange(len(documents) - 1)
    other = documents[number + (number >= but)]
    found: list[int] = []
    for sentence in other[random.randrange(len(other)) :]:
        found.extend(sentence)
        if len(found) >= length:
            break
    return found


def _fit(
    first: list[int], second: list[int], room: int, random: Random
) -> tuple[list[int], list[int]]:
    """Cut the longer segment, at a random end, until both fit."""
    while len(first) + len(second) > room:
        longer = first if len(first) > len(second) else second
        if random.random() < 0.5:
            del longer[0]
        else:
            longer.pop()
    return first, second
