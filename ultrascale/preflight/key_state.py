"""State of a KMS key, which decides whether it can encrypt."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultrascale.findings import Issue

if TYPE_CHECKING:
    from mypy_boto3_kms.type_defs import KeyMetadataTypeDef as Key

# A key whose deletion is cancelled is disabled.
# Source: https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
_BY_STATE = {
    "Disabled": "`aws kms enable-key --key-id {id}`",
    "PendingDeletion": "`aws kms cancel-key-deletion --key-id {id}` and "
    "`aws kms enable-key --key-id {id}`",
}


def key_state_issues(key: "Key") -> Iterator[Issue]:
    """Yield an issue if the key's state prevents encryption."""
    state, spec = key.get("KeyState"), key.get("KeySpec", "SYMMETRIC_DEFAULT")
    if state not in ("Enabled", None):
        fix = _BY_STATE.get(state, "have its owner make it usable").format(id=key["KeyId"])
        fix += ", or use another key"
        yield Issue(state="fail", evidence=f"KeyState is {state}: nothing opens", fix=fix)
    if spec != "SYMMETRIC_DEFAULT":
        evidence = f"KeySpec is {spec}: services take symmetric keys alone"
        yield Issue(state="fail", evidence=evidence, fix="use a symmetric key")
    elif (usage := key.get("KeyUsage", "ENCRYPT_DECRYPT")) != "ENCRYPT_DECRYPT":
        evidence = f"KeyUsage is {usage}: it encrypts nothing"
        yield Issue(state="fail", evidence=evidence, fix="use a key for ENCRYPT_DECRYPT")
