"""Rules of the labels, taints and tags of a pool."""

from ultrascale.catalog import matrix
from ultrascale.config._errors import Mistake, Mistakes, refuse
from ultrascale.config._rules import rule
from ultrascale.config.pools import Pool

# Domains of labels that the kubelet, Karpenter, EKS or this product sets.
_OTHERS_LABELS = (
    "kubernetes.io",
    "k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
    "amazonaws.com",
    "amazon.com",
    "k8s.aws",
    "nvidia.com",
    "ultrascale.dev",
)

# A NodePool takes a hundred labels, with its requirements and our own.
# Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/apis/crds/karpenter.sh_nodepools.yaml
_MOST_LABELS = 80

# Beside the accelerators' own taint and the two below.
_MOST_TAINTS = matrix.TAINTS_PER_GROUP - 3
# Of nodes that are dedicated, and of Spot nodes with accelerators.
_OWN_TAINTS = frozenset({"dedicated", "spot"})

# Tags by which Karpenter, EKS Auto Mode and EKS know their own instances.
# Source: the CRD of https://karpenter.sh/docs/concepts/nodeclasses/#spectags
_OTHERS_TAGS = frozenset(
    {
        "karpenter.k8s.aws/ec2nodeclass",
        "karpenter.sh/nodeclaim",
        "karpenter.sh/nodepool",
    }
)
# Source: the same, and https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html, and
# the tags of the Cluster Autoscaler: another cluster's would find the group by them. `Name` is not
# among them: a stated one replaces ours.
_OTHERS_PREFIXES = (
    "aws:",
    "eks:",
    "k8s.io/cluster-autoscaler/",
    "kubernetes.io/cluster/",
    "ultrascale.dev/",
)

# EC2 takes 50 on a resource; the others are left to EKS, Karpenter and us.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
_MOST_TAGS = 40


@rule
def labels_are_free(pool: Pool) -> Mistakes:
    for key in pool.labels:
        domain, slash, _ = key.rpartition("/")
        taken = owner_of_domain(domain) if slash else None
        if taken is not None:
            wrong = f"labels of {taken} are not yours to set"
            yield Mistake(("labels", key), wrong, "use a domain of your own")


@rule
def labels_fit_a_node_pool(pool: Pool) -> Mistakes:
    if pool.is_node_pool and len(pool.labels) > _MOST_LABELS:
        wrong = f"more labels than the {_MOST_LABELS} of yours that a NodePool takes"
        yield refuse("labels", wrong, f"keep {_MOST_LABELS}", got=str(len(pool.labels)))


@rule
def taints_are_allowed(pool: Pool) -> Mistakes:
    if not pool.taints:
        return
    if pool.deep_health_checks and pool.facts.is_dedicated:
        wrong = f"{pool.facts.word} takes no taints where it runs deep health checks"
        todo = "leave it out, or set deep_health_checks: false"
        yield refuse("taints", wrong, todo, got="")
    if pool.role == "system":
        wrong = "taints on the nodes of controllers and add-ons, which do not tolerate them"
        yield refuse("taints", wrong, "leave it out", got="")
    most = _MOST_TAINTS
    if len(pool.taints) > most:
        wrong = f"more taints than the {most} of yours that a group takes"
        yield refuse("taints", wrong, f"keep {most}", got=str(len(pool.taints)))
        return
    for number, taint in enumerate(pool.taints):
        domain, slash, _ = taint.key.rpartition("/")
        if taint.key in _OWN_TAINTS or (slash and owner_of_domain(domain) is not None):
            wrong = "a taint that a controller, or the pool itself, sets"
            yield refuse(f"taints.{number}.key", wrong, "use a key of your own", got=taint.key)
        if any((taint.key, taint.effect) == (t.key, t.effect) for t in pool.taints[:number]):
            yield refuse(f"taints.{number}.key", "twice with one effect", "keep one", got=taint.key)


@rule
def managed_group_takes_the_words(pool: Pool) -> Mistakes:
    """Yield labels and taints that Kubernetes takes and the API of managed groups does not."""
    if not pool.is_managed:
        return
    most = matrix.GROUP_KEY_CHARACTERS
    for key, value in pool.labels.items():
        if len(key) > most:
            wrong = f"a key of more than the {most} characters that EKS takes"
            yield Mistake(("labels", key), wrong, "shorten it", got=key)
        if not value:
            wrong = "EKS takes no label without a value"
            yield Mistake(("labels", key), wrong, "write a value, such as 'true'")
    for number, taint in enumerate(pool.taints):
        if len(taint.key) > most:
            wrong = f"a key of more than the {most} characters that EKS takes"
            yield refuse(f"taints.{number}.key", wrong, "shorten it")


@rule
def tags_are_free(pool: Pool) -> Mistakes:
    for key, value in pool.tags.items():
        if key in _OTHERS_TAGS or key.casefold().startswith(_OTHERS_PREFIXES):
            wrong = "a tag that AWS, Karpenter or this product sets itself"
            yield Mistake(("tags", key), wrong, "choose another key")
        elif value.casefold().startswith("aws:"):
            wrong = "a value that AWS keeps for itself"
            yield Mistake(("tags", key), wrong, "write it without aws: before it")


@rule
def tags_leave_room(pool: Pool) -> Mistakes:
    if len(pool.tags) > _MOST_TAGS:
        wrong = "more tags than an instance can have beside those of EKS and Karpenter"
        yield refuse("tags", wrong, f"write at most {_MOST_TAGS}", got=f"{len(pool.tags)} tags")


def owner_of_domain(domain: str) -> str | None:
    """Return the owner of ``domain``, who sets its labels and taints; None without one."""
    taken = (owner for owner in _OTHERS_LABELS if domain == owner or domain.endswith(f".{owner}"))
    return next(taken, None)
