"""Traffic of a model server: requests and tokens, from two readings of the metrics of its pods."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

# --- Prometheus' text format, and quantiles of histograms in this format --------------------------
# Sources:
#     https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
#     https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile


# What follows the name in a line: ``name{label="value",…} number``, without labels ``name number``.
_REST = r'(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? ([-+]?(?:[\d.eE+-]+|Inf|NaN))'
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Sample(NamedTuple):
    """A sample of a series."""

    name: str  # Name of the metric
    labels: Mapping[str, str]  # Labels of the series
    value: float  # The value; always a finite number, as JSON has no other


def samples(text: str, names: Collection[str]) -> Iterator[Sample]:
    """Yield the samples of the metrics ``names`` with finite values."""
    # A server has hundreds of other lines.
    lines = re.compile(f"^({'|'.join(map(re.escape, sorted(names)))}){_REST}", re.MULTILINE)
    for name, labels, digits in lines.findall(text):
        if math.isfinite(value := number(digits)):
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


# --- Traffic of a model server: requests and tokens, from two readings of the metrics of its pods


_HALF, _MOST = 0.5, 0.95


class MetricNames(NamedTuple):
    """Names of a server's metrics."""

    waiting: str  # Gauge of the requests that wait
    running: str  # Gauge of the requests that are answered
    cache: str  # Gauge of the share of the KV cache in use, from 0 to 1
    prompt_tokens: str  # Counter of the tokens of prompts
    generated_tokens: str  # Counter of the tokens of answers
    first_token: str  # Histogram of the seconds to the first token of an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Metrics of a pod at a moment, summed over all of its engines and models."""

    at: float  # The moment, in seconds since 1970
    waiting: float  # Requests that wait
    running: float  # Requests that are answered
    # Share of the KV cache in use, from 0 to 1, on average; None where it has none
    cache: float | None
    prompt_tokens: float  # Tokens of prompts since its start
    generated_tokens: float  # Tokens of answers since its start
    # Answers since its start whose first token came within each bound, in seconds
    first_token: Mapping[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Traffic of a service."""

    replicas: int  # Pods that published their metrics
    waiting: float  # Requests that wait
    running: float  # Requests that are answered
    # KV cache in use, in percent, on average; None where no pod has one
    cache_percent: float | None
    prompt_tokens_per_second: float | None  # Tokens of prompts; None without an earlier reading
    generated_tokens_per_second: float | None  # Tokens of answers; None without an earlier reading
    # Seconds to the first token of half of the answers since the earlier reading, or within their
    # pods' whole time without one; None without an answer
    first_token_half: float | None
    first_token_most: float | None  # Seconds to the first token of 95 % of these answers
    answers: float  # Answers that the two times cover


def read(text: str, names: MetricNames, *, at: float) -> Reading | None:
    """Return the reading in a server's answer; None if another program has answered.

    Args:
        text: The answer, in Prometheus' text format.
        names: Names of the metrics.
        at: The moment, in seconds since 1970.
    """
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    buckets: dict[float, float] = {}
    bucket = f"{names.first_token}_bucket"
    for sample in samples(text, {*names, bucket}):
        if sample.name == bucket:
            bound = number(sample.labels.get("le", "+Inf"))
            if not math.isnan(bound):
                buckets[bound] = buckets.get(bound, 0) + sample.value
            continue
        sums[sample.name] = sums.get(sample.name, 0) + sample.value
        counts[sample.name] = counts.get(sample.name, 0) + 1
    if names.waiting not in sums:
        return None
    engines = counts.get(names.cache, 0)
    return Reading(
        at=at,
        waiting=sums[names.waiting],
        running=sums.get(names.running, 0),
        cache=sums[names.cache] / engines if engines else None,
        prompt_tokens=sums.get(names.prompt_tokens, 0),
        generated_tokens=sums.get(names.generated_tokens, 0),
        first_token=buckets,
    )


def traffic(later: Mapping[str, Reading], earlier: Mapping[str, Reading]) -> Traffic:
    """Return the traffic of the pods in ``later``.

    Rates cover only pods with both readings: the start of other pods is unknown. A counter that is
    lower than before has begun anew at 0.

    Args:
        later: Readings by pod.
        earlier: Earlier readings by pod; empty without any.
    """
    pairs = [(earlier[pod], now) for pod, now in later.items() if pod in earlier]
    whole = [_counts_since(now.first_token, before.first_token) for before, now in pairs]
    answered = _summed_histogram(whole if pairs else [now.first_token for now in later.values()])
    caches = [now.cache for now in later.values() if now.cache is not None]
    return Traffic(
        replicas=len(later),
        waiting=sum(now.waiting for now in later.values()),
        running=sum(now.running for now in later.values()),
        cache_percent=100 * sum(caches) / len(caches) if caches else None,
        prompt_tokens_per_second=_rate_per_second(
            (now.at - before.at, before.prompt_tokens, now.prompt_tokens) for before, now in pairs
        ),
        generated_tokens_per_second=_rate_per_second(
            (now.at - before.at, before.generated_tokens, now.generated_tokens)
            for before, now in pairs
        ),
        first_token_half=quantile(_HALF, answered),
        first_token_most=quantile(_MOST, answered),
        answers=answered.get(math.inf, 0),
    )


def _rate_per_second(pairs: Iterable[tuple[float, float, float]]) -> float | None:
    """Return a rate per second from triples: elapsed seconds, earlier count, present count."""
    rates = [
        (now if now < before else now - before) / seconds
        for seconds, before, now in pairs
        if seconds > 0
    ]
    return sum(rates) if rates else None


def _counts_since(
    now: Mapping[float, float], before: Mapping[float, float]
) -> Mapping[float, float]:
    if now.get(math.inf, 0) < before.get(math.inf, 0):
        return now
    return {bound: count - before.get(bound, 0) for bound, count in now.items()}


def _summed_histogram(histograms: Iterable[Mapping[float, float]]) -> Mapping[float, float]:
    """Return the sum of histograms; all pods of a service have the same bounds."""
    whole: dict[float, float] = {}
    for histogram in histograms:
        for bound, count in histogram.items():
            whole[bound] = whole.get(bound, 0) + count
    return whole
