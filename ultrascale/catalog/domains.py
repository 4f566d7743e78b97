"""Top-level domains of the internet, and those that private networks and examples use.

Source: https://data.iana.org/TLD/tlds-alpha-by-domain.txt (as of 2025-04-07; without IDNs)
Source: https://www.iana.org/assignments/special-use-domain-names/special-use-domain-names.xhtml
"""

from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "top_level_domains.txt"
# Private networks use more names than the reserved ones.
# Source: https://www.rfc-editor.org/rfc/rfc6762#appendix-G
_PRIVATE = (
    "corp",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "onion",
    "private",
    "test",
)


@cache
def top_level_domains() -> frozenset[str]:
    """Return the top-level domains, in lower case, without the dot."""
    return frozenset((*_FILE.read_text(encoding="utf-8").split(), *_PRIVATE))
