"""A job as a chart, for users who keep jobs in charts of their own."""

from collections.abc import Sequence
from typing import Protocol

import cdk8s
from constructs import Construct

from ultrascale.documents import JsonObject
from ultrascale_k8s._platform_chart import define_object


class Manifests(Protocol):
    """The objects of a job, as `ultrascale.jobs.prepare` returns them."""

    @property
    def objects(self) -> Sequence[JsonObject]:
        """Objects of the job, in the order in which they are sent."""
        ...


class JobChart(cdk8s.Chart):
    """Defines the objects that `ultrascale submit` would send for a job.

    A deployment of the cluster applies no jobs: the owner of this chart applies it when needed.
    """

    def __init__(self, scope: Construct, id: str, *, job: Manifests) -> None:
        """Define the objects of ``job``.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            job: What `ultrascale.jobs.prepare` returned.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for number, manifest in enumerate(job.objects):
            define_object(self, f"{manifest['kind']}{number}", manifest)
