"""A cache of public registries: thousands of nodes that ask one at once are answered with 429."""

import re
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_stack, resources
from tests.support.kubernetes_schemas import image_findings
from tests.support.pools import NEURON_POOL, SYSTEM_POOL, make_cluster
from ultrascale.catalog import versions
from ultrascale.documents import look_up
from ultrascale.plan.cluster import assemble
from ultrascale.plan.delivery.images import plan_image_cache
from ultrascale.plan.model import ClaimPlan, ImageCachePlan
from ultrascale.plan.scale import plan_scale
from ultrascale_constructs.images import ImageCache
from ultrascale_k8s import Charts, PlatformChart, define_charts
from ultrascale_k8s.volumes import lustre_access_objects

NEURON = versions.image("neuron-device-plugin").reference
PINNED = "quay.io/example/tool:v1@sha256:" + "0" * 64
VOLCANO = versions.image("volcano-scheduler").reference
ALL = ["public.ecr.aws", "registry.k8s.io", "quay.io"]
KEY = "arn:aws:kms:us-west-2:444455556666:key/11111111-2222-4333-8444-555555555504"


def cache(*upstreams: str, **changes: Any) -> ImageCachePlan | None:
    cluster = make_cluster(images={"pull_through": list(upstreams)}, **changes)
    return plan_image_cache(cluster, plan_scale(cluster))


def the_cache(*upstreams: str, **changes: Any) -> ImageCachePlan:
    plan = cache(*upstreams, **changes)
    assert plan is not None
    return plan


@pytest.fixture(scope="module")
def built() -> Template:
    stack = make_stack()
    images = [NEURON, PINNED, "docker.io/volcanosh/vc-scheduler:v1.15.1", NEURON]
    ImageCache(stack, "Cache", plan=the_cache(*ALL), images=images, key_arn=KEY)
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def charts() -> Charts:
    pools = [SYSTEM_POOL, NEURON_POOL]
    images = {"pull_through": ["public.ecr.aws"]}
    return define_charts(assemble(make_cluster(images=images, pools=pools)))


def test_every_image_finds_its_repository_there_under_the_users_own_key(built: Template) -> None:
    """A node may pull, and make no repository."""
    plan = the_cache(*ALL)
    bodies = [body["Properties"] for body in resources(built, "AWS::ECR::Repository")]

    names = {each["RepositoryName"] for each in bodies}
    assert names == {plan.repository(NEURON), plan.repository(PINNED)}
    for each in bodies:
        # A rule of a company about every repository knows no exception for copies.
        assert each["EncryptionConfiguration"] == {"EncryptionType": "KMS", "KmsKey": KEY}
        # Copies do not keep the stack from being deleted.
        assert each["EmptyOnDelete"] is True


class TestReferences:
    def test_an_image_comes_from_the_accounts_own_registry_by_its_tag_and_digest(self) -> None:
        plan, open_ = the_cache("public.ecr.aws", account="111122223333"), the_cache("quay.io")

        registry = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
        rest = NEURON.removeprefix("public.ecr.aws/")
        assert plan.reference(NEURON) == f"{registry}/{plan.rules[0].prefix}/{rest}"
        assert open_.registry.startswith("${AWS_ACCOUNT_ID}.dkr.ecr.")
        assert open_.reference(PINNED).endswith(PINNED.removeprefix("quay.io"))
        assert open_.repository(PINNED) == f"{open_.rules[0].prefix}/example/tool"
        # Other registries are left alone, and all of them unless somebody asks.
        for image in ("nvcr.io/nvidia/plugin:v1", "docker.io/a/b:v1", NEURON):
            assert (open_.reference(image), open_.repository(image)) == (image, None)
        assert cache() is None
        assert assemble(make_cluster()).images.cache is None


class TestRules:
    """ECR refuses a second rule of the same prefix in a registry, and long ones."""

    def test_each_registry_is_called_what_ecr_calls_it(self, built: Template) -> None:
        rules = [body["Properties"] for body in resources(built, "AWS::ECR::PullThroughCacheRule")]

        assert {rule["UpstreamRegistryUrl"]: rule["UpstreamRegistry"] for rule in rules} == {
            "public.ecr.aws": "ecr-public",
            "registry.k8s.io": "k8s",
            "quay.io": "quay",
        }
        assert not any("CredentialArn" in rule for rule in rules)

    def test_docker_hub_is_cached_with_the_users_credentials(self) -> None:
        secret = (
            "arn:aws:secretsmanager:us-west-2:111122223333:secret:"
            "ecr-pullthroughcache/docker-hub-AbCdEf"
        )
        cluster = make_cluster(
            images={"pull_through": [{"registry": "docker.io", "secret": secret}]}
        )
        plan = plan_image_cache(cluster, plan_scale(cluster))
        assert plan is not None
        stack = make_stack()
        ImageCache(stack, "Cache", plan=plan, images=[VOLCANO], key_arn=None)
        template = Template.from_stack(stack)
        (rule,) = resources(template, "AWS::ECR::PullThroughCacheRule")
        (repository,) = resources(template, "AWS::ECR::Repository")

        assert rule["Properties"] == {
            "CredentialArn": secret,
            "EcrRepositoryPrefix": plan.rules[0].prefix,
            "UpstreamRegistry": "docker-hub",
            "UpstreamRegistryUrl": "registry-1.docker.io",
        }
        assert repository["Properties"]["RepositoryName"].endswith("/volcanosh/vc-scheduler")
        assert plan.reference(VOLCANO).startswith("${AWS_ACCOUNT_ID}.dkr.ecr.")

    def test_prefixes_are_short_and_no_other_clusters(self) -> None:
        names = ("a", "b--c", "x" * 40)
        prefixes = [rule.prefix for name in names for rule in the_cache(*ALL, name=name).rules]

        assert len(set(prefixes)) == len(names) * len(ALL)
        # The pattern and the length of EcrRepositoryPrefix.
        pattern = r"(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/)*[a-z0-9]+(?:[._-][a-z0-9]+)*"
        assert all(re.fullmatch(pattern, each) and len(each) <= 30 for each in prefixes)


class TestManifests:
    def test_every_container_is_cached_whose_registry_is(self, charts: Charts) -> None:
        (plugin,) = (each for each in charts.platform if each.name == "neuron-device-plugin")

        assert NEURON in charts.published_images
        assert NEURON not in str(plugin.manifests)
        assert "dkr.ecr.us-west-2.amazonaws.com/cache-" in str(plugin.manifests)

    def test_a_job_whose_image_comes_from_the_cache_is_another_job(self) -> None:
        """Its pod cannot change: the deployment would fail while the older one stands."""
        claim = ClaimPlan(namespace="training", name="fsx-claim", mount_path="/data")
        objects = lustre_access_objects(PINNED, [claim])

        (without,), (within,) = (
            PlatformChart(name="access", published=objects, copies=cache).manifests
            for cache in (None, the_cache("quay.io"))
        )

        assert look_up(without, "metadata", "name") != look_up(within, "metadata", "name")

    def test_nothing_else_changes(self, charts: Charts) -> None:
        def without_images(chart: PlatformChart) -> str:
            return re.sub(r"'image': '[^']+'", "", str(chart.manifests))

        plain = define_charts(assemble(make_cluster(pools=[SYSTEM_POOL, NEURON_POOL])))

        assert [*map(without_images, charts.all)] == [*map(without_images, plain.all)]


def test_an_image_from_the_cache_is_pinned_where_its_own_is(charts: Charts) -> None:
    documents = [each for chart in charts.platform for each in chart.manifests]

    assert any("cache-" in str(each) for each in documents)
    assert [found for each in documents for found in image_findings(each)] == []
