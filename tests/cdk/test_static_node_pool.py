"""Static NodePools: a deploy inside a Capacity Block's window must not take its nodes away."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.crd_schemas import CrdSet, karpenter_crds
from tests.support.static_node_pools import Document, calendar_patch, make_node_pool, patched
from ultrascale_constructs.static_node_pool import patch, seed


@pytest.fixture(scope="module")
def crds() -> CrdSet:
    return karpenter_crds()


few = settings(max_examples=30, deadline=None)
# What may change in a pool of one name: everything but its node class's group and kind, and
# whether it is static, which the CRD's transition rules forbid.
specs = st.fixed_dictionaries(
    {
        "limits": st.fixed_dictionaries({"nodes": st.integers(1, 4000).map(str)}),
        "disruption": st.dictionaries(st.sampled_from(["consolidateAfter", "budgets"]), st.text()),
    },
    optional={"weight": st.integers(1, 100), "replicas": st.integers(0, 4000)},
)


class TestSeed:
    """Resource that CloudFormation applies once; a change applies it again, without nodes."""

    @few
    @given(before=specs, after=specs)
    def test_pools_of_one_name_have_one_seed(self, before: Document, after: Document) -> None:
        first, second = seed(make_node_pool(**before)), seed(make_node_pool(**after))

        assert json.dumps(first) == json.dumps(second)

    def test_labels_requirements_and_taints_are_none_of_its_business(self) -> None:
        changed = make_node_pool()
        changed["metadata"]["labels"] = {"team": "b"}
        changed["spec"]["template"]["metadata"] = {"annotations": {"a": "b"}}
        changed["spec"]["template"]["spec"] |= {
            "requirements": [],
            "taints": [],
            "expireAfter": "1h",
        }

        assert seed(changed) == seed(make_node_pool())

    def test_it_asks_for_no_nodes_and_an_api_server_accepts_it_and_what_comes_of_it(
        self, crds: CrdSet
    ) -> None:
        node_pool = make_node_pool(replicas=32)
        made: Any = seed(node_pool)

        assert made["spec"]["replicas"] == 0
        assert made != seed(make_node_pool("b"))
        assert crds.validate(made) == []
        assert crds.validate(patched(made, calendar_patch(node_pool))) == []


class TestPatch:
    """Fields that every deploy may change."""

    @pytest.mark.parametrize("live", [0, 7, 32])
    def test_a_size_that_the_calendar_or_a_person_set_stays(self, live: int) -> None:
        node_pool = make_node_pool()
        running: Any = copy.deepcopy(seed(node_pool))
        running["spec"]["replicas"] = live

        result = patched(running, calendar_patch(node_pool))

        assert result["spec"] == node_pool["spec"] | {"replicas": live}
        assert result["metadata"] == node_pool["metadata"]

    def test_a_size_that_no_calendar_keeps_is_the_files(self) -> None:
        node_pool = make_node_pool(replicas=16)

        result = patched(seed(node_pool), patch(node_pool, sized_by_calendar=False))

        assert result["spec"] == node_pool["spec"]

    @few
    @given(spec=specs)
    def test_it_never_names_the_size_that_a_calendar_keeps(self, spec: Document) -> None:
        paths = [operation["path"] for operation in calendar_patch(make_node_pool(**spec))]

        assert not [path for path in paths if path in {"", "/spec"} or "replicas" in path]

    @few
    @given(before=specs, after=specs)
    def test_nothing_is_left_of_what_the_fields_held_before(
        self, before: Document, after: Document
    ) -> None:
        old, new = make_node_pool(**before), make_node_pool(**after)
        for key in set(old["spec"]) - set(new["spec"]):
            del old["spec"][key]
        live = old["spec"].get("replicas", 0)

        result = patched(old, calendar_patch(new))

        assert result["spec"] == new["spec"] | {"replicas": live}

    def test_annotations_of_karpenter_stay_and_labels_that_left_the_chart_go(self) -> None:
        live = make_node_pool()
        live["metadata"]["annotations"] = {"karpenter.sh/nodepool-hash": "1"}
        live["metadata"]["labels"]["team"] = "gone"

        result = patched(live, calendar_patch(make_node_pool()))["metadata"]

        assert result["annotations"] == {"karpenter.sh/nodepool-hash": "1"}
        assert result["labels"] == {"ultrascale.dev/pool": "gpu"}
