"""Named resources of TorchX that a node really has to give."""

from importlib.metadata import entry_points

import pytest

pytest.importorskip("torchx.specs", reason="the extra `torchx` is not installed")

from torchx.specs import Resource
from torchx.specs import resource as named

from tests.support import torchx_apps as apps
from tests.support.jobs import container
from ultrascale import catalog
from ultrascale.catalog import eks, kubernetes
from ultrascale.errors import CatalogError
from ultrascale_torchx.resources import whole_node

PREFIX = "eks_"
NAMES = sorted(
    point.name
    for point in entry_points(group="torchx.named_resources")
    if point.name.startswith(PREFIX)
)
FAMILIES = ("p4", "p5", "p6", "trn")

each_name = pytest.mark.parametrize("name", NAMES)


def training_types() -> list[str]:
    found: list[str] = []
    for name in catalog.INSTANCE_TYPES:
        try:
            if name.startswith(FAMILIES) and whole_node(name):
                found.append(name)
        except CatalogError:
            continue  # A preview that no source describes yet.
    return found


def test_every_type_to_train_on_has_a_name() -> None:
    assert [f"{PREFIX}{name}" for name in sorted(training_types())] == NAMES


@each_name
def test_a_name_is_a_node_of_that_type(name: str) -> None:
    spec = catalog.lookup(name.removeprefix(PREFIX))
    found = named(h=name)
    accelerator = spec.accelerator
    assert accelerator is not None

    assert found.capabilities == {apps.NODE: spec.instance_type}
    assert found.gpu == (accelerator.count if accelerator.kind == "nvidia" else 0)
    neuron = accelerator.count if accelerator.kind == "neuron" else 0
    assert found.devices.get("aws.amazon.com/neuron", 0) == neuron
    assert found.devices.get("vpc.amazonaws.com/efa", 0) == len(spec.efa_cards)


@each_name
def test_a_name_leaves_room_for_the_kubelet_and_the_daemons_of_the_node(name: str) -> None:
    spec = catalog.lookup(name.removeprefix(PREFIX))
    found = named(h=name)
    left = kubernetes.allocatable_mib(
        spec.memory_mib,
        max_pods=eks.advised_max_pods(spec.vcpus),
        huge_pages_mib=eks.HUGE_PAGES_MIB,
    )

    assert 0.7 < found.cpu * 1000 / kubernetes.allocatable_millicpu(spec.vcpus) < 1
    assert 0.7 < found.memMB * 1_000_000 / 2**20 / left < 1


@pytest.mark.parametrize("name", ["eks_trn1.32xlarge"])
def test_a_name_is_all_that_a_job_of_whole_nodes_asks_for(name: str) -> None:
    stated = container(apps.job_of(apps.make_app(resource=named(h=name))))["resources"]["requests"]
    bare = Resource(cpu=0, gpu=0, memMB=0, devices={"aws.amazon.com/neuron": 16})
    whole = container(apps.job_of(apps.make_app(resource=bare)))["resources"]["requests"]
    mib = int(stated["memory"].removesuffix("M")) * 1_000_000 / 2**20

    assert mib == pytest.approx(int(whole["memory"].removesuffix("Mi")), abs=1)
    assert stated | {"memory": ""} == whole | {"memory": ""}
