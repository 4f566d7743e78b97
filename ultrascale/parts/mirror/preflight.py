"""The copies that a closed cluster pulls are in its mirror, with the recorded digests.

Only a mirror in Amazon ECR can be asked here; `ultrascale mirror FILE check` asks any registry.

Source: https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_DescribeImages.html
"""

from collections.abc import Iterable, Iterator, Sequence

from ultrascale.catalog import registries
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, finding, unknown
from ultrascale.parts.mirror.lock import FILE
from ultrascale.parts.mirror.plan import Plan
from ultrascale.plan.model import CopiesPlan
from ultrascale.preflight.model import Check, Context

_NAME = "mirror"
_ACTION = "ecr:DescribeImages"
_NO_REPOSITORY = "RepositoryNotFoundException"
_COPY = "run `ultrascale mirror FILE copy`"


def _run(context: Context) -> Iterator[Finding]:
    plan = context.plan.part(Plan)
    if plan is None:
        return
    mirror = plan.copies
    registry = registries.parse_ecr_registry(mirror.location.partition("/")[0])
    if not plan.is_recorded:
        evidence = f"no copies in {FILE} beside the file"
        issue = Issue(state="fail", evidence=evidence, fix=_COPY)
        yield finding(_NAME, mirror.location, [issue], fine="")
    elif registry is None:
        evidence = "no registry of Amazon ECR, so that it is not asked here"
        issue = Issue(state="warn", evidence=evidence, fix="run `ultrascale mirror FILE check`")
        yield finding(_NAME, mirror.location, [issue], fine="")
    else:
        yield _look(context, mirror, *registry)


def _look(context: Context, mirror: CopiesPlan, account: str, region: str) -> Finding:
    wanted: dict[str, dict[str, str]] = {}
    for source, digest in mirror.digests.items():
        name = mirror.copy(source.removeprefix("oci://")).partition("@")[0]
        head, slash, last = name.partition("/")[2].rpartition("/")
        repository = f"{head}{slash}{last.partition(':')[0]}"
        wanted.setdefault(repository, {})[digest] = source
    issues: list[Issue] = []
    for repository, sources in wanted.items():
        try:
            lost = _absent(context, account, region, repository, sources)
        except UnansweredError as error:
            if error.code != _NO_REPOSITORY:
                return unknown(_NAME, mirror.location, error)
            lost = [*sources]
        issues += (
            Issue(state="fail", evidence=f"{sources[digest]} is not there ({digest})", fix=_COPY)
            for digest in lost
        )
    fine = f"{len(mirror.digests)} images and charts are there, by the digests of {FILE}"
    return finding(_NAME, mirror.location, issues, fine=fine)


def _absent(
    context: Context, account: str, region: str, repository: str, digests: Iterable[str]
) -> Sequence[str]:
    ecr = context.account.client("ecr", region)
    there = context.account.ask_all(
        ecr.describe_images,
        lambda page: page["imageDetails"],
        registryId=account,
        repositoryName=repository,
    )
    known = {image.get("imageDigest") for image in there}
    return [digest for digest in digests if digest not in known]


MIRROR = Check(name=_NAME, title="copies in images.mirror", actions=(_ACTION,), run=_run)
CHECKS = (MIRROR,)
