"""Mistakes in the values of a job's Helm chart are told at their keys, before anything is sent."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import ultrascale
from tests.support.folders import ROOT
from tests.support.job_values import ANYWHERE, SEED, Values, resources, template, told
from tests.support.jobs import HYBRID
from ultrascale.errors import ConfigError
from ultrascale.jobs.preparation import JobCluster

SCHEMA = json.loads((ROOT / "charts" / "training-job" / "values.schema.json").read_text())
NOWHERE = "jobTemplates.production.nodeSelector"


@pytest.mark.parametrize(
    ("values", "name", "line"),
    [
        ({}, "produktion", "jobTemplates: no template 'produktion'; did you mean production?"),
        ({"comand": ["x"]}, "production", "comand: unknown key 'comand'; did you mean command?"),
        (
            {"zone": "us-east-1a"},
            "production",
            "zone: unknown key 'zone'; known: allowEnv, args, backoffLimit, checkpointPvcName, ",
        ),
        (
            {"nodeSelectors": {"hyperpod": {"enabled": False}}},
            "production",
            f"{NOWHERE}: nodes of a tier that is disabled, got {{node-type: hyperpod}}; set "
            "nodeSelectors.hyperpod.enabled: true",
        ),
        (
            template(nodeSelector={"node-type": "hyperpods"}),
            "production",
            f"{NOWHERE}.node-type: the node-type of no pool, got 'hyperpods'; did you mean "
            "hyperpod?",
        ),
        (
            template(nodeSelector={"node-type": None, "gpu-type": "h100"}),
            "production",
            f"{NOWHERE}: no enabled tier has such nodes, got {{gpu-type: h100}}; name the "
            "node-type of a tier of nodeSelectors",
        ),
        (
            {"dataPvcName": "training-data"},
            "production",
            "dataPvcName: no claim that the cluster file makes in namespace "
            "hyperpod-ns-production, got 'training-data'; did you mean training-data-pvc?",
        ),
        (
            template(priorityClassName="urgent"),
            "production",
            "jobTemplates.production.priorityClassName: not one of scheduling.priority_classes, "
            "got 'urgent'; known: critical, high, low, medium, preemptible",
        ),
        (
            template(priorityClassName="low"),
            "production",
            "jobTemplates.production.priorityClassName: elastic has priority 400000, no "
            "quota, and would go first, got low, 400000; use critical, high, medium",
        ),
        (
            ANYWHERE
            | template(
                "burst", priorityClassName="critical", resources={"limits": {"nvidia.com/gpu": 8}}
            ),
            "burst",
            "jobTemplates.burst.priorityClassName: task governance cannot hold this job back for "
            "production, of priority 1000000, got critical, 1000000; use high, medium, low, "
            "preemptible",
        ),
        (
            resources({"nvidia.com/gpu": 3}, {"nvidia.com/gpu": 3}),
            "production",
            "jobTemplates.production.resources.limits.nvidia.com/gpu: not a divisor of the 8 "
            "devices of a node, got 3; ask for 1, 2, 4, 8",
        ),
        (
            resources({"nvidia.com/gpu": 0}, {"nvidia.com/gpu": 0}),
            "production",
            "jobTemplates.production.resources.limits.nvidia.com/gpu: an admission policy keeps "
            "pods without accelerators off hyperpod, got 0; ask for 1 or more, or choose other "
            "nodes",
        ),
        (
            resources({"nvidia.com/gpu": 4}, {"nvidia.com/gpu": 8}),
            "production",
            "jobTemplates.production.resources.requests.nvidia.com/gpu: more than its limit, 4, "
            "got 8; raise the limit",
        ),
        (
            resources({}, {"memory": "2Ti"}),
            "production",
            "jobTemplates.production.resources.requests.memory: more than a node of hyperpod has "
            "for its pods, got '2Ti'; ask for at most 1023922Mi",
        ),
        (
            {"env": {"RANK": "0"}},
            "production",
            "env.RANK: torchrun sets its own value in each process, got '0'; leave it out",
        ),
        ({"name": "Tune"}, "production", "name: not a DNS label of at most 40 characters"),
        (
            {"backoffLimit": -1},
            "production",
            "backoffLimit: out of range, got -1; write at least 0",
        ),
        ({"command": None}, "production", "command: missing; add it"),
        (
            {"jobTemplates": {"production": ["x"]}},
            "production",
            "jobTemplates.production: not a mapping, got [x]; write it as key: value",
        ),
    ],
)
def test_a_mistake_is_told_at_the_key_of_the_values(
    hybrid: JobCluster, values: Values, name: str, line: str
) -> None:
    (found,) = told(hybrid, name, values)

    assert found.startswith(line)


def test_all_mistakes_of_form_and_of_meaning_are_told_at_once(hybrid: JobCluster) -> None:
    values = {
        "env": {"A": 1},
        "dataPvcName": "data",
        "modelTyp": "x",
        "nodeSelectors": {"eksSpot": {"labels": "none"}},
        **resources({"nvidia.com/gpu": "many"}, {}),
    }

    lines = told(hybrid, "production", values, image=None)
    keys = [line.partition(": ")[0] for line in lines]

    assert keys == [
        "image",
        "env.A",
        "dataPvcName",
        "nodeSelectors.eksSpot.labels",
        "jobTemplates.production.resources.limits.nvidia.com/gpu",
        "modelTyp",
    ]


def own(**changes: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the key of a template of one's own, and what stands there."""
    return ("jobTemplates", "own"), {"priorityClassName": "low", **changes}


AMOUNTS = itertools.chain(
    itertools.product(("cpu", "memory"), ("0", "0.5", "1e3", -1, True, "64 Gi")),
    itertools.product(("nvidia.com/gpu",), ("all", -1, 0.5)),
    [("gpu", 1), ("hugepages-2Mi", "1Gi")],
)
FORMS: list[tuple[tuple[str, ...], object]] = [
    (("name",), "Tune"),
    (("backoffLimit",), "3"),
    (("command",), []),
    (("command",), "python"),
    (("args",), [1]),
    (("env",), {"A B": "x"}),
    (("env",), {"A": True}),
    (("nodeSelectors",), {"own": {"labels": {"gpu-type": "x"}}}),
    (("priorityClasses",), {"own": {"value": "high"}}),
    (("priorityClasses",), {"own": {"value": 1, "preemptionPolicy": "Always"}}),
    (("jobTemplates", "own"), {}),
    own(nodeSelector={"a b": "x"}),
    own(tolerations=[{"value": "x"}]),
    own(resources={"limit": {}}),
    *(own(resources={"requests": {name: amount}}) for name, amount in AMOUNTS),
]


@pytest.mark.parametrize(("key", "value"), FORMS)
def test_helm_refuses_the_form_that_submit_refuses(
    hybrid: JobCluster, key: tuple[str, ...], value: object
) -> None:
    changed: dict[str, Any] = yaml.safe_load(SEED.read_text())
    assert not _refused(changed)
    inner = changed
    for part in key[:-1]:
        inner = inner[part]
    inner[key[-1]] = value
    assert _refused(changed)
    assert [line for line in told(hybrid, "production", changed) if line.startswith(".".join(key))]


def _refused(values: Mapping[str, Any]) -> bool:
    known: dict[str, Any] = {"cluster": {"name": "x", "tiers": [], "placements": []}}
    return not jsonschema.Draft7Validator(SCHEMA).is_valid({**values, **known})


def test_a_mistake_elsewhere_is_not_blamed_on_the_values(
    hybrid: JobCluster, tmp_path: Path
) -> None:
    (line,) = told(hybrid, "production", tmp_path / "none.yaml")
    assert line == "no such file; name a values file"
    (line,) = told(hybrid, "production", priority="urgent")
    assert line.startswith("priority: not one of scheduling.priority_classes, got 'urgent'")
    with pytest.raises(ConfigError, match="image: missing; add REPOSITORY:TAG, or --image"):
        ultrascale.submit(HYBRID, "production", values=str(SEED), dry_run=True)
