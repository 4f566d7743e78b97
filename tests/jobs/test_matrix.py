"""`submit --matrix`: a job for each row of a table of parameters, sent once."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.command_line import Ultrascale
from tests.support.command_line import run as run_command
from tests.support.folders import ROOT
from tests.support.jobs import BATCH, KUEUE, SERVICE, job_cluster, make_job
from tests.support.pools import NEURON_POOL, as_text, pool_document
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cluster_api import retries
from ultrascale.errors import ClusterError, ConfigError
from ultrascale.jobs.matrix import Matrix, submit_matrix
from ultrascale.jobs.matrix_table import read_table

CLUSTER = ROOT / "clusters" / "trainium-bert.yaml"
JOB: dict[str, Any] = {
    "name": "sweep",
    "pool": "trn1",
    "nodes": 2,
    "image": "bert-pretrain:v1",
    "script": "train.py",
    "args": ["--steps=100"],
    "env": {"A": "1"},
}
ROWS = "--lr,SEED\n0.1,1\n0.1,2\n0.01,1\n"
ACCOUNT = "111122223333"


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        file = tmp_path / "params.csv"
        file.write_text(text)
        return file

    return write


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubApiServer]:
    monkeypatch.setattr(retries, "_BACKOFF", 0.05)
    server = StubApiServer()
    given.furnish(server)
    server.put(f"{given.QUEUES}/test", {"kind": "Queue", "status": {"state": "Open"}})
    with serve(server):
        yield server


@pytest.fixture
def send(
    stub: StubApiServer, tmp_path: Path, table: Callable[[str], Path]
) -> Callable[..., Matrix]:
    config = kubeconfig(tmp_path, stub.url)

    def submit(text: str = ROWS, **options: Any) -> Matrix:
        return submit_matrix(CLUSTER, JOB, table(text), kubeconfig=config, **options)

    return submit


def dry(file: Path, cluster: Mapping[str, Any] | None, job: Any) -> Matrix:
    where = CLUSTER
    if cluster is not None:
        where = file.with_name("cluster.yaml")
        where.write_text(as_text(cluster))
    return submit_matrix(where, job, file, dry_run=True, account=ACCOUNT)


def program(manifests: Any) -> tuple[list[str], dict[str, str]]:
    """Return the words and the variables of a Volcano job's pods."""
    (found,) = manifests.objects[-1]["spec"]["tasks"][0]["template"]["spec"]["containers"]
    return found["command"], {each["name"]: each.get("value") for each in found["env"]}


def states(matrix: Matrix) -> list[str]:
    return [job.state for job in matrix.jobs]


def jobs_in(stub: StubApiServer) -> set[str]:
    return {path for path in stub.paths() if path.startswith(given.VOLCANO_JOBS)}


# --- what a row is ------------------------------------------------------------------------------


def test_options_become_arguments_and_other_columns_variables(
    table: Callable[[str], Path],
) -> None:
    matrix = dry(table("--lr, A,SEED\n0.1, 7, \n"), None, JOB)

    words, variables = program(matrix.manifests[0])
    assert words[-2:] == ["--steps=100", "--lr=0.1"]
    assert variables["A"] == "7"
    assert "SEED" not in variables


def test_a_row_keeps_its_name_wherever_it_and_its_columns_stand(
    table: Callable[[str], Path],
) -> None:
    first = dry(table(ROWS), None, JOB)
    second = dry(table("SEED,--lr,EMPTY\n1,0.01,\n1,0.1,\n\n"), None, JOB)

    names = [job.name for job in first.jobs]
    assert [job.name for job in second.jobs] == [names[2], names[0]]
    assert len({*names}) == 3
    assert all(name.startswith("sweep-") and len(name) == len("sweep-") + 8 for name in names)


# --- once each ----------------------------------------------------------------------------------


def test_a_repeated_command_sends_each_row_once(
    stub: StubApiServer, send: Callable[..., Matrix]
) -> None:
    first = send()
    sent = jobs_in(stub)
    second = send()

    assert (states(first), states(second)) == (["sent"] * 3, ["there"] * 3)
    assert len(sent) == 3
    assert jobs_in(stub) == sent


def test_rows_that_are_added_are_sent_beside_those_that_are_there(
    send: Callable[..., Matrix],
) -> None:
    send()

    assert states(send("SEED,--lr\n3,0.1\n2,0.1\n")) == ["sent", "there"]


def test_the_cluster_is_asked_once_for_what_all_rows_need(
    stub: StubApiServer, send: Callable[..., Matrix]
) -> None:
    send()

    assert len(stub.asked("GET", "/queues/test")) <= 2
    created = stub.asked("POST", "/batch.volcano.sh/")
    assert [each.dry_run for each in created].count(True) == 1
    assert len(created) == 4


def test_a_row_whose_job_failed_is_told_and_sent_again_when_asked(
    stub: StubApiServer, send: Callable[..., Matrix]
) -> None:
    failed, running, done = (job.name for job in send().jobs)
    for name, phase in ((failed, "Failed"), (running, "Running"), (done, "Completed")):
        stub.update(f"{given.VOLCANO_JOBS}/{name}", status={"state": {"phase": phase}})

    told = send()
    again = send(retry_failed=True)
    after = send(retry_failed=True)

    assert states(told) == ["failed", "there", "there"]
    assert [job.phase for job in told.jobs] == ["Failed", "Running", "Completed"]
    assert states(again) == ["sent", "there", "there"]
    assert again.jobs[0].name == f"{failed}-2"
    # The log of the first one stays, and the second one counts.
    assert f"{given.VOLCANO_JOBS}/{failed}" in jobs_in(stub)
    assert states(after) == ["there"] * 3


def test_rows_of_the_job_before_it_was_changed_are_told_and_stay(
    send: Callable[..., Matrix],
) -> None:
    send("SEED\n1\n2\n")
    same = send("SEED\n1\n2\n")
    other = send("SEED\n1\n2\n3\n", image="bert-pretrain:v2")

    line = "2 of the rows were sent with other keys of the job, such as another image"
    assert states(other) == ["there", "there", "sent"]
    assert any(note.startswith(line) for note in other.notes)
    assert not any("other keys" in note for note in same.notes)


def test_a_row_that_another_command_sends_meanwhile_counts_as_sent(
    stub: StubApiServer, send: Callable[..., Matrix]
) -> None:
    def twice(path: str, found: Any) -> None:
        # Somebody else sends the rows that are still to come.
        stub.on_create = lambda _path, _found: None
        for job in others:
            name = job["metadata"]["name"]
            stub.objects.setdefault(f"{given.VOLCANO_JOBS}/{name}", job)

    others: list[Any] = [
        dict(each.objects[-1]) for each in send(dry_run=True, account=ACCOUNT).manifests
    ]
    stub.on_create = twice

    assert states(send()) == ["sent"] * 3


def test_a_refusal_keeps_what_was_sent_and_the_next_command_goes_on(
    stub: StubApiServer, send: Callable[..., Matrix]
) -> None:
    names = [job.name for job in send(dry_run=True, account=ACCOUNT).jobs]
    taken = f"{given.VOLCANO_JOBS}/{names[1]}"
    stub.put(taken, {"kind": "Job"})

    first = send()
    stub.remove(taken)
    second = send()

    assert isinstance(first.error, ClusterError)
    assert names[1] in str(first.error)
    assert "left" in states(first)
    assert first.count("sent") == second.count("there")
    assert first.count("left") == second.count("sent")
    assert second.error is None


def test_nothing_is_sent_where_all_rows_lack_something(
    stub: StubApiServer, send: Callable[..., Matrix]
) -> None:
    stub.remove(f"{given.QUEUES}/test")

    with pytest.raises(ClusterError, match="queue test does not exist"):
        send()
    assert jobs_in(stub) == set()


# --- what is refused ----------------------------------------------------------------------------

TABLES = {
    "nothing": ("", [": empty; write a header, as --lr,SEED, and a line for each job"]),
    "no header": (
        "0.1,2\n0.2,3\n",
        [":1:1: no header, got 0.1,2; let the first line name the columns, as --lr,SEED"],
    ),
    "no rows": ("--lr\n", [": no rows below the header; add a line for each job"]),
    "semicolons": (
        "--lr;SEED\n0.1;1\n",
        [":1:1: columns that commas do not part; save it with commas"],
    ),
    "many mistakes": (
        '--lr,lr-x,SEED,SEED\n1,2,3\n1,2,3,4\n1,2,3,4\n,,,\n"x',
        [
            ":6:1: not a line of CSV: unexpected end of data; quote cells with commas or quotes",
            ":1:1: column 2: neither a variable nor an option that begins with --, got 'lr-x'; "
            "call it as LEARNING_RATE, or as --lr",
            ":1:1: SEED: a column that is there twice; keep one",
            ":2:1: 3 cells, and the header has 4; "
            "leave cells empty that do not apply, and quote those with commas",
            ":4:1: the same parameters as on line 3, whose job would be this one's too; "
            "take one out, or add a column that tells them apart, such as SEED",
            ":5:1: a row without a value; take it out",
        ],
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_all_mistakes_of_a_table_are_told_at_once(table: Callable[[str], Path], case: str) -> None:
    text, lines = TABLES[case]
    file = table(text)

    with pytest.raises(ConfigError) as refused:
        read_table(file)

    assert list(refused.value.mistakes) == [f"{file}{line}" for line in lines]


def test_a_table_has_at_most_a_thousand_rows(table: Callable[[str], Path]) -> None:
    file = table("SEED\n" + "".join(f"{seed}\n" for seed in range(1001)))

    with pytest.raises(ConfigError, match="1002:1: more than 1000 rows, got 1001; divide it"):
        read_table(file)


def test_mistakes_of_the_table_and_of_the_job_are_told_together(
    table: Callable[[str], Path],
) -> None:
    with pytest.raises(ConfigError) as refused:
        dry(table("SEED\n1\n1\n"), None, JOB | {"pool": "none", "name": "a" * 29})

    lines = "\n".join(refused.value.mistakes)
    assert "the same parameters as on line 2" in lines
    assert "name: too long for the digest of a row" in lines


def test_a_value_that_would_do_harm_is_told_with_its_lines(table: Callable[[str], Path]) -> None:
    file = table("SEED,RANK\n1,\n2,0\n3,0\n")

    with pytest.raises(ConfigError) as refused:
        dry(file, None, JOB)

    (line,) = refused.value.mistakes
    assert line.startswith(f"{file}:3:1: env.RANK: ")
    assert "(in 2 rows, of which this is the first)" in line


STATIC = NEURON_POOL | {"nodes": {"static": 4}}
GPUS = pool_document(instance_types=["g6e.12xlarge"])
ENGINES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "several nodes without a queue": (
        job_cluster(STATIC, scheduling=None),
        make_job(),
        "nodes: many jobs of several nodes and no queue that admits each as a whole: several "
        "would hold a part of their nodes while they wait for the rest, got 2; set "
        "scheduling.queueing: kueue, or volcano, or use one node a row",
    ),
    "a service": (
        job_cluster(GPUS),
        SERVICE,
        "kind: a service, which never ends, for each row of a table, got service; "
        "use a job that ends",
    ),
    "one node without a queue": (job_cluster(STATIC, scheduling=None), make_job(nodes=1), ""),
    "batch without a queue": (job_cluster(GPUS, scheduling=None), BATCH, ""),
    "several nodes with Kueue": (job_cluster(STATIC, scheduling=KUEUE), make_job(), ""),
    "several nodes with Volcano": (job_cluster(STATIC), make_job(), ""),
}


@pytest.mark.parametrize("case", ENGINES)
def test_jobs_of_several_nodes_need_a_queue_to_wait_in(
    table: Callable[[str], Path], case: str
) -> None:
    cluster, job, line = ENGINES[case]

    if not line:
        assert states(dry(table(ROWS), cluster, job)) == ["ready"] * 3
        return
    with pytest.raises(ConfigError) as refused:
        dry(table(ROWS), cluster, job)
    assert [each.keyed for each in refused.value.diagnostics] == [line]


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def ultrascale(
    stub: StubApiServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Ultrascale:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, stub.url)))
    monkeypatch.setenv("COLUMNS", "160")

    def command(*arguments: str | Path) -> Any:
        return run_command(*arguments, monkeypatch=monkeypatch, capsys=capsys)

    return command


def test_the_command_ends_with_one_table_of_what_became_of_each_row(
    stub: StubApiServer, ultrascale: Ultrascale, table: Callable[[str], Path]
) -> None:
    job = ROOT / "jobs" / "bert-pretrain.yaml"
    given_table = ("submit", CLUSTER, job, "--matrix", table(ROWS))

    printed = ultrascale(*given_table, "--dry-run", "--account", ACCOUNT)
    first = ultrascale(*given_table)
    name = min(jobs_in(stub)).rpartition("/")[2]
    stub.update(f"{given.VOLCANO_JOBS}/{name}", status={"state": {"phase": "Failed"}})
    second = ultrascale(*given_table)

    assert printed.stdout.count("kind: Job\n") == 3
    assert "ready" in printed.stderr
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert "bert-pretrain: 3 sent, 0 there already; namespace training" in first.stdout
    assert "--lr=0.01 SEED=1" in first.stdout
    assert "0 sent, 2 there already, 1 failed before and not sent again" in second.stdout
    assert f"{name}   failed before" in second.stdout


def test_all_rows_are_cancelled_by_one_command(
    stub: StubApiServer, ultrascale: Ultrascale, table: Callable[[str], Path]
) -> None:
    job = ROOT / "jobs" / "bert-pretrain.yaml"
    stub.put(f"{given.VOLCANO_JOBS}/other", given.volcano_job("other"))
    ultrascale("submit", CLUSTER, job, "--matrix", table(ROWS))

    answer = ultrascale("cancel", "bert-pretrain", "--matrix", "--yes")
    again = ultrascale("cancel", "bert-pretrain", "--matrix", "--yes")

    assert answer.returncode == 0, answer.stderr
    assert jobs_in(stub) == {f"{given.VOLCANO_JOBS}/other"}
    assert "no job from a table of bert-pretrain" in again.stderr


def test_the_command_fails_and_says_how_to_go_on_where_a_row_is_refused(
    stub: StubApiServer, ultrascale: Ultrascale, table: Callable[[str], Path]
) -> None:
    job = ROOT / "jobs" / "bert-pretrain.yaml"
    quota = Refusal(403, "exceeded quota: jobs", "Forbidden")
    stub.on_create = lambda _path, _found: stub.refuse("POST", "/batch.volcano.sh/", quota)

    answer = ultrascale("submit", CLUSTER, job, "--matrix", table(ROWS))

    assert answer.returncode == 1
    assert "exceeded quota" in answer.stderr
    assert "What was sent stays; the same command goes on" in answer.stderr
    assert "left; namespace training" in answer.stdout
