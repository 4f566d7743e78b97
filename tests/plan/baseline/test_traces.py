"""Traces in each format: the published example rows, and rows that would cost money if believed."""

import gzip
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ultrascale import catalog
from ultrascale.errors import ConfigError
from ultrascale.plan.baseline.traces import MOST_OF_A_NODE, Job, formats, read_traces

SLURM = """\
JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|End|NNodes|AllocTRES
101|ann|lab|gpu|normal|COMPLETED|2026-01-05T08:00:00|2026-01-05T09:00:00|2026-01-05T10:00:00|2|\
billing=16,cpu=64,gres/gpu:h100=16,gres/gpu=16,node=2
101.0|ann|lab|gpu|normal|COMPLETED|2026-01-05T08:00:00|2026-01-05T09:00:00|2026-01-05T10:00:00|2|\
cpu=64,gres/gpu:h100=16,gres/gpu=16,node=2
102_4|ann|lab|gpu|normal|RUNNING|2026-01-05T08:00:00|2026-01-05T09:30:00|Unknown|1|gres/gpu:h100=4
103|bob|"lab|gpu|normal|CANCELLED by 1001|2026-01-05T08:00:00|None|2026-01-05T08:10:00|1|gres/gpu=8
104|bob|lab|cpu|normal|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:00|2026-01-05T08:10:00|1|cpu=8
"""
SEREN = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,\
2023-03-01 00:20:51+08:00,117,32,936.0
"""
KALOS = """\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,\
start_time,end_time,fail_time,stop_time,duration,queue,gpu_time
dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,\
2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0
"""
VENUS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,\
2020-06-10 04:55:09,36848,0
"""
_GPUS = ", ".join(f'"gpu{number}"' for number in range(8))
PHILLY = f"""\
[{{"status": "Pass", "vc": "ee9e8c", "jobid": "application_1506638472019_14199", "attempts": [
  {{"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23",
    "detail": [{{"ip": "m47", "gpus": [{_GPUS}]}}]}},
  {{"start_time": "2017-10-07 01:13:30", "end_time": "2017-10-09 06:53:12",
    "detail": [{{"ip": "m412", "gpus": [{_GPUS}]}}]}}],
  "submitted_time": "2017-10-07 01:11:39", "user": "ce2f4c"}}]
"""
OWN = "job,team,submit,start,end,accelerators,nodes\n"
CURVE = "time,accelerators\n2026-01-05T01:00Z,16\n2026-01-05T00:00Z,4.5\n2026-01-05T02:00Z,0\n"


def _at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


TEXTS = {"slurm": SLURM, "seren": SEREN, "kalos": KALOS, "helios": VENUS, "philly": PHILLY}
TEXTS["curve"] = CURVE
ZONES = {"slurm": "Europe/Berlin", "helios": "UTC", "philly": "UTC"}
# The second attempt of Philly's job is wanted from the end of the first.
READ = """\
slurm  2026-01-05T07:00:00 2026-01-05T08:00:00 2026-01-05T09:00:00 1600
slurm  2026-01-05T07:00:00 2026-01-05T08:30:00 - 400
seren  2023-02-28T16:18:22 2023-02-28T16:18:54 2023-02-28T16:20:51 800
kalos  2023-05-17T11:00:58 2023-05-17T11:01:08 2023-05-17T11:01:16 6400
helios 2020-06-09T18:41:01 2020-06-09T18:41:01 2020-06-10T04:55:09 100
philly 2017-10-07T01:11:39 2017-10-07T01:12:09 2017-10-07T01:13:23 800
philly 2017-10-07T01:13:23 2017-10-07T01:13:30 2017-10-09T06:53:12 800
curve  2026-01-05T00:00:00 2026-01-05T00:00:00 2026-01-05T01:00:00 450
curve  2026-01-05T01:00:00 2026-01-05T01:00:00 2026-01-05T02:00:00 1600
"""


def _job(submit: str, start: str, end: str, size: str) -> Job:
    return Job(_at(submit), _at(start), None if end == "-" else _at(end), int(size))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_published_rows_are_read(name: str, packed: bool, tmp_path: Path) -> None:
    file = tmp_path / ("trace.csv.gz" if packed else "trace.csv")
    # Spreadsheets begin a file with a byte order mark.
    data = TEXTS[name].encode("utf-8-sig")
    file.write_bytes(gzip.compress(data) if packed else data)

    trace = read_traces([file], zone=ZoneInfo(ZONES[name]) if name in ZONES else None)

    rows = [words for words in map(str.split, READ.splitlines()) if words[0] == name]
    assert trace.jobs == [_job(*words[1:]) for words in rows]
    assert bool(trace.samples) == (name == "curve")


def test_alibabas_tasks_count_percent_and_wait_from_their_job_on(tmp_path: Path) -> None:
    names = ("pai_task_table", "pai_job_table")
    headers = (
        "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
        "job_name,inst_id,user,status,start_time,end_time",
    )
    rows = (
        "4f057009a5d481acec67b088,tensorflow,3.0,Terminated,1739162.0,1739200.0,600.0,29.3,50.0,MISC\n"
        "4f057009a5d481acec67b088,ps,1.0,Running,1739162.0,,600.0,29.3,100.0,MISC\n",
        "4f057009a5d481acec67b088,8cb3,58540f191766,Terminated,1739100.0,1739200.0\n",
    )
    for name, header, text in zip(names, headers, rows, strict=True):
        (tmp_path / f"{name}.header").write_text(header, encoding="utf-8")
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")

    trace = read_traces([tmp_path / f"{name}.csv" for name in names])

    assert trace.jobs == [Job(1739100, 1739162, 1739200, 150)]
    assert "lacks the ends" in next(iter(trace.notes))


def _row(**cells: str) -> str:
    row = {
        "job": "a",
        "team": "t",
        "submit": "2026-01-05T00:00Z",
        "start": "2026-01-05T00:00Z",
        "end": "2026-01-05T01:00Z",
        "accelerators": "8",
        "nodes": "1",
    }
    return ",".join((row | cells).values()) + "\n"


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"end": "2026-01-04T00:00Z"}, "2:1: end: before the start"),
        ({"start": "2026-01-05T00:00"}, "start: a time without an offset, .* say --timezone"),
        ({"start": "1767571200000"}, "start: no seconds since 1970, .* divide milliseconds"),
        ({"submit": "7200"}, "submit: no seconds since 1970"),
        ({"end": "soon"}, "end: no time, got 'soon'; write it as 2026"),
        ({"accelerators": "800"}, "accelerators: no number .* on 1 nodes, got '800'.* percent"),
        ({"accelerators": "-8"}, "accelerators: no number"),
        ({"accelerators": "eight"}, "accelerators: no number"),
        ({"nodes": "one"}, "accelerators: no number .* on one nodes"),
        ({"nodes": "1,more"}, "columns than the header"),
        ({"accelerators": "0"}, "ever ran.*; rows have no accelerators.*: 1"),
        ({"start": ""}, "ever ran.*; runs never started"),
    ],
)  # fmt: skip
def test_a_row_that_would_be_misread_is_refused(
    cells: dict[str, str], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(OWN + _row(**cells), encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        read_traces([file])


def test_a_row_that_lacks_a_column_is_no_other_row(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    # Its seven columns are as many as the reader takes of the header's eight.
    cut = "b,0,1767571200,1767571200,1767574800,8,1\n"
    file.write_text(OWN.replace("team", "team,user") + cut, encoding="utf-8")
    with pytest.raises(ConfigError, match="2:1: more or fewer columns"):
        read_traces([file])


def test_mistakes_are_told_at_once_with_their_lines_up_to_a_limit(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text(OWN + _row() + _row(end="never") + _row(accelerators="x"), encoding="utf-8")
    two.write_text(OWN + _row(end="never") * 99, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_traces([one, two])
    lines = refused.value.mistakes
    assert [line.partition(": ")[0] for line in lines[:3]] == [
        f"{one}:3:1",
        f"{one}:4:1",
        f"{two}:2:1",
    ]
    assert len(lines) == 20


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"job,start\na,b\n", "got 'job,start'.*jobs: job,submit,start,end,accelerators,nodes"),
        (OWN.encode() + b"\xff\n", "columns than the header"),
        (b'[{"jobid": ', "cannot be read"),
        (b"", "no header of a trace, got ''"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(data: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_bytes(data)
    with pytest.raises(ConfigError, match=said):
        read_traces([file])
    with pytest.raises(ConfigError, match="cannot be read"):
        read_traces([tmp_path / "missing.csv"])


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(
        "end,nodes,start,accelerators,job,submit\n"
        "2026-01-05T02:00Z,1,2026-01-05T01:00Z,0.5,a,2026-01-05T00:00Z\n",
        encoding="utf-8",
    )
    begin = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp())
    assert read_traces([file]).jobs == [Job(begin, begin + 3600, begin + 7200, 50)]
    with pytest.raises(ConfigError, match="slurm: JobIDRaw"):
        read_traces([file], "slurm")


def test_a_job_in_the_exports_of_two_months_counts_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text(OWN + _row() + _row(job="b"), encoding="utf-8")
    two.write_text(OWN + _row() + _row(job="c") * 2, encoding="utf-8")
    trace = read_traces([one, two])
    assert len(trace.jobs) == 4
    assert [*trace.notes.values()] == [1]
    # The earlier export does not know the end of what ran then.
    one.write_text(OWN + _row(end=""), encoding="utf-8")
    for files in ((one, two), (two, one)):
        assert [run.end for run in read_traces(files).jobs] == [_at("2026-01-05T01:00")] * 3


def test_curves_of_teams_add_up_and_beside_jobs_are_refused(tmp_path: Path) -> None:
    one, two, short = (tmp_path / f"{name}.csv" for name in ("one", "two", "short"))
    one.write_text(OWN + _row(), encoding="utf-8")
    two.write_text(CURVE, encoding="utf-8")
    short.write_text("time,accelerators\n2026-01-05T01:00Z,16\n", encoding="utf-8")
    assert [job.size for job in read_traces([two, two]).jobs] == [900, 3200]
    # A value holds until the next of its file, whatever times others have.
    three = tmp_path / "three.csv"
    three.write_text(CURVE.replace(":00Z", ":30Z"), encoding="utf-8")
    _, first, last, _ = sorted(read_traces([two, three]).jobs)
    assert (first.size, first.end, last.size) == (450, first.start + 3600, 1600)
    with pytest.raises(ConfigError, match="a curve beside jobs"):
        read_traces([one, two])
    with pytest.raises(ConfigError, match="ever ran"):
        read_traces([short])


def test_no_instance_has_more_accelerators_than_the_limit_of_percentages() -> None:
    kinds = [spec.accelerator for spec in catalog.INSTANCE_TYPES.values() if spec.accelerator]
    assert max(kind.count for kind in kinds if kind.knows("count")) == MOST_OF_A_NODE
    assert all(form["source"] for form in formats().values())
