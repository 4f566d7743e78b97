"""Prometheus' text format and quantiles: a wrong one misleads whoever watches a service."""

import math

import pytest

from ultrascale.lambdas.serving import Sample, quantile, samples

TEXT = """\
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a \\"b}, c"} 3.0
vllm:num_requests_running{engine="0"} 1.2e+01
python_gc_objects 7
vllm:kv_cache_usage_perc{engine="0"} NaN
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 4 1395066363000
"""


def test_series_are_read_whatever_their_labels_hold() -> None:
    assert [*samples(TEXT, ["vllm:num_requests_waiting", "vllm:num_requests_running"])] == [
        Sample("vllm:num_requests_waiting", {"engine": "0", "model_name": 'a \\"b}, c'}, 3),
        Sample("vllm:num_requests_running", {"engine": "0"}, 12),
    ]


def test_a_series_may_have_no_labels_or_a_time() -> None:
    assert [*samples(TEXT, ["python_gc_objects"])] == [Sample("python_gc_objects", {}, 7)]
    (bucket,) = samples(TEXT, ["vllm:time_to_first_token_seconds_bucket"])
    assert bucket.value == 4


def test_a_value_that_json_lacks_is_left_out() -> None:
    assert [*samples(TEXT, ["vllm:kv_cache_usage_perc"])] == []


@pytest.mark.parametrize(
    ("share", "buckets", "expected"),
    [
        # 10 of 20 lie at or below 0.1: half of them, so the median is the bound itself.
        (0.5, {0.1: 10, 0.5: 18, math.inf: 20}, 0.1),
        # The 19th is in the last bucket, whose only bound is its lower one.
        (0.95, {0.1: 10, 0.5: 18, math.inf: 20}, 0.5),
        # The 15th of 20 is 5 of 8 through the bucket from 0.1 to 0.5.
        (0.75, {0.1: 10, 0.5: 18, math.inf: 20}, 0.35),
        # The first bucket begins at 0.
        (0.5, {0.2: 8, math.inf: 8}, 0.1),
        (0.5, {0.1: 0, 0.5: 0, math.inf: 0}, None),
        (0.5, {}, None),
        (0.5, {math.inf: 3}, None),
    ],
)
def test_quantiles_are_those_of_prometheus(
    share: float, buckets: dict[float, float], expected: float | None
) -> None:
    found = quantile(share, buckets)
    assert found == (None if expected is None else pytest.approx(expected))
