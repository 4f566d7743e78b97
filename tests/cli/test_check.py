"""`ultrascale check`: what is wrong, and where, for people, programs and GitHub."""

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from tests.support.cases import for_each
from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from ultrascale.cli.check import as_annotation
from ultrascale.config import loads, read
from ultrascale.errors import ConfigError, Diagnostic, Span

GOOD = (ROOT / "clusters" / "trainium-bert.yaml").read_text()
KEYS = (
    *("file", "line", "column", "end_line", "end_column", "key"),
    *("severity", "code", "message", "value", "fix"),
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("mine.yaml")


def diagnostics(answer: Any) -> list[dict[str, Any]]:
    return json.loads(answer.stdout)["diagnostics"]


class TestPlaces:
    def test_a_pool_is_named_and_its_line_and_column(
        self, ultrascale: Ultrascale, file: Path
    ) -> None:
        file.write_text(GOOD.replace("placement_group: true", "placement_group: yes please"))
        lines = file.read_text().splitlines()
        (number,) = (n for n, line in enumerate(lines, 1) if "yes please" in line)
        column = lines[number - 1].index("placement_group") + 1

        answer = ultrascale("check", file)

        assert answer.returncode == 1
        assert answer.stderr == (
            f"mine.yaml:{number}:{column}: pools[trn1].placement_group: not true or false, "
            "got 'yes please'; write true or false\n"
        )

    def test_a_missing_key_is_told_at_what_lacks_it(self) -> None:
        text = GOOD.replace("    provisioner: managed-node-group\n", "", 1)
        (told,) = refusal(text)
        assert told.key == "pools[system].provisioner"
        assert told.span is not None
        line = text.splitlines()[told.span.line - 1]
        assert line[told.span.column - 1 :].startswith("name: system")
        assert told.span.end_line is None

    def test_items_without_a_name_of_their_own_are_numbered(self) -> None:
        pools = yaml.safe_load(GOOD)["pools"]
        twice = GOOD.replace("name: trn1", f"name: {pools[0]['name']}")
        (told,) = (each for each in refusal(twice) if each.key.endswith(".name"))
        assert (told.key, told.message) == ("pools[1].name", "pools[0] has this name already")

    @pytest.mark.parametrize(
        ("text", "key", "span"),
        [
            (
                "a: &a {vpc_cidr: 10.0.0.1/16}\nnetwork:\n  <<: *a\n  zones: [a, b]\n",
                "network.vpc_cidr",
                Span(line=1, column=8, end_line=1, end_column=29),
            ),
            (
                "account: &a 12\nname: *a\n",
                "name",
                Span(line=2, column=1, end_line=2, end_column=5),
            ),
        ],
        ids=["merged", "an alias"],
    )
    def test_a_value_that_stands_elsewhere_is_told_at_its_place(
        self, text: str, key: str, span: Span
    ) -> None:
        assert {each.key: each.span for each in refusal(text)}[key] == span

    def test_a_key_that_stands_twice_is_told_where_it_stands_again(self) -> None:
        (told,) = refusal("name: a\nregion: b\nname: c\n")
        assert told.span == Span(line=3, column=1, end_line=3, end_column=5)
        assert told.message == "the key 'name' stands on line 1 too"

    def test_what_rules_and_the_plan_refuse_has_a_place_too(
        self, ultrascale: Ultrascale, file: Path
    ) -> None:
        file.write_text(GOOD.replace("vpc_cidr: 10.0.0.0/16", "vpc_cidr: 10.0.0.0/28"))
        (told, *_) = diagnostics(ultrascale("check", file, "--json"))
        assert (told["key"], told["code"]) == ("network.vpc_cidr", "ranges_hold_the_nodes")
        assert "10.0.0.0/28" in file.read_text().splitlines()[told["line"] - 1]

    def test_a_template_of_jobs_that_nothing_could_run_has_a_place(
        self, ultrascale: Ultrascale, file: Path
    ) -> None:
        file.write_text(f"{GOOD}\njobs:\n  tune: {{pool: trn1, image: bert-pretrain, nodes: 99}}\n")
        last = len(file.read_text().splitlines())
        (told,) = diagnostics(ultrascale("check", file, "--json"))
        assert (told["key"], told["line"], told["column"]) == ("jobs.tune.nodes", last, 44)
        assert told["value"] == "99"


def refusal(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ConfigError) as error:
        loads(text, source="f")
    return error.value.diagnostics


class TestForms:
    def test_json_has_each_mistake_with_every_key(self, ultrascale: Ultrascale, file: Path) -> None:
        file.write_text(GOOD.replace("region: us-west-2", "region: us-wset-2"))

        answer = ultrascale("check", file, "--json")

        data = json.loads(answer.stdout)
        assert answer.returncode == 1
        assert {*data} == {"version", "ok", "files", "diagnostics"}
        assert (data["version"], data["ok"], data["files"]) == (1, False, ["mine.yaml"])
        assert all(tuple(each) == KEYS for each in data["diagnostics"])
        assert {each["severity"] for each in data["diagnostics"]} <= {"error", "note"}
        (told,) = (each for each in data["diagnostics"] if each["key"] == "region")
        assert (told["severity"], told["code"]) == ("error", "form")
        assert told["message"] == "unknown Region 'us-wset-2'"
        assert told["fix"] == "did you mean us-west-2?"

    def test_all_mistakes_of_all_files_are_told(self, ultrascale: Ultrascale, file: Path) -> None:
        file.write_text("- a\n")
        Path("good.yaml").write_text(GOOD)
        Path("other.yaml").write_text(GOOD.replace("us-west-2\n", "us-wset-2\n"))
        answer = ultrascale("check", file, "good.yaml", "other.yaml", "gone.yaml")
        assert answer.returncode == 1
        assert answer.stdout.startswith("good.yaml: ok, but 2 values are of documentation")
        lines = answer.stderr.splitlines()
        told = {line.split(":")[0] for line in lines if ": note: " not in line}
        told -= {line.split(":")[0] for line in lines if "expired on" in line}
        assert told == {"mine.yaml", "other.yaml", "gone.yaml"}

    def test_github_shows_a_mistake_beside_its_line(
        self, ultrascale: Ultrascale, file: Path
    ) -> None:
        file.write_text(GOOD.replace("region: us-west-2", "region: us-wset-2"))
        (line, *_) = ultrascale("check", file, "--format", "github").stdout.splitlines()
        assert line.startswith("::error file=mine.yaml,line=")
        assert line.endswith("::region: unknown Region 'us-wset-2'; did you mean us-west-2?")

    def test_nothing_in_a_file_is_taken_for_an_order_of_github(self) -> None:
        told = Diagnostic(
            message="100% of a\nb",
            file="a,b:c%.yaml",
            span=Span(line=2, column=3, end_line=3, end_column=1),
            severity="warning",
        )

        assert as_annotation(told) == (
            "::warning file=a%2Cb%3Ac%25.yaml,line=2,col=3::100%25 of a\\nb"
        )
        note = Diagnostic(message="a", severity="note")
        assert as_annotation(note) == "::notice::a"


class TestInput:
    def test_standard_input_is_read_once_for_all_that_a_command_does(
        self, ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for words in (("check", "-"), ("plan", "-")):
            stream = io.TextIOWrapper(io.BytesIO(GOOD.encode()), encoding="utf-8")
            monkeypatch.setattr("sys.stdin", stream)
            assert ultrascale(*words).returncode == 0

    def test_a_mistake_in_standard_input_says_so(
        self, ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"- a\n"), encoding="utf-8"))
        answer = ultrascale("check", "-")
        assert answer.returncode == 1
        assert answer.stderr.startswith("<stdin>:1:1: not a mapping of keys, got [a]; ")

    def test_a_deployment_reads_no_standard_input(self, ultrascale: Ultrascale) -> None:
        answer = ultrascale("deploy", "-", "--yes")
        assert answer.returncode == 1
        assert "name a file" in answer.stderr

    @for_each(
        {
            "not UTF-8": (b"name: caf\xe9\n", (1, 10), "file", "not UTF-8 text"),
            "UTF-16": ("name: a".encode("utf-16"), (1, 1), "file", "not UTF-8 text, got UTF-16"),
            "empty": (b"", None, "yaml", "not a mapping of keys, got nothing"),
            "a list": (b"# none\n- a\n", (2, 1), "yaml", "not a mapping of keys, got [a]"),
            "a tab": (b"a:\n\tb: 1\n", (2, 1), "yaml", "not YAML: a tab in its indentation"),
            "Windows's lines": (b"a: 1\r\nb: [\r\n", (3, 1), "yaml", "not YAML: "),
            "an order of bytes": (b"\xef\xbb\xbfa: 1\na: 2\n", (2, 1), "yaml", "the key"),
            "two MiB": (b"#" * 2**21, None, "file", "more than 1 MiB"),
        }
    )
    def test_what_is_no_cluster_file_is_told_with_its_place(
        self, content: bytes, place: tuple[int, int] | None, code: str, message: str
    ) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder, "bad.yaml")
            path.write_bytes(content)
            with pytest.raises(ConfigError) as error:
                read(path)
        (told,) = error.value.diagnostics
        assert (told.code, told.span and (told.span.line, told.span.column)) == (code, place)
        assert told.message.startswith(message)
        assert told.fix

    def test_what_cannot_be_read_is_told_as_data_too(
        self, ultrascale: Ultrascale, file: Path
    ) -> None:
        Path("folder").mkdir()
        told = diagnostics(ultrascale("check", "folder", "--json"))
        assert [(each["file"], each["code"], each["message"]) for each in told] == [
            ("folder", "file", "a directory")
        ]

    def test_a_file_that_nobody_may_read_is_told_as_data(
        self, ultrascale: Ultrascale, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Root may read everything, so the refusal is the system's own error."""
        refusal = Mock(side_effect=PermissionError(13, "Permission denied"))
        file.write_text(GOOD)
        monkeypatch.setattr("ultrascale.yaml_reader.os.open", refusal)
        (told,) = diagnostics(ultrascale("check", file, "--json"))
        assert (told["code"], told["message"]) == ("file", "cannot be read: permission denied")

    def test_a_misspelt_file_is_answered_with_the_near_one(
        self, ultrascale: Ultrascale, file: Path
    ) -> None:
        Path("clusters").mkdir()
        Path("clusters/trainium.yaml").write_text(GOOD)
        meant = "no such file; did you mean clusters/trainium.yaml?\n"
        for name in ("clusters/trianium.yaml", "trainium.yaml", "clusters/trainium"):
            assert ultrascale("check", name).stderr == f"{name}: {meant}"
        other = ultrascale("check", "clusters/zebra.yaml").stderr
        assert other == "clusters/zebra.yaml: no such file; name a cluster file\n"


class TestSchema:
    def test_it_is_printed_or_written(self, ultrascale: Ultrascale, file: Path) -> None:
        printed = ultrascale("schema").stdout
        assert ultrascale("schema", "cluster", "-o", "c.json").stdout == ""
        assert Path("c.json").read_text() == printed
        assert json.loads(printed)["$id"] == "urn:ultrascale:schema:cluster"
        assert json.loads(ultrascale("schema", "job").stdout)["$id"] == "urn:ultrascale:schema:job"
        nowhere = ultrascale("schema", "-o", "/nowhere/c.json")
        assert (nowhere.returncode, ultrascale("schema", "pool").returncode) == (1, 64)
        assert "cannot be written: no such file or directory; name another" in nowhere.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\n", "a file of eksctl"),
        ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n", "a Job of Kubernetes"),
        ("Resources: {A: {Type: 'AWS::S3::Bucket'}}\n", "a template of CloudFormation"),
        ("pool: train\nnodes: 2\nimage: bert\nscript: a.py\n", "the file of a job"),
    ],
)
def test_the_file_of_another_kind_is_named_in_one_line(
    ultrascale: Ultrascale, tmp_path: Path, text: str, said: str
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(text)

    for command in (("check",), ("plan",)):
        (line,) = ultrascale(*command, other).stderr.splitlines()
        assert said in line


def test_a_cluster_file_in_the_place_of_a_job_is_named_in_one_line(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    cluster, job = tmp_path / "cluster.yaml", tmp_path / "job.yaml"
    cluster.write_text(GOOD)
    job.write_text("pool: train\nnodes: 2\nimage: bert\nscript: a.py\n")

    (twice,) = ultrascale("submit", cluster, cluster, "--dry-run").stderr.splitlines()
    (swapped,) = ultrascale("submit", job, cluster, "--dry-run").stderr.splitlines()

    assert "a cluster file, not the file of a job" in twice
    assert "ultrascale submit CLUSTER.yaml JOB.yaml" in swapped
