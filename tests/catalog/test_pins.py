from collections.abc import Iterator
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
def test_the_default_kubernetes_version_has_every_addon(name: str) -> None:
    pin = addons.version(name, "1.35")

    assert addons.parse_release(pin.version) > (0, 0, 0)


@pytest.mark.parametrize("minor", MINORS)
def test_kube_proxy_is_of_the_clusters_own_minor(minor: str) -> None:
    major, patchless, _ = addons.parse_release(addons.version("kube-proxy", minor).version)

    assert f"{major}.{patchless}" == minor


@pytest.mark.parametrize("minor", MINORS)
def test_vpc_cni_leaves_efa_only_interfaces_alone(minor: str) -> None:
    assert addons.parse_release(addons.version("vpc-cni", minor).version) >= (1, 18, 5)


@pytest.mark.parametrize("addon", addons.known_addons().values(), ids=lambda addon: addon.name)
def test_every_addon_pin_is_at_or_above_its_floor(addon: addons.Addon) -> None:
    floor = addon.floor or (0, 0, 0)

    assert all(addons.parse_release(pin.version) >= floor for pin in addon.versions.values())


@pytest.mark.parametrize("name", addons.known_addons())
def test_a_minor_without_a_pin_names_the_key_that_fills_it(name: str) -> None:
    with pytest.raises(CatalogError, match=rf"got '1\.33' .*; set kubernetes\.addons\.{name} to"):
        addons.version(name, "1.33")


def test_an_addon_that_eks_has_not_been_seen_to_offer_is_not_guessed() -> None:
    with pytest.raises(CatalogError, match=r"taskgovernance .*got '1\.36' \(pinned: 1\.35\)"):
        addons.version(addons.GOVERNANCE_ADDON, "1.36")


def test_a_misspelt_addon_is_answered_with_the_known_ones() -> None:
    with pytest.raises(CatalogError, match=r"got 'vpc_cni'; choose one of vpc-cni, kube-proxy"):
        addons.version("vpc_cni", "1.35")


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
    else:
        with pytest.raises(CatalogError, match=r"kube-proxy .* must be v1\.32 to v1\.35, got"):
            addons.chosen_version("kube-proxy", version, "1.35")


@pytest.mark.parametrize("version", ["latest", "1.23.2", "v1.23.2", "v1.23-eksbuild.1", ""])
def test_an_own_addon_version_must_be_an_eks_build(version: str) -> None:
    with pytest.raises(CatalogError, match=r"written vX\.Y\.Z-eksbuild\.N, got"):
        addons.chosen_version("coredns", version, "1.35")


def test_an_own_vpc_cni_that_breaks_efa_only_is_refused() -> None:
    with pytest.raises(CatalogError, match=r"vpc-cni must be v1\.18\.5 or later, got 'v1\.18\.3-"):
        addons.chosen_version("vpc-cni", "v1.18.3-eksbuild.1", "1.35")


def test_an_own_addon_version_above_the_floor_is_taken_as_it_stands() -> None:
    chosen = addons.chosen_version("vpc-cni", "v1.23.2-eksbuild.1", "1.35")

    assert chosen == "v1.23.2-eksbuild.1"


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


def test_etcd_still_speaks_the_v2_api_of_torchelastic_where_it_is_asked_for() -> None:
    assert versions.image("etcd-v2").tag.startswith("v3.5.")


def test_etcd_is_of_a_line_that_is_kept_up_where_no_v2_api_is_asked_for() -> None:
    # 3.6 takes the data of 3.5; 3.7 does not.
    assert versions.image("etcd").tag.startswith("v3.6.")


def test_efa_plugin_is_new_enough() -> None:
    tag = versions.image("aws-efa-k8s-device-plugin").tag

    assert tuple(int(part) for part in tag.removeprefix("v").split(".")) >= (0, 5, 10)


def test_neuron_plugin_labels_ultraservers() -> None:
    major, minor, *_ = versions.image("neuron-device-plugin").tag.split(".")

    assert (int(major), int(minor)) >= (2, 30)


@pytest.mark.parametrize("minor", MINORS)
def test_nodes_run_an_ami_of_their_minor_that_can_pull_in_parallel(minor: str) -> None:
    release = versions.ami_release(minor)
    patch, _, day = release.version.partition("-")

    assert patch.startswith(f"{minor}.")
    assert day > "20250821"  # SOCI parallel pull
    assert day != "20260505"  # its SOCI snapshotter is broken
    assert release.alias == f"al2023@v{day}"


def test_a_minor_without_an_ami_is_answered_with_those_that_have_one() -> None:
    with pytest.raises(CatalogError, match=r"got '1\.37'; choose one of 1\.35, 1\.36"):
        versions.ami_release("1.37")


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


def test_an_unknown_region_names_the_setting_that_fills_it() -> None:
    with pytest.raises(CatalogError, match=r"got 'us-iso-east-1'; set images\.eks_registry"):
        registries.eks_registry("us-iso-east-1")


@for_each({name: (addon.managed_policy,) for name, addon in addons.known_addons().items()})
def test_the_boundary_of_roles_knows_what_the_policy_of_each_addon_allows(
    policy: str | None,
) -> None:
    assert policy is None or cloudformation.allowed_by(policy.rpartition("/")[2])
