"""Parts of a cluster that none of the five files asks for: their objects are judged as well."""

from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.folders import ROOT
from tests.support.pools import as_text, loads_own
from tests.support.posture import Cluster
from ultrascale.plan import plan_cluster
from ultrascale_k8s import define_charts

# By what is asked for: the file that it is added to, and the keys of its sections.
OPTIONS: Mapping[str, tuple[str, Mapping[str, Mapping[str, Any]]]] = {
    "a scheduler of Neuron devices": (
        "trainium-bert",
        {"scheduling": {"neuron_scheduler_extension": True}},
    ),
    "a backend of one's own": (
        "hybrid-hyperpod",
        {"images": {"repositories": ["backend"]}, "backend": {"image": "backend"}},
    ),
}


def option(name: str) -> Cluster:
    """Return the objects, without the templates, of a file to which a part is added."""
    file, change = OPTIONS[name]
    document = yaml.safe_load((ROOT / "clusters" / f"{file}.yaml").read_text())
    for section, keys in change.items():
        document[section] = document.get(section, {}) | keys
    plan = plan_cluster(loads_own(as_text(document)))
    return Cluster(
        templates={},
        metadata={},
        documents=[each for chart in define_charts(plan).all for each in chart.manifests],
        public_cidrs=plan.control_plane.public_cidrs,
        admins=plan.control_plane.admins,
        accounts=(),
    )
