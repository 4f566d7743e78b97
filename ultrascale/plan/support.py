"""What the cluster file may say already, although nothing builds it yet."""

from collections.abc import Iterator, Mapping

from ultrascale import config
from ultrascale.catalog import regions

Mistakes = Iterator[config.Mistake]

PROVISIONERS = ("managed-node-group", "self-managed", "karpenter", "auto-mode")
PURCHASE_OPTIONS = ("on-demand", "spot", "odcr", "capacity-block")
_SECTIONS = (
    "hyperpod",
    "agreed_limits",
    "backend",
    "observability",
    "pipeline",
)
_WRONG = "not supported yet"
_LEAVE_OUT = "leave it out"


def _region_is_built(region: str) -> Mistakes:
    if regions.lookup_region(region).partition == "aws-cn":
        # Names of endpoints and service principals differ there.
        wrong = f"Regions of China are {_WRONG}"
        yield config.refuse("region", wrong, "use a Region of another partition")


def _sections_are_built(given: frozenset[str]) -> Mistakes:
    for key in _SECTIONS:
        if key in given:
            yield config.refuse(key, _WRONG, _LEAVE_OUT, got="")


def _provisioner_is_built(provisioner: config.Provisioner) -> Mistakes:
    if provisioner not in PROVISIONERS:
        yield config.refuse("provisioner", _WRONG, f"use {_one_of(PROVISIONERS)}")


def _option_is_built(option: str) -> Mistakes:
    if option not in PURCHASE_OPTIONS:
        yield config.refuse("option", _WRONG, f"use {_one_of(PURCHASE_OPTIONS)}")


def _s3_is_built(given: frozenset[str], fields: Mapping[str, object]) -> Mistakes:
    if _stated("s3", given, fields):
        yield config.refuse("s3", _WRONG, _LEAVE_OUT, got="")


def _efa_is_built(efa: bool) -> Mistakes:
    if efa:
        yield config.refuse("efa", _WRONG, "use false")


def _job_keys_are_built(given: frozenset[str]) -> Mistakes:
    for key in ("prefer", "team"):
        if key in given:
            yield config.refuse(key, _WRONG, _LEAVE_OUT, got="")


def _one_of(values: tuple[str, ...]) -> str:
    return f"{', '.join(values[:-1])} or {values[-1]}"


def _stated(field: str, given: frozenset[str], fields: Mapping[str, object]) -> bool:
    """Return whether the file says anything in ``field``, readable or not."""
    return field in given and bool(fields.get(field, True))


RULES: config.Rules = {
    config.Cluster: (_region_is_built, _sections_are_built),
    config.Pool: (_provisioner_is_built,),
    config.OnDemand: (_option_is_built,),
    config.Spot: (_option_is_built,),
    config.Odcr: (_option_is_built,),
    config.CapacityBlock: (_option_is_built,),
    config.TrainingPlan: (_option_is_built,),
    config.Job: (_job_keys_are_built,),
    config.Lustre: (_s3_is_built, _efa_is_built),
}


def is_moot(mistake: config.Mistake, unsupported: config.Mistake) -> bool:
    """Return whether ``mistake`` is gone once what is ``unsupported`` is changed.

    So is all that stands within it, and all that rests on it: to mend that first would lead the
    user into the next refusal.
    """
    at = unsupported.at
    # The option of a purchase decides over all of its keys.
    place = at[:-1] if at[-1] == "option" else at
    return mistake.at[: len(place)] == place or place in mistake.judged
