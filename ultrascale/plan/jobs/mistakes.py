"""Mistakes of a job that only the cluster's nodes show; `config` has the others."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from ultrascale import config
from ultrascale.catalog import kubernetes, quantities, runtime_environment
from ultrascale.plan import capacity, names
from ultrascale.plan.jobs import rendezvous
from ultrascale.plan.jobs.controllers import INDEXED, JobController, controller_of, least_pods
from ultrascale.plan.jobs.nodes import (
    NodeShare,
    efa_of,
    most_pods,
    node_share,
)
from ultrascale.plan.jobs.output import PROGRAMS
from ultrascale.plan.jobs.request import JobRequest, is_own_image
from ultrascale.plan.jobs.rules import Candidates, Nodes, Requests, WrongKeys, rule

Mistakes = Iterator[config.Mistake]


@rule
def job_name_is_free(request: JobRequest) -> Mistakes:
    """Yield the name of a Service of the cluster, which the end of the job would delete."""
    taken = (names.ETCD_SERVER_SERVICE, names.ETCD_CLIENT_SERVICE)
    if request.namespace == names.TRAINING_NAMESPACE and request.name in taken:
        wrong = "the name of the cluster's own rendezvous server"
        yield config.refuse("name", wrong, "choose another", got=request.name)


@rule
def pod_names_fit(request: JobRequest) -> Mistakes:
    """Yield a name that makes those of a job's pods, or of its replicas, too long."""
    if not request.job.has_own_controller:
        yield from request.engine.name_mistakes(request)


@rule
def program_is_named(job: config.Job) -> Mistakes:
    """Yield keys that a template may leave open, and a job that is sent must not."""
    if job.image is None:
        yield _missing("image", "add REPOSITORY:TAG, or --image")
    if isinstance(job, config.BatchJob) or job.has_own_controller:
        if not job.command:
            yield _missing("command", "name the program")
    elif isinstance(job, config.TrainingJob) and job.script is None and not job.command:
        todo = "name the script that torchrun starts, or a command"
        yield _missing("script", todo)


def _missing(key: str, todo: str, wrong: str = "missing") -> config.Mistake:
    return config.refuse(key, wrong, todo, got="", kind="missing")


@rule
def words_are_short(job: config.Job) -> Mistakes:
    """Yield words that are too long for a program to be started with."""
    words = {f"args.{number}": word for number, word in enumerate(job.args)}
    words |= {f"command.{number}": word for number, word in enumerate(job.command)}
    words |= {f"init.{number}": word for number, word in enumerate(job.init)}
    lengths = [(config.refuse(key, "").at, word) for key, word in words.items()]
    lengths += [(("env", name), f"{name}={value}") for name, value in job.env.items()]
    for at, word in lengths:
        size = len(word.encode()) + 1
        if size > kubernetes.WORD_BYTES:
            wrong = f"{size // 1024} KiB, more than Linux takes in one argument or value"
            yield config.Mistake(at, wrong, "put it into a file on a volume", got="")


@rule
def claims_have_a_place_each(request: JobRequest) -> Mistakes:
    """Yield claims of the job's namespace that it would mount by default at one path."""
    paths = Counter(mount.mount_path for mount in request.mounts)
    for path, count in paths.items():
        if count > 1 and request.job.volumes is None:
            wrong = f"{count} claims of namespace {request.namespace} with mount path {path}"
            yield config.refuse("volumes", wrong, "list the job's volumes", got="")


@rule
def image_can_be_pulled(request: JobRequest) -> Mistakes:
    """Yield an image of the cluster's own registry whose whole reference nothing states."""
    image = request.job.image
    if image is None or not is_own_image(image):
        return
    repository, _, tag = image.partition("@")[0].partition(":")
    if repository not in request.cluster.images.repositories:
        return  # has a mistake of its own
    if request.account is None:
        wrong = "the cluster's own registry is in its account, which the cluster file lacks"
        todo = "add account: there, or --account, or write the whole reference"
        yield config.refuse("image", wrong, todo)
    if not tag and "@" not in image and request.build is None:
        todo = "add the :TAG of a pushed image, or use --image"
        wrong = "no tag, and no build for this repository"
        # A template may leave the tag open.
        yield config.refuse("image", wrong, todo, kind="missing")


@rule
def image_suits_nodes(request: JobRequest, pools: Candidates) -> Mistakes:
    """Yield an image that is built for processors other than the nodes'."""
    build = request.build
    architectures = {spec.architecture for pool in pools for spec in pool.specs}
    if build is not None and architectures - {build.architecture}:
        where = ", ".join(sorted({pool.pool for pool in pools}))
        wrong = (
            f"built for {build.architecture}, and nodes of {where} are {', '.join(architectures)}"
        )
        yield config.refuse("image", wrong, "choose another pool, or an image of your own")


@rule
def graphs_have_a_cache(request: JobRequest) -> Mistakes:
    """Yield a run for the compiler that keeps nothing, and a cache without a place."""
    job = request.job
    if not isinstance(job, config.TrainingJob):
        if request.precompile:
            wrong = "only a training job has graphs to compile"
            yield config.refuse("kind", wrong, "leave out --precompile", got=job.kind_name())
        return
    if request.precompile and job.compile_cache is None:
        todo = "add compile_cache: {model: NAME}"
        yield config.refuse("compile_cache", "missing, so nothing keeps the graphs", todo, got="")
    if job.compile_cache is None:
        return
    folders = [PurePosixPath(mount.mount_path) for mount in request.mounts]
    path = job.compile_cache.path
    if path is None and not folders:
        yield config.refuse("compile_cache", "no volume to keep it on", "add a volume", got="")
    if path is not None and not any(PurePosixPath(path).is_relative_to(at) for at in folders):
        wrong = "on no volume, so it is lost with its pod"
        yield config.refuse("compile_cache.path", wrong, "put it on a volume")


@rule
def nodes_have_memory(job: config.Job, pools: Candidates) -> Mistakes:
    """Yield nodes without room for a pod."""
    share = node_share(job, pools)
    if share.memory_mib <= 0 or share.millicpu <= 0:
        where = ", ".join(sorted({pool.pool for pool in pools}))
        takers, what = ("huge pages", "memory") if share.memory_mib <= 0 else ("the kubelet", "CPU")
        wrong = f"{takers} and add-ons take up the {what} of nodes of {where}"
        yield config.refuse("pool", wrong, "choose larger instance types", got="")


@rule
def nodes_take_its_pods(job: config.Job, share: NodeShare, pools: Nodes) -> Mistakes:
    """Yield pods without accelerators that no API server would take for their nodes."""
    # Nodes with such checks can have no taints: `PlannedPart.isolation` takes their place.
    closed = sorted({pool.pool for pool in pools if pool.deep_health_checks})
    if closed and not share.accelerators:
        key = "neuron" if job.resources.neuron is not None else "gpu"
        where = ", ".join(closed)
        wrong = f"an admission policy keeps pods without accelerators off {where}"
        yield config.refuse(f"resources.{key}", wrong, "ask for 1 or more, or choose other nodes")


@rule
def resources_fit(job: config.Job, share: NodeShare, pools: Nodes) -> Mistakes:
    """Yield resources of a pod that no node of its pools has."""
    said, where = job.resources, ", ".join(sorted({pool.pool for pool in pools}))
    most = {"cpu": f"{share.millicpu}m", "memory": f"{share.memory_mib}Mi"}
    wrong = f"more than a node of {where} has for its pods"
    if share.accelerators and not share.whole:
        wrong = f"more than the share of {share.accelerators} accelerators on a node of {where}"
    if said.cpu is not None and quantities.millicpu(said.cpu) > share.millicpu:
        yield config.refuse("resources.cpu", wrong, f"ask for at most {most['cpu']}")
    if said.memory is not None and quantities.mib(said.memory) > share.memory_mib:
        yield config.refuse("resources.memory", wrong, f"ask for at most {most['memory']}")
    if said.efa is not None and said.efa > share.efa_interfaces:
        wrong = f"more EFA interfaces than such a pod can have on {where}: {share.efa_interfaces}"
        todo = "leave it out" if share.whole else "ask for a whole node, or leave it out"
        yield config.refuse("resources.efa", wrong, todo)
    memory = said.memory or most["memory"]
    if said.shared_memory and quantities.mib(said.shared_memory) >= quantities.mib(memory):
        wrong = f"shared memory is part of the pod's memory, {memory}, and takes all of it"
        yield config.refuse("resources.shared_memory", wrong, "ask for less")
    if not share.accelerators and not isinstance(job, config.TrainingJob):
        for key in ("cpu", "memory"):
            if getattr(said, key) is None:
                wrong = "missing, for a pod that shares its node with others"
                yield _missing(f"resources.{key}", "add it", wrong)


@rule
def pods_start_together(
    request: JobRequest, job: config.TrainingJob, share: NodeShare, pools: Nodes
) -> Mistakes:
    """Yield a job of several nodes that would hold some of them while it waits for others.

    A job that prefers tiers may burst; a note names the cost.
    """
    if job.nodes == 1:
        return
    if not share.whole:
        wrong = "a job on several nodes takes whole nodes, and resources asks for a part"
        yield config.refuse("nodes", wrong, "leave resources out, or use one node")
    if request.engine.queues_jobs or job.prefer:
        return
    always_there = sum(pool.max_nodes if pool.static else pool.min_nodes for pool in pools)
    if any(pool.sized_by in capacity.SIZED_BY_PODS for pool in pools) and always_there < job.nodes:
        wrong = (
            "without a queueing engine, nodes launch one by one: the first are paid for while the "
            "job waits for the rest"
        )
        # Task governance excludes every other engine.
        types = ", ".join(sorted({pool.labels[names.NODE_TYPE_LABEL] for pool in pools}))
        engines = "set scheduling.queueing: kueue, or volcano"
        todo = f"write prefer: [{types}]" if request.teams else engines
        todo += ", use nodes.static, or ask for 1"
        yield config.refuse("nodes", wrong, todo)


@rule
def efa_stays_in_its_pool(
    request: JobRequest, job: config.TrainingJob, share: NodeShare, pools: Nodes
) -> Mistakes:
    """Yield several pools for nodes that talk by EFA: the job would hang at its first exchange.

    A pool's security group lets EFA traffic pass between its own nodes alone, and between zones
    there is none.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html
    """
    if request.cluster_queue is not None:
        return  # Kueue gives each kind of pods nodes of one pool
    fitting = sorted({pool.pool for pool in pools})
    if job.nodes > 1 and len(fitting) > 1 and efa_of(job, share):
        wrong = (
            f"pods may land on several pools, {', '.join(fitting)}, and EFA does not cross pools"
        )
        todo = "name one pool, or write resources: {efa: 0}"
        yield config.refuse("pool", wrong, todo, got="")


@rule
def efa_is_used(job: config.Job, share: NodeShare) -> Mistakes:
    """Yield variables by which pods would use TCP, many times slower, beside their interfaces."""
    for name, value in job.env.items() if efa_of(job, share) else ():
        if name not in job.allow_env and runtime_environment.bypasses_efa(name, value):
            why = runtime_environment.BYPASSED
            todo = f"{why.todo}; where TCP is meant, write resources: {{efa: 0}}"
            yield config.Mistake(("env", name), why.wrong, todo, got=value)


@rule
def devices_suffice_the_processes(job: config.Job, share: NodeShare) -> Mistakes:
    """Yield lists of devices that are shorter than what a pod needs of them.

    A script's last processes fail, and a service pays for GPUs that it does not see. What another
    program does with a part of them is its own affair.
    """
    whom, todo = "that a pod asks for", "ask for fewer in resources"
    asked = share.accelerators if isinstance(job, config.ServiceJob) else 1
    if isinstance(job, config.TrainingJob) and job.script is not None:
        whom, todo = "processes of a pod", "lower processes_per_node"
        asked = job.processes_per_node or share.processes
    for name, value in job.env.items() if share.accelerators else ():
        seen = runtime_environment.visible_devices(name, value)
        if seen is not None and seen < asked:
            wrong = f"{seen} devices for the {asked} {whom}"
            todo = f"leave it out: a container sees what it asks for, or {todo}"
            yield config.Mistake(("env", name), wrong, todo, got=value)


@rule
def nodes_are_there(
    request: JobRequest, share: NodeShare, pools: Nodes, wrong_keys: WrongKeys
) -> Mistakes:
    """Yield more pods than the pools can ever have nodes for: the rest would wait for good."""
    if "nodes" in wrong_keys or request.cluster_queue is not None:
        return
    job = request.job
    where = ", ".join(sorted({pool.pool for pool in pools}))
    if isinstance(job, config.TrainingJob) and share.whole:
        most = sum(pool.max_nodes for pool in pools)
        if job.nodes > most:
            todo = f"ask for at most {most}, or raise nodes in pool {where}"
            wrong = f"more than the {most} nodes of {where}"
            yield config.refuse("nodes", wrong, todo, got=str(job.nodes))
    if isinstance(job, config.ServiceJob) and share.accelerators and job.autoscale is None:
        most = most_pods(pools, share)
        if job.replicas * job.nodes > most:
            wrong = (
                f"more than the {most} pods of {share.accelerators} accelerators that fit {where}"
            )
            fitting = most // job.nodes
            todo = f"ask for at most {fitting}" if fitting else f"write nodes: {most} or less"
            todo += f", or raise nodes in pool {where}"
            yield config.refuse("replicas", wrong, todo, got=str(job.replicas))


@rule
def image_knows_the_rendezvous(request: JobRequest) -> Mistakes:
    """Yield an image of ours without the library that torch's own etcd backends need.

    Source: https://docs.pytorch.org/docs/stable/elastic/rendezvous.html#etcd-rendezvous
    """
    job, build = request.job, request.build
    if not isinstance(job, config.TrainingJob) or job.nodes == 1 or job.script is None:
        return
    if build is None or build.own is not None or build.dockerfile == "neuron":
        return
    if request.backend == "etcd-v2" and not controller_of(request).runs_processes:
        wrong = f"etcd-v2 needs python-etcd, which the image of images/{build.dockerfile} lacks"
        yield config.refuse("rendezvous", wrong, "write rendezvous: etcd, static or c10d", got="")


@rule
def elastic_job_is_one(request: JobRequest, job: config.TrainingJob) -> Mistakes:
    """Yield a smaller number of nodes for a job that is divided into several."""
    most = request.engine.most_pods
    if job.min_nodes is not None and most is not None and job.nodes > most:
        wrong = f"a job of more than {most} nodes is divided and cannot run on fewer"
        yield config.refuse("min_nodes", wrong, "leave it out")


@rule
def stragglers_restart_jobs(request: JobRequest) -> Mistakes:
    """Yield restarts after slow nodes where no controller makes them."""
    job = request.job
    if not isinstance(job, config.TrainingJob) or job.restarts.stragglers == "report":
        return
    key, got = "restarts.stragglers", job.restarts.stragglers
    if not controller_of(request).runs_processes:
        wrong = "a restart that only HyperPod's training operator makes"
        yield config.refuse(key, wrong, "leave it out: slow nodes are named in the log", got=got)
    elif job.script not in PROGRAMS:
        wrong = "only programs of this product print the lines that cause this restart"
        yield config.refuse(key, wrong, "leave it out, or name such a program as script", got=got)


@rule
def fewer_nodes_can_end(
    request: JobRequest, job: config.TrainingJob, controller: JobController
) -> Mistakes:
    """Yield a smaller number of nodes for a Job that waits for every pod.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
    """
    if controller is not INDEXED or job.min_nodes is None or job.nodes == 1:
        return
    if not request.engine.queues_jobs:
        wrong = "without a queueing engine a job ends when all of its pods have ended"
        todo = "leave it out, or set scheduling.queueing: kueue, or volcano"
        yield config.refuse("min_nodes", wrong, todo)


@rule
def nodes_meet(request: JobRequest, job: config.TrainingJob) -> Mistakes:
    """Yield a rendezvous at which the nodes of a job would not meet, or not meet again."""
    if not controller_of(request).runs_processes:
        back = request.pods_come_back
        yield from rendezvous.mistakes_of(job, request.backend, request.engine, pods_come_back=back)


@rule
def queue_holds_the_pods(request: JobRequest, requests: Requests) -> Mistakes:
    """Yield a queue whose quota is smaller than the pods of a job without roles."""
    if request.role is None:
        yield from queue_holds(request, [(requests, least_pods(request.job))])


def queue_holds(request: JobRequest, asked: Sequence[tuple[Mapping[str, str], int]]) -> Mistakes:
    """Yield a queue whose quota is smaller than the job's need at its start.

    Args:
        request: The job.
        asked: Requests of each kind of pod, with the number of pods that must start.
    """
    queues = [queue for queue in request.cluster.scheduling.queues if queue.name == request.queue]
    for queue in queues:
        for resource, most in queue.capability.items():
            size = quantities.SIZES.get(resource, quantities.count)
            kinds = [(requests[resource], pods) for requests, pods in asked if resource in requests]
            if sum(size(quantity) * pods for quantity, pods in kinds) > size(most):
                needed = " and ".join(
                    f"{pods} pod{'s' if pods > 1 else ''} of {quantity}" for quantity, pods in kinds
                )
                wrong = f"a queue of at most {most} {resource}, too little for {needed}"
                todo = "raise its capability, or choose another queue"
                yield config.refuse("queue", wrong, todo, got=queue.name)
