"""Rules for IAM: each wildcard has a reason, and nobody from outside is let in.

Each rule yields its findings as sentences. A reason is an acknowledgment, which the CDK writes
beside a template: `aws:cdk:acknowledged-rules` of the construct, or of one around it.
"""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

Document = Mapping[str, Any]

# What a synthesis prints before the part with the wildcard.
# Source: https://github.com/cdklabs/cdk-nag#suppressing-a-rule
_WILDCARD = "AwsSolutions::AwsSolutions-IAM5"
_MANAGED = "AwsSolutions::AwsSolutions-IAM4"
_FEWEST_WORDS = 4
# Whoever has one of them has the account, or can give it to himself.
_ADMINISTRATORS = ("AdministratorAccess", "PowerUserAccess", "IAMFullAccess")
# They act for whoever names a role, and say in the request for whom.
_ACT_FOR_MANY = frozenset(
    {"pods.eks.amazonaws.com", "scheduler.amazonaws.com", "vpc-flow-logs.amazonaws.com"}
)
_RESOURCE_POLICIES = {
    "AWS::S3::BucketPolicy": "PolicyDocument",
    "AWS::SQS::QueuePolicy": "PolicyDocument",
    "AWS::SNS::TopicPolicy": "PolicyDocument",
    "AWS::KMS::Key": "KeyPolicy",
    "AWS::ECR::Repository": "RepositoryPolicyText",
    "AWS::IAM::Role": "AssumeRolePolicyDocument",
}


def resources(template: Document) -> Iterator[tuple[str, str, Document]]:
    """Yield the logical id, the type and the properties of every resource."""
    for logical_id, body in template.get("Resources", {}).items():
        yield logical_id, body["Type"], body.get("Properties", {})


def text(value: object) -> str:
    """Return a value as a finding of the CDK's names it: a reference stands in angle brackets."""
    if not isinstance(value, Mapping):
        return str(value)
    mapping = cast("Document", value)
    if "Ref" in mapping:
        return f"<{mapping['Ref']}>"
    if "Fn::GetAtt" in mapping:
        return f"<{'.'.join(mapping['Fn::GetAtt'])}>"
    if "Fn::Join" in mapping:
        delimiter, parts = mapping["Fn::Join"]
        return delimiter.join(text(part) for part in parts)
    if isinstance(mapping.get("Fn::Sub"), str):
        return re.sub(r"\$\{([^}]+)\}", r"<\1>", mapping["Fn::Sub"])
    return str(mapping)


def listed(value: object) -> list[object]:
    """Return a value that IAM lets stand alone or in a list."""
    return cast("list[object]", value) if isinstance(value, list) else [value]


def reasons(metadata: Document) -> dict[str, Mapping[str, str]]:
    """Return what is acknowledged for each logical id, by finding, with its reason."""
    given: dict[str, dict[str, str]] = {}
    for path, entries in metadata.items():
        for entry in entries:
            if entry["type"] == "aws:cdk:acknowledged-rules":
                given.setdefault(path, {}).update(entry["data"])
    found: dict[str, Mapping[str, str]] = {}
    for path, entries in metadata.items():
        parts = path.split("/")
        around = ["/".join(parts[:length]) for length in range(2, len(parts) + 1)]
        for entry in entries:
            if entry["type"] == "aws:cdk:logicalId":
                found[entry["data"]] = ChainMap(*(given[each] for each in around if each in given))
    return found


def _statements(kind: str, properties: Document) -> Iterator[Document]:
    match kind:
        case "AWS::IAM::Policy" | "AWS::IAM::ManagedPolicy":
            yield from properties["PolicyDocument"]["Statement"]
        case "AWS::IAM::Role" | "AWS::IAM::User" | "AWS::IAM::Group":
            for policy in properties.get("Policies", ()):
                yield from policy["PolicyDocument"]["Statement"]
        case _:
            return


def _explained(acknowledged: Mapping[str, str], finding: str) -> bool:
    return len(acknowledged.get(finding, "").split()) >= _FEWEST_WORDS


def wildcard_findings(template: Document, metadata: Document) -> Iterator[str]:
    """Find wildcards in what is allowed that nobody gave a reason for, each by itself."""
    acknowledged = reasons(metadata)
    for logical_id, kind, properties in resources(template):
        for statement in _statements(kind, properties):
            if statement["Effect"] != "Allow":
                continue
            if "NotAction" in statement or "NotResource" in statement:
                yield f"{logical_id}: allows all but what it names"
            for part in ("Action", "Resource"):
                for value in (text(each) for each in listed(statement.get(part, []))):
                    finding = f"{_WILDCARD}[{part}::{value}]"
                    if "*" in value and not _explained(acknowledged.get(logical_id, {}), finding):
                        yield f"{logical_id}: {part} {value} has no acknowledged reason"


def managed_policy_findings(template: Document, metadata: Document) -> Iterator[str]:
    """Find policies of AWS's that nobody gave a reason for, and those that are administration."""
    acknowledged = reasons(metadata)
    for logical_id, kind, properties in resources(template):
        if kind != "AWS::IAM::Role":
            continue
        for value in listed(properties.get("ManagedPolicyArns", [])):
            name = text(value)
            if any(policy in name for policy in _ADMINISTRATORS):
                yield f"{logical_id}: {name} is administration of the account"
            own = acknowledged.get(logical_id, {})
            if ":iam::aws:" in name and not any(
                finding.startswith(f"{_MANAGED}[Policy::")
                and _names_policy(name, finding)
                and _explained(own, finding)
                for finding in own
            ):
                yield f"{logical_id}: {name} has no acknowledged reason"


def _names_policy(arn: str, finding: str) -> bool:
    """Return whether a finding is about the policy of ``arn``, which a condition may choose."""
    return finding.removesuffix("]").partition(":policy/")[2] in re.findall(
        r":policy/([\w/-]+)", arn
    )


# EventBridge tells SNS and KMS neither its rule nor its account. It sends to targets of other
# accounts by a role, and not as the service.
# Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-troubleshooting.html
_SAY_NOTHING = frozenset({"events.amazonaws.com"})
# What begins work for callers that no template here has.
_STRANGERS_TRIGGERS = frozenset(
    {
        "AWS::ApiGateway::RestApi",
        "AWS::ApiGatewayV2::Api",
        "AWS::AppSync::GraphQLApi",
        "AWS::Events::EventBusPolicy",
        "AWS::Lambda::EventSourceMapping",
    }
)


def principal_findings(template: Document, *, accounts: Sequence[str]) -> Iterator[str]:
    """Find resource policies and trust that let in whoever asks, or who is not named.

    Args:
        template: The template.
        accounts: Ids of the accounts that the file names.
    """
    for logical_id, kind, properties in resources(template):
        policy: Document = properties.get(_RESOURCE_POLICIES.get(kind, ""), {})
        for statement in policy.get("Statement", ()):
            if statement["Effect"] != "Allow":
                continue
            if "NotPrincipal" in statement:
                yield f"{logical_id}: lets in all but whom it names"
            if _everyone(statement.get("Principal")) and not _bounded(statement.get("Condition")):
                yield f"{logical_id}: lets everyone in"
            named = {*re.findall(r"\b\d{12}\b", str(statement.get("Principal")))}
            yield from (f"{logical_id}: lets account {each} in" for each in named - {*accounts})
            for service in _unbounded_services(kind, statement):
                yield f"{logical_id}: lets {service} in, for whomever it acts"
        yield from (f"{logical_id}: {wrong}" for wrong in _triggers(kind, properties))


def _unbounded_services(kind: str, statement: Document) -> Iterator[str]:
    """Yield the services that a statement lets in for other accounts as well."""
    services = {*_services(statement.get("Principal"))}
    if kind == "AWS::IAM::Role":
        if "Condition" not in statement:
            yield from _ACT_FOR_MANY & services
    elif not _bounded_source(statement.get("Condition")):
        yield from services - _SAY_NOTHING


def _triggers(kind: str, properties: Document) -> Iterator[str]:
    """Yield what lets strangers begin work."""
    if kind in _STRANGERS_TRIGGERS:
        yield f"{kind} is a way in from outside the stacks"
    if kind == "AWS::Lambda::Permission" and properties.get("Principal") == "*":
        yield "lets everyone call a function"
    if kind == "AWS::Lambda::Url" and properties.get("AuthType") != "AWS_IAM":
        yield "lets everyone call a function"


def _services(principal: object) -> Iterator[str]:
    if isinstance(principal, Mapping):
        yield from map(text, listed(cast("Document", principal).get("Service", [])))


def _everyone(principal: object) -> bool:
    if isinstance(principal, Mapping):
        return "*" in listed(cast("Document", principal).get("AWS"))
    return principal == "*"


def _bounded_source(condition: object) -> bool:
    """Return whether a condition names whom a service must act for."""
    stated = cast("dict[str, Document]", condition) if isinstance(condition, dict) else {}
    return any(
        key in ("aws:SourceAccount", "aws:SourceArn", "kms:CallerAccount")
        for operator, keys in stated.items()
        if operator in _BOUNDING
        for key in keys
    )


_BOUNDING = ("StringEquals", "StringLike", "ArnEquals", "ArnLike")
_OF_AN_ACCOUNT = (
    "kms:CallerAccount",
    "aws:PrincipalAccount",
    "aws:SourceAccount",
    "aws:PrincipalArn",
)


def _bounded(condition: object) -> bool:
    """Return whether a condition keeps to an account: by name, or by the ARN of who calls."""
    stated = cast("dict[str, Document]", condition) if isinstance(condition, dict) else {}
    return any(
        key in _OF_AN_ACCOUNT
        and not any(re.search(r"^\*$|::\*:", text(each)) for each in listed(value))
        for operator, keys in stated.items()
        if operator in _BOUNDING
        for key, value in keys.items()
    )


def pass_role_findings(template: Document) -> Iterator[str]:
    """Find rights to hand any role on: to a function, that is to become it."""
    for logical_id, kind, properties in resources(template):
        for statement in _statements(kind, properties):
            actions = {text(action).lower() for action in listed(statement.get("Action", []))}
            roles = [text(each) for each in listed(statement.get("Resource", []))]
            if (
                statement["Effect"] == "Allow"
                and actions & {"iam:passrole", "iam:*", "*"}
                and any(role.endswith(("*", "role/*")) for role in roles)
            ):
                yield f"{logical_id}: may hand any role on"


def administrator_findings(
    template: Document, *, admins: Sequence[str], appliers: str
) -> Iterator[str]:
    """Find administrators of the cluster whom the file does not name.

    Args:
        template: The template.
        admins: ARNs of the roles that the cluster file names.
        appliers: Pattern of the roles of the functions that apply manifests: CRDs, roles and
            namespaces among them, which takes all of it.
    """
    for logical_id, kind, properties in resources(template):
        if kind != "AWS::EKS::AccessEntry":
            continue
        principal = text(properties["PrincipalArn"])
        if principal in admins or (appliers and re.search(appliers, principal)):
            continue
        for policy in properties.get("AccessPolicies", ()):
            if re.search(r"/AmazonEKS(Cluster)?AdminPolicy", text(policy["PolicyArn"])):
                yield f"{logical_id}: makes {principal} an administrator"
        if "system:masters" in properties.get("KubernetesGroups", ()):
            yield f"{logical_id}: makes {principal} an administrator"
