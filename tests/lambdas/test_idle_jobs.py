"""Jobs that leave accelerators idle: series of answers, replayed, and each engine's own end."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.crd_schemas import CRD_FOLDERS, CrdSet
from tests.support.fleet import exporter, node, pod, pool
from tests.support.ledger_aws import BUCKET, LedgerAws, reached_aws
from tests.support.ledger_call import call
from tests.support.ledger_life import DOCUMENT
from tests.support.observability_plans import of, planned
from tests.support.rbac import Rbac, accesses_of
from tests.support.soak import LONG
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.lambdas.fleet_metrics import handler
from ultrascale.lambdas.idle_jobs import (
    NOTICE_SECONDS,
    START_SECONDS,
    Look,
    Stretch,
    follow,
    take_turns,
)
from ultrascale.lambdas.ledger import STATE
from ultrascale.lambdas.ledger_state import State
from ultrascale_k8s.observability import charts
from ultrascale_k8s.volcano.chart import crds

EVERY, MINUTES = 60, 30
NOTICE = MINUTES * 60 - NOTICE_SECONDS


@st.composite
def series(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, Look]]]:
    """Draw the nodes of a job, and what the calls of three hours see of it."""
    nodes = [f"n{number}" for number in range(draw(st.integers(1, 12)))]
    most, start = draw(st.integers(1, 16)), draw(st.integers(0, 600))
    restart = draw(st.integers(0, 180))
    bad = draw(st.sets(st.sampled_from(nodes), max_size=1))
    busy = draw(st.sets(st.integers(0, 180), max_size=3))
    lost = draw(st.sets(st.integers(0, 180), max_size=draw(st.sampled_from((0, 0, 40)))))
    looks: list[tuple[int, Look]] = []
    for turn in range(180):
        now = turn * EVERY
        look = Look(dict.fromkeys(nodes, 8))
        take_turns([look], turn, most)
        look.answered = [name for name in look.asked if name not in bad]
        look.started = restart * EVERY if restart and turn >= restart else start
        look.busy = turn in busy and bool(look.answered)
        if turn not in lost:
            looks.append((now, look))
    return len(nodes), most, looks


@settings(max_examples=5_000 if LONG else 150)
@given(case=series())
def test_no_job_is_ended_that_was_used_or_started_or_not_seen(
    case: tuple[int, int, list[tuple[int, Look]]],
) -> None:
    nodes, _, looks = case
    stretch: Stretch | None = None
    last = looks[0][0]
    for place, (now, look) in enumerate(looks):
        stretch = follow(stretch, look, NOTICE, now, (now - last) // EVERY - 1)
        last = now
        if stretch.notice <= 0:
            continue
        assert stretch.notice - stretch.since >= NOTICE
        assert stretch.since >= look.started + START_SECONDS
        spans = [(stretch.since, stretch.notice)]
        if now - stretch.notice >= NOTICE_SECONDS and stretch.is_known(nodes):
            spans.append((stretch.notice, now))
        # Before the notice and again after it.
        for first, until in spans:
            seen = [own for at, own in looks[: place + 1] if first < at <= until]
            assert not any(own.busy for own in seen)
            answers = [name for own in seen for name in own.answered]
            assert len({*answers}) >= min(8, nodes)
            assert len(answers) >= 0.9 * sum(len(own.asked) for own in seen)
            assert len(seen) >= 0.8 * ((until - max(first, looks[0][0])) // EVERY)


def test_a_job_that_started_anew_while_nobody_looked_has_its_hour() -> None:
    before = Stretch(0, 900, 900, ["n0"])
    look = Look({"n0": 8}, 10 * 3_600, ["n0"], ["n0"])
    after = follow(before, look, 86_400, now := 12 * 3_600, missed=90)
    assert after == Stretch(now)


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=40),
    most=st.integers(1, 30),
    first=st.integers(0, 10_000),
)
def test_each_node_of_each_job_has_its_turn(sizes: list[int], most: int, first: int) -> None:
    names = [[f"j{job}n{number}" for number in range(n)] for job, n in enumerate(sizes)]
    seen: set[str] = set()
    for turn in range(first, first + 40 * (len(sizes) + 1) * max(sizes)):
        jobs = [Look(dict.fromkeys(own, 8)) for own in names]
        take_turns(jobs, turn, most)
        asked = [name for job in jobs for name in job.asked]
        assert len(asked) <= most
        seen.update(asked)
        if len(seen) == sum(sizes):
            return
    raise AssertionError("a node has no turn")


# --- The real function, against an API server and S3 over HTTP ------------------------------------


T0 = 1_796_300_000
JOB = "/apis/batch/v1/namespaces/training/jobs/a"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1/namespaces/training/jobs/a"
JOB_SET = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/training/jobsets/a"
RAY = "/apis/ray.io/v1/namespaces/training/rayjobs/a"
WORKLOAD = "/apis/kueue.x-k8s.io/v1beta2/namespaces/training/workloads/w"
QUEUE = {"kueue.x-k8s.io/queue-name": "q"}


@pytest.fixture(scope="module")
def aws() -> Iterator[LedgerAws]:
    with reached_aws() as aws:
        yield aws


class World:
    """Two nodes of a job, whose GPUs have a use; one more node has nobody's."""

    def __init__(self, aws: LedgerAws, engine: str, then: str, path: str) -> None:
        scheduling = {"queueing": engine} if engine else {}
        scheduling |= {"ray": True} if path == RAY else {}
        section = {"ledger": {}, "idle_jobs": {"for_minutes": MINUTES, "then": then}}
        self.plan = planned({**DOCUMENT, "scheduling": scheduling, "observability": section})
        self.event = json.loads(json.dumps(of(self.plan).fleet_metrics.input))
        self.event["ledger"]["bucket"] = BUCKET
        self.event["rates"]["gpu-block-mng"] = 90.5
        self.aws, self.path, self.use = aws, path, [0.0] * 16
        self.labels: dict[str, str] = {}
        self.started = "2026-12-03T12:13:20Z"
        self.server = StubApiServer(token=None, strict=False)
        for group in ("ray.io/v1", "bus.volcano.sh/v1alpha1"):
            self.server.groups.add(f"/apis/{group}")
        aws.objects.clear()
        aws.reservations = []

    def show(self, kind: str) -> None:
        for number in range(3):
            own = node(f"n{number}", pool(self.plan, "gpu-block-mng"))
            self.server.put(f"/api/v1/nodes/n{number}", own)
            agent = exporter(f"e{number}", f"n{number}", f"10.0.0.{number}")
            self.server.put(f"/api/v1/namespaces/kube-system/pods/e{number}", agent)
        for number in range(2):
            own = pod(f"a-{number}", f"n{number}", job="a")
            own["metadata"]["labels"] |= {"app.kubernetes.io/component": kind, **self.labels}
            own["status"]["startTime"] = self.started
            self.server.put(f"/api/v1/namespaces/training/pods/a-{number}", own)

    def fetch(self, url: str) -> str:
        number = int(url.split(":")[1][-1])
        if number == 2:
            return ""
        uses = enumerate(self.use[number * 8 : number * 8 + 8])
        where = f'namespace="training",pod="a-{number}"'
        return "".join(f'DCGM_FI_DEV_GPU_UTIL{{gpu="{i}",{where}}} {use}\n' for i, use in uses)

    def run(self, *minutes: int) -> None:
        with serve(self.server):
            for minute in minutes:
                call(self.event, self.server.url, T0 + 3_600 + minute * 60)

    def rights(self) -> Rbac:
        own = charts(of(self.plan))["platform"]
        published = [each for chart in own for each in chart.published]
        return Rbac(published, groups=[of(self.plan).fleet_metrics.group])

    def note(self) -> Any:
        own = self.server.objects[self.path]["metadata"].get("annotations", {})
        return json.loads(own["ultrascale.dev/idle"]) if own.get("ultrascale.dev/idle") else None


@pytest.fixture
def world(request: pytest.FixtureRequest, aws: LedgerAws, monkeypatch: pytest.MonkeyPatch) -> World:
    engine, then, path, queued = request.param
    made = World(aws, engine, then, path)
    labels = {"ultrascale.dev/job": "a", **(QUEUE if queued else {})}
    made.server.put(path, {"metadata": {"labels": labels, "uid": "u"}, "spec": {"suspend": False}})
    entry = {"metadata": {"labels": {"kueue.x-k8s.io/job-uid": "u"}}, "spec": {"queueName": "q"}}
    if queued:
        made.server.put(WORKLOAD, entry)
    made.show("ray" if path == RAY else "training")
    monkeypatch.setattr(handler, "_fetch", made.fetch)
    return made


@pytest.mark.parametrize(
    ("world", "ended"),
    [
        (("", "end", JOB, False), (JOB, "suspend", True)),
        (("kueue", "end", JOB, True), (WORKLOAD, "active", False)),
        (("kueue", "end", JOB_SET, True), (WORKLOAD, "active", False)),
        (("kueue", "end", JOB_SET, False), (JOB_SET, "suspend", True)),
        (("kueue", "end", RAY, True), (WORKLOAD, "active", False)),
        (("volcano", "end", RAY, False), (RAY, "suspend", True)),
        (("volcano", "end", VOLCANO, False), None),
    ],
    indirect=["world"],
)
def test_a_job_is_ended_by_what_its_engine_takes_back(
    world: World, ended: tuple[str, str, bool] | None
) -> None:
    before = {
        path: json.dumps(own["spec"]) for path, own in world.server.objects.items() if "spec" in own
    }
    world.run(*range(MINUTES))
    note = world.note()
    assert (note["since"], note["ends"]) == (
        "2026-12-03T13:13:20+00:00",
        "2026-12-03T13:43:20+00:00",
    )
    assert note["accelerators"] == 16
    assert {path: json.dumps(world.server.objects[path]["spec"]) for path in before} == before
    world.run(MINUTES)
    changed = {
        path
        for path, own in world.server.objects.items()
        if "spec" in own and json.dumps(own["spec"]) != before.get(path)
    }
    if ended is not None:
        path, key, value = ended
        assert changed == {path}
        found = world.server.objects[path]
        assert found["spec"][key] is value
    else:
        (command,) = (own for own in world.server.objects.values() if "action" in own)
        assert command["action"] == "AbortJob"
        assert command["target"]["uid"] == "u"
        assert CrdSet.from_documents(crds()).validate(command) == []
        assert not changed
    assert "ended" in world.note()
    rights = world.rights()
    assert all(rights.allows(own) for sent in world.server.requests for own in accesses_of(sent))


@pytest.mark.parametrize(
    ("folder", "version", "kind", "key"),
    [
        ("kueue-v0.19.2", "kueue.x-k8s.io/v1beta2", "Workload", "active"),
        ("jobset-v0.12.0", "jobset.x-k8s.io/v1alpha2", "JobSet", "suspend"),
    ],
)
def test_the_fields_that_end_a_job_are_published(
    folder: str, version: str, kind: str, key: str
) -> None:
    if not (CRD_FOLDERS / folder).exists():
        pytest.skip(f"the CRDs of {folder} are not in {CRD_FOLDERS}")
    crds_of_kind = CrdSet.from_folder(CRD_FOLDERS / folder)

    schema = crds_of_kind.schema({"apiVersion": version, "kind": kind})
    assert schema["properties"]["spec"]["properties"][key]["type"] == "boolean"


def use_gpu(world: World) -> None:
    world.use[13] = 1.0


def silence_exporter(world: World) -> None:
    fetch = world.fetch

    def fail(url: str) -> str:
        if url.startswith("http://10.0.0.1:"):
            raise TimeoutError
        return fetch(url)

    world.fetch = fail


def hide_gpus(world: World) -> None:
    """Let an exporter tell fewer GPUs than the pod has."""
    del world.use[12:]


def add_label(world: World, name: str, value: str) -> None:
    world.labels = {name: value}


def add_pending_pod(world: World) -> None:
    waits = pod("a-2", job="a")
    waits["metadata"]["labels"]["app.kubernetes.io/component"] = "training"
    world.server.put("/api/v1/namespaces/training/pods/a-2", waits)


def add_unread_pod(world: World) -> None:
    """Let one of its pods be on a node that nobody reads."""
    add_pending_pod(world)
    status = {"phase": "Running", "startTime": "2026-12-03T12:13:20Z"}
    path = "/api/v1/namespaces/training/pods/a-2"
    world.server.update(path, spec={"nodeName": "hyperpod"}, status=status)


BATCH, KIND = [("", "end", JOB, False)], "app.kubernetes.io/component"


@pytest.mark.parametrize("world", BATCH, indirect=True)
@pytest.mark.parametrize(
    "spared",
    [
        *(use_gpu, silence_exporter, hide_gpus, add_pending_pod, add_unread_pod),
        partial(add_label, name="ultrascale.dev/idle", value="allow"),
        *(partial(add_label, name=KIND, value=kind) for kind in ("service", "dev")),
    ],
)
def test_no_job_is_touched_that_is_used_or_exempt_or_not_seen(
    world: World, spared: Callable[[World], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    spared(world)
    monkeypatch.setattr(handler, "_fetch", world.fetch)
    world.show("training")
    world.run(*range(MINUTES + 5))
    assert [own for own in world.server.requests if own.method != "GET"] == []


@pytest.mark.parametrize("world", [("", "tell", JOB, False)], indirect=True)
def test_an_idle_job_is_counted_annotated_and_in_the_ledger_until_it_is_used(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.server.refuse("PATCH", JOB, Refusal(403, times=1))
    world.run(*range(MINUTES + 1))
    assert world.note() is None
    # Neither the ledger nor the metrics stop where the job cannot be annotated.
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[0] == "{"]
    counted = [
        line["IdleJobs"] for line in lines if line.get("Team") == "training" and "IdleJobs" in line
    ]
    assert counted == [0] * MINUTES + [1]
    world.run(MINUTES + 1, MINUTES + 2)
    note = world.note()
    assert "ends" not in note
    assert note["usd_per_hour"] == 2 * 90.5
    assert world.server.objects[JOB]["spec"] == {"suspend": False}
    state = State.parse(world.aws.objects[STATE])
    (held,) = {
        (part["team"], part["reason"])
        for _, text in state.running.values()
        for part in json.loads(text).get("parts", ())
        if part["state"] == "running"
    }
    assert held == ("training", "held without use")
    use_gpu(world)
    # What fails once is repeated.
    world.server.refuse("PATCH", JOB, Refusal(503, times=1))
    world.run(MINUTES + 3)
    assert world.note() is not None
    world.run(MINUTES + 4)
    assert world.note() is None


@pytest.mark.parametrize("world", [("kueue", "end", JOB, True)], indirect=True)
def test_a_notice_stands_for_fifteen_minutes_wherever_the_function_fails(world: World) -> None:
    world.server.refuse("PATCH", JOB, Refusal(403, times=20))
    world.run(*range(MINUTES + 5))
    assert world.note() is None
    world.run(MINUTES + 5)
    assert world.note()["ends"] == "2026-12-03T14:03:20+00:00"
    world.run(*range(MINUTES + 6, MINUTES + 20))
    assert "ended" not in world.note()
    # It fails between the annotation and the end.
    world.server.refuse("PATCH", WORKLOAD, Refusal(503, times=1))
    world.run(MINUTES + 20)
    assert "ended" in world.note()
    assert world.server.objects[WORKLOAD]["spec"] == {"queueName": "q"}
    world.run(MINUTES + 21)
    assert world.server.objects[WORKLOAD]["spec"] == {"queueName": "q", "active": False}


@pytest.mark.parametrize("world", BATCH, indirect=True)
def test_no_job_is_ended_that_was_not_asked_since_its_notice(world: World) -> None:
    # The other jobs have their turns as well: each node is asked every 42 minutes.
    world.event["ledger"]["idle"]["most"] = world.event["exporters"]["most"] = 1
    for number in range(20):
        name = f"b{number:02}"
        own = pod(name, "n2", asks="1", job=name)
        own["status"]["startTime"] = "2026-12-03T12:13:20Z"
        world.server.put(f"/api/v1/namespaces/training/pods/{name}", own)
    minute = 0
    while world.note() is None:
        world.run(minute := minute + 1)
        assert minute < 200
    use_gpu(world)
    world.run(*range(minute + 1, minute + 60))
    assert world.server.objects[JOB]["spec"] == {"suspend": False}
    assert world.note() is None


@pytest.mark.parametrize("world", BATCH, indirect=True)
def test_a_job_that_was_resumed_has_its_hour_and_a_notice_anew(world: World) -> None:
    world.run(*range(MINUTES + 1))
    ended = world.note()
    assert "ended" in ended
    # Its pods go, and their exporters do not tell of them meanwhile.
    world.use = []
    world.run(*range(MINUTES + 1, MINUTES + 10))
    assert world.note() == ended
    for number in range(2):
        world.server.remove(f"/api/v1/namespaces/training/pods/a-{number}")
    world.run(MINUTES + 10)
    world.server.update(JOB, spec={"suspend": False})
    world.use, world.started = [0.0] * 16, "2026-12-03T14:00:00Z"
    world.show("training")
    # 14:00 is 46 minutes and 40 seconds after the first call.
    notice = 47 + 60 + MINUTES - 15
    world.run(*range(47, notice))
    assert world.note() == ended
    assert world.server.objects[JOB]["spec"] == {"suspend": False}
    world.run(notice)
    assert world.note()["since"] == "2026-12-03T15:00:00+00:00"
    assert "ended" not in world.note()
