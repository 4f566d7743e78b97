"""Issuers of tokens at which everybody gets one for whatever audience they ask for."""

from collections.abc import Mapping
from types import MappingProxyType

ANY_AUDIENCE: Mapping[str, str] = MappingProxyType(
    {
        # Whoever has a service account there.
        "https://accounts.google.com": "https://docs.cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateIdToken",
        "https://gitlab.com": "https://docs.gitlab.com/ci/secrets/id_token_authentication/",
        "https://token.actions.githubusercontent.com": "https://docs.github.com/en/actions/reference/security/oidc",
    }
)
"""Source by issuer: its tokens name their audience, and the audience keeps nobody out."""
