"""Every check of an account, in the order of the report."""

from ultrascale.preflight.bootstrap import BOOTSTRAP
from ultrascale.preflight.identity import IDENTITY
from ultrascale.preflight.model import Check
from ultrascale.preflight.network_cards import INSTANCE_TYPES, NETWORK_CARDS
from ultrascale.preflight.offerings import OFFERINGS
from ultrascale.preflight.quotas import QUOTAS
from ultrascale.preflight.roles import ROLES
from ultrascale.preflight.zones import ZONES

CHECKS: tuple[Check, ...] = (
    IDENTITY,
    BOOTSTRAP,
    ROLES,
    QUOTAS,
    ZONES,
    OFFERINGS,
    INSTANCE_TYPES,
    NETWORK_CARDS,
)
