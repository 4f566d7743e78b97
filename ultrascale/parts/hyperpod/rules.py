"""Rules of `hyperpod`: HyperPod's settings, and the teams that share its nodes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ultrascale import catalog, config
from ultrascale.catalog import eks, hyperpod, regions
from ultrascale.config import Every, Mistake, Mistakes, Readable, near, note, refuse, rule
from ultrascale.parts.hyperpod import chart_facts
from ultrascale.parts.hyperpod.section import HyperPod, TaskGovernance, Team
from ultrascale.parts.observability.section import Observability
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.jobs.rules import rule as job_rule

if TYPE_CHECKING:
    from ultrascale.plan.advice.model import Candidate, Question, Reason

_PYTORCH_ROLE = "worker"
# Most labels that follow from a pool.
_OUR_LABELS = 10


@rule
def hyperpod_has_nodes(settings: HyperPod, pools: Every[config.Pool]) -> Mistakes:
    if settings != HyperPod() and not any(map(_is_hyperpod, pools)):
        wrong = "no pool has provisioner: hyperpod"
        yield refuse("", wrong, "add one, or remove hyperpod", got="")


@rule
def hyperpod_addon_has_nodes(observability: Observability, pools: Every[config.Pool]) -> Mistakes:
    """Refuse HyperPod's add-on without nodes of HyperPod."""
    if observability.hyperpod_addon and not any(map(_is_hyperpod, pools)):
        wrong = "no pool has provisioner hyperpod"
        yield refuse("hyperpod_addon", wrong, "leave it out, or add such a pool")


@rule
def builds_run_in_the_vpc(
    pool: config.Pool, network: config.Network, identity: config.Identity
) -> Mistakes:
    """Yield a pool whose chart no build can install: the API server may be private.

    Source: https://docs.aws.amazon.com/codebuild/latest/userguide/vpc-support.html#vpc-limitations
    """
    if pool.is_hyperpod and config.is_shared(network, identity.account):
        wrong = "a build in the VPC installs HyperPod's chart, and AWS CodeBuild cannot run "
        wrong += "in the subnet of another account"
        yield refuse("provisioner", wrong, "use another provisioner, or a VPC of this account")


@rule
def training_operator_has_a_node(settings: HyperPod, pools: Every[config.Pool]) -> Mistakes:
    """Yield a training operator without a node for its controller: its add-on's stack would fail.

    It runs on HyperPod's nodes alone, and AWS documents no value by which it would tolerate a
    taint.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-install.html
    """
    own = [pool for pool in pools if pool.is_hyperpod]
    if settings.training_operator and own and not any(_is_open(pool) for pool in own):
        wrong = "every HyperPod node has a taint that the operator does not tolerate"
        todo = "set deep_health_checks: true in a hyperpod pool: its nodes then have no taint"
        yield refuse("training_operator", wrong, todo)


@rule
def training_operator_gets_jobs(settings: HyperPod, scheduling: config.Scheduling) -> Mistakes:
    if settings.training_operator and scheduling.engine != "none":
        wrong = f"{scheduling.engine} runs every training job, so the operator gets none"
        todo = "leave it out, or set scheduling.queueing: none"
        yield refuse("training_operator", wrong, todo)


@rule
def governance_is_in_the_region(governance: TaskGovernance, identity: config.Identity) -> Mistakes:
    """Yield a Region that lacks a part of task governance.

    Its quotas without its priorities, or the other way round, would share nodes by other rules than
    the file's.
    """
    if identity.region in hyperpod.REGIONS - hyperpod.GOVERNANCE_REGIONS:
        wrong = f"CloudFormation lacks a part of HyperPod task governance in {identity.region}"
        todo = f"leave it out, or use a Region of {', '.join(sorted(hyperpod.GOVERNANCE_REGIONS))}"
        yield refuse("", wrong, todo, got="")


@rule
def priorities_have_weights(governance: TaskGovernance, scheduling: config.Scheduling) -> Mistakes:
    for name in scheduling.priority_classes:
        if "." in name:
            wrong = f"priority class {name}, and task governance takes no dots"
            yield refuse("", wrong, "rename it in scheduling.priority_classes", got="")
    count, most = len(scheduling.priority_classes), hyperpod.PRIORITY_CLASSES
    if count > most:
        wrong = f"{count} priority classes, and task governance has {most} at most"
        yield refuse("", wrong, "shorten scheduling.priority_classes", got="")


@rule
def teams_are_there(governance: TaskGovernance) -> Mistakes:
    if not governance.teams:
        yield refuse("teams", "no team to govern", "add one, or remove task_governance")


@rule
def governed_types_have_quotas(
    governance: TaskGovernance, pools: Readable[config.Pool]
) -> Mistakes:
    governed = [placed for placed in pools.placed if _is_hyperpod(placed.item)]
    for placed in governed:
        if len(placed.item.instance_types) > 1:
            pool = placed.path
            wrong = f"several types in {pool}: each team would need a quota for each type"
            yield refuse("", wrong, "keep one type there, or leave task_governance out", got="")
    every = {name for placed in governed for name in placed.item.instance_types}
    if len(every) > hyperpod.TYPES_PER_QUOTA:
        wrong = f"pools of {len(every)} types, and a quota has {hyperpod.TYPES_PER_QUOTA} at most"
        yield refuse("", wrong, "use fewer types, or leave task_governance out", got="")


@rule
def teams_have_weights(governance: TaskGovernance, pools: Readable[config.Pool]) -> Mistakes:
    """Yield teams that share the nodes of a pool by weights that are all 0."""
    for name, count in _nodes(pools).items():
        sharing = [team for team in governance.teams if name not in team.nodes]
        left = count - sum(team.nodes.get(name, 0) for team in governance.teams)
        if sharing and left > 0 and not any(team.fair_share_weight for team in sharing):
            wrong = f"all weights are 0, so no team gets {left} nodes of {name}"
            yield refuse("teams", wrong, "give a team nodes, or fair_share_weight above 0", got="")


@rule
def teams_have_the_nodes(governance: TaskGovernance, pools: Readable[config.Pool]) -> Mistakes:
    for name, count in _nodes(pools).items():
        wanted = sum(team.nodes.get(name, 0) for team in governance.teams)
        if wanted > count:
            wrong = f"teams have {wanted} nodes in all, and pool {name} has {count}"
            yield refuse("teams", wrong, "give teams fewer, or raise nodes of the pool", got="")


@rule
def team_pools_exist(team: Team, pools: Every[config.Pool]) -> Mistakes:
    known = _nodes(pools)
    for name in team.nodes:
        if name not in known:
            wrong = "no pool with provisioner: hyperpod"
            yield Mistake(("nodes", name), wrong, near(name, known))


@rule
def team_lends_to_borrow(team: Team) -> Mistakes:
    if team.borrow_limit_percent is not None and not team.lend:
        wrong = "a team that lends nothing cannot borrow"
        yield refuse("borrow_limit_percent", wrong, "set lend: true, or leave it out")


@rule
def placement_group_is_not_hyperpods(pool: config.Pool) -> Mistakes:
    if pool.placement_group and pool.is_hyperpod:
        wrong = "HyperPod places its instances itself"
        yield refuse("placement_group", wrong, "leave it out")


@rule
def deep_health_checks_are_hyperpods(pool: config.Pool) -> Mistakes:
    if pool.deep_health_checks and not pool.is_hyperpod:
        yield refuse("deep_health_checks", "only HyperPod has deep health checks", "leave it out")


@rule
def hyperpod_is_in_the_region(pool: config.Pool, identity: config.Identity) -> Mistakes:
    if pool.is_hyperpod and identity.region not in hyperpod.REGIONS:
        wrong = f"CloudFormation makes no HyperPod clusters in {identity.region}"
        yield refuse("provisioner", wrong, f"use a Region of {', '.join(sorted(hyperpod.REGIONS))}")


@rule
def hyperpod_has_the_types(pool: config.Pool, identity: config.Identity) -> Mistakes:
    for number, name in enumerate(pool.instance_types if pool.is_hyperpod else ()):
        if not hyperpod.has(name):
            wrong = "a type that HyperPod does not have"
            like = near(name, _regions_or_none(identity.region))
            yield refuse(f"instance_types.{number}", wrong, like)


@rule
def hyperpod_groups_fit(pools: Readable[config.Pool]) -> Mistakes:
    groups = sum(pool.shards for pool in pools if pool.is_hyperpod)
    most = hyperpod.GROUPS_PER_CLUSTER
    if groups > most:
        wrong = f"{groups} instance groups, and a HyperPod cluster has {most} at most"
        yield refuse("pools", wrong, "write fewer and larger shards", got="")


@rule
def hyperpod_group_holds_the_nodes(pool: config.Pool) -> Mistakes:
    if pool.is_hyperpod:
        yield from config.fixed_group_mistakes(pool)


@rule
def hyperpod_takes_the_labels(pool: config.Pool) -> Mistakes:
    most = hyperpod.LABELS_PER_GROUP - _OUR_LABELS
    if pool.is_hyperpod and len(pool.labels) > most:
        wrong = f"more labels than the {most} of yours that a HyperPod group takes"
        yield refuse("labels", wrong, f"keep {most}", got=str(len(pool.labels)))


@rule
def hyperpod_tags_nothing(pool: config.Pool) -> Mistakes:
    if pool.is_hyperpod and pool.tags:
        wrong = "HyperPod's instances are in an account of AWS, which takes no tags of yours"
        yield refuse("tags", wrong, "leave it out", got="")


@rule
def hyperpod_takes_the_taints(pool: config.Pool) -> Mistakes:
    for number, taint in enumerate(pool.taints if pool.is_hyperpod else ()):
        if not taint.value:
            wrong = "HyperPod takes no taint without a value"
            yield refuse(f"taints.{number}.value", wrong, "write a value, such as 'true'")


@rule
def hyperpod_recovers_all_or_none(pool: config.Pool, settings: HyperPod | None) -> Mistakes:
    if not pool.is_hyperpod or pool.repair is None:
        return
    recovery = (settings or HyperPod()).node_recovery
    if pool.repair == "reboot":
        wrong = "HyperPod itself chooses by the fault whether it reboots or replaces a node"
        yield refuse("repair", wrong, "write replace, or none with hyperpod.node_recovery: none")
    elif (pool.repair == "none") != (recovery == "none"):
        wrong = f"HyperPod recovers all nodes of a cluster or none, here {recovery}"
        other = "none" if pool.repair == "none" else "automatic"
        yield refuse("repair", wrong, f"leave it out, or write hyperpod.node_recovery: {other}")


@rule
def hyperpod_supports_version(
    kubernetes: config.Kubernetes,
    governance: TaskGovernance | None,
    pools: Readable[config.Pool],
) -> Mistakes:
    version = kubernetes.version
    wanted = any(pool.is_hyperpod for pool in pools) or governance is not None
    known = version in eks.SUPPORTED_VERSIONS
    versions = eks.SUPPORTED_VERSIONS
    latest = eks.LATEST_HYPERPOD_VERSION
    if wanted and known and versions.index(version) > versions.index(latest):
        todo = f"use {latest}"
        yield refuse("version", "later than HyperPod supports", todo)


@rule(severity="warning")
def hyperpods_list_has_the_types(pool: config.Pool, identity: config.Identity) -> Mistakes:
    """Warn of types that CloudFormation's list of HyperPod's types lacks in the Region.

    `pool_warnings.types_may_not_be_had` tells of types that the list has elsewhere, and of Regions
    that it has for types of ours.
    """
    region = identity.region
    for number, name in enumerate(pool.instance_types if pool.is_hyperpod else ()):
        unlisted = regions.offered(name, region, by="sagemaker") is None
        if unlisted and hyperpod.has(name) and region in hyperpod.REGIONS:
            text = f"CloudFormation lists no {name} of HyperPod in {region}; ask AWS before you buy"
            yield note(f"instance_types.{number}", text)


@rule(severity="note")
def hyperpods_version_is_on_its_page(
    kubernetes: config.Kubernetes, pools: Readable[config.Pool]
) -> Mistakes:
    paged = eks.PAGED_HYPERPOD_VERSION
    later = kubernetes.version in eks.SUPPORTED_VERSIONS
    if later and any(pool.is_hyperpod for pool in pools):
        text = (
            f"copies of HyperPod's page of {eks.PAGED_HYPERPOD_DAY} name {paged} as the newest "
            f"Kubernetes; ask AWS whether SageMaker takes {kubernetes.version} before you buy a "
            "training plan"
        )
        yield note("version", text)


def _regions_or_none(region: str) -> list[str]:
    return [
        name
        for name, spec in sorted(catalog.INSTANCE_TYPES.items())
        if spec.hyperpod and regions.offered(name, region, by="sagemaker") is not False
    ]


def _nodes(pools: Iterable[config.Pool]) -> Mapping[str, int]:
    return {
        pool.name: pool.nodes.highest * pool.shards
        for pool in pools
        if _is_hyperpod(pool) and pool.nodes.are_counted
    }


def _is_open(pool: config.Pool) -> bool:
    return pool.deep_health_checks and not pool.taints


def _is_hyperpod(pool: config.Pool) -> bool:
    return pool.is_hyperpod


@rule(severity="warning")
def agent_may_lack_an_image(identity: config.Identity, pools: Readable[config.Pool]) -> Mistakes:
    if any(pool.is_hyperpod for pool in pools) and identity.region not in chart_facts.AGENT_REGIONS:
        text = (
            "faulty nodes may stay unnoticed: AWS's HyperPod chart may know no image of the "
            f"health-monitoring agent in {identity.region}; ask AWS"
        )
        yield note("region", text)


@job_rule
def pytorch_job_is_plain(job: config.TrainingJob, controller: JobController) -> Mistakes:
    """Yield keys that Kubeflow's PyTorchJob, which runs on HyperPod's nodes, has no place for.

    Sources:
        https://github.com/kubeflow/trainer/blob/v1.8.1/pkg/controller.v1/pytorch/pytorchjob_controller.go
        https://github.com/kubeflow/trainer/blob/v1.8.1/pkg/controller.v1/common/pod.go
    """
    if controller.name != "pytorch":
        return
    if job.min_nodes is not None:
        wrong = "a job on HyperPod ends when all of its pods have ended"
        yield refuse("min_nodes", wrong, "leave it out: HyperPod replaces the node")
    if "role" in job.model_fields_set and job.role != _PYTORCH_ROLE:
        wrong = "HyperPod calls every pod a worker"
        yield refuse("role", wrong, "leave it out")


@job_rule
def operated_job_is_plain(job: config.TrainingJob, controller: JobController) -> Mistakes:
    """Yield keys for the work of HyperPod's training operator, or of the agent in its pods.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-install.html
    """
    if controller.name != "hyperpod":
        return
    if job.rendezvous is not None:
        wrong = "HyperPod's training operator has a rendezvous of its own"
        yield refuse("rendezvous", wrong, "leave it out")
    if job.env.get("NNODES") is not None:
        wrong = "a variable that HyperPod's training operator sets"
        yield Mistake(("env", "NNODES"), wrong, "leave it out", got=job.env["NNODES"])


def refusals(question: "Question", candidate: "Candidate") -> "Iterator[Reason]":
    """Yield why HyperPod's nodes do not suit a question."""
    from ultrascale.plan.advice.model import Reason

    newest = eks.LATEST_HYPERPOD_VERSION
    if eks.SUPPORTED_VERSIONS.index(question.kubernetes_version) > eks.SUPPORTED_VERSIONS.index(
        newest
    ):
        text = f"HyperPod knows Kubernetes up to {newest}, got {question.kubernetes_version}"
        yield Reason(code="H8", text=text)
    if question.region not in hyperpod.REGIONS:
        text = f"CloudFormation makes no HyperPod clusters in {question.region}"
        yield Reason(code="H8", text=text)
    for name in candidate.instance_types:
        if not hyperpod.has(name):
            yield Reason(code="H8", text=f"HyperPod has no {name}")
