"""Bearer tokens: their form, and their claims before verification."""

import re
from dataclasses import dataclass

import jwt

from ultrascale.documents import look_up, sequence, text
from ultrascale_backend.errors import UnknownCallerError

# Three parts in base64url. No issuer in use writes a token even half this long.
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_LONGEST = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Unverified claims of a token, used only to choose its judge."""

    issuer: str  # Issuer; empty without one
    audiences: frozenset[str]  # Audiences
    expires: float | None  # Its end, in seconds since 1970; None without one


def bearer_token(header: str | None) -> str:
    """Return the token in an `Authorization` header.

    Raises:
        UnknownCallerError: There is no token, or it is no JSON Web Token.

    Source: https://www.rfc-editor.org/rfc/rfc6750#section-2.1
    """
    if header is None:
        raise UnknownCallerError("no token")
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise UnknownCallerError("no bearer token")
    if len(token) > _LONGEST or _FORM.fullmatch(token) is None:
        raise UnknownCallerError("not a JSON Web Token")
    return token


def claims_of(token: str) -> Claims:
    """Return the unverified claims of ``token``.

    Raises:
        UnknownCallerError: The token is no JSON Web Token.
    """
    try:
        found: object = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise UnknownCallerError("not a JSON Web Token") from error
    audiences = sequence(found, "aud") or (look_up(found, "aud"),)
    expires = look_up(found, "exp")
    return Claims(
        issuer=text(found, "iss"),
        audiences=frozenset(each for each in audiences if isinstance(each, str)),
        expires=float(expires) if isinstance(expires, int | float) else None,
    )
