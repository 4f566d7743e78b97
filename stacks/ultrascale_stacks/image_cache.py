"""The cache of public image registries."""

from collections.abc import Iterable, Mapping

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.image_cache import ImageCache
from ultrascale_stacks.deployment import stack_properties


class ImageCacheStack(Stack):
    """Defines the cache of the platform's images. It holds only copies.

    Attributes:
        placeholders: Values of placeholders in the manifests: the account.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        images: Iterable[str],
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        assert plan.image_cache is not None, "a cluster without a cache has no such stack"
        ImageCache(self, "Cache", plan=plan.image_cache, images=images, key_arn=plan.keys.registry)
        self.placeholders: Mapping[str, str] = {names.ACCOUNT_ID: self.account}
