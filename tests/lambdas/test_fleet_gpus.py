"""Fleet metrics from the answers of GPU exporters."""

import json
from functools import partial

import pytest

from tests.support.fleet import exporter, node, pool
from tests.support.observability_plans import HYBRID_PLAN, of
from ultrascale.lambdas.fleet_metrics.handler import measure_gpus
from ultrascale.lambdas.fleet_metrics.measures import Key, Measures
from ultrascale.lambdas.fleet_metrics.nodes import measure_nodes
from ultrascale.lambdas.fleet_metrics.settings import Settings

EVENT = json.loads(json.dumps(of(HYBRID_PLAN).fleet_metrics.input))
SETTINGS = Settings.parse(EVENT)
BURST: Key = ("NodeType", "eks-on-demand")

on_demand_node = partial(node, plan=pool(HYBRID_PLAN, "eks-on-demand"))

GPU_TEXT = """\
# HELP DCGM_FI_DEV_GPU_UTIL Share of time in which a kernel ran in percent
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",modelName="NVIDIA A100, 40GB",namespace="training",pod="a-0"} 80
DCGM_FI_DEV_GPU_UTIL{gpu="1",modelName="NVIDIA A100, 40GB",namespace="training",pod="a-0"} 60
DCGM_FI_DEV_GPU_UTIL{gpu="2",modelName="NVIDIA A100, 40GB"} 0
DCGM_FI_PROF_SM_ACTIVE{gpu="0",namespace="training",pod="a-0"} 0.5
DCGM_FI_DEV_GPU_TEMP{gpu="0"} 45
"""


def measured_gpus(answers: dict[str, str | OSError], settings: Settings = SETTINGS) -> Measures:
    measures = Measures()
    nodes = measure_nodes(
        [on_demand_node(f"d{index}") for index, _ in enumerate(answers)],
        settings,
        measures,
        now=0,
    )

    def fetch(url: str) -> str:
        answer = answers[url]
        if isinstance(answer, OSError):
            raise answer
        return answer

    pods = [
        exporter(f"e{index}", f"d{index}", url.split("/")[2].partition(":")[0])
        for index, url in enumerate(answers)
    ]
    measure_gpus(pods, nodes, settings, measures, fetch)
    return measures


def test_gpus_are_averaged_by_side_and_by_the_team_that_holds_them() -> None:
    measures = measured_gpus({"http://10.0.0.1:9400/metrics": GPU_TEXT})
    assert measures.get("gpu_utilization", BURST) == pytest.approx(140 / 3)
    assert measures.get("gpu_utilization", ("Team", "training")) == 70
    assert measures.get("sm_activity", BURST) == 50
    assert measures.get("gpu_nodes_measured") == 1


def test_a_node_that_does_not_answer_is_left_out_and_told() -> None:
    measures = measured_gpus(
        {
            "http://10.0.0.1:9400/metrics": GPU_TEXT,
            "http://10.0.0.2:9400/metrics": TimeoutError("timed out"),
        }
    )
    assert measures.get("gpu_nodes_measured") == 1
    assert measures.get("gpu_utilization", ("Team", "training")) == 70


def test_a_large_fleet_is_sampled_and_the_sample_stays_the_same() -> None:
    few = {**EVENT, "exporters": {**EVENT["exporters"], "most": 3}}
    answers: dict[str, str | OSError] = {
        f"http://10.0.0.{index}:9400/metrics": GPU_TEXT for index in range(20)
    }
    asked = [measured_gpus(answers, Settings.parse(few)) for _ in range(2)]
    assert [each.get("gpu_nodes_measured") for each in asked] == [3, 3]
