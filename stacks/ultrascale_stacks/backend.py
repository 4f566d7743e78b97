"""What the backend has in AWS: its database, and the role that its pods log in with."""

from collections.abc import Mapping

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.model import BackendPlan, DatabasePlan
from ultrascale_constructs.database import Database
from ultrascale_constructs.key import Key
from ultrascale_constructs.network import Network
from ultrascale_constructs.pod_identity import PodIdentityRole
from ultrascale_stacks._environment import environment


class BackendStack(Stack):
    """Defines the backend's database, which outlives the stack, and its Pod Identity role.

    Attributes:
        placeholders: What the placeholders in the backend's manifests stand for.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        backend: BackendPlan,
        database: DatabasePlan,
        network: Network,
        cluster_security_group_id: str,
    ) -> None:
        super().__init__(scope, id, env=environment(plan))
        made = Database(
            self,
            "Database",
            plan=database,
            key=Key(self, "Key", description=f"Database of the backend of {plan.name}").key,
            vpc=network.vpc,
            subnet_ids=network.subnet_ids("private"),
            client_security_group_id=cluster_security_group_id,
        )
        PodIdentityRole(
            self,
            "Backend",
            cluster_name=plan.name,
            namespace=backend.namespace,
            service_account=names.BACKEND_ACCOUNT,
            permissions=made.permissions,
        )
        values = {names.DATABASE_HOST: made.host}
        if made.secret_arn is not None:
            values[names.DATABASE_SECRET_ARN] = made.secret_arn
        self._tell(values)
        self.placeholders: Mapping[str, str] = {**values, names.ACCOUNT_ID: self.account}

    def _tell(self, values: Mapping[str, str]) -> None:
        """Export ``values``, whether the manifests name them today or not, and show them."""
        for placeholder, value in values.items():
            self.export_value(value)
            words = placeholder.strip("${}").split("_")
            CfnOutput(
                self,
                "".join(word.capitalize() for word in words),
                value=value,
                description=f"{placeholder} in the manifests",
            )
