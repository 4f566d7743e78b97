"""A job as a chart, for those who keep their jobs in charts of their own."""

from typing import Any, cast

import cdk8s
from constructs import Construct

from ultrascale.jobs import JobManifests


class JobChart(cdk8s.Chart):
    """Defines the objects that `ultrascale submit` would send for a job.

    A deploy of the cluster applies no jobs: whoever defines this chart decides when it is applied.
    """

    def __init__(self, scope: Construct, id: str, *, job: JobManifests) -> None:
        """Define the objects of ``job``.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            job: What `ultrascale.jobs.prepare` returned.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for number, manifest in enumerate(job.objects):
            body = cast("dict[str, Any]", dict(manifest))
            api_object = cdk8s.ApiObject(
                self,
                f"{body['kind']}{number}",
                api_version=body.pop("apiVersion"),
                kind=body.pop("kind"),
                metadata=cdk8s.ApiObjectMetadata(**body.pop("metadata")),
            )
            for key, value in body.items():
                api_object.add_json_patch(cdk8s.JsonPatch.add(f"/{key}", value))
