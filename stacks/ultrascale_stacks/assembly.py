"""All stacks of a cluster."""

from aws_cdk import App

from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import layers_before, planned_layers
from ultrascale_constructs.alerts import send_alarms
from ultrascale_constructs.log_group import encrypt_logs
from ultrascale_k8s import Charts
from ultrascale_stacks.builders import ClusterStacks, define_stack
from ultrascale_stacks.deployment import bound_roles


def define_stacks(app: App, plan: ClusterPlan, charts: Charts) -> None:
    """Define every stack of ``plan``, layer by layer, each to be deployed after those it needs."""
    cluster = ClusterStacks(app=app, plan=plan, charts=charts)
    for layer, names in planned_layers(plan).items():
        stacks = [define_stack(layer, name, cluster) for name in names]
        cluster.stacks[layer] = stacks
        for stack in stacks:
            for earlier in layers_before(plan, layer):
                for needed in cluster.stacks.get(earlier, ()):
                    stack.add_stack_dependency(needed)
            bound_roles(stack, plan.permissions_boundary)
    if plan.keys.logs is not None:
        encrypt_logs(app, plan.keys.logs)
    if plan.observability is not None and plan.observability.alerts is not None:
        send_alarms(app, plan.observability.alerts.topic)
