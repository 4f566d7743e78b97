"""The command of a job's pods: torchrun, and the wait before it.

Sources:
    https://docs.pytorch.org/docs/stable/elastic/run.html
    https://docs.pytorch.org/docs/stable/elastic/rendezvous.html
"""

import shlex
from collections.abc import Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.config.scheduling import RendezvousBackend
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.jobs.programs import program
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PodPlan

RENDEZVOUS_PORT = 29500
RANKS_PORT = RENDEZVOUS_PORT + 1
FIRST_INDEX = "FIRST_INDEX"
RANK_ZERO_HOST = "RANK_ZERO_HOST"
"""Variable of pods on several nodes without torchrun: host of the first pod."""
MISTAKE_EXIT_CODE = 2
"""Exit code of a pod for a fault that no restart cures, such as a cold cache of graphs.

torchrun itself ends with it where its options are wrong, and with 1 however its workers fail. Our
programs' launcher ends with it for a mistake that a program has found.
"""
DEADLINE_EXIT_CODE = 124
"""Exit code of `timeout` after it ended the program.

Source: https://www.gnu.org/software/coreutils/manual/html_node/timeout-invocation.html
"""
NO_PLUGIN_EXIT_CODE = 78
"""Exit code of a pod whose own command would leave EFA idle; a program's own 2 may be anything."""
POD_IP = "POD_IP"
ATTEMPT = "ATTEMPT"

# A node may still be pulling an image of tens of gigabytes when its peers are ready.
_PATIENCE_SECONDS = 1800
# Connections that a pod which waits for all others takes without trouble [inferred].
_ATTEMPTS_PER_SECOND = 1_000
# Time for which an elastic job waits for more nodes, once it has enough.
_LAST_CALL_SECONDS = 30
_BACKENDS: dict[RendezvousBackend, str] = {
    "static": "static",
    "c10d": "c10d",
    "etcd": "etcd-v3",
    "etcd-v2": "etcd-v2",
}
"""torchrun's names of the file's rendezvous backends. Its own `etcd` speaks the v2 API."""

# A program that fails again and again holds its nodes through all restarts, for each restart of the
# job; where nodes come and go, each lost node costs the remaining ones a restart.
_WORKER_RESTARTS, _WORKER_RESTARTS_WITHOUT_NODES = 3, 100
# The reader of our own programs' arguments, which needs no torch.
_PARSERS = {
    "ultrascale_bert.pretrain": "ultrascale_bert.arguments",
    # Its former name, which images have as well.
    "ultrascale_training.pretrain": "ultrascale_training.arguments",
    "ultrascale_training.titan": "ultrascale_training.titan.arguments",
}

# The first pod keeps torch's store, with a connection to each process of the job. Since version 2
# containerd gives a container 1,024 open files unless it asks for more.
# Source: https://github.com/containerd/containerd/pull/8924
_OPEN_FILES = 'ulimit -S -n "$(ulimit -H -n)"'

_RANKS_MODULE = "ultrascale_training.ranks"
_CACHE_MODULE = "ultrascale_training.neuron_cache"
_LAUNCH_MODULE = "ultrascale_training.launch"
# It reports mistakes in its arguments itself: the import of TRL takes as long as a start.
_POSTTRAIN = "ultrascale_training.posttrain"
NEURON_SFT = "ultrascale.plan.jobs.neuron_sft"  # Sent as text: its image is none of ours
CACHE_FOLDER = "neuron-cache"


class Meeting(Frozen):
    """Meeting place of a job's nodes."""

    backend: RendezvousBackend  # Its backend in the cluster file
    host: str  # Host of the store, as the job's pods resolve it
    port: int  # TCP port
    # Variables of the shell, joined by ``+``, whose sum is the index of a pod; the pod of index 0
    # is the host. None where the host is no pod of the job. With `static` it is the rank.
    index: str | None
    run: str  # Name of the meeting, unlike any later one, as bash reads it in quotes
    # Whether ranks follow the network, where the image has the program for it.
    ordered: bool = False


class CachePlan(Frozen):
    """Cache of compiled graphs, and the job's way to fill it."""

    path: str  # Folder of all caches
    model: str  # Key of the graphs
    cores: int  # NeuronCores of the whole job
    allow_cold: bool  # Whether the job starts without its graphs
    compiles: bool  # Whether it runs to compile them


def torchrun(
    job: config.TrainingJob,
    *,
    name: str,
    processes: int,
    meeting: Meeting | None,
    cache: CachePlan | None,
    args: Sequence[str],
    pods_come_back: bool = False,
    traces: str | None = None,
    over_efa: bool = False,
) -> tuple[str, ...]:
    """Return the command that runs the script of ``job`` in each process of a node.

    Bash waits for the store and then becomes torchrun, so that the SIGTERM of Kubernetes reaches
    it. As the first process of a container bash would ignore that signal without its trap.

    Args:
        job: The job; it has a script.
        name: Its name.
        processes: Processes on a node.
        meeting: Meeting place of its nodes; None for a single node.
        cache: Its compiled graphs; None where it keeps none.
        args: Arguments of the script.
        pods_come_back: Whether a lost pod is replaced while the others stay.
        traces: Folder of flight-recorder dumps; None where there is none.
        over_efa: Whether NCCL has to find a plugin for EFA.
    """
    waiting: list[str] = []
    if meeting is None:
        options = ["--standalone", f"--nproc-per-node={processes}"]
    else:
        waiting = _waiting(job, meeting)
        options = _options(job, processes=processes, meeting=meeting)
    restarts = worker_restarts(job, meeting, pods_come_back=pods_come_back)
    options.append(f"--max-restarts={restarts}")
    before = [*folders(traces), *plugin(over_efa=over_efa), *waiting]
    launcher = ["torchrun", *options]
    return launched(job, name, before, launcher, around=_around(job.script), cache=cache, args=args)


def folders(traces: str | None) -> list[str]:
    """Return the command that makes the folder of dumps. A full file system stops no training."""
    return [f"mkdir -p {shlex.quote(traces)} || true"] if traces is not None else []


def plugin(*, over_efa: bool, exit_code: int = MISTAKE_EXIT_CODE) -> list[str]:
    """Return the command that ends a pod at once whose image would leave its EFA interfaces idle.

    A fault of the look itself, such as an image without Python, stops no job.
    """
    if not over_efa:
        return []
    look = f"python3 -c {literal(shlex.quote(program('efa_plugin')))}"
    return [f"{look} || [ $? != {MISTAKE_EXIT_CODE} ] || exit {exit_code}"]


def with_look(pod: PodPlan) -> PodPlan:
    """Return pods that look for the plugin of EFA before they become their own command."""
    lines = ["trap 'exit 143' TERM", *plugin(over_efa=True, exit_code=NO_PLUGIN_EXIT_CODE)]
    script = "\n".join([*lines, 'exec "$@"'])
    return replace(pod, command=("sh", "-c", script, "start", *pod.command))


def launched(
    job: config.TrainingJob,
    name: str,
    before: Sequence[str],
    launcher: Sequence[str],
    *,
    around: Sequence[str] = (),
    cache: CachePlan | None,
    args: Sequence[str],
) -> tuple[str, ...]:
    """Return the command of bash that runs the script of a job by a launcher.

    Args:
        job: The job.
        name: Its name.
        before: Lines of bash that go before.
        launcher: The launcher and its options.
        around: What launches the launcher.
        cache: Its compiled graphs; None where it keeps none.
        args: Arguments of the script.
    """
    lines = ["set -eu", "trap 'exit 143' TERM", _OPEN_FILES]
    lines += [*_checking(job.script or ""), *before]
    script = [literal(shlex.quote(word)) for word in script_words(job.script or "")]
    words = [*around, *_cache_words(cache), *launcher, *script, '"$@"']
    lines.append("exec " + " \\\n  ".join(words))
    # torchrun reads `$$` as `$`, beside `${local_rank}`.
    # Source: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/elastic/utils/api.py
    passed = (literal(arg.replace("$$", "$$$$")) for arg in args)
    return ("bash", "-c", "\n".join(lines), name, *passed)


def plain(job: config.Job) -> tuple[str, ...]:
    """Return the command of ``job`` as it says it."""
    return tuple(literal(word) for word in (*job.command, *job.args))


def timed(words: Sequence[str], seconds: int, *, grace_seconds: int) -> tuple[str, ...]:
    """Return the command that ends ``words`` after ``seconds`` by SIGTERM, then by SIGKILL.

    Signals of the kubelet reach the program once: without ``--foreground`` its process group would
    get each a second time, which cuts the last checkpoint of torchrun's workers short.

    A `timeout` that had to send SIGKILL ends with 137, as any program that lacks memory. The outer
    one never sends it, and ends with `DEADLINE_EXIT_CODE` however the inner one ended.

    Args:
        words: Program and its arguments.
        seconds: Time until SIGTERM.
        grace_seconds: Time from there to SIGKILL.
    """
    killing = ("timeout", "--foreground", f"--kill-after={grace_seconds}s", "0")
    return ("timeout", "--foreground", f"{seconds}s", *killing, *words)


def etcd_meeting(namespace: str, *, run: str, backend: RendezvousBackend) -> Meeting:
    """Return the cluster's rendezvous server, under a name that resolves in ``namespace``."""
    host = names.ETCD_CLIENT_SERVICE
    if namespace != names.TRAINING_NAMESPACE:
        host = f"{host}.{names.TRAINING_NAMESPACE}"
    port = names.ETCD_CLIENT_PORT
    return Meeting(backend=backend, host=host, port=port, index=None, run=run)


def literal(word: str) -> str:
    """Return ``word`` escaped for Kubernetes, which would expand its `$(NAME)` and `$$`.

    Source:
    https://github.com/kubernetes/kubernetes/blob/v1.35.0/third_party/forked/golang/expansion/expand.go
    """
    return word.replace("$", "$$")


def _checking(script: str) -> list[str]:
    """Return the command that ends a job at once whose program would refuse its arguments.

    torchrun would start the program anew for each of its restarts, and for those of the job.
    """
    parser = _PARSERS.get(script)
    return [f'python3 -m {parser} "$@" || exit {MISTAKE_EXIT_CODE}'] if parser else []


def _around(script: str | None) -> list[str]:
    """Return the launcher of torchrun for a program that reports mistakes to it."""
    return ["python3", "-m", _LAUNCH_MODULE] if script in (*_PARSERS, _POSTTRAIN) else []


def worker_restarts(
    job: config.TrainingJob, meeting: Meeting | None = None, *, pods_come_back: bool = False
) -> int:
    """Return the restarts of a pod's processes before the pod has failed.

    Args:
        job: The job.
        meeting: Meeting place of its nodes; None where torchrun's agents do not meet by themselves.
        pods_come_back: Whether a lost pod is replaced while the others stay.
    """
    if job.restarts.workers is not None:
        return job.restarts.workers
    if meeting is not None and meeting.backend == "static":
        # The other agents do not learn of it, and their processes would wait for the time-out of a
        # collective: ten minutes with NCCL.
        return 0
    stays = job.min_nodes is None and not pods_come_back
    return _WORKER_RESTARTS if stays else _WORKER_RESTARTS_WITHOUT_NODES


def _waiting(job: config.TrainingJob, meeting: Meeting) -> list[str]:
    """Return a node's wait before its agent starts: agents give up on a store in seconds."""
    late = f"nobody answered at {meeting.host}:{meeting.port} within {_PATIENCE_SECONDS} seconds"
    # A command in bash's foreground keeps SIGTERM waiting: for minutes, where a firewall drops
    # packets.
    wait = (
        f'until (: < "/dev/tcp/{meeting.host}/{meeting.port}") 2> /dev/null & wait $!; do\n'
        f'  [ "$SECONDS" -lt {_PATIENCE_SECONDS} ] || {{ echo "{late}" >&2; exit 1; }}\n'
        f"  sleep {_pause(job.nodes)} & wait $!\n"
        "done"
    )
    if meeting.index is None:
        return [wait]
    index = f"declare -i index={meeting.index}"
    if meeting.backend == "static":
        # Processes get this address. Neuron's runtime takes no name of more than 63 characters, and
        # each process would ask DNS for a name.
        address = f"main=$(getent ahosts {meeting.host}) || main={meeting.host}"
        address_and_main = f'{wait}\n{address}\nmain="${{main%%[[:space:]]*}}"'
        lines = [index, *_ranks(job, meeting)]
        return [
            *lines,
            f'if [ "$index" = 0 ]; then\nmain="${POD_IP}"\nelse\n{address_and_main}\nfi',
        ]
    # The agent would recognize itself by its addresses, which DNS may not know yet when it asks.
    return [
        index,
        f'if [ "$index" = 0 ]; then\nis_host=true\nelse\nis_host=false\n{wait}\nfi',
    ]


def _pause(nodes: int) -> str:
    """Return the seconds between two attempts of a node, for bash: one host hears from all."""
    if nodes <= 2 * _ATTEMPTS_PER_SECOND:
        return "2"
    return f"$((1 + RANDOM % {2 * nodes // _ATTEMPTS_PER_SECOND}))"


def _ranks(job: config.TrainingJob, meeting: Meeting) -> list[str]:
    """Return the command that computes a node's rank; every pod of a job has the same image."""
    if not meeting.ordered:
        return []
    words = [
        f"python3 -m {_RANKS_MODULE}",
        '--index="$index"',
        f"--nodes={job.nodes}",
        f"--host={meeting.host}",
        f"--port={RANKS_PORT}",
        f'--run="{meeting.run}"',
    ]
    by_index = f"{names.RANKS_TABLE.format(job.nodes)}0-{job.nodes - 1}"
    return [
        "declare -i rank=index",
        f"if python3 -c 'import {_RANKS_MODULE}' 2> /dev/null; then",
        "ranks=$(mktemp)",
        # In the background, so that SIGTERM does not wait for it.
        f'{" ".join(words)} > "$ranks" & wait $!',
        'read -r rank < "$ranks"',
        "SECONDS=0",
        'elif [ "$index" = 0 ]; then',
        # The log tells a reader that there is no other order.
        f"echo '{by_index}' >&2",
        "fi",
    ]


def _options(job: config.TrainingJob, *, processes: int, meeting: Meeting) -> list[str]:
    if meeting.backend == "static":
        return [
            f"--nnodes={job.nodes}",
            f"--nproc-per-node={processes}",
            "--rdzv-backend=static",
            f'--node-rank="${"rank" if meeting.ordered else "index"}"',
            '--master-addr="$main"',
            f"--master-port={meeting.port}",
            f'--rdzv-id="{meeting.run}"',
            f"--rdzv-conf=timeout={_PATIENCE_SECONDS}",
            f'--local-addr="${POD_IP}"',
        ]
    nodes = str(job.nodes) if job.min_nodes is None else f"{job.min_nodes}:{job.nodes}"
    conf = [f"join_timeout={_PATIENCE_SECONDS}"]
    if job.min_nodes is not None:
        conf.append(f"last_call_timeout={_LAST_CALL_SECONDS}")
    if meeting.index is not None:
        conf.append("is_host=$is_host")
    return [
        f"--nnodes={nodes}",
        f"--nproc-per-node={processes}",
        f"--rdzv-backend={_BACKENDS[meeting.backend]}",
        f"--rdzv-endpoint={meeting.host}:{meeting.port}",
        f'--rdzv-id="{meeting.run}"',
        f'--rdzv-conf="{",".join(conf)}"',
        # Names of pods are longer than Neuron's runtime allows.
        f'--local-addr="${POD_IP}"',
    ]


def script_words(script: str) -> list[str]:
    """Return torchrun's words for a file, or for a module."""
    if script == NEURON_SFT:
        return ["--no-python", "python3", "-c", program("neuron_sft")]
    return [script] if script.endswith(".py") or "/" in script else ["-m", script]


def _cache_words(cache: CachePlan | None) -> list[str]:
    if cache is None:
        return []
    words = ["python3", "-m", _CACHE_MODULE, "compile" if cache.compiles else "run"]
    words += [f"--root={cache.path}", f"--model={cache.model}", f"--cores={cache.cores}"]
    if cache.allow_cold and not cache.compiles:
        words.append("--allow-cold")
    return [*words, "--"]


def cache_of(
    request: JobRequest, job: config.TrainingJob, processes: int
) -> tuple[CachePlan | None, tuple[str, ...]]:
    """Return the compiled graphs of a job, and the arguments with which they are made."""
    cache: CachePlan | None = None
    extra: tuple[str, ...] = ()
    if (said := job.compile_cache) is not None:
        cache = CachePlan(
            path=said.path or f"{request.mounts[0].mount_path}/{CACHE_FOLDER}",
            model=said.model,
            cores=job.nodes * processes,
            allow_cold=said.allow_cold,
            compiles=request.precompile,
        )
        extra = said.precompile_args if request.precompile else ()
    return cache, extra
