"""Stack of the backend's database, and of the IAM role of its pods."""

from collections.abc import Mapping

from ultrascale.parts.backend.model import (
    ACCOUNT,
    DATABASE_HOST,
    DATABASE_SECRET_ARN,
    LAYER,
    Plan,
)
from ultrascale.plan import names
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.backend import Database
from ultrascale_constructs.key import key_of
from ultrascale_constructs.pod_identity import PodIdentityRole
from ultrascale_stacks.cluster import Builder, ClusterStacks, LayerStack
from ultrascale_stacks.platform import export


class BackendStack(LayerStack):
    """Stack of the backend's database, which outlives the stack, and its Pod Identity role."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan, backend = cluster.plan, cluster.part(Plan)
        assert backend.database is not None, "its database is somebody else's"
        database = Database(
            self,
            "Database",
            plan=backend.database,
            key=key_of(
                self, description=f"Database of the backend of {plan.name}", arn=plan.key("storage")
            ),
            cluster=cluster.context,
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
        # Values of placeholders in the backend's manifests
        self.placeholders: Mapping[str, str] = {**values, names.ACCOUNT_ID: self.account}


STACKS: Mapping[LayerId, Builder] = {LAYER: BackendStack}
