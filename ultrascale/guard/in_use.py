"""Resources that running nodes, pods and people use, and the loss when a resource goes.

A resource is in use if its purpose or the references to it say so: the role of nodes by its
trust, a security group by its attachments. If all resources that refer to it go in the same
change, only their end is reported. Nodes keep their launch settings: if a node class names a new
role, its running nodes still use the former role.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale.catalog import addons, cloudformation
from ultrascale.documents import JsonObject, mapping, objects, sequence, text
from ultrascale.guard.access import ENTRY, NODES_LOSE, entry_changes
from ultrascale.guard.judging import (
    GOING,
    KEEP_PODS,
    Context,
    Judge,
    chart_changes_definitions,
    chart_goes,
    chart_goes_back,
    outside,
    sides,
    trusted_services,
    when_it_goes,
    when_it_loses,
)
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.objects import NODE_CLASSES, KubernetesObject, Objects
from ultrascale.guard.protection import GUARD
from ultrascale.guard.queues import WITHOUT_PRIORITY
from ultrascale.guard.replacement import Worlds, value_at, version_numbers
from ultrascale.guard.templates import Key, World, count, references, shown, text_of
from ultrascale.guard.updates import labels_lost

# --- what each type is for ---------------------------------------------------------------------

_NODE_SERVICES = ("ec2.amazonaws.com", "sagemaker.amazonaws.com")
_POD_SERVICE = "pods.eks.amazonaws.com"
_ROLE = "AWS::IAM::Role"
_GROUP = "AWS::EC2::SecurityGroup"
_RULES = ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
_LOGS = "AWS::Logs::LogGroup"
# Parts of a role or a group, and alarms on it, refer to it and do not use it.
_PARTS = frozenset(
    {
        ENTRY,
        *_RULES,
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Policy",
        "AWS::IAM::RolePolicy",
        GUARD,
    }
)
# Programs whose logs go together with them.
_PROGRAMS = ("AWS::Lambda::Function", "AWS::CodeBuild::Project")


def with_use(
    changes: Iterable[Change], worlds: Worlds, applied: tuple[Objects, Objects]
) -> Iterator[Change]:
    """Yield ``changes``, each with the loss of running nodes, pods and people.

    Args:
        changes: Changes of resources; one that is protected already stays as it is.
        worlds: Both sides.
        applied: The objects in the cluster, of both sides.
    """
    all_changes = list(changes)
    gone = {
        (change.stack, change.logical_id) for change in all_changes if change.action == "deleted"
    }
    context = Context(
        worlds=worlds, applied=applied, gone=frozenset(gone), users=_users(worlds.old)
    )
    for change in all_changes:
        harm = None
        if not change.lost and change.action in ("updated", *GOING):
            judges = _JUDGES.get(change.type, ())
            harm = next(filter(None, (judge(change, context) for judge in judges)), None)
        noted = replace(change, note=_restarts_dcgm(change, context))
        yield noted if harm is None else noted.harmed(harm)


def _users(old: World) -> Mapping[Key, frozenset[Key]]:
    users: dict[Key, set[Key]] = {}
    for stack in old.templates:
        for logical_id, body in old.resources(stack).items():
            if body["Type"] not in _PARTS:
                for reference in references(old.properties((stack, logical_id))):
                    users.setdefault(reference.resource, set()).add((stack, logical_id))
    return {resource: frozenset(keys - {resource}) for resource, keys in users.items()}


# --- networks ------------------------------------------------------------------------------------


def _network(what: str) -> Harm:
    return Harm(
        verdict="cuts running nodes off",
        lost=f"{what} of nodes and pods that run",
        instead="keep it, or move the nodes first, and name it then",
    )


_ENDPOINT = Harm(
    verdict="cuts running nodes off",
    lost="the way of nodes and pods that run to an AWS service: open connections break, and new "
    "ones need another way out of the VPC, which not every network has",
    instead="keep what asks for it until no node or pod uses the service, and name it then",
)


def _rule_goes(change: Change, context: Context) -> Harm | None:
    """Judge the end of a security group's rule by the two groups that it connects."""
    if change.action not in GOING:
        return None
    ends = {reference.resource for reference in references(context.old(change))}
    groups = [end for end in ends if context.worlds.old.type_of(end) == _GROUP]
    if any(group in context.gone or _pools_go(group, context) for group in groups):
        return None
    return _network("traffic that the rule allows, between interfaces")


def _group_goes(change: Change, context: Context) -> Harm | None:
    if _pools_go((change.stack, change.logical_id), context):
        return None
    return when_it_goes(_network("a security group, and the traffic that it allows,"))(
        change, context
    )


def _pools_go(group: Key, context: Context) -> bool:
    """Return whether all node classes that choose a security group by its tags go."""
    old, new = context.applied
    own = {
        text_of(tag.get("Key")): text_of(tag.get("Value"))
        for tag in objects(context.worlds.old.properties(group), "Tags")
    }
    choosing = [
        node_class
        for node_class in old.of_kind(*NODE_CLASSES)
        for term in objects(node_class.spec, "securityGroupSelectorTerms")
        if (tags := mapping(term, "tags")) and all(own.get(key) == tags[key] for key in tags)
    ]
    return bool(choosing) and all(node_class.id not in new.by_id for node_class in choosing)


# --- identities ----------------------------------------------------------------------------------

_PODS_LOSE = Harm(
    verdict="cuts running nodes off",
    lost="the identity of pods that run: AWS refuses their calls once their credentials end",
    instead=KEEP_PODS,
)


def _role_goes(change: Change, context: Context) -> Harm | None:
    trusted = trusted_services(context.old(change))
    if change.action not in GOING:
        return None
    if trusted & {*_NODE_SERVICES}:
        name = context.old(change).get("RoleName")
        old, new = context.applied
        classes = [
            node_class
            for node_class in old.of_kind(*NODE_CLASSES)
            if name is not None and node_class.spec.get("role") == name
        ]
        ended = bool(classes) and all(node_class.id not in new.by_id for node_class in classes)
        return None if ended or context.goes_with_its_users(change) else NODES_LOSE
    if _POD_SERVICE in trusted and not context.goes_with_its_users(change):
        return _PODS_LOSE
    return None


def _association_goes(change: Change, context: Context) -> Harm | None:
    if change.action not in GOING:
        return None
    values = context.old(change)
    account, namespace = text(values, "ServiceAccount"), text(values, "Namespace")
    before, after = (list(_pods_of(side, account, namespace)) for side in context.applied)
    # If a program goes with its identity, the change of the program reports the loss.
    return None if before and not after else _PODS_LOSE


def _pods_of(side: Objects, account: str, namespace: str) -> Iterator[KubernetesObject]:
    for applied in side.by_id.values():
        if applied.namespace == namespace and applied.pod.get("serviceAccountName") == account:
            yield applied


# --- the control plane and its database ----------------------------------------------------------

_PUBLIC = "ResourcesVpcConfig/EndpointPublicAccess"
_CIDRS = "ResourcesVpcConfig/PublicAccessCidrs"


def _cluster_closes(change: Change, context: Context) -> Harm | None:
    """Judge changes of API server access.

    Fewer public ranges lock users out; without a private endpoint nodes lose the API server.
    """
    old, new = context.old(change), context.new(change)
    if change.action != "updated":
        return None
    if (
        value_at(old, "ResourcesVpcConfig/EndpointPrivateAccess")
        == "true"
        != value_at(new, "ResourcesVpcConfig/EndpointPrivateAccess")
    ):
        return _network("the private endpoint of the API server, which is the way")
    closed = outside(public_ranges(old), public_ranges(new))
    if not closed:
        return None
    return Harm(
        verdict="people lose access",
        lost=f"the way from {', '.join(closed)} to the API server",
        instead="add the new ranges first, and name this once nobody comes from the old ones",
    )


def public_ranges(cluster: JsonObject) -> Sequence[str]:
    """Return the ranges from which the internet reaches the API server."""
    if value_at(cluster, _PUBLIC) != "true":
        return ()
    return [*map(text_of, sequence(value_at(cluster, _CIDRS)))] or ["0.0.0.0/0"]


def _database_stops(change: Change, context: Context) -> Harm | None:
    """Judge a change that interrupts a database while it is applied."""
    if change.action not in ("updated", "may be replaced"):
        return None
    old, new = context.old(change), context.new(change)
    paths = cloudformation.update_rules().interrupting.get(change.type, ())
    stopping = [path for path in paths if value_at(old, path) not in (None, value_at(new, path))]
    if not stopping:
        return None
    told = ", ".join(f"{path} from {shown(value_at(old, path))}" for path in stopping)
    before, after = (version_numbers(value_at(side, "EngineVersion")) for side in (old, new))
    major = "EngineVersion" in stopping and before[:1] != after[:1]
    return Harm(
        verdict="outage",
        lost=f"the database{' for minutes to hours' if major else ' for seconds to minutes'}, at "
        f"once and outside of its maintenance window: {told}",
        instead="try it on a clone, take a snapshot, tell its users, and name it at that time",
    )


# --- history --------------------------------------------------------------------------------------


def _logs_go(change: Change, context: Context) -> Harm | None:
    old, new = context.old(change), context.new(change)
    if change.action == "updated":
        before, after = (count(side.get("RetentionInDays")) for side in (old, new))
        if after is None or (before is not None and after >= before):
            return None
        kept = "without end" if before is None else f"for {before} days"
        return _history(f"log events older than {after} days, which were kept {kept}")
    users = context.users.get((change.stack, change.logical_id), frozenset[Key]())
    kinds = {context.worlds.old.resources(stack)[logical_id]["Type"] for stack, logical_id in users}
    own = bool(kinds) and kinds <= {*_PROGRAMS} and context.goes_with_its_users(change)
    return None if own or change.action not in GOING else _history("the log group's events")


def _history(what: str) -> Harm:
    return Harm(
        verdict="loses history",
        lost=what,
        instead="keep it, or export its events to S3 first: "
        "`aws logs create-export-task`, and name it then",
    )


_METRICS_HISTORY = Harm(
    verdict="loses history",
    lost="the workspace with the history of its metrics, or the dashboards that people made in it",
    instead="keep it, or export what is needed first, and name it then",
)


# --- programs -------------------------------------------------------------------------------------


def _addon_goes(change: Change, context: Context) -> Harm | None:
    name = text(context.old(change), "AddonName")
    known = addons.known_addons().get(name)
    serves = "something that nobody knows" if known is None else known.serves
    if change.action not in GOING or not serves:
        return None
    return Harm(
        verdict="cuts running nodes off",
        lost=f"{serves}: pods that run use {name} for that",
        instead=KEEP_PODS,
    )


def _addon_goes_back(change: Change, context: Context) -> Harm | None:
    """Judge an older version of an add-on: its nodes run what the newer one set up."""
    old, new = sides(change, context)
    before, after = (version_numbers(side.get("AddonVersion")) for side in (old, new))
    name = text(old, "AddonName")
    if change.action != "updated" or not after or after >= before:
        return None
    return Harm(
        verdict="cuts running nodes off",
        lost=f"what {name} {text(old, 'AddonVersion')} set up for pods that run, which "
        f"{text(new, 'AddonVersion')} may not know",
        instead="stay with this version; or read the notes of the versions between, try it on "
        "another cluster, and name it then",
    )


def _restarts_dcgm(change: Change, context: Context) -> str:
    """Return the risk of a changed node monitoring agent, whose pods start anew with its DCGM.

    Source: https://github.com/aws/eks-node-monitoring-agent/issues/266
    """
    if change.type != "AWS::EKS::Addon" or change.action != "updated":
        return ""
    old, new = sides(change, context)
    watched = ("AddonVersion", "ConfigurationValues")
    if text(new, "AddonName") != addons.MONITORING_AGENT or all(
        old.get(key) == new.get(key) for key in watched
    ):
        return ""
    return (
        "its agent and DCGM start anew on nodes with NVIDIA GPUs, and an agent that loses DCGM "
        "meanwhile marks sound nodes as AcceleratedHardwareReady=False until it starts anew: "
        "`ultrascale repair FILE NODE --restart-agent`"
    )


def _labels_go(change: Change, context: Context) -> Harm | None:
    if change.action != "updated":
        return None
    before, after = (mapping(side, "Labels") for side in sides(change, context))
    return labels_lost(before, after)


def _taint_evicts(change: Change, context: Context) -> Harm | None:
    """Judge a new taint of a managed group: EKS also adds it to running nodes.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/node-taints-managed-node-groups.html
    """
    if change.action != "updated":
        return None
    before, after = (objects(side, "Taints") for side in sides(change, context))
    evicting = [taint for taint in after if taint.get("Effect") == "NO_EXECUTE"]
    added = [text_of(taint.get("Key")) for taint in evicting if taint not in before]
    if not added:
        return None
    return Harm(
        verdict="outage",
        lost=f"pods on nodes that run and do not tolerate {', '.join(added)}: they are evicted at "
        "once",
        instead="use the effect NoSchedule, or let the jobs end first, and name it then",
    )


def _priority_goes(change: Change, context: Context) -> Harm | None:
    """Judge a class that leaves HyperPod's task governance, as one that leaves Kueue's queues."""
    if change.action != "updated":
        return None
    before, after = (
        {text(each, "Name") for each in objects(side, "SchedulerConfig", "PriorityClasses")}
        for side in sides(change, context)
    )
    return WITHOUT_PRIORITY if before - after else None


_IMAGES = Harm(
    verdict="cuts running nodes off",
    lost="the cache that images of running pods come from: a pod that restarts there cannot start",
    instead="keep it until no pod has an image from it, and name it then",
)
_SECRET = Harm(
    verdict="outage",
    lost="a secret that programs of the cluster read",
    instead="keep it until nothing reads it, and name it then",
)
_ADDRESS = Harm(
    verdict="outage",
    lost="the address at which clients reach models: requests in flight break, and a new load "
    "balancer has another name",
    instead="lead clients elsewhere first, and name it then",
)
_LINK = Harm(
    verdict="outage",
    lost="the link between a file system and its bucket: what jobs write reaches the bucket no "
    "more, and they see nothing new of it",
    instead="let the jobs end, wait for the last export, and name it then",
)

_JUDGES: Mapping[str, Sequence[Judge]] = {
    ENTRY: (entry_changes,),
    _ROLE: (_role_goes,),
    _GROUP: (
        _group_goes,
        when_it_loses(
            _network("traffic that a security group allows"),
            "SecurityGroupEgress",
            "SecurityGroupIngress",
        ),
    ),
    **dict.fromkeys(_RULES, (_rule_goes,)),
    _LOGS: (_logs_go,),
    "AWS::APS::Workspace": (when_it_goes(_METRICS_HISTORY),),
    "AWS::EC2::EIP": (when_it_goes(_network("the public address")),),
    "AWS::EC2::InternetGateway": (when_it_goes(_network("the way to the internet")),),
    "AWS::EC2::NatGateway": (when_it_goes(_network("the way out, and open connections,")),),
    "AWS::EC2::Route": (when_it_goes(_network("a route")),),
    "AWS::EC2::RouteTable": (when_it_goes(_network("the routes")),),
    "AWS::EC2::SubnetRouteTableAssociation": (when_it_goes(_network("the routes of a subnet")),),
    "AWS::EC2::VPC": (
        when_it_loses(_network("DNS in the VPC"), "EnableDnsSupport", "EnableDnsHostnames"),
    ),
    "AWS::EC2::VPCCidrBlock": (when_it_goes(_network("a range of addresses")),),
    "AWS::EC2::VPCEndpoint": (
        when_it_goes(_ENDPOINT),
        when_it_loses(
            _ENDPOINT, "PrivateDnsEnabled", "RouteTableIds", "SecurityGroupIds", "SubnetIds"
        ),
    ),
    "AWS::EC2::VPCGatewayAttachment": (when_it_goes(_network("the way to the internet")),),
    "AWS::ECR::PullThroughCacheRule": (when_it_goes(_IMAGES),),
    "AWS::EKS::Addon": (
        _addon_goes,
        _addon_goes_back,
        when_it_loses(_PODS_LOSE, "PodIdentityAssociations"),
    ),
    "AWS::EKS::Cluster": (_cluster_closes,),
    "AWS::EKS::Nodegroup": (_taint_evicts, _labels_go),
    "AWS::EKS::PodIdentityAssociation": (_association_goes,),
    "AWS::ElasticLoadBalancingV2::Listener": (when_it_goes(_ADDRESS),),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": (when_it_goes(_ADDRESS),),
    "AWS::ElasticLoadBalancingV2::TargetGroup": (when_it_goes(_ADDRESS),),
    "AWS::FSx::DataRepositoryAssociation": (when_it_goes(_LINK),),
    "AWS::Grafana::Workspace": (when_it_goes(_METRICS_HISTORY),),
    "AWS::IAM::InstanceProfile": (when_it_goes(NODES_LOSE),),
    "AWS::RDS::DBCluster": (_database_stops,),
    "AWS::RDS::DBInstance": (_database_stops,),
    "AWS::SageMaker::ClusterSchedulerConfig": (_priority_goes,),
    "AWS::SecretsManager::Secret": (when_it_goes(_SECRET),),
    "Custom::AWSCDK-EKS-HelmChart": (chart_goes, chart_goes_back, chart_changes_definitions),
}

NOT_IN_USE = frozenset(
    {
        "AWS::ApplicationSignals::ServiceLevelObjective",
        "AWS::AutoScaling::AutoScalingGroup",
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::CompositeAlarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::CodeBuild::Project",
        "AWS::CodeConnections::Connection",
        "AWS::CodePipeline::Pipeline",
        "AWS::CodeStarNotifications::NotificationRule",
        "AWS::EC2::FlowLog",
        "AWS::EC2::LaunchTemplate",
        "AWS::EC2::PlacementGroup",
        "AWS::EC2::SubnetCidrReservation",
        "AWS::ECR::RegistryPolicy",
        "AWS::ECR::RepositoryCreationTemplate",
        "AWS::Events::Rule",
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Policy",
        "AWS::KMS::Alias",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::Function",
        "AWS::Lambda::LayerVersion",
        "AWS::Lambda::Permission",
        "AWS::Logs::MetricFilter",
        "AWS::Logs::SubscriptionFilter",
        "AWS::RDS::DBClusterParameterGroup",
        "AWS::RDS::DBParameterGroup",
        "AWS::RDS::DBSubnetGroup",
        "AWS::ResourceGroups::Group",
        "AWS::S3::BucketPolicy",
        "AWS::SNS::Subscription",
        "AWS::SNS::Topic",
        "AWS::SNS::TopicPolicy",
        "AWS::SQS::Queue",
        "AWS::SQS::QueuePolicy",
        "AWS::SSM::Document",
        "AWS::SSM::Parameter",
        "AWS::SageMaker::ComputeQuota",
        "AWS::Scheduler::Schedule",
    }
)
"""Types whose end cuts off nobody: our own programs, the cluster's observability, and parts whose
whole is judged. The nodes of a node group are judged by `node_groups`.
"""

JUDGED = frozenset(_JUDGES)
"""Types that may be in use by running nodes, pods or people, with their judges."""
