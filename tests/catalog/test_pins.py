from collections.abc import Callable, Iterator
from datetime import date

import pytest

from tests.support.cases import for_each
from ultrascale.catalog import addons, cloudformation, eks, registries, training_operator, versions
from ultrascale.errors import CatalogError

MINORS = eks.SUPPORTED_VERSIONS
TODAY = date(2026, 11, 21)


def pins() -> Iterator[tuple[str, str, str, date]]:
    """Yield (name, pinned string, source, date) of everything the catalog pins."""
    for name, image in versions.images().items():
        yield name, image.tag, image.source, image.seen
    for minor, release in versions.ami_releases().items():
        yield f"AMI {minor}", release.version, release.source, release.seen
    for addon in addons.known_addons().values():
        for minor, pin in addon.versions.items():
            yield f"{addon.name} {minor}", pin.version, pin.source, pin.seen


PINS = tuple(pins())


@for_each({f"{name} {pinned}": (pinned, *more) for name, pinned, *more in PINS})
def test_every_pin_is_a_fixed_version_that_can_be_looked_up_again(
    pinned: str, source: str, seen: date
) -> None:
    assert any(character.isdigit() for character in pinned)
    assert "latest" not in pinned
    assert source.startswith("https://")
    assert date(2025, 1, 1) < seen <= TODAY


# Nobody says in public which versions of it there are: the cluster file has to.
UNPINNED = {addons.HYPERPOD_OBSERVABILITY}


@pytest.mark.parametrize("name", [name for name in addons.known_addons() if name not in UNPINNED])
def test_the_default_kubernetes_version_has_every_addon_above_its_floor(name: str) -> None:
    pin = addons.version(name, "1.35")
    assert addons.parse_release(pin.version) > (0, 0, 0)
    for minor, pinned in addons.known_addons()[name].versions.items():
        assert addons.chosen_version(name, pinned.version, minor) == pinned.version


# kube-proxy follows the cluster's version instead, and nobody states releases of the other one.
FLOORLESS = {"kube-proxy", addons.HYPERPOD_OBSERVABILITY}


@pytest.mark.parametrize("name", [name for name in addons.known_addons() if name not in FLOORLESS])
def test_no_cluster_gets_a_release_that_is_known_to_be_bad(name: str) -> None:
    bad = addons.known_addons()[name].never
    assert bad
    for each in bad:
        assert each.since < each.before
        first = "v{}.{}.{}-eksbuild.1".format(*each.since)
        with pytest.raises(CatalogError, match=r"must be v.* \(https://.*, 202\d-"):
            addons.chosen_version(name, first, "1.35")


@pytest.mark.parametrize("minor", MINORS)
def test_kube_proxy_is_of_the_clusters_minor_and_vpc_cni_knows_efa_only(minor: str) -> None:
    major, patchless, _ = addons.parse_release(addons.version("kube-proxy", minor).version)
    assert f"{major}.{patchless}" == minor
    assert addons.parse_release(addons.version("vpc-cni", minor).version) >= (1, 18, 5)


@pytest.mark.parametrize("name", addons.known_addons())
def test_a_minor_without_a_pin_names_the_key_that_fills_it(name: str) -> None:
    with pytest.raises(CatalogError, match=rf"got '1\.33' .*; set kubernetes\.addons\.{name} to"):
        addons.version(name, "1.33")


@for_each(
    {
        "an add-on that EKS has not been seen to offer": (
            lambda: addons.version(addons.GOVERNANCE_ADDON, "1.36"),
            r"taskgovernance .*got '1\.36' \(pinned: 1\.35\)",
        ),
        "a misspelt add-on": (
            lambda: addons.version("vpc_cni", "1.35"),
            r"got 'vpc_cni'; choose one of vpc-cni, kube-proxy",
        ),
        "a VPC CNI that breaks EFA-only interfaces": (
            lambda: addons.chosen_version("vpc-cni", "v1.18.3-eksbuild.1", "1.35"),
            r"vpc-cni must be v1\.18\.5 or later, got 'v1\.18\.3-",
        ),
        "an agent that finds healthy H100 nodes broken": (
            lambda: addons.chosen_version("eks-node-monitoring-agent", "v1.7.1-eksbuild.2", "1.35"),
            r"must be v1\.7\.2 or later, .*H100 .*/pull/261, 2026-09-03\)",
        ),
        "a driver that leaves the taint of new nodes": (
            lambda: addons.chosen_version("aws-fsx-csi-driver", "v1.0.0-eksbuild.1", "1.35"),
            r"must be v1\.5\.0 or later, got 'v1\.0\.0-",
        ),
        "a server of names from before its autoscaler": (
            lambda: addons.chosen_version("coredns", "v1.8.7-eksbuild.5", "1.35"),
            r"must be v1\.11\.3 or later",
        ),
        "a minor without an AMI": (
            lambda: versions.ami_release("1.37"),
            r"got '1\.37'; choose one of 1\.35, 1\.36",
        ),
        "an unknown Region": (
            lambda: registries.eks_registry("us-iso-east-1"),
            r"got 'us-iso-east-1'; set images\.eks_registry",
        ),
    }
)
def test_what_the_catalog_does_not_know_is_not_guessed(
    ask: Callable[[], object], answer: str
) -> None:
    with pytest.raises(CatalogError, match=answer):
        ask()


@for_each(
    {
        "the cluster's own": ("v1.35.0-eksbuild.1", True),
        "three minors behind": ("v1.32.0-eksbuild.1", True),
        "four minors behind": ("v1.31.9-eksbuild.1", False),
        "ahead": ("v1.36.0-eksbuild.1", False),
    }
)
def test_kube_proxy_goes_with_the_clusters_version(version: str, taken: bool) -> None:
    if taken:
        assert addons.chosen_version("kube-proxy", version, "1.35") == version
        above = "v1.23.2-eksbuild.1"
        assert addons.chosen_version("vpc-cni", above, "1.35") == above
    else:
        with pytest.raises(CatalogError, match=r"kube-proxy .* must be v1\.32 to v1\.35, got"):
            addons.chosen_version("kube-proxy", version, "1.35")


@pytest.mark.parametrize("version", ["latest", "1.23.2", "v1.23.2", "v1.23-eksbuild.1", ""])
def test_an_own_addon_version_must_be_an_eks_build(version: str) -> None:
    with pytest.raises(CatalogError, match=r"written vX\.Y\.Z-eksbuild\.N, got"):
        addons.chosen_version("coredns", version, "1.35")


def test_addons_that_bring_nodes_up_do_not_wait_for_a_node() -> None:
    waiting = {
        addon.name for addon in addons.known_addons().values() if addon.needs_schedulable_node
    }

    assert "coredns" in waiting
    assert not waiting & {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}


def test_the_training_operator_runs_where_its_rights_are_given() -> None:
    operator = addons.addon(addons.TRAINING_OPERATOR)

    assert operator.namespace == training_operator.NAMESPACE
    assert operator.service_account == training_operator.SERVICE_ACCOUNT


def test_images_are_of_the_lines_that_the_plan_counts_on() -> None:
    """The v2 API of torchelastic is in etcd 3.5; 3.6 takes the data of 3.5, and 3.7 does not."""

    def tag_of(name: str) -> tuple[int, ...]:
        return tuple(int(part) for part in versions.image(name).tag.removeprefix("v").split("."))

    assert tag_of("etcd-v2")[:2] == (3, 5)
    assert tag_of("etcd")[:2] == (3, 6)
    assert tag_of("aws-efa-k8s-device-plugin") >= (0, 5, 10)
    # It labels UltraServers.
    assert tag_of("neuron-device-plugin") >= (2, 30)


@pytest.mark.parametrize("minor", MINORS)
def test_nodes_run_an_ami_of_their_minor_that_can_pull_in_parallel(minor: str) -> None:
    release = versions.ami_release(minor)
    patch, _, day = release.version.partition("-")

    assert patch.startswith(f"{minor}.")
    assert day > "20250821"  # SOCI parallel pull
    assert day != "20260505"  # its SOCI snapshotter is broken
    assert release.alias == f"al2023@v{day}"


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-west-2", "602401143452.dkr.ecr.us-west-2.amazonaws.com"),
        ("af-south-1", "877085696533.dkr.ecr.af-south-1.amazonaws.com"),
        ("ap-east-2", "533267051163.dkr.ecr.ap-east-2.amazonaws.com"),
        ("us-gov-west-1", "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "918309763551.dkr.ecr.cn-north-1.amazonaws.com.cn"),
        ("eusc-de-east-1", "877088126301.dkr.ecr.eusc-de-east-1.amazonaws.eu"),
    ],
)
def test_images_are_pulled_from_the_regions_own_registry(region: str, host: str) -> None:
    assert registries.eks_registry(region) == host


@for_each([*registries.EKS_REGISTRY_ACCOUNTS])
def test_every_registry_account_is_twelve_digits(region: str) -> None:
    account = registries.EKS_REGISTRY_ACCOUNTS[region]

    assert len(account) == 12
    assert account.isdigit()


@for_each({name: (addon.managed_policy,) for name, addon in addons.known_addons().items()})
def test_the_boundary_of_roles_knows_what_the_policy_of_each_addon_allows(
    policy: str | None,
) -> None:
    assert policy is None or cloudformation.allowed_by(policy.rpartition("/")[2])
