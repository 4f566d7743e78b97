"""A small corpus that needs no download, the same in every run.

Its words follow each other by fixed rules, so a model has something to learn: the loss falls.
"""

from collections.abc import Iterator

from ultrascale_training.order import Permutation

_SUCCESSORS = 4


def documents(*, count: int, words: int, seed: int) -> Iterator[list[list[int]]]:
    """Yield documents of sentences of word numbers below ``words``.

    Every word has few successors, and the sentences of a document go on where the last one ended.
    """
    successors = [
        [Permutation(words, seed=seed + each)[word] for each in range(_SUCCESSORS)]
        for word in range(words)
    ]
    choices = Permutation(1 << 32, seed=seed)
    drawn = 0
    for number in range(count):
        word = number * 7919 % words
        document: list[list[int]] = []
        for _ in range(6 + number % 5):
            sentence: list[int] = []
            for _ in range(5 + (drawn * 31) % 9):
                word = successors[word][choices[drawn] % _SUCCESSORS]
                sentence.append(word)
                drawn += 1
            document.append(sentence)
        yield document
