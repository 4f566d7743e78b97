"""A job as it is handed over: a template of the cluster file, a file of its own, or a mapping."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.config_jobs import LUSTRE
from tests.support.folders import ROOT
from tests.support.jobs import (
    BATCH,
    HYBRID,
    IMAGE,
    SERVICE,
    VOLCANO,
    container,
    environment,
    job_cluster,
    large_cluster,
    make_job,
    objects,
    pod_spec,
    prepared,
    refusals,
    sentences,
)
from tests.support.pools import as_text, make_document, pool_document
from tests.support.verdicts import verdicts
from ultrascale.errors import ConfigError
from ultrascale.jobs import JobManifests, prepare

PROGRAM = {"image": IMAGE, "script": "train.py", "durable": False}
TEMPLATE: dict[str, Any] = {"pool": "train", "nodes": 2, **PROGRAM}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.yaml"
    document = job_cluster() | {"jobs": {"tune": TEMPLATE, "tune-more": TEMPLATE}}
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    file = tmp_path / "bert.yaml"
    file.write_text(yaml.safe_dump(TEMPLATE))
    return file


def lines(cluster: Path, job: Any, **changes: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        prepare(cluster, job, changes=changes)
    told = error.value.diagnostics
    return [f"{each.file.removeprefix(f'{cluster.parent}/')}: {each.keyed}" for each in told]


# --- where it comes from ------------------------------------------------------------------------


def test_a_template_a_file_and_a_mapping_of_the_same_keys_are_the_same_job(
    cluster: Path, tmp_path: Path
) -> None:
    file = tmp_path / "tune.yml"
    file.write_text(yaml.safe_dump(TEMPLATE))
    first, *others = (
        prepare(cluster, job).objects
        for job in ("tune", file, str(file), {"name": "tune", **TEMPLATE})
    )
    assert others == [first] * 3


def test_a_file_may_name_its_job_or_give_it_its_own_name(cluster: Path, job_file: Path) -> None:
    assert prepare(cluster, job_file).name == "bert"
    job_file.write_text(yaml.safe_dump(TEMPLATE | {"name": "other"}))
    assert prepare(cluster, job_file).name == "other"
    assert prepare(cluster, "tune", changes={"name": "again"}).name == "again"


def test_a_name_that_no_template_has_is_answered_with_the_nearest(cluster: Path) -> None:
    assert lines(cluster, "tnue") == [
        "cluster.yaml: jobs: no job 'tnue'; did you mean tune?; or name a file that ends in .yaml"
    ]
    (line,) = lines(cluster, cluster.parent / "missing.yaml")
    assert line == "missing.yaml: no such file; name a job file"
    with pytest.raises(ConfigError, match="half of a character"):
        prepare(cluster, "tune", changes={"env": {"A": "\ud800"}})
    cluster.write_text(yaml.safe_dump(job_cluster()))
    assert lines(cluster, "tune") == [
        "cluster.yaml: jobs: no job 'tune'; add it first; or name a file that ends in .yaml"
    ]
    # A mistake of the cluster file comes first and alone.
    cluster.write_text(yaml.safe_dump(make_document(name="A b")))
    (line,) = lines(cluster, make_job(nodes=0))
    assert line.startswith("cluster.yaml: name: ")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"name": "Bert_1"}, "cluster.yaml: jobs.tune.name: not a DNS label"),
        # A misspelt key is known though the job has the right one too.
        ({"noeds": 3}, "cluster.yaml: jobs.tune.noeds: unknown key 'noeds'; did you mean nodes?"),
        ({"nodes": 0}, "cluster.yaml: jobs.tune.nodes: out of range, got 0; write at least 1"),
    ],
)
def test_mistakes_of_a_template_name_its_place_in_the_cluster_file(
    cluster: Path, changes: dict[str, Any], line: str
) -> None:
    (told,) = lines(cluster, "tune", **changes)
    assert told.startswith(line)


@pytest.mark.parametrize("account", ["123", "1111-2222-3333", "trainium"])
def test_an_account_that_none_can_be_is_told_with_the_rest(cluster: Path, account: str) -> None:
    with pytest.raises(ConfigError) as error:
        prepare(cluster, "tune", changes={"nodes": 99}, account=account)

    first, second = error.value.mistakes
    assert first.endswith(f"account: not an AWS account id, got {account}; write its 12 digits")
    assert "nodes: " in second


@pytest.mark.parametrize("text", ["- a\n", "a: [\n", "pool: a\npool: b\n"])
def test_a_file_that_is_no_job_is_named(cluster: Path, job_file: Path, text: str) -> None:
    job_file.write_text(text)

    assert all(line.startswith("bert.yaml: ") for line in lines(cluster, job_file))


@pytest.mark.parametrize("file", sorted((ROOT / "jobs").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_job_that_we_ship_runs_in_the_cluster_that_it_names(file: Path) -> None:
    named = next(word for word in file.read_text().split() if word.startswith("clusters/"))

    assert prepare(ROOT / named, file, account="111122223333").name == file.stem


# --- changes ------------------------------------------------------------------------------------


def test_changes_replace_keys_and_join_mappings(cluster: Path) -> None:
    changes: dict[str, Any] = {"nodes": 4, "env": {"B": "2"}, "resources": {"efa": 0}}
    job = {"name": "a", **TEMPLATE, "env": {"A": "1", "B": "1"}, "args": ["--y"]}
    sent = prepare(cluster, job, changes=changes | {"args": ["--x"]})
    assert sent.pods == 4
    assert {"A": "1", "B": "2"}.items() <= environment(sent).items()
    assert "vpc.amazonaws.com/efa" not in container(sent)["resources"]["requests"]
    assert container(sent)["command"][4:] == ["--x"]
    # What was handed over stays as it was.
    assert job["env"] == {"A": "1", "B": "1"}


def terms_of(job: JobManifests) -> set[tuple[str, ...]]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    (term,) = pod_spec(job)["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]
    assert {each["operator"] for each in term["matchExpressions"]} == {"In"}
    return {(each["key"], *each["values"]) for each in term["matchExpressions"]}


@pytest.mark.parametrize("template", ["production", "elastic"])
def test_a_pool_that_is_chosen_is_instead_of_the_nodes_that_the_template_names(
    template: str,
) -> None:
    """Nothing on the command line takes a selector or an order of preference away."""
    job = prepare(HYBRID, template, changes={**PROGRAM, "pool": "eks-on-demand"})
    assert terms_of(job) == {("ultrascale.dev/pool", "eks-on-demand")}
    assert job.namespace == "training"
    # It leaves labels of the nodes within it.
    zone = {"topology.kubernetes.io/zone": "us-east-1b"}
    stated = {"name": "tune", **PROGRAM, "node_selector": {"node-type": "hyperpod", **zone}}
    own = prepare(HYBRID, stated, changes={"pool": "eks-spot"})
    assert terms_of(own) == {("ultrascale.dev/pool", "eks-spot"), *zone.items()}


def test_a_run_for_the_compiler_has_a_name_of_its_own() -> None:
    document = job_cluster(storage=LUSTRE)
    job = make_job(compile_cache={"model": "bert"})

    assert prepared(document, job, precompile=True).name == "tune-precompile"


# --- what is wrong ------------------------------------------------------------------------------


def test_mistakes_name_the_jobs_file_and_the_key(cluster: Path, job_file: Path) -> None:
    wrong = TEMPLATE | {"nodes": 64, "env": {"RANK": 0}}
    job_file.write_text(yaml.safe_dump(wrong, sort_keys=False))

    assert lines(cluster, job_file) == [
        "bert.yaml: nodes: more than the 16 nodes of train, got 64; "
        "ask for at most 16, or raise nodes in pool train",
        "bert.yaml: env.RANK: torchrun sets its own value in each process, got 0; leave it out",
    ]


def test_what_the_file_shows_and_what_the_nodes_show_is_named_at_once() -> None:
    wrong = {"env": {"RANK": "0"}, "resources": {"cpu": 500}, "image": None}

    found = sentences(job=make_job(**wrong))

    assert [line.split(": ")[1] for line in found] == ["image", "env.RANK", "resources.cpu"]


def test_one_mistake_is_told_once_and_not_what_follows_from_it() -> None:
    assert refusals(job=make_job(pool="trian")) == ["pool: job_pool_exists"]
    assert len(refusals(job=make_job(nodes=64))) == 1
    assert len(refusals(job=make_job(nodes=1, resources={"neuron": 32}))) == 1


CACHE = {"compile_cache": {"model": "bert"}}
UNFIT: dict[str, tuple[dict[str, Any] | None, dict[str, Any], bool, str]] = {
    "no image": (
        None,
        make_job(image=None),
        False,
        "image: program_is_named",
    ),
    "no program": (
        None,
        make_job(script=None),
        False,
        "script: program_is_named",
    ),
    "no program of a batch job": (
        job_cluster(pool_document()),
        BATCH | {"command": None},
        False,
        "command: program_is_named",
    ),
    "graphs of a batch job": (
        job_cluster(pool_document()),
        BATCH,
        True,
        "kind: graphs_have_a_cache",
    ),
    "graphs that nothing keeps": (
        None,
        make_job(),
        True,
        "compile_cache: graphs_have_a_cache",
    ),
    "graphs without a volume": (
        None,
        make_job(**CACHE),
        False,
        "compile_cache: graphs_have_a_cache",
    ),
    "graphs beside the volume": (
        job_cluster(storage=LUSTRE),
        make_job(compile_cache={"model": "bert", "path": "/database/graphs"}),
        False,
        "compile_cache.path: graphs_have_a_cache",
    ),
    "etcd without Volcano": (
        job_cluster(
            pool_document(nodes={"static": 4}),
            scheduling={"rendezvous": {"backend": "etcd", "replicas": 1}},
        ),
        make_job(rendezvous="etcd"),
        False,
        "rendezvous: nodes_meet",
    ),
    "etcd across several Volcano jobs": (
        large_cluster(scheduling=VOLCANO | {"rendezvous": {"backend": "etcd", "replicas": 3}}),
        make_job(nodes=10_001, rendezvous="etcd"),
        False,
        "rendezvous: nodes_meet",
    ),
    "c10d for more agents than it joins": (
        large_cluster(),
        make_job(nodes=65, rendezvous="c10d"),
        False,
        "rendezvous: nodes_meet",
    ),
    "large elastic job without a server": (
        large_cluster(),
        make_job(nodes=65, min_nodes=64),
        False,
        "nodes: nodes_meet",
    ),
    "large job whose processes restart by themselves": (
        large_cluster(),
        make_job(nodes=65, restarts={"workers": 1}),
        False,
        "nodes: nodes_meet",
    ),
    "elastic job of several Volcano jobs": (
        large_cluster(scheduling=VOLCANO | {"rendezvous": {"backend": "etcd", "replicas": 3}}),
        make_job(nodes=10_001, min_nodes=10_000),
        False,
        "min_nodes: elastic_job_is_one",
    ),
    "service that shares its node": (
        job_cluster(pool_document(instance_types=["m7i.8xlarge"], zones=None)),
        SERVICE | {"resources": {"cpu": 1}},
        False,
        "resources.memory: resources_fit",
    ),
    "nodes with unlike accelerators": (
        job_cluster(
            pool_document(labels={"a/b": "c"}),
            pool_document(name="trn", instance_types=["trn1.32xlarge"], labels={"a/b": "c"}),
        ),
        make_job(pool=None, node_selector={"a/b": "c"}),
        False,
        "pool: nodes_are_named",
    ),
    "two claims that want one path": (
        job_cluster(
            storage={
                "lustre": [
                    LUSTRE["lustre"][0],
                    LUSTRE["lustre"][0]
                    | {
                        "name": "more",
                        "claim": {"namespace": "training", "name": "b", "mount_path": "/data"},
                    },
                ]
            }
        ),
        make_job(),
        False,
        "volumes: claims_have_a_place_each",
    ),
}


@pytest.mark.parametrize(("document", "job", "precompile", "line"), UNFIT.values(), ids=list(UNFIT))
def test_a_job_that_does_not_fit_its_cluster_is_refused_with_a_way_out(
    document: dict[str, Any] | None, job: dict[str, Any], precompile: bool, line: str
) -> None:
    with pytest.raises(ConfigError) as error:
        prepared(document, job, precompile=precompile)

    assert verdicts(error.value) == [line]


def test_claims_of_its_namespace_are_mounted_unless_it_says_otherwise() -> None:
    document = job_cluster(storage=LUSTRE)

    assert prepared(document).claims == ("data",)
    assert container(prepared(document))["volumeMounts"][0]["mountPath"] == "/data"
    assert prepared(document, volumes=[]).claims == ()
    own = [{"claim": "own", "mount_path": "/x", "existing": True}]
    assert prepared(document, volumes=own).claims == ("own",)


def test_a_job_says_what_its_reader_should_know() -> None:
    several = pool_document(
        instance_types=["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"],
        zones=None,
        purchase={"option": "spot"},
    )

    assert prepared(job_cluster(several)).notes == (
        "Pods on train have no EFA interface (several types): what they tell each other goes over "
        "TCP, many times slower.",
        "EC2 takes Spot nodes of train one by one, and the job restarts with each; min_nodes lets "
        "it go on with fewer.",
    )
    assert len(objects(prepared(job_cluster(several), min_nodes=1), "Job")) == 1


def test_a_mistake_in_a_job_has_its_place_and_a_change_of_the_command_line_none(
    cluster: Path, job_file: Path
) -> None:
    job_file.write_text("pool: train\nimage: bert\nnodes: 64\n")

    with pytest.raises(ConfigError) as of_file:
        prepare(cluster, job_file)
    with pytest.raises(ConfigError) as of_option:
        prepare(cluster, job_file, changes={"nodes": 65})

    (told,) = (each for each in of_file.value.diagnostics if each.key == "nodes")
    (set_elsewhere,) = (each for each in of_option.value.diagnostics if each.key == "nodes")
    assert str(told).startswith(f"{job_file}:3:1: nodes: more than the 16 nodes of train")
    assert str(set_elsewhere).startswith(f"{job_file}: nodes: more than the 16 nodes of train")


def test_a_mistake_in_a_template_has_its_place_in_the_cluster_file(cluster: Path) -> None:
    text = as_text(make_document(jobs={"tune": {"pool": "train", "image": "bert", "nodes": 0}}))
    cluster.write_text(text)
    line = text.splitlines().index("    nodes: 0") + 1
    with pytest.raises(ConfigError) as error:
        prepare(cluster, "tune")
    told = f"{cluster}:{line}:5: jobs.tune.nodes: out of range, got 0; write at least 1"
    assert told in error.value.mistakes
