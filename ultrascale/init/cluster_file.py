"""A user's cluster file, made from a start and the user's answers."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ultrascale import config
from ultrascale.catalog import regions
from ultrascale.errors import ConfigError, UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.plan import all_mistakes
from ultrascale.resources import resource

# --- Cluster files from which a new cluster file can start, by short names ------------------------


class Start(Frozen):
    """A cluster file to start from."""

    file: str  # The file, as a path in the product's repository
    summary: str  # The cluster in a few words
    jobs: tuple[str, ...] = ()  # Job files for it, as paths in the product's repository
    needs_grants: bool = (
        False  # Whether `plan` ends with 2 until AWS grants a limit above the published one
    )

    @property
    def path(self) -> Path:
        """Path of the file on this machine."""
        return resource(self.file)


_OWN = "ultrascale/init/starts"
STARTS: Mapping[str, Start] = MappingProxyType(
    {
        "minimal": Start(file=f"{_OWN}/minimal.yaml", summary="two system nodes, one-GPU nodes"),
        "trainium": Start(
            file="clusters/trainium-bert.yaml",
            summary="BERT on trn1.32xlarge, the AWS tutorial",
            jobs=("jobs/bert-data.yaml", "jobs/bert-pretrain.yaml", "jobs/tensorboard.yaml"),
        ),
        "hopper": Start(
            file=f"{_OWN}/hopper.yaml",
            summary="p5.48xlarge with EFA and Lustre",
            jobs=(
                f"{_OWN}/hopper-jobs/synthetic-data.yaml",
                f"{_OWN}/hopper-jobs/pretrain.yaml",
            ),
        ),
        "hybrid": Start(
            file="clusters/hybrid-hyperpod.yaml",
            summary="HyperPod on a training plan, and bursts on EKS",
        ),
        "mixed": Start(
            file="clusters/mixed-capacity.yaml",
            summary="every purchase option, reserved and burst",
        ),
        "teams": Start(
            file="clusters/llm-kueue.yaml",
            summary="teams in queues of Kueue: reserved nodes, bursts, services",
        ),
        "serving": Start(
            file="clusters/serving.yaml",
            summary="model servers on GPUs, Spot nodes and Inferentia",
        ),
        "existing": Start(
            file="clusters/existing-estate.yaml",
            summary="a VPC, keys and a file system that exist, without internet",
        ),
        "auto-mode": Start(file="clusters/auto-mode.yaml", summary="EKS Auto Mode"),
        "ultra": Start(
            file="clusters/ultra-100k.yaml",
            summary="100,000 nodes: `plan` says what AWS has to grant first",
            needs_grants=True,
        ),
    }
)


# --- A user's cluster file, made from a start and the user's answers ------------------------------


# The account in the examples, and their range for documentation (RFC 5737).
STAND_IN_ACCOUNT = "111122223333"
STAND_IN_NETWORK = "203.0.113.0/24"
# A name, a Region, a zone or an address range needs no quotes; a user's other values are quoted.
_PLAIN = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+|[0-9]+(?:\.[0-9]+){3}/[0-9]+")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::([0-9]{12}):")


class Answers(Frozen):
    """Answers of a user about a new cluster."""

    name: str  # Its name
    region: str  # Its Region
    zones: tuple[str, ...]  # Its zones
    admin: str  # ARN of the role that administers it
    # Ranges that reach its API server over the internet; empty for none.
    networks: tuple[str, ...]


def defaults(start: Start, name: str, *, region: str | None = None) -> Answers:
    """Return the answers that ``start`` itself gives, moved to ``region``.

    Raises:
        CatalogError: There is no such Region.
    """
    own = config.load(start.path)
    region = own.region if region is None else region
    return Answers(
        name=name,
        region=region,
        zones=_zones(own, region),
        admin=_text_in_partition(own.kubernetes.admins[0], region),
        networks=tuple(str(block) for block in own.kubernetes.endpoint.public_cidrs),
    )


def _text_in_partition(text: str, region: str) -> str:
    return text.replace("arn:aws:", f"arn:{regions.lookup_region(region).partition}:")


def _zones(own: config.Cluster, region: str) -> tuple[str, ...]:
    if region == own.region:
        return own.network.zone_names
    letters = regions.lookup_region(region).zone_letters or "abc"
    return tuple(f"{region}{letter}" for letter in letters[: len(own.network.zone_names)])


def cluster_text(start: Start, answers: Answers) -> str:
    """Return ``start`` as a cluster file with ``answers``."""
    text = start.path.read_text(encoding="utf-8")
    own = config.loads(text)
    text = without_modeline(text)
    # Users need not know from which sources of the project an example is built.
    text = re.sub(r" \(seeds? [0-9 and]+\)", "", text)
    text = _text_in_partition(_moved_to_zones(text, own, answers), answers.region)
    if (account := _ROLE.match(answers.admin)) is not None:
        text = text.replace(STAND_IN_ACCOUNT, account[1])
    endpoint = "{private: true}"
    if answers.networks:
        endpoint = f"{{private: true, public_cidrs: {_flow_sequence(answers.networks)}}}"
    for pattern, line in (
        (r"^name: .*$", f"name: {_scalar(answers.name)}"),
        (r"^  endpoint: \{.*\}", f"  endpoint: {endpoint}"),
        (r"^  admins: \[.*\]", f"  admins: [{json.dumps(answers.admin)}]"),
    ):
        text, count = re.subn(pattern, lambda _, line=line: line, text, count=1, flags=re.M)
        assert count == 1, pattern
    return text


def without_modeline(text: str) -> str:
    """Return the file ``text`` without the line that names its schema to editors."""
    return re.sub(r"\A(?:# yaml-language-server:.*\n)+", "", text)


def _moved_to_zones(text: str, own: config.Cluster, answers: Answers) -> str:
    """Return ``text`` with its Region and zones replaced by those of ``answers``.

    A pool in the start's second zone goes to the second zone; with fewer zones, to the first.
    """
    own_zones = own.network.zone_names
    if (answers.region, answers.zones) == (own.region, own_zones):
        return text
    zones = answers.zones or (answers.region,)
    moved = {old: zones[n % len(zones)] for n, old in enumerate(own_zones)}
    parts = re.compile(rf"\b{own.region}[a-z]?\b")

    def move(found: re.Match[str]) -> str:
        return _scalar(moved.get(found[0], answers.region))

    if own.network.vpc is not None:
        return parts.sub(move, text)
    listed = f"  zones: {_flow_sequence(answers.zones)}"
    before, own_list, after = re.split(r"^(  zones: \[.*?\])", text, maxsplit=1, flags=re.M)
    assert own_list
    return f"{parts.sub(move, before)}{listed}{parts.sub(move, after)}"


def mistakes_in(text: str) -> tuple[str, ...]:
    """Return the mistakes that `check` finds in the cluster file ``text``, each as a line."""
    try:
        reading = config.reads(text, source="")
        mistakes = all_mistakes(reading)
    except ConfigError as error:
        return error.mistakes
    except UltrascaleError as error:
        return (str(error),)
    return reading.refusal(mistakes).mistakes if mistakes else ()


def _flow_sequence(values: Sequence[str]) -> str:
    return f"[{', '.join(_scalar(value) for value in values)}]"


def _scalar(value: str) -> str:
    """Return ``value`` as a YAML scalar that every reader takes for a string."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value)
