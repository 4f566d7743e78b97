"""Judge of service accounts' tokens, which asks the API server."""

from ultrascale.cluster_api.kinds import Kind
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import JsonObject, mapping, sequence, text
from ultrascale.errors import ClusterError
from ultrascale_backend.callers import Caller
from ultrascale_backend.errors import IdentityUnavailableError, UnknownCallerError
from ultrascale_backend.tokens import Claims

TOKEN_REVIEW = Kind("authentication.k8s.io/v1", "TokenReview", "tokenreviews", namespaced=False)
_ACCOUNT = "system:serviceaccount:"
_SECONDS = 3.0
_LONGEST_REASON = 200


class TokenReviews:
    """Judge of tokens by TokenReview, which refuses tokens of deleted pods and accounts.

    Args:
        cluster: The API server.
        audience: Audience that tokens must have. Tokens for the API server itself are refused, so
            that nobody gets used to sending them here.

    Source:
    https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/
    """

    def __init__(self, cluster: Cluster, audience: str) -> None:
        self._cluster = cluster
        self._audience = audience

    def takes(self, claims: Claims) -> bool:
        """Return True: the judge is responsible for the tokens of every issuer."""
        return True

    def caller(self, token: str, claims: Claims) -> Caller:
        """Return the caller of ``token``.

        Raises:
            UnknownCallerError: The token is invalid, or for another audience.
            IdentityUnavailableError: The API server cannot be asked.
        """
        if self._audience not in claims.audiences:
            # The API server would refuse this token too, so it is not asked.
            raise UnknownCallerError(f"not a token for the audience {self._audience}")
        review: JsonObject = {
            "apiVersion": TOKEN_REVIEW.api_version,
            "kind": TOKEN_REVIEW.kind,
            "spec": {"token": token, "audiences": [self._audience]},
        }
        try:
            answer = self._cluster.review(TOKEN_REVIEW, review, timeout_seconds=_SECONDS)
        except ClusterError as error:
            raise IdentityUnavailableError(str(error)[:_LONGEST_REASON]) from error
        status = mapping(answer, "status")
        if status.get("authenticated") is not True:
            why = text(status, "error") or "the API server does not know it"
            raise UnknownCallerError(why[:_LONGEST_REASON])
        # A server without support for audiences returns none: it has checked only its own audience.
        if self._audience not in sequence(status, "audiences"):
            raise UnknownCallerError(f"not judged for the audience {self._audience}")
        name = text(status, "user", "username")
        if not name.startswith(_ACCOUNT):
            raise UnknownCallerError("not the token of a service account")
        groups = sequence(status, "user", "groups")
        return Caller(
            name=name,
            groups=frozenset(group for group in groups if isinstance(group, str)),
            expires=claims.expires,
        )
