"""Prometheus' text format, and quantiles of histograms in this format.

Sources:
    https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
    https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

# A line: ``name{label="value",…} number``, without labels ``name number``.
_LINE = re.compile(
    r'^([a-zA-Z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? ([-+]?(?:[\d.eE+-]+|Inf|NaN))',
    re.MULTILINE,
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Sample(NamedTuple):
    """A sample of a series."""

    name: str  # Name of the metric
    labels: Mapping[str, str]  # Labels of the series
    value: float  # The value; always a finite number, as JSON has no other


def samples(text: str, names: Collection[str]) -> Iterator[Sample]:
    """Yield the samples of the metrics ``names`` with finite values."""
    for name, labels, digits in _LINE.findall(text):
        if name in names and math.isfinite(value := number(digits)):
            yield Sample(name, dict(_LABEL.findall(labels)), value)


def number(text: str) -> float:
    """Return a number; not-a-number for other text: any program may answer instead of a server."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def quantile(share: float, buckets: Mapping[float, float]) -> float | None:
    """Return a quantile of a histogram, as Prometheus estimates it; None without observations.

    Observations within a bucket count as evenly spread. A quantile in the last bucket, which has
    no upper bound, is the highest finite bound.

    Args:
        share: Share of observations at or below the quantile, from 0 to 1.
        buckets: Observations at or below each upper bound; the bound of the last is infinity.
    """
    bounds = sorted(buckets)
    count = buckets[bounds[-1]] if bounds else 0
    if count <= 0 or len(bounds) < 2:
        return None
    rank = share * count
    below, start = 0.0, 0.0
    for bound in bounds:
        held = buckets[bound]
        if held >= rank and held > below:
            if math.isinf(bound):
                return start
            return start + (bound - start) * max(rank - below, 0) / (held - below)
        below, start = held, start if math.isinf(bound) else bound
    return start
