"""The database of the backend, and the IAM role of its pods."""

from collections.abc import Mapping

from aws_cdk import Stack
from constructs import Construct

from ultrascale.parts.backend.model import (
    ACCOUNT,
    DATABASE_HOST,
    DATABASE_SECRET_ARN,
    LAYER,
    Plan,
)
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.backend import Database
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.key import key_of
from ultrascale_constructs.pod_identity import PodIdentityRole
from ultrascale_stacks.builders import Builder, ClusterStacks
from ultrascale_stacks.deployment import stack_properties
from ultrascale_stacks.placeholders import export


class BackendStack(Stack):
    """Defines the backend's database, which outlives the stack, and its Pod Identity role.

    Attributes:
        placeholders: Values of placeholders in the backend's manifests.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        cluster: ClusterContext,
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        backend = plan.part(Plan)
        assert backend is not None, "a cluster without the backend has no such stack"
        assert backend.database is not None, "its database is somebody else's"
        database = Database(
            self,
            "Database",
            plan=backend.database,
            key=key_of(
                self, description=f"Database of the backend of {plan.name}", arn=plan.key("storage")
            ),
            cluster=cluster,
        )
        PodIdentityRole(
            self,
            "Backend",
            cluster_name=plan.name,
            namespace=backend.namespace,
            service_account=ACCOUNT,
            permissions=database.permissions,
        )
        values = {DATABASE_HOST: database.host}
        if database.secret_arn is not None:
            values[DATABASE_SECRET_ARN] = database.secret_arn
        export(self, values)
        self.placeholders: Mapping[str, str] = {**values, names.ACCOUNT_ID: self.account}


def _backend(cluster: ClusterStacks, name: StackName) -> Stack:
    return BackendStack(cluster.app, name, plan=cluster.plan, cluster=cluster.context)


STACKS: Mapping[LayerId, Builder] = {LAYER: _backend}
