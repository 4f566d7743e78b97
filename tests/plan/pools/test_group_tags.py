"""Tags that tell the Cluster Autoscaler of nodes that do not exist yet."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pools import CAPACITY_BLOCK, ODCR, make_cluster, pool_document
from tests.support.scaling_plans import FIXED, autoscaler, planned
from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.plan.pools.scaling import labels_fit_group_tags, plan_cluster_autoscaler

RESOURCES = "k8s.io/cluster-autoscaler/node-template/resources/"
OPTIONS = "k8s.io/cluster-autoscaler/node-template/autoscaling-options/"


def tags(**changes: Any) -> dict[str, str]:
    """Return the tags of the group of one pool in which ``changes`` replace keys."""
    plan = autoscaler(FIXED, pool_document(**changes))
    assert plan is not None
    (found,) = plan.group_tags.values()
    return dict(found)


def below(prefix: str, found: dict[str, str]) -> dict[str, str]:
    return {
        key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)
    }


class TestNodeTemplate:
    """Tags that describe a node to schedulers while the group has none."""

    def test_its_nodes_labels_and_taints(self) -> None:
        pool = pool_document(labels={"team": "vision"})
        cluster, pools = planned(FIXED, pool)
        plan = plan_cluster_autoscaler(cluster, pools)

        assert plan is not None
        found = dict(plan.group_tags["train"])
        assert below(eks.LABEL_TAG, found) == pools[-1].labels
        assert pools[-1].labels["team"] == "vision"
        assert below(eks.TAINT_TAG, found) == {"nvidia.com/gpu": "true:NoSchedule"}

    @pytest.mark.parametrize(
        ("instance_type", "resources"),
        [
            ("p5.48xlarge", {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}),
            (
                "trn1.32xlarge",
                {"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "32"}
                | {"vpc.amazonaws.com/efa": "8"},
            ),
        ],
    )
    def test_its_accelerators_and_fabric(
        self, instance_type: str, resources: dict[str, str]
    ) -> None:
        found = below(RESOURCES, tags(instance_types=[instance_type]))
        assert found.items() >= resources.items()
        assert found["hugepages-2Mi"] == "10256Mi"
        # The fewest accelerators of its types.
        several = tags(instance_types=["trn1.32xlarge", "trn1.2xlarge"], efa="none")
        found = below(RESOURCES, several)
        assert found["aws.amazon.com/neuron"] == "1"
        assert found["aws.amazon.com/neuroncore"] == "2"
        assert not {"vpc.amazonaws.com/efa", "hugepages-2Mi"} & found.keys()

    @pytest.mark.parametrize(
        ("instance_type", "disk"), [("m7g.8xlarge", "80Gi"), ("trn1.32xlarge", "6080G")]
    )
    def test_the_disk_that_its_pods_live_on(self, instance_type: str, disk: str) -> None:
        found = below(RESOURCES, tags(instance_types=[instance_type]))

        assert found["ephemeral-storage"] == disk

    def test_of_several_types_the_least_cpu_and_memory_whichever_comes_first(self) -> None:
        types = ["r7g.4xlarge", "m7g.8xlarge"]
        for several in (types, types[::-1]):
            found = below(RESOURCES, tags(instance_types=several))
            assert (found["cpu"], found["memory"]) == ("16", "131072Mi")
        # Those of one type are EC2's to tell.
        one = below(RESOURCES, tags(instance_types=["m7g.8xlarge"]))
        assert one.keys() == {"pods", "ephemeral-storage"}


class TestScaleDown:
    """A node that goes under a running gang ends the step of all of it."""

    def test_an_accelerated_node_goes_only_when_it_is_empty_and_a_reserved_one_never(self) -> None:
        thresholds = ("scaledownutilizationthreshold", "scaledowngpuutilizationthreshold")
        empty = {**dict.fromkeys(thresholds, "0.001"), "scaledownunneededtime": "30m0s"}
        assert below(OPTIONS, tags()) == empty
        assert below(OPTIONS, tags(role="reserved")) == dict.fromkeys(thresholds, "0")
        # CPU nodes follow the defaults.
        assert below(OPTIONS, tags(instance_types=["m7g.8xlarge"])) == {}


def label_mistakes(**changes: Any) -> list[str]:
    reading = config.reading_of(
        make_cluster(pools=[FIXED, pool_document(provisioner="self-managed", **changes)])
    )
    found = reading.judge(config.Rules(labels_fit_group_tags))
    return [mistake.line(reading.document) for mistake in found]


class TestLabelsAsTags:
    """EC2 Auto Scaling has 50 tags of 128 characters for what a node will be like."""

    def test_a_label_that_fits_no_tag_is_refused(self) -> None:
        fits, too_long = f"{'a' * 80}/b", f"{'a' * 80}/bc"

        (line,) = label_mistakes(labels={fits: "x", too_long: "x"})

        assert line == (
            "pools[train].labels: too long for a tag of the pool's Auto Scaling group, "
            f"which has room for 82 characters, got {too_long!r}; shorten the key"
        )

    def test_more_labels_than_tags_are_refused(self) -> None:
        (line,) = label_mistakes(labels={f"label-{number}": "x" for number in range(19)})

        assert line.endswith("got 19; use at most 18")

    @pytest.mark.parametrize(
        "changes",
        [{"nodes": {"static": 4}}, {"purchase": CAPACITY_BLOCK}, {"purchase": ODCR}],
        ids=["static", "block", "odcr"],
    )
    def test_labels_of_a_group_that_it_does_not_scale_are_free(
        self, changes: dict[str, Any]
    ) -> None:
        labels = {f"{'a' * 100}/{number}": "x" for number in range(40)}

        assert label_mistakes(labels=labels, **changes) == []

    @given(
        labels=st.dictionaries(
            st.from_regex(r"[a-z]{1,63}", fullmatch=True),
            st.from_regex(r"[a-z]{1,63}", fullmatch=True),
            max_size=18,
        ),
        instance_type=st.sampled_from(["m7g.8xlarge", "p5.48xlarge", "trn1.32xlarge"]),
        role=st.sampled_from(["burst", "reserved"]),
        shards=st.integers(1, 2),
    )
    def test_what_is_accepted_fits(
        self, labels: dict[str, str], instance_type: str, role: str, shards: int
    ) -> None:
        pool = pool_document(
            labels=labels, instance_types=[instance_type], role=role, shards=shards
        )

        plan = autoscaler(FIXED, pool)

        assert plan is not None
        for found in plan.group_tags.values():
            assert len(found) <= eks.TAGS_PER_GROUP - eks.TAGS_OF_OTHERS
            assert all(len(key) <= eks.TAG_KEY_CHARACTERS for key in found)
            assert all(len(value) <= 256 for value in found.values())
