"""A new instance type: a row in the tables is all that it takes."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.assembly import Assembly, synthesize
from tests.support.jobs import make_job
from tests.support.pools import CAPACITY_BLOCK, ODCR, SYSTEM_POOL, TRAINING_PLAN, make_document
from tests.support.rendered import documents
from ultrascale.catalog import INSTANCE_TYPES, instance_types, lookup, quotas, torchx
from ultrascale.catalog.tables import FOLDER
from ultrascale.jobs import prepare
from ultrascale.parts.observability import fleet_metrics

NEW, PREDECESSOR = "p7.48xlarge", "p6-b300.48xlarge"
TABLES = ("instances.csv", "offers.csv")
OWN: Mapping[str, str] = {"instance_type": NEW, "capacity_block_quota_code": "L-00000007"}


def no_rates(cluster: object, pools: object) -> Mapping[str, float]:
    return {}


@pytest.fixture
def _new_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a row to a copy of both tables, and let the catalog know what they then say."""
    for name in TABLES:
        rows = list(csv.DictReader((FOLDER / name).read_text().splitlines()))
        (row,) = (row for row in rows if row["instance_type"] == PREDECESSOR)
        rows.append(row | {key: value for key, value in OWN.items() if key in row})
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    known: Any = vars(instance_types)["_TYPES"]
    monkeypatch.setitem(known, NEW, instance_types.read_instance_types(tmp_path)[NEW])
    # The predecessor has a price, which nobody has published of the new type.
    monkeypatch.setattr(fleet_metrics, "rates", no_rates)


def nodes(provisioner: str, name: str, **changes: Any) -> dict[str, Any]:
    zone = {"zones": ["us-west-2b"], "nodes": {"max": 2}}
    return {"name": name, "provisioner": provisioner, **zone, **changes}


OF_EC2 = [
    nodes("managed-node-group", "managed"),
    nodes("managed-node-group", "block", purchase=CAPACITY_BLOCK),
    nodes("self-managed", "asg", purchase=ODCR | {"reservation": "cr-0fffffffffffffff1"}),
    nodes("karpenter", "scaled"),
    nodes("hyperpod", "hp", nodes={"static": 2}, purchase=TRAINING_PLAN),
]
OF_AUTO_MODE = [nodes("auto-mode", "auto"), nodes("auto-mode", "auto-block", purchase=ODCR)]


def cluster_file(folder: Path, instance_type: str, pools: list[dict[str, Any]]) -> Path:
    provisioners = {pool["provisioner"] for pool in pools}
    document = make_document(
        pools=[SYSTEM_POOL, *(pool | {"instance_types": [instance_type]} for pool in pools)],
        karpenter={"version": "1.15.2"} if "karpenter" in provisioners else None,
        scheduling={"queueing": "volcano", "topology_aware": True},
        observability={},
    )
    folder.mkdir()
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def rendered(assembly: Assembly) -> Mapping[str, str]:
    """Return each resource and object as text, in which the new type has the name of the old."""
    return {name: text.replace(NEW, PREDECESSOR) for name, text in documents(assembly).items()}


@pytest.mark.usefixtures("_new_type")
@pytest.mark.parametrize("pools", [OF_EC2, OF_AUTO_MODE], ids=["ec2", "auto-mode"])
def test_it_is_planned_rendered_and_launched_like_its_predecessor(
    tmp_path: Path, pools: list[dict[str, Any]]
) -> None:
    files = [cluster_file(tmp_path / name, name, pools) for name in (NEW, PREDECESSOR)]

    new, predecessor = (synthesize(file, file.parent, validated=False) for file in files)

    assert rendered(new) == rendered(predecessor)
    for pool in pools:
        job = make_job(nodes=2, pool=pool["name"], prefer=None)
        sent = [prepare(file, job) for file in files]
        objects = [json.dumps(each.objects).replace(NEW, PREDECESSOR) for each in sent]
        assert objects[0] == objects[1]


@pytest.mark.usefixtures("_new_type")
def test_its_quota_torchx_name_and_sellers_follow_from_its_rows() -> None:
    spec = lookup(NEW)

    assert spec == INSTANCE_TYPES[NEW]
    assert spec.capacity_block_regions == lookup(PREDECESSOR).capacity_block_regions
    assert quotas.service_quota("L-00000007").name == "Concurrent P7 Capacity Blocks per account"
    resource = torchx.named_resources()[f"eks_{NEW}"]
    assert resource == "ultrascale_torchx.resources:p7_48xlarge"


@pytest.mark.usefixtures("_new_type")
def test_its_torchx_resource_is_a_whole_node() -> None:
    pytest.importorskip("torchx.specs", reason="the extra `torchx` is not installed")
    from ultrascale_torchx import resources

    name = torchx.named_resources()[f"eks_{NEW}"].partition(":")[2]

    assert getattr(resources, name)().devices == {"vpc.amazonaws.com/efa": 16}
    assert getattr(resources, name)().gpu == 8
