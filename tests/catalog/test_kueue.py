"""Limits of Kueue's objects, as its own schemas have them."""

from typing import Any

import pytest
import yaml

from tests.support.crd_schemas import CRD_FOLDERS
from ultrascale.parts.kueue import facts as kueue

FOLDER = CRD_FOLDERS / "kueue-v0.19.2"


def spec(kind: str) -> Any:
    """Return the schema of the spec of a kind, in the version that is written."""
    if not FOLDER.is_dir():
        pytest.skip(f"the CRDs of Kueue are not in {FOLDER}")
    crd = yaml.load((FOLDER / f"kueue.x-k8s.io_{kind}.yaml").read_text(), yaml.CSafeLoader)
    (version,) = (each for each in crd["spec"]["versions"] if each["name"] == "v1beta2")
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def test_no_object_gets_more_than_the_api_server_takes() -> None:
    flavor, cohort = spec("resourceflavors"), spec("cohorts")

    assert flavor["nodeLabels"]["maxProperties"] == kueue.FLAVOR_LABELS
    assert flavor["tolerations"]["maxItems"] == kueue.FLAVOR_LABELS
    groups = cohort["resourceGroups"]["items"]["properties"]
    assert groups["flavors"]["maxItems"] == kueue.FLAVORS_OF_A_GROUP
    assert spec("workloads")["podSets"]["maxItems"] == kueue.POD_SETS
