"""Callers of an OpenID Connect issuer, and its keys, which sign their tokens."""

import json
import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import certifi
import jwt
import urllib3

from ultrascale.documents import JsonObject, look_up, mapping, objects, sequence, text
from ultrascale.parts.backend.model import IdentityPlan
from ultrascale_backend.authentication import Claims
from ultrascale_backend.callers import Caller
from ultrascale_backend.errors import IdentityUnavailableError, UnknownCallerError

_LOG = logging.getLogger(__name__)
# Algorithms that sign with a private key. Not `none`, and not HMAC, with which anybody who has the
# public key could sign.
# Source: https://www.rfc-editor.org/rfc/rfc8725#section-3.1
_ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
# Tolerated difference between the clocks.
_LEEWAY_SECONDS = 30
_FRESH_SECONDS = 300.0
# Age above which keys are refused while the issuer is down: it may have withdrawn them.
_USABLE_SECONDS = 3600.0
# Shortest time between two searches for unknown keys, for all callers together.
_AGAIN_SECONDS = 10.0
_TIMEOUT = urllib3.Timeout(connect=2.0, read=3.0)
_MOST_BYTES = 2**20
_LONGEST_SUBJECT = 255
_MOST_GROUPS = 1000
_SYSTEM = "system:"
_CONFIGURATION = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class _Key:
    key: jwt.PyJWK
    algorithms: tuple[str, ...]


class Issuer:
    """Judge of an issuer's tokens by the issuer's published keys.

    Args:
        identity: The issuer's URL, and the claims by which its tokens name audience and groups.
        ca_file: Certificate authorities of the issuer's server; None for public ones.
        clock: Returns seconds that only grow.

    Source: https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
    """

    def __init__(
        self,
        identity: IdentityPlan,
        *,
        ca_file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        assert identity.issuer is not None, "there is an issuer"
        self._url = identity.issuer
        self._audience = identity.audience
        self._groups_claim = identity.groups_claim
        self._keys = _Keys(identity.issuer, ca_file, clock)

    def takes(self, claims: Claims) -> bool:
        """Return whether a token claims to be from this issuer."""
        return claims.issuer == self._url

    def caller(self, token: str, claims: Claims) -> Caller:
        """Return the caller of ``token``.

        Raises:
            UnknownCallerError: The token is invalid, expired, or for another audience.
            IdentityUnavailableError: The issuer's keys cannot be read.
        """
        try:
            key = self._keys.find(text(jwt.get_unverified_header(token), "kid"))
            found: object = jwt.decode(
                token,
                key.key.key,
                algorithms=[*key.algorithms],
                audience=self._audience,
                issuer=self._url,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise UnknownCallerError(str(error)[:_LONGEST_SUBJECT]) from error
        subject = text(found, "sub")
        if (
            not subject
            or not subject.isascii()
            or not subject.isprintable()
            or len(subject) > _LONGEST_SUBJECT
        ):
            raise UnknownCallerError(f"sub: not 1 to {_LONGEST_SUBJECT} printable characters")
        return Caller(
            name=f"{self._url}#{subject}",
            groups=frozenset(self._groups(found)),
            expires=claims.expires,
        )

    def _groups(self, claims: object) -> Iterator[str]:
        """Yield the groups in a token, without names of service accounts and issuers' users."""
        stated = look_up(claims, self._groups_claim)
        groups = (stated,) if isinstance(stated, str) else sequence(claims, self._groups_claim)
        for group in groups[:_MOST_GROUPS]:
            if isinstance(group, str) and not group.startswith((_SYSTEM, f"{self._url}#")):
                yield group


class _Keys:
    """The issuer's keys; they are read again when old, or when a token names an unknown key."""

    def __init__(self, url: str, ca_file: Path | None, clock: Callable[[], float]) -> None:
        context = ssl.create_default_context(cafile=str(ca_file or certifi.where()))
        self._http = urllib3.PoolManager(ssl_context=context, timeout=_TIMEOUT, retries=False)
        self._url = url
        self._clock = clock
        self._reading = threading.Lock()
        self._keys: Mapping[str, _Key] = {}
        self._read_at = self._tried_at = float("-inf")

    def find(self, key_id: str) -> _Key:
        """Return the key with an id; without an id, the issuer's only key.

        Raises:
            UnknownCallerError: The issuer has no such key.
            IdentityUnavailableError: The issuer is out of reach, and its known keys are too old.
        """
        key = self._key(key_id)
        # A known key is returned without the lock: its caller does not wait for a renewal.
        if (key is None or self._are_old) and self._reading.acquire(blocking=key is None):
            try:
                self._renew(key_id)
            finally:
                self._reading.release()
            key = self._key(key_id)
        if self._clock() - self._read_at > _USABLE_SECONDS or (key is None and self._is_behind):
            raise IdentityUnavailableError("the issuer's keys cannot be read")
        if key is None:
            raise UnknownCallerError("not signed by a key of the issuer")
        return key

    def _renew(self, key_id: str) -> None:
        now = self._clock()
        is_known = self._key(key_id) is not None and not self._are_old
        if is_known or now - self._tried_at <= _AGAIN_SECONDS:
            return
        self._tried_at = now
        try:
            self._keys, self._read_at = self._read(), now
        except (ValueError, urllib3.exceptions.HTTPError, jwt.PyJWTError) as error:
            about = {"issuer": self._url, "error": str(error)[:_LONGEST_SUBJECT]}
            _LOG.warning("the issuer's keys cannot be read", extra=about)

    @property
    def _are_old(self) -> bool:
        return self._clock() - self._read_at > _FRESH_SECONDS

    @property
    def _is_behind(self) -> bool:
        """Return whether the last attempt to read the keys failed."""
        return self._tried_at > self._read_at

    def _key(self, key_id: str) -> _Key | None:
        if not key_id and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    def _read(self) -> Mapping[str, _Key]:
        configuration = self._get_json(self._url.rstrip("/") + _CONFIGURATION)
        if text(configuration, "issuer") != self._url:
            told = text(configuration, "issuer")
            raise ValueError(f"its configuration is of another issuer, {told!r}")
        url = text(configuration, "jwks_uri")
        if not url.startswith("https://"):
            raise ValueError(f"its keys are not at an https URL, got {url!r}")
        return {
            text(each, "kid"): key for each in self._published_keys(url) if (key := _key_of(each))
        }

    def _published_keys(self, url: str) -> Sequence[JsonObject]:
        return objects(self._get_json(url), "keys")

    def _get_json(self, url: str) -> JsonObject:
        response = self._http.request("GET", url, redirect=False, preload_content=False)
        try:
            if response.status != 200:
                raise ValueError(f"{url}: HTTP status {response.status}")
            body = response.read(_MOST_BYTES + 1)
            if len(body) > _MOST_BYTES:
                raise ValueError(f"{url}: more than {_MOST_BYTES} bytes")
            answer: object = json.loads(body)
        except RecursionError as error:
            raise ValueError(f"{url}: nested too deeply") from error
        finally:
            response.release_conn()
        return mapping({"answer": answer}, "answer")


def _key_of(document: JsonObject) -> _Key | None:
    """Return a key that verifies signatures; None for a key with another use."""
    known = _ALGORITHMS.get(text(document, "kty"))
    stated = text(document, "alg")
    if known is None or text(document, "use") == "enc" or (stated and stated not in known):
        return None
    try:
        return _Key(jwt.PyJWK(dict(document)), (stated,) if stated else known)
    except jwt.PyJWTError:
        return None
