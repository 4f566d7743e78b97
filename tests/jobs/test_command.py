"""The command of a pod: it waits for its peers, forwards signals and keeps its arguments."""

import re
import resource
import signal
import socket
import string
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.config_jobs import LUSTRE
from tests.support.etcd_server import free_ports
from tests.support.job_containers import Image, expanded, moved, run, running
from tests.support.jobs import (
    KUEUE,
    VOLCANO,
    container,
    environment,
    job_cluster,
    large_cluster,
    make_job,
    objects,
    prepared,
)
from ultrascale.jobs import JobManifests
from ultrascale.jobs.logs import read_table
from ultrascale.plan.jobs import command as job_command

WORDS = [
    *("--name=a b", "it's", '"quoted"', "$HOME", "${HOME}", "$(POD_IP)", "$$(POD_IP)", "$(date)"),
    *("$$", "100$", "`date`", "*", "~", "", "two\nlines\n", "back\\slash", "-x", "--"),
    *("a=$1;b=|&", "\u00fc\U0001f600"),
]
_ZERO = dict.fromkeys(("ATTEMPT", "FIRST_INDEX", "VC_TASK_INDEX"), "0")
POD = {"POD_IP": "10.1.2.3", "POD_GROUP": "tune-0b1c", **_ZERO}
ETCD = {"scheduling": VOLCANO | {"rendezvous": {"backend": "etcd", "replicas": 3}}}
C10D = {"scheduling": VOLCANO | {"rendezvous": {"backend": "c10d"}}}


@pytest.fixture
def image(tmp_path: Path) -> Image:
    found = Image(tmp_path)
    found.has("torchrun")
    return found


def command_of(manifests: JobManifests) -> list[str]:
    return container(manifests)["command"]


def pod(index: int, **variables: str) -> dict[str, str]:
    return {**POD, "VC_TASK_INDEX": str(index), **variables}


@contextmanager
def deaf_port() -> Generator[int]:
    """A port at which connections neither open nor fail, as behind a firewall."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield server.getsockname()[1]


def options(argv: Sequence[str]) -> dict[str, str]:
    """Return the options of torchrun that stand before its script."""
    pairs = [word.partition("=") for word in argv[1:] if word.startswith("--")]
    return {name: value for name, _, value in pairs}


def started_with(command: Sequence[str], image: Image, variables: Mapping[str, str]) -> Any:
    status, output = run(command, image, variables)
    assert (status, output) == (0, "")
    return image.told()


# --- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [1, 2])
def test_arguments_of_a_script_or_command_arrive_byte_for_byte(image: Image, nodes: int) -> None:
    job = prepared(job=make_job(nodes=nodes, args=WORDS))
    told = started_with(command_of(job), image, pod(0))
    # torchrun reads macros in them.
    read = [string.Template(word).safe_substitute(local_rank="0") for word in told["argv"]]
    assert read[-len(WORDS) - 1 :] == ["train.py", *WORDS]
    image.has("train")
    job = prepared(job=make_job(script=None, nodes=1, command=["train"], args=WORDS))
    assert started_with(command_of(job), image, pod(0))["argv"] == ["train", *WORDS]


def test_a_variable_arrives_byte_for_byte() -> None:
    values = {f"WORD_{number}": word for number, word in enumerate(WORDS)}
    # A program would not get what its author may have meant.
    expandable = [name for name, word in values.items() if re.search(r"\$[({]?[A-Z]", word)]
    told = environment(prepared(env=values, allow_env=expandable))

    assert {name: expanded(told[name], POD) for name in values} == values


@given(word=st.text())
def test_no_word_is_read_by_kubernetes(word: str) -> None:
    assert expanded(job_command.literal(word), {"A": "x", "": "y"}) == word


@pytest.mark.parametrize(
    "script",
    [
        *("train.py", "/opt/train", "-m package.train"),
        # A script of any name is found.
        *("it's $(POD_IP)/$$ train.py", "a;b/train.py", "$HOME/train.py"),
    ],
)
def test_a_module_is_told_from_a_file(image: Image, script: str) -> None:
    words = script.split() if script.startswith("-m") else [script]
    told = started_with(command_of(prepared(nodes=1, script=words[-1])), image, pod(0))
    assert told["argv"][-len(words) :] == words
    assert ("-m" in told["argv"]) == ("-m" in words)


# --- what torchrun is told ----------------------------------------------------------------------


def test_torchrun_may_hold_a_connection_to_each_process_of_a_large_job(
    image: Image, tmp_path: Path
) -> None:
    # containerd 2 gives a container 1,024 open files, and may be asked for more.
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    torchrun = tmp_path / "torchrun"
    torchrun.write_text('#!/bin/bash\nulimit -S -n > "${0%/*}/open"\n')
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, most), most))
    try:
        run(command_of(prepared(job=make_job(nodes=1))), image, pod(0))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))

    assert (tmp_path / "open").read_text().strip() in (str(most), "unlimited")


def test_a_single_node_meets_nobody(image: Image) -> None:
    told = started_with(command_of(prepared(nodes=1)), image, pod(0))

    assert told["argv"] == [
        *("torchrun", "--standalone", "--nproc-per-node=32", "--max-restarts=3", "train.py")
    ]


BY_C10D = {
    "--rdzv-backend": "c10d",
    "--rdzv-endpoint": "tune-worker-0.tune:29500",
    "--rdzv-conf": "join_timeout=1800,is_host=true",
    "--max-restarts": "3",
}
STATICALLY = {
    "--rdzv-backend": "static",
    "--node-rank": "0",
    "--master-addr": "10.1.2.3",
    "--master-port": "29500",
    "--rdzv-conf": "timeout=1800",
    "--max-restarts": "0",
}


# Small jobs may vote on who takes part.
@pytest.mark.parametrize(("changes", "met"), [({}, STATICALLY), (C10D, BY_C10D)])
def test_several_nodes_meet_at_the_first_by_its_name_in_the_jobs_service(
    image: Image, changes: dict[str, Any], met: dict[str, str]
) -> None:
    command = command_of(prepared(job_cluster(**changes)))
    size = {"--nnodes": "2", "--nproc-per-node": "32", "--local-addr": "10.1.2.3"}
    told = options(started_with(command, image, pod(0))["argv"])
    assert told == size | met | {"--rdzv-id": "tune-0b1c-0"}
    # A pod without Volcano's annotations still starts.
    plain = options(started_with(command, image, pod(0, POD_GROUP="", ATTEMPT=""))["argv"])
    assert plain["--rdzv-id"] == "tune-0"


@pytest.mark.parametrize(
    ("cluster", "job", "backend"),
    [
        (VOLCANO, {}, "static"),
        (VOLCANO, {"nodes": 200}, "static"),
        (VOLCANO, {"min_nodes": 1}, "c10d"),
        (VOLCANO, {"restarts": {"workers": 3}}, "c10d"),
        (C10D["scheduling"], {"nodes": 64}, "c10d"),
        (C10D["scheduling"], {"nodes": 65}, "static"),
        (ETCD["scheduling"], {}, "static"),
        (ETCD["scheduling"], {"min_nodes": 1}, "etcd-v3"),
        (ETCD["scheduling"], {"nodes": 200, "min_nodes": 100}, "etcd-v3"),
        (ETCD["scheduling"], {"rendezvous": "etcd"}, "etcd-v3"),
        (KUEUE, {"queue": "research"}, "static"),
        # Kubernetes replaces the pods of its own Job one by one.
        (None, {"nodes": 64}, "c10d"),
        (None, {"nodes": 65}, "static"),
    ],
)
def test_a_job_meets_as_it_restarts(
    cluster: dict[str, Any] | None, job: dict[str, Any], backend: str
) -> None:
    many = {**job_cluster()["pools"][1], "nodes": {"static": 200}}
    found = job_cluster(pools=[job_cluster()["pools"][0], many], scheduling=cluster)
    _, _, script, *_ = command_of(prepared(found, make_job(**job)))

    assert f"--rdzv-backend={backend} " in script


def test_every_restart_meets_under_a_name_of_its_own(image: Image) -> None:
    """A rendezvous that is over stays closed: whoever comes to it again dies at once."""
    command = command_of(prepared())

    names = {
        options(started_with(command, image, pod(0, ATTEMPT=str(number)))["argv"])["--rdzv-id"]
        for number in range(3)
    }

    assert names == {"tune-0b1c-0", "tune-0b1c-1", "tune-0b1c-2"}


@pytest.mark.parametrize("backend", ["etcd", "etcd-v2"])
def test_a_job_that_is_sent_again_under_its_name_meets_anew(image: Image, backend: str) -> None:
    """Etcd keeps the rendezvous of the first one for two hours."""
    cluster = job_cluster(scheduling=VOLCANO | {"rendezvous": {"backend": backend, "replicas": 1}})
    (port,) = free_ports(1)
    command = moved(command_of(prepared(cluster, rendezvous=backend)), "etcd-client", 2379, port)
    with socket.create_server(("127.0.0.1", port)):
        for group in ("tune-uid1", "tune-uid2"):
            told = options(started_with(command, image, pod(0, POD_GROUP=group))["argv"])
            assert told["--rdzv-id"] == f"{group}-0"


def test_all_volcano_jobs_of_a_divided_one_meet_under_one_name(image: Image) -> None:
    by_index = VOLCANO | {"rendezvous": {"ranks": "index"}}
    job = prepared(large_cluster(scheduling=by_index), nodes=20_000)
    first, second = (
        each["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"]
        for each in objects(job, "Job")
    )
    told = options(started_with(first, image, pod(0, POD_GROUP="tune-1-uid"))["argv"])
    assert second == first
    assert (told["--rdzv-id"], told["--rdzv-backend"]) == ("tune", "static")
    assert "/dev/tcp/tune/29500" in first[2]


def test_a_pod_that_comes_back_alone_meets_those_that_stayed(image: Image) -> None:
    command = command_of(prepared(nodes=4, min_nodes=2))
    told = [
        options(started_with(command, image, pod(0, ATTEMPT=str(number)))["argv"])
        for number in range(2)
    ]

    assert {each["--rdzv-id"] for each in told} == {"tune-0b1c"}
    assert told[0]["--nnodes"] == "2:4"
    assert "last_call_timeout=30" in told[0]["--rdzv-conf"]


def test_variables_that_the_command_reads_are_those_that_the_pod_has() -> None:
    told, longer = (environment(prepared(grace_period_seconds=n)) for n in (110, 600))
    assert told["POD_IP"] == "status.podIP"
    assert told["ATTEMPT"] == "metadata.annotations['volcano.sh/job-retry-count']"
    assert told["POD_GROUP"] == "metadata.annotations['scheduling.k8s.io/group-name']"
    assert (told["FIRST_INDEX"], told["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"]) == ("0", "1")
    # Workers save before their pod is killed: torchrun ends them after 30 seconds by default.
    timeout = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
    assert (told[timeout], longer[timeout]) == ("88", "480")


# --- waiting ------------------------------------------------------------------------------------


def waiting(job: JobManifests | None, port: int) -> list[str]:
    job = job or prepared(job_cluster(**C10D))
    return moved(command_of(job), "tune-worker-0.tune", 29500, port)


def test_the_others_learn_the_address_of_the_first_and_have_their_index_for_a_rank(
    image: Image,
) -> None:
    variables = {**POD, "FIRST_INDEX": "2500", "VC_TASK_INDEX": "7"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told = options(started_with(waiting(prepared(nodes=2), port), image, variables)["argv"])

    # Neuron's runtime takes no long name, and DNS would be asked for it by every process.
    assert (told["--master-addr"], told["--master-port"]) == ("127.0.0.1", str(port))
    assert told["--node-rank"] == "2507"


def test_a_first_pod_whose_address_no_tool_tells_is_called_by_its_name(image: Image) -> None:
    (image.folder / "getent").write_text("#!/bin/sh\nexit 2\n")
    (image.folder / "getent").chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = waiting(prepared(), server.getsockname()[1])
        command = [word.replace("main=127.0.0.1", "main=tune-worker-0.tune") for word in command]
        told = options(started_with(command, image, pod(1))["argv"])

    assert told["--master-addr"] == "tune-worker-0.tune"


def ordered(port: int) -> list[str]:
    """Return the command of a job whose pods know the network, with its own programs here."""
    train = {**job_cluster()["pools"][1], "nodes": {"static": 4}}
    return waiting(prepared(job_cluster(train), nodes=4), port)


def test_ranks_follow_the_network_where_the_image_has_the_program(image: Image) -> None:
    (image.folder / "python3").write_text(
        f'#!/bin/sh\n[ "$1" = -m ] || exit 0\necho "$@" > {image.folder}/asked\necho 3\n'
    )
    (image.folder / "python3").chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = ordered(server.getsockname()[1])
        told = options(started_with(command, image, pod(1))["argv"])

    assert told["--node-rank"] == "3"
    asked = (image.folder / "asked").read_text()
    assert asked.startswith("-m ultrascale_training.ranks --index=1 --nodes=4 --host=127.0.0.1 ")
    # Pods of another try have another name.
    assert asked.endswith(" --run=tune-0b1c-0\n")


def test_ranks_are_indexes_in_an_image_without_the_program(image: Image) -> None:
    (image.folder / "python3").write_text("#!/bin/sh\nexit 1\n")
    (image.folder / "python3").chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        told = options(started_with(ordered(server.getsockname()[1]), image, pod(2))["argv"])
    assert told["--node-rank"] == "2"
    # The log of the first pod tells it.
    status, output = run(ordered(*free_ports(1)), image, pod(0))
    assert (status, output) == (0, "ultrascale: 4 pods by node rank: 0-3\n")
    assert read_table(output.rstrip()) == (0, 1, 2, 3)


def test_a_pod_that_waits_for_its_rank_stops_when_it_is_told_to(image: Image) -> None:
    (image.folder / "python3").write_text('#!/bin/sh\n[ "$1" = -m ] || exit 0\nexec tail -f\n')
    (image.folder / "python3").chmod(0o755)

    status, seconds = seconds_to_stop(ordered(*free_ports(1)), image)

    assert (status, seconds < 10) == (143, True)


@pytest.mark.parametrize(
    ("cluster", "nodes", "reads"),
    [
        (VOLCANO, 3, True),
        # Two have one order: the first pod keeps the store.
        (VOLCANO, 2, False),
        (VOLCANO | {"rendezvous": {"ranks": "index"}}, 3, False),
        (C10D["scheduling"], 3, False),
        (KUEUE, 3, True),
        # Kueue places by topology in the order of the indexes.
        (KUEUE | {"queues": [{"name": "research", "topology": True}]}, 3, False),
        (None, 3, False),
    ],
)
def test_pods_read_their_node_where_nothing_else_orders_them(
    cluster: dict[str, Any] | None, nodes: int, reads: bool
) -> None:
    train = {**job_cluster()["pools"][1], "nodes": {"static": 8}}
    found = job_cluster(train, scheduling=cluster)
    queue = "research" if cluster and "queues" in cluster else None
    spec = container(prepared(found, make_job(nodes=nodes, queue=queue)))

    assert ("ultrascale_training.ranks" in spec["command"][2]) == reads
    mounted = [each["mountPath"] for each in spec["volumeMounts"]]
    assert ("/var/run/ultrascale/node-reader" in mounted) == reads


@pytest.mark.parametrize(("first", "index"), [("0", "1"), ("2500", "0"), ("1", "9")])
def test_the_others_wait_until_the_first_listens(image: Image, first: str, index: str) -> None:
    (port,) = free_ports(1)
    variables = {**POD, "FIRST_INDEX": first, "VC_TASK_INDEX": index}
    with running(waiting(None, port), image, variables) as process:
        time.sleep(0.4)
        assert not image.started()
        with socket.create_server(("127.0.0.1", port)):
            told = image.told()
        assert process.wait(timeout=5) == 0

    assert "is_host=false" in options(told["argv"])["--rdzv-conf"]


def test_pods_without_volcano_are_told_apart_by_their_completion_index(image: Image) -> None:
    cluster = job_cluster(scheduling=None, pools=STATIC["pools"])
    command = moved(command_of(prepared(cluster)), "tune-0.tune", 29500, *free_ports(1))

    told = started_with(command, image, {"POD_IP": "10.0.0.1", "JOB_COMPLETION_INDEX": "0"})
    assert options(told["argv"])["--rdzv-id"] == "tune"
    with running(command, image, {"POD_IP": "10.0.0.1", "JOB_COMPLETION_INDEX": "1"}) as process:
        time.sleep(0.3)
        assert process.poll() is None


def test_every_pod_waits_for_etcd(image: Image) -> None:
    (port,) = free_ports(1)
    job = prepared(job_cluster(**ETCD), rendezvous="etcd")
    command = moved(command_of(job), "etcd-client", 2379, port)
    with running(command, image, pod(0)) as process:
        time.sleep(0.4)
        assert not image.started()
        with socket.create_server(("127.0.0.1", port)):
            told = options(image.told()["argv"])
        assert process.wait(timeout=5) == 0

    assert told["--rdzv-backend"] == "etcd-v3"
    assert "is_host" not in told["--rdzv-conf"]


def test_etcd_is_found_from_another_namespace(image: Image) -> None:
    claim = {"namespace": "ml", "name": "data", "mount_path": "/data"}
    cluster = job_cluster(**ETCD, storage={"lustre": [LUSTRE["lustre"][0] | {"claim": claim}]})
    (port,) = free_ports(1)
    command = command_of(prepared(cluster, namespace="ml", rendezvous="etcd"))
    with socket.create_server(("127.0.0.1", port)):
        started_with(moved(command, "etcd-client.training", 2379, port), image, pod(0))


def test_who_waits_in_vain_ends_and_says_for_whom(image: Image) -> None:
    status, output = run(waiting(prepared(), *free_ports(1)), image, pod(1, SECONDS="1801"))

    assert status == 1
    assert output == "nobody answered at tune-worker-0.tune:29500 within 1800 seconds\n"


# --- signals ------------------------------------------------------------------------------------


def seconds_to_stop(command: Sequence[str], image: Image) -> tuple[int, float]:
    with running(command, image, pod(1)) as process:
        time.sleep(1)
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=20)
        return status, time.monotonic() - asked


def test_a_pod_that_waits_stops_when_it_is_told_to(image: Image) -> None:
    status, seconds = seconds_to_stop(waiting(prepared(), *free_ports(1)), image)
    assert (status, seconds < 1) == (143, True)
    # So does one whose packets are dropped.
    with deaf_port() as port:
        status, seconds = seconds_to_stop(waiting(prepared(), port), image)
    assert (status, seconds < 5) == (143, True)


@pytest.mark.parametrize("nodes", [1, 2])
def test_sigterm_reaches_torchrun_itself(image: Image, nodes: int) -> None:
    image.has("torchrun", stays=True)
    with running(command_of(prepared(nodes=nodes)), image, pod(0)) as process:
        assert image.told()["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=5)

    assert image.stopped() == process.pid


# --- compiled graphs ----------------------------------------------------------------------------

CACHE = {
    "volumes": [{"claim": "data", "mount_path": "/data", "existing": True}],
    "compile_cache": {"model": "bert", "precompile_args": ["--steps-this-run=10"]},
}


@pytest.mark.parametrize(
    ("precompile", "changes", "words"),
    [
        (False, {}, ["run", "--root=/data/neuron-cache", "--model=bert", "--cores=64", "--"]),
        (True, {}, ["compile", "--root=/data/neuron-cache", "--model=bert", "--cores=64", "--"]),
        (
            False,
            {"compile_cache": {"model": "b", "allow_cold": True, "path": "/data/c"}},
            ["run", "--root=/data/c", "--model=b", "--cores=64", "--allow-cold", "--"],
        ),
    ],
)
def test_graphs_are_looked_up_around_torchrun(
    image: Image, precompile: bool, changes: dict[str, Any], words: list[str]
) -> None:
    image.has("python3")
    job = prepared(job=make_job(**{**CACHE, **changes}, args=["--lr=1"]), precompile=precompile)

    argv = started_with(command_of(job), image, pod(0))["argv"]

    assert argv[:3] == ["python3", "-m", "ultrascale_training.neuron_cache"]
    assert argv[3 : 3 + len(words)] == words
    assert argv[3 + len(words)] == "torchrun"
    assert argv[argv.index("train.py") :] == [
        *("train.py", "--lr=1"),
        *(["--steps-this-run=10"] if precompile else []),
    ]


STATIC: dict[str, Any] = {
    "pools": [job_cluster()["pools"][0], {**job_cluster()["pools"][1], "nodes": {"static": 4}}]
}
