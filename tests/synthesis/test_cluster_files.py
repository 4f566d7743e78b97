"""The cluster file that `cdk synth` takes where none is named."""

from pathlib import Path

import pytest

from ultrascale.errors import QuestionError
from ultrascale_stacks.app import only_cluster_file

CLUSTER = "name: a\nregion: us-west-2\npools: [\n"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)


def test_the_only_one_is_taken_with_its_mistakes_beside_files_of_others(tmp_path: Path) -> None:
    write(tmp_path, mine=CLUSTER, chart="name: a\nversion: 1\n")
    (tmp_path / "binary.yml").write_bytes(b"\xff\xfe")

    assert only_cluster_file(tmp_path) == tmp_path / "mine.yaml"


def test_the_folder_clusters_is_the_next(tmp_path: Path) -> None:
    write(tmp_path / "clusters", prod=CLUSTER)

    assert only_cluster_file(tmp_path) == tmp_path / "clusters" / "prod.yaml"


def test_the_choices_are_named(tmp_path: Path) -> None:
    write(tmp_path, dev=CLUSTER, prod=CLUSTER)

    with pytest.raises(QuestionError, match=r"2 cluster files .*-c cluster=.*dev.yaml, .*prod"):
        only_cluster_file(tmp_path)


def test_none_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match=r"has no cluster file; .*`ultrascale init`"):
        only_cluster_file(tmp_path)
