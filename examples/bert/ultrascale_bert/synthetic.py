"""A small corpus that needs no download, the same in every run.

A few words are frequent and many are rare, as in text, and half of the words follow from the one
before. So a model has something to learn at once, and more to learn later.
"""

from collections.abc import Iterator

from ultrascale_training.order import Permutation

_DRAWS = 1 << 32


def documents(*, count: int, words: int, seed: int) -> Iterator[list[list[int]]]:
    """Yield documents of sentences of word numbers below ``words``."""
    draws = Permutation(_DRAWS, seed=seed)
    followers = [_word(Permutation(_DRAWS, seed=seed + 1)[word], words) for word in range(words)]
    word = drawn = 0
    for number in range(count):
        document: list[list[int]] = []
        for _ in range(6 + number % 5):
            sentence: list[int] = []
            for _ in range(5 + draws[drawn] % 9):
                draw = draws[drawn]
                word = followers[word] if draw % 2 else _word(draw, words)
                sentence.append(word)
                drawn += 1
            document.append(sentence)
        yield document


def _word(draw: int, words: int) -> int:
    """Return a word whose frequency falls with its number, by Zipf's law."""
    return int((words + 1) ** (draw / _DRAWS)) - 1
