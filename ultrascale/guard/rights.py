"""Rights that leave the roles of running nodes, pods and functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ultrascale.documents import objects, sequence
from ultrascale.guard.iam import Permission, permissions, permissions_beyond
from ultrascale.guard.judging import trusted_services
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.replacement import Worlds, change_of
from ultrascale.guard.templates import Key, World, references, text_of

ROLE = "AWS::IAM::Role"
MANAGED_POLICY = "AWS::IAM::ManagedPolicy"
_POLICIES = (MANAGED_POLICY, "AWS::IAM::Policy", "AWS::IAM::RolePolicy")
_FUNCTIONS = "functions"
_USERS = {
    "ec2.amazonaws.com": "nodes",
    "lambda.amazonaws.com": _FUNCTIONS,
    "pods.eks.amazonaws.com": "pods",
    "sagemaker.amazonaws.com": "nodes",
}
_ALL_OF_POLICY = "all of the policy"
_MOST_RESOURCES, _MOST_ACTIONS = 4, 4
# A copy of an object onto itself rewrites the object.
_OF_KEYS = (
    "keep the right until nothing needs it: what a key of KMS encrypted stays encrypted by it "
    "until somebody writes it anew, as `aws s3 cp s3://BUCKET/ s3://BUCKET/ --recursive "
    "--sse aws:kms --sse-kms-key-id KEY` does; then name the role"
)

_Held = Mapping[Key, Sequence[Permission]]


def with_rights(changes: Iterable[Change], worlds: Worlds) -> Iterator[Change]:
    """Yield ``changes``, and a change of each role in use that stays but loses rights.

    Args:
        changes: Changes of resources; one that is protected already stays as it is.
        worlds: Both sides.
    """
    all_changes = list(changes)
    gone = {
        f"<{change.stack}.{change.logical_id}{end}"
        for change in all_changes
        if change.action == "deleted"
        for end in (".", ">")
    }
    lost = dict(_lost_rights(worlds, gone))
    for change in all_changes:
        harm = lost.pop((change.stack, change.logical_id), None)
        yield change if harm is None or change.lost else change.harmed(harm)
    for key, harm in lost.items():
        yield change_of(key, worlds.new, "updated").harmed(harm)


def _lost_rights(worlds: Worlds, gone: set[str]) -> Iterator[tuple[Key, Harm]]:
    """Yield the roles that lose rights, apart from rights to resources that are ``gone``."""
    old, new = worlds.old, worlds.new
    # A stack that left the file keeps its policies for a role.
    left = _role_permissions(old, [stack for stack in old.templates if stack not in new.templates])
    before, after = _role_permissions(old, old.templates), _role_permissions(new, new.templates)
    for key in worlds.standing():
        if old.type_of(key) != ROLE or before.get(key) == after.get(key):
            continue
        services = trusted_services(old.properties(key))
        users = sorted({_USERS[service] for service in services if service in _USERS})
        if users == [_FUNCTIONS] and _is_renewed(key, worlds):
            continue
        if not users:
            continue
        had, has = before.get(key, ()), (*after.get(key, ()), *left.get(key, ()))
        lost = [
            each for each in _withdrawn(had, has) if not any(mark in each.resource for mark in gone)
        ]
        if lost:
            yield key, _harm(users, lost)


def _withdrawn(had: Sequence[Permission], has: Sequence[Permission]) -> Iterator[Permission]:
    """Yield what is no longer allowed, then what is denied anew."""
    yield from (each for each in permissions_beyond(had, has) if each.effect == "Allow")
    yield from (each for each in permissions_beyond(has, had) if each.effect == "Deny")


def _is_renewed(role: Key, worlds: Worlds) -> bool:
    """Return whether every function that uses a role gets new code, which may need fewer rights."""
    codes = [
        [side.properties(key).get("Code") for side in (worlds.old, worlds.new)]
        for key in worlds.standing()
        if worlds.new.type_of(key) == "AWS::Lambda::Function"
        for reference in references(worlds.new.properties(key).get("Role"))
        if reference.resource == role
    ]
    return bool(codes) and all(before != after for before, after in codes)


def _role_permissions(world: World, stacks: Iterable[str]) -> _Held:
    """Return the permissions that policies in ``stacks`` give the roles of all stacks."""
    held: dict[Key, list[Permission]] = {}
    for stack in stacks:
        for logical_id, body in world.resources(stack).items():
            key = (stack, logical_id)
            if body["Type"] == ROLE:
                held.setdefault(key, []).extend(_permissions_of_role(world, key))
            elif body["Type"] in _POLICIES:
                values = world.properties(key)
                attached = (values.get("Roles"), values.get("RoleName"))
                for role in {each.resource for value in attached for each in references(value)}:
                    held.setdefault(role, []).extend(permissions(values.get("PolicyDocument")))
    return held


def _permissions_of_role(world: World, role: Key) -> Iterator[Permission]:
    values = world.properties(role)
    for policy in objects(values, "Policies"):
        yield from permissions(policy.get("PolicyDocument"))
    for arn in sequence(values, "ManagedPolicyArns"):
        policies = [
            reference.resource
            for reference in references(arn)
            if world.type_of(reference.resource) == MANAGED_POLICY
        ]
        for policy in policies:
            yield from permissions(world.properties(policy).get("PolicyDocument"))
        if not policies:
            yield Permission("Allow", "", _ALL_OF_POLICY, text_of(arn), frozenset())


def _harm(users: Sequence[str], lost: Sequence[Permission]) -> Harm:
    by_resource: dict[str, list[str]] = {}
    for each in lost:
        denied = "not to be denied " if each.effect == "Deny" else ""
        actions = by_resource.setdefault(each.resource, [])
        if f"{denied}{each.action}" not in actions:
            actions.append(f"{denied}{each.action}")
    told = [f"{_shortened_list(actions)} on {name}" for name, actions in by_resource.items()]
    more = f"; and {len(told) - _MOST_RESOURCES} resources more" * (len(told) > _MOST_RESOURCES)
    return Harm(
        verdict="cuts running pods off" if "pods" in users else "cuts running nodes off",
        lost=f"rights of {' and '.join(users)} that run: {'; '.join(told[:_MOST_RESOURCES])}{more}",
        instead=_OF_KEYS
        if any(each.action.lower().startswith(("kms:", "*")) for each in lost)
        else f"end the {' and '.join(users)} that use it first, then name the role",
    )


def _shortened_list(actions: Sequence[str]) -> str:
    more = len(actions) - _MOST_ACTIONS
    return ", ".join(actions[:_MOST_ACTIONS]) + (f" and {more} more" if more > 0 else "")
