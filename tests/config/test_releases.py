"""`requires`, `$schema` and `pipeline.package`: which release of this product reads a file."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.config_documents import sentences_in
from tests.support.pools import as_text, make_document
from ultrascale import config
from ultrascale.errors import ConfigError
from ultrascale.release import VERSION

BAD_RANGE = "not a range of versions, got {}; write a range of versions, as '>=0.3,<1'"
ACCOUNT = "111122223333"
NAME = "ultrascale-0.4.0-py3-none-any.whl"
DIGEST = "0" * 64


def with_package(package: object, **changes: Any) -> dict[str, Any]:
    pipeline = {
        "connection": "arn:aws:codeconnections:us-west-2:444455556666:connection/0aa1",
        "repository": "example/clusters",
        "stages": [{"name": "prod"}],
        "package": package,
    }
    return make_document(account=ACCOUNT, pipeline=pipeline, **changes)


@for_each([f"=={VERSION}", ">=0.1", ">=0.1,<99", "~=0.1", "!=99.1", "<99.dev1"])
def test_a_file_is_read_by_the_versions_that_it_names(requires: str) -> None:
    assert sentences_in(make_document(requires=requires)) == []


def test_an_older_package_says_what_to_install_and_nothing_else() -> None:
    """A key of the newer release would be an unknown one: the user would mend what is right."""
    document = make_document(requires=">= 99.3, < 100", new_key=True, name="Not A Name")

    assert sentences_in(document) == [
        f"requires: this is ultrascale {VERSION}, which may not read the file, "
        "got '>= 99.3, < 100'; install a wheel of ultrascale >=99.3,<100"
    ]


def test_a_newer_package_says_so_too() -> None:
    (line,) = sentences_in(make_document(requires="<0.1"))

    assert line.endswith("install a wheel of ultrascale <0.1")


@for_each(
    {
        "two signs in the wrong order": ("=>0.3", "'=>0.3'"),
        "a bare version": ("0.3", "'0.3'"),
        "a word": ("latest", "'latest'"),
        "npm's spelling": ("^0.3", "'^0.3'"),
    }
)
def test_a_range_that_is_none_is_told_with_the_other_mistakes(requires: str, got: str) -> None:
    document = make_document(requires=requires, name="Not A Name")

    lines = sentences_in(document)

    assert f"requires: {BAD_RANGE.format(got)}" in lines
    assert len(lines) == 2


def test_an_empty_range_is_told() -> None:
    (line,) = sentences_in(make_document(requires=" "))

    assert line.startswith("requires: not a range of versions")


def test_a_number_is_no_range() -> None:
    assert sentences_in(make_document(requires=0.3)) == [
        "requires: not text, got 0.3; put it in quotes"
    ]


def test_a_range_without_quotes_is_told_to_take_some() -> None:
    text = f"requires: >=0.3\n{as_text(make_document())}"

    with pytest.raises(ConfigError, match=r"put a value that begins with > or \| in quotes"):
        config.loads(text)


def test_editors_may_name_a_schema_that_nothing_else_reads() -> None:
    cluster = config.loads(as_text(make_document(**{"$schema": "nowhere/cluster.schema.json"})))

    assert "$schema" not in config.text_of(cluster)


def test_a_file_that_others_get_names_no_release() -> None:
    """The backend reads it with the release that it is of."""
    document = with_package(NAME, requires=">=0.1")

    text = config.text_of(config.loads(as_text(document)))

    assert "requires" not in text
    assert "0.4.0" not in text


class TestJobFiles:
    """The same keys in a file of a job."""

    def read(self, folder: Path, text: str) -> config.JobReading:
        (folder / "tune.yaml").write_text(text)
        reading = config.reads(as_text(make_document()), source="cluster")
        return config.read_job(reading, folder / "tune.yaml", changes={})

    def test_a_job_file_may_have_them(self, tmp_path: Path) -> None:
        found = self.read(
            tmp_path, '$schema: job.schema.json\nrequires: ">=0.1"\nkind: batch\nretries: 2\n'
        )

        assert not [each for each in found.mistakes if each.at[0] in ("$schema", "requires")]

    def test_an_older_package_says_so_first(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"requires: .*install a wheel of ultrascale >=99"):
            self.read(tmp_path, 'requires: ">=99"\nnew: 1\n')

    def test_a_range_that_is_none_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="requires: not a range of versions"):
            self.read(tmp_path, 'requires: "=>1"\n')


@for_each(
    {
        "a wheel": (f"wheels/{NAME}", "wheel", "0.4.0"),
        "a wheel beside the file": (NAME, "wheel", "0.4.0"),
        "a wheel with its digest": (f"{NAME}#sha256={DIGEST}", "wheel", "0.4.0"),
        "an object": (f"s3://artifacts/tools/{NAME}", "bucket", "0.4.0"),
        "an address": (f"https://h.example:8443/a-b/{NAME}#sha256={DIGEST}", "address", "0.4.0"),
        "the clone": (".", "checkout", VERSION),
    }
)
def test_a_package_is_a_wheel_of_a_stated_place(text: str, source: str, version: str) -> None:
    found = config.release_of(text)

    assert (found.source, found.version) == (source, version)
    assert sentences_in(with_package(text)) == []


NOWHERE = "no place of a wheel, and the name ultrascale is registered on no public index"
PLACES_TODO = (
    "write a wheel as wheels/NAME.whl, s3://BUCKET/KEY.whl, or https://HOST/NAME.whl#sha256=DIGEST"
)
NAME_TODO = "keep the name that it was built with, as ultrascale-0.3.0-py3-none-any.whl"


@for_each(
    {
        "a version": ("0.4.0", f"{NOWHERE}, got '0.4.0'; {PLACES_TODO}"),
        "a requirement": (
            "ultrascale==0.4.0",
            f"{NOWHERE}, got 'ultrascale==0.4.0'; {PLACES_TODO}",
        ),
        "a word": ("latest", f"{NOWHERE}, got 'latest'; {PLACES_TODO}"),
        "a number": (0.3, "not text, got 0.3; put it in quotes"),
        "an address without a digest": (
            f"https://example.com/{NAME}",
            f"an address, which may have another wheel tomorrow, got 'https://example.com/{NAME}'; "
            "write #sha256=DIGEST after it, as sha256sum prints it",
        ),
        "an address with a command": (
            f"https://example.com/$(id)/{NAME}",
            f"not the address of a wheel, got 'https://example.com/$(id)/{NAME}'; "
            "write https://HOST/PATH/NAME.whl",
        ),
        "an address that anybody on the way may change": (
            f"http://example.com/{NAME}",
            f"not the path of a wheel within the repository, got 'http://example.com/{NAME}'; "
            "write it from the repository's folder, as wheels/NAME.whl",
        ),
        "a path out of the repository": (
            f"../{NAME}",
            f"not the path of a wheel within the repository, got '../{NAME}'; "
            "write it from the repository's folder, as wheels/NAME.whl",
        ),
        "a command": (
            "x;rm -rf $HOME.whl",
            "not the path of a wheel within the repository, got 'x;rm -rf $HOME.whl'; "
            "write it from the repository's folder, as wheels/NAME.whl",
        ),
        "a renamed wheel": ("new.whl", f"not the name of a wheel, got 'new.whl'; {NAME_TODO}"),
        "a wheel of another product": (
            "boto3-1.44.5-py3-none-any.whl",
            "a wheel of boto3, not of ultrascale, got 'boto3-1.44.5-py3-none-any.whl'; "
            f"{NAME_TODO}",
        ),
        "a bucket without a key": (
            "s3://artifacts",
            "not a wheel in a bucket, got 's3://artifacts'; write s3://BUCKET/KEY.whl",
        ),
        "a short digest": (
            f"{NAME}#sha256=abc",
            f"not a SHA-256 digest, got '{NAME}#sha256=abc'; "
            "write 64 hexadecimal digits after #sha256=, as sha256sum does",
        ),
    }
)
def test_another_package_is_refused_with_what_to_write(package: object, line: str) -> None:
    assert sentences_in(with_package(package)) == [f"pipeline.package: {line}"]


def test_a_pipeline_installs_nothing_that_may_not_read_its_file() -> None:
    assert sentences_in(with_package(NAME, requires=">=0.1,<0.4")) == [
        "pipeline.package: version 0.4.0, but this file requires '>=0.1,<0.4', "
        f"got '{NAME}'; change package or requires"
    ]
