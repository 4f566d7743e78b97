"""Cluster files as files and YAML, before their keys are judged."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.pools import SYSTEM_POOL, as_text, make_document, pool_document
from ultrascale import config, yaml_reader
from ultrascale.errors import ConfigError, masked
from ultrascale.parts.observability import Observability

CLUSTERS = sorted((ROOT / "clusters").glob("*.yaml"))


def mistakes_in(path: Path) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    return caught.value.mistakes


def written(folder: Path, content: bytes) -> Path:
    path = folder / "cluster.yaml"
    path.write_bytes(content)
    return path


def test_there_are_cluster_files_to_load() -> None:
    assert {path.stem for path in CLUSTERS} >= {
        "auto-mode",
        "existing-estate",
        "hybrid-hyperpod",
        "llm-kueue",
        "mixed-capacity",
        "post-training",
        "ray",
        "serving",
        "trainium-bert",
        "ultra-100k",
    }


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_each_cluster_file_loads_as_it_stands_and_warns_of_what_it_does_on_purpose_alone(
    path: Path,
) -> None:
    cluster = config.load(path)

    assert cluster.name in path.stem
    for warning in config.warnings(cluster):
        if ".provisioner: pods that fit here and on pools[" in warning:
            continue  # two scalers beside each other, on purpose
        if ".purchase: nobody is told " in warning:
            assert cluster.section(Observability) is None
            continue  # an address of the reader's own
        if "takes Spot nodes one by one" in warning:
            continue  # a tier of bursts, behind reserved nodes
        pool = cluster.pool(warning.partition("[")[2].partition("]")[0])
        assert ".efa: no EFA " in warning or " without EFA, which pools[" in warning
        assert len(config.zones_of(pool, cluster.network)) > 1 or len(pool.instance_types) > 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"

    assert mistakes_in(path) == (f"{path}: no such file; name a cluster file",)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert mistakes_in(tmp_path) == (f"{tmp_path}: a directory; name a cluster file in it",)


def test_a_file_without_a_name_is_asked_for() -> None:
    assert mistakes_in(Path()) == (".: no file is named; name a cluster file",)


def test_a_path_that_no_file_system_takes_is_refused() -> None:
    assert "cannot be read" in mistakes_in(Path("bad\0name"))[0]


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b"name: caf\xe9\n")

    expected = f"{path}:1:10: not UTF-8 text, got byte 0xe9 at offset 9; save the file as UTF-8"
    assert mistakes_in(path) == (expected,)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ": not a mapping of keys, got nothing; start with `name:`"),
        (b"# nothing\n", ": not a mapping of keys, got nothing; start with `name:`"),
        (b"- a\n- b\n", ":1:1: not a mapping of keys, got [a, b]; start with `name:`"),
        (b"name\n", ":1:1: not a mapping of keys, got 'name'; start with `name:`"),
        (b"name: a\nname: b\n", ":2:1: the key 'name' stands on line 1 too; keep one"),
        (
            b"a:\n  b: 1\n  c: 2\n  b: 3\n",
            ":4:3: the key 'b' stands on line 2 too; keep one",
        ),
        (b"a: &x [*x]\n", ":1:8: an alias refers to itself; write the value out"),
        (b"a: [1, 2\nb: 3\n", ":2:2: not YAML: while parsing a flow sequence, "),
        (b"a: 1\n b: 2\n", ":2:3: not YAML: mapping values are not allowed here"),
        (b"a: 1\nb: \x01\n", ":2:4: not YAML: a character that YAML does not allow; remove it"),
        (
            b"a: !!python/object:os.system {}\n",
            ":1:4: the tag !!python/object:os.system on a map",
        ),
        (b"a: !!bool maybe\n", ":1:4: the tag !!bool on 'maybe'; leave the tag out"),
        (b"a: !!timestamp x\n", ":1:4: the tag !!timestamp on 'x'; leave the tag out"),
        (b"a: !own\n- b\n", ":1:4: the tag !own on a list; leave the tag out"),
        (b"name: !!binary aGk=\n", ":1:7: the tag !!binary on 'aGk='; leave the tag out"),
        (b"? [a, b]\n: 1\n", ":1:3: a list or mapping as a key; write a word"),
        ("name: a".encode("utf-16"), ":1:1: not UTF-8 text, got UTF-16; save the file as UTF-8"),
        (b"a: .inf", ":1:4: no finite number, got .inf; write digits, or put it in quotes"),
        (b"a: [-.Inf]", ":1:5: no finite number, got -.Inf; write digits, or put it in quotes"),
        (b"a: .nan", ":1:4: no finite number, got .nan; write digits, or put it in quotes"),
        (b"a: 1.0e+999", ":1:4: no finite number, got 1.0e+999; write digits, or put it in quotes"),
        (b"a: 1\nb: " + b"9" * 5000, ":2:4: a number of 5000 digits; write a smaller one"),
        (b"a:\n\tb: 1\n", ":2:1: not YAML: a tab in its indentation; use spaces"),
        (b"a: 1\n---\nb: 2\n", ":2:1: not YAML: expected a single document"),
        (b"a: *nowhere\n", ":1:4: not YAML: found undefined alias"),
        (b"[" * 20_000, ":1:51: nested too deeply; write a cluster file"),
    ],
)
def test_text_that_is_no_cluster_file_is_refused_in_one_line(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = written(tmp_path, content)

    (line,) = mistakes_in(path)
    assert line.startswith(f"{path}{expected}")
    assert "\n" not in line
    assert "; " in line


def test_anchors_aliases_and_merge_keys_are_plain_yaml() -> None:
    text = """
name: research
region: us-west-2
network: {vpc_cidr: 10.0.0.0/16, zones: &zones [us-west-2a, us-west-2b]}
pools:
  - &system
    name: system
    instance_types: [m7g.2xlarge]
    provisioner: managed-node-group
    nodes: {min: 2, max: 4}
    zones: *zones
  - <<: *system
    name: workers
"""
    cluster = config.loads(text)

    assert [pool.name for pool in cluster.pools] == ["system", "workers"]
    assert cluster.pool("workers").zones == ("us-west-2a", "us-west-2b")


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    text = CLUSTERS[0].read_text(encoding="utf-8")

    assert config.load(written(tmp_path, text.encode("utf-8-sig"))) == config.load(CLUSTERS[0])


def test_a_number_that_yaml_readers_take_for_different_ones_is_none(tmp_path: Path) -> None:
    for spelled in ("20:00", "02260", "0o17", "0x1F", "1_000", "1e3"):
        document = make_document(pools=[SYSTEM_POOL, pool_document(nodes={"max": "COUNT"})])
        path = written(tmp_path, as_text(document).replace("COUNT", spelled).encode())

        (line,) = mistakes_in(path)

        assert f"pools[train].nodes.max: not a whole number, got '{spelled}'; write digits" in line


def test_words_that_yaml_readers_take_for_other_values_stay_as_they_are_written() -> None:
    env = "{A: 012, B: 1_000, C: 1e3, D: 20:00, E: yes, F: 2026-12-01, G: '~'}"
    text = as_text(make_document(jobs={"tune": {"env": "ENV"}})).replace("ENV", env)

    job = config.loads(text).jobs["tune"]

    assert [*job.env.values()] == ["012", "1_000", "1e3", "20:00", "yes", "2026-12-01", "~"]


def test_what_a_terminal_takes_for_an_order_is_spelled_out(tmp_path: Path) -> None:
    text = as_text(make_document()) + '"\\e[31mcolour\\u202E": 1\n'

    (line,) = mistakes_in(written(tmp_path, text.encode()))

    assert line.isprintable()
    assert r"\x1b[31mcolour\u202e: unknown key" in line


def texts_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each text within ``value`` by its holder and its key there."""
    for key in [*value] if hasattr(value, "keys") else range(len(value)):
        inner = value[key]
        if isinstance(inner, str):
            yield value, key
        elif hasattr(inner, "__len__"):
            yield from texts_in(inner)


def test_no_message_tells_the_password_of_a_url() -> None:
    """Pipelines keep the messages of `check` in their logs."""
    document = yaml.safe_load((ROOT / "clusters" / "serving.yaml").read_text())
    urls = {"issuer": "", "jwks_uri": "", "audiences": ["models"]}
    document["serving"] = {"front": {"jwt": dict(urls)}}
    document["backend"] = {"identity": {"issuer": "", "audience": "jobs"}, "rights": {}}
    document["images"] = {"mirror": "", "packages": {"pip": ""}, "repositories": [""]}
    document["pipeline"] = {"package": "", "repository": "", "connection": ""}
    document["jobs"]["chat"]["env"] = {"HF_ENDPOINT": "", "NCCL_SOCKET_IFNAME": ""}
    held = 0
    for holder, key in [*texts_in(document)]:
        kept, holder[key] = holder[key], "https://ada:hunter2@example.com/simple"
        with pytest.raises(ConfigError) as caught:
            config.loads(as_text(document))
        texts = "".join(each.text for each in caught.value.diagnostics)
        assert "hunter2" not in f"{texts}{caught.value}", key
        held += "***@example.com" in texts
        holder[key] = kept
    assert held > 20


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("git+https://ada:p@ss@host/x.whl", "git+https://***@host/x.whl"),
        ("https://ada:p/ss#?@host", "https://***@host"),
        ("'https://token@host', s3://a/b@c", "'https://***@host', s3://a/b@c"),
        (
            "https://host:443/a@b oci://host/image@sha256:1",
            "https://host:443/a@b oci://host/image@sha256:1",
        ),
    ],
)
def test_what_is_no_password_stays_in_a_message(text: str, shown: str) -> None:
    assert masked(text) == shown


@for_each(
    {
        "comments": (b"# comment?\n" * 5_000_000, "more than 1 MiB, which no cluster file has"),
        "zones": (b"a: [" + b"b, " * 100_000 + b"]", "a list of more than 1,000 items"),
        "keys": (b"".join(b"k%d: 1\n" % each for each in range(3_000)), "of more than 1,000 items"),
        "aliases": (
            b"a: &a0 [b, b]\n"
            + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n + 1, n + 1, n, n) for n in range(40)),
            "more than 20,000 values, with all that aliases stand for",
        ),
        "merges": (
            b"a: &a0 {b: 1}\n"
            + b"".join(b"a%d: &a%d {<<: [*a%d, *a%d]}\n" % (n + 1, n + 1, n, n) for n in range(40)),
            "more than 20,000 values, with all that aliases stand for",
        ),
        "levels of aliases": (
            b"a: &a0 [b]\n"
            + b"".join(b"a%d: &a%d [*a%d]\n" % (n + 1, n + 1, n) for n in range(80)),
            "aliases nested too deeply",
        ),
    }
)
def test_a_file_larger_than_any_cluster_s_is_refused_at_once(content: bytes, expected: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), content)
        begun = time.process_time()

        (line,) = mistakes_in(path)

    assert expected in line
    assert time.process_time() - begun < 2


def test_a_pipe_is_read_and_one_that_nobody_writes_to_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_reader, "_SECONDS_FOR_A_PIPE", 0.1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)

    (waiting,) = mistakes_in(pipe)
    os.write(writer, b"- a\n")
    os.close(writer)
    (written_to,) = mistakes_in(pipe)
    os.close(reader)

    assert "a pipe or device that does not end; write a cluster file" in waiting
    assert ":1:1: not a mapping of keys, got [a]" in written_to


@for_each(["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_device_is_no_cluster_file(device: str) -> None:
    assert "; " in mistakes_in(Path(device))[0]
