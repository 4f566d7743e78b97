"""What the tags of nodes and of reservations may be."""

from collections.abc import Iterator, Mapping

from ultrascale.config._errors import Mistake, refuse

Mistakes = Iterator[Mistake]

# Tags by which Karpenter, EKS Auto Mode and EKS know their own instances.
# Source: the CRD of https://karpenter.sh/docs/concepts/nodeclasses/#spectags
_OTHERS_TAGS = frozenset(
    {
        "karpenter.k8s.aws/ec2nodeclass",
        "karpenter.sh/nodeclaim",
        "karpenter.sh/nodepool",
    }
)
# Source: the same, and https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
# and what a Cluster Autoscaler reads: by such a tag one of another cluster would find the group.
# `Name` is not among them: whoever writes it replaces ours.
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
# Source: the CRD of https://karpenter.sh/docs/concepts/nodeclasses/
_MOST_SELECTOR_TAGS = 20


def tags_are_free(tags: Mapping[str, str]) -> Mistakes:
    for key, value in tags.items():
        if key in _OTHERS_TAGS or key.casefold().startswith(_OTHERS_PREFIXES):
            wrong = "a tag that AWS, Karpenter or this product sets itself"
            yield Mistake(("tags", key), wrong, "choose another key")
        elif value.casefold().startswith("aws:"):
            wrong = "a value that AWS keeps for itself"
            yield Mistake(("tags", key), wrong, "write it without aws: before it")


def tags_leave_room(tags: Mapping[str, str]) -> Mistakes:
    if len(tags) > _MOST_TAGS:
        wrong = "more tags than leave room on an instance for those of EKS and Karpenter"
        yield refuse("tags", wrong, f"write at most {_MOST_TAGS}", got=f"{len(tags)} tags")


def selector_is_short(reservation_tags: Mapping[str, str] | None) -> Mistakes:
    count = len(reservation_tags or ())
    if count > _MOST_SELECTOR_TAGS:
        wrong = "more tags than a node class selects by"
        todo = f"write at most {_MOST_SELECTOR_TAGS}"
        yield refuse("reservation_tags", wrong, todo, got=f"{count} tags")
