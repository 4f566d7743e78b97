"""Callers of the backend, on one replica that these tests share: who is let in, and to what."""

import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from tests.support.backend_files import CLUSTER, PRODUCTION, RESEARCH
from tests.support.backend_process import Answer, BackendProcess, Site, eventually, site
from tests.support.callers import (
    AUDIENCE,
    HOUR,
    IssuerServer,
    ReviewingServer,
    SigningKey,
    unsigned,
)
from tests.support.postgres_server import PostgresServer
from tests.support.stub_api_http import serve

pytestmark = pytest.mark.postgres

JOBS = "/apis/batch/v1/namespaces/training/jobs"
NOWHERE = "/requests/00000000-0000-0000-0000-000000000000"
_KEYS = count()
IDENTITY = """
    issuer: ISSUER
    audience: jobs
    admins: [platform, "system:serviceaccount:ops:ops"]
    rights:
      system:serviceaccounts:web: {priority: critical}
      researchers: {priority: low, kinds: [batch]}
      trainers: {kinds: [training], templates: [development, production]}
"""


@pytest.fixture(scope="module")
def stub() -> Iterator[ReviewingServer]:
    with serve(server := ReviewingServer()):
        yield server


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IssuerServer]:
    with IssuerServer(tmp_path_factory.mktemp("issuer")).serve() as server:
        yield server


@pytest.fixture(scope="module")
def here(
    tmp_path_factory: pytest.TempPathFactory,
    postgres: PostgresServer,
    stub: ReviewingServer,
    issuer: IssuerServer,
) -> Site:
    head, _, _ = CLUSTER.partition("  identity:")
    cluster_file = f"{head}  identity:{IDENTITY.replace('ISSUER', issuer.url)}"
    folder = tmp_path_factory.mktemp("backend")
    return site(folder, postgres, postgres.new_database(), stub, cluster_file=cluster_file)


@pytest.fixture(scope="module")
def backend(here: Site, issuer: IssuerServer) -> Iterator[BackendProcess]:
    with here.replica(OIDC_CA_FILE=str(issuer.ca_file)) as replica:
        yield replica


def key() -> str:
    return f"key-{next(_KEYS)}"


def submitted(backend: BackendProcess, body: Any, token: str | None) -> Answer:
    return backend.ask("POST", "/requests", body, key=key(), token=token)


Forge = Callable[[ReviewingServer, IssuerServer], str | None]
STRANGERS: dict[str, tuple[Forge, str]] = {
    "no token": (lambda _stub, _issuer: None, "no token"),
    "no JSON Web Token": (lambda _stub, _issuer: "secret", "not a JSON Web Token"),
    "nested without end": (
        lambda _stub, _issuer: "e30." + "W1tb" * 3500 + ".",
        "not a JSON Web Token",
    ),
    "an account of another cluster": (
        lambda stub, _: SigningKey("cluster").sign(
            {"aud": AUDIENCE, "sub": "system:serviceaccount:web:web", "exp": time.time() + HOUR}
        ),
        "invalid bearer token, Signature verification failed",
    ),
    "an account's expired token": (
        lambda stub, _: stub.token_of(exp=int(time.time()) - 60),
        "Signature has expired",
    ),
    "an account's token for the API server": (
        lambda stub, _: stub.token_of(aud=["https://kubernetes.default.svc"]),
        f"not a token for the audience {AUDIENCE}",
    ),
    "an account whose pod is gone": (
        lambda stub, _: _deleted(stub),
        "Token has been invalidated",
    ),
    "a user of the cluster who is no service account": (
        lambda stub, _: stub.token_of(sub="arn:aws:iam::111122223333:user/eve"),
        "not the token of a service account",
    ),
    "another issuer": (
        lambda _, issuer: issuer.token_of(groups=["platform"], iss="https://evil.example.com"),
        f"not a token for the audience {AUDIENCE}",
    ),
    "a key that signs for nobody": (
        lambda _, issuer: SigningKey("one").sign(issuer.claims("eve", ["platform"])),
        "Signature verification failed",
    ),
    "an expired token": (
        lambda _, issuer: issuer.token_of(groups=["platform"], exp=int(time.time()) - 60),
        "Signature has expired",
    ),
    "a token that is not valid yet": (
        lambda _, issuer: issuer.token_of(groups=["platform"], nbf=int(time.time()) + HOUR),
        "The token is not yet valid (nbf)",
    ),
    "a token without an end": (
        lambda _, issuer: issuer.token_of(groups=["platform"], exp=None),
        'Token is missing the "exp" claim',
    ),
    "the token of another client": (
        lambda _, issuer: issuer.token_of(groups=["platform"], aud="wiki"),
        "Audience doesn't match",
    ),
    "a token without a signature": (
        lambda _, issuer: unsigned(
            {"alg": "none", "kid": "one"}, issuer.claims("eve", ["platform"])
        ),
        "The specified alg value is not allowed",
    ),
    "a token that the public key signs as a secret": (
        lambda _, issuer: _signed_by_the_public_key(issuer),
        "The specified alg value is not allowed",
    ),
    "a user without a name": (
        lambda _, issuer: issuer.token_of(user="", groups=["platform"]),
        "sub: not 1 to 255 printable characters",
    ),
}


def _deleted(stub: ReviewingServer) -> str:
    token = stub.token_of(jti="deleted")
    stub.deleted.add(token)
    return token


def _signed_by_the_public_key(issuer: IssuerServer) -> str:
    """Return what a verifier accepts that takes the algorithm from the token."""
    import hashlib
    import hmac
    from base64 import urlsafe_b64encode

    bare = unsigned({"alg": "HS256", "kid": "one"}, issuer.claims("eve", ["platform"]))[:-1]
    digest = hmac.new(issuer.keys[0].public_pem, bare.encode(), hashlib.sha256).digest()
    return f"{bare}.{urlsafe_b64encode(digest).rstrip(b'=').decode()}"


@pytest.mark.parametrize(("forge", "why"), STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_submits_nothing(
    backend: BackendProcess, stub: ReviewingServer, issuer: IssuerServer, forge: Forge, why: str
) -> None:
    token = forge(stub, issuer)
    jobs = len(stub.asked("POST", JOBS))

    answer = submitted(backend, RESEARCH, token)

    assert answer.status == 401
    assert why in answer.body["mistakes"][0]
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert len(stub.asked("POST", JOBS)) == jobs
    assert token is None or token not in backend.log.read_text()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/requests"),
        ("GET", NOWHERE),
        ("GET", f"{NOWHERE}/pods"),
        ("DELETE", NOWHERE),
        ("PUT", "/requests"),
        ("GET", "/"),
    ],
)
def test_a_stranger_learns_nothing(backend: BackendProcess, method: str, path: str) -> None:
    assert backend.ask(method, path, token=None).status == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_the_kubelet_and_prometheus_need_no_token(backend: BackendProcess, path: str) -> None:
    answer = backend.ask("GET", path, token=None)

    assert answer.status == 200
    assert "request-" not in str(answer.body)


def test_an_api_server_that_knows_no_audiences_vouches_for_nobody(
    backend: BackendProcess, stub: ReviewingServer
) -> None:
    stub.knows_audiences = False
    try:
        answer = submitted(backend, RESEARCH, stub.token_of(jti="unaware"))
    finally:
        stub.knows_audiences = True

    assert answer.status == 401


class TestRights:
    """Rights of callers to submit."""

    def test_a_group_submits_what_the_file_grants_it(
        self, backend: BackendProcess, issuer: IssuerServer
    ) -> None:
        answer = submitted(backend, RESEARCH, issuer.token_of(groups=["researchers"]))

        assert answer.status == 201
        assert answer.body["owner"] == f"{issuer.url}#ada"

    def test_the_owner_is_written_on_the_job(
        self, backend: BackendProcess, stub: ReviewingServer
    ) -> None:
        job = submitted(backend, RESEARCH, stub.token_of("web:cron")).body

        path = f"{JOBS}/{job['job_name']}"
        eventually(lambda: stub.find(path))
        annotations = stub.objects[path]["metadata"]["annotations"]
        assert annotations["ultrascale.dev/owner"] == "system:serviceaccount:web:cron"

    def test_an_admin_submits_everything(
        self, backend: BackendProcess, issuer: IssuerServer
    ) -> None:
        answer = submitted(backend, PRODUCTION, issuer.token_of(groups=["platform"]))

        assert answer.status == 201

    def test_a_caller_without_rights_submits_nothing(
        self, backend: BackendProcess, issuer: IssuerServer, stub: ReviewingServer
    ) -> None:
        for token in (issuer.token_of(), stub.token_of("training:default")):
            answer = submitted(backend, RESEARCH, token)

            assert answer.status == 403
            told = "you have no right to submit; ask for one in backend.identity.rights"
            assert answer.body["mistakes"] == [told]

    def test_a_class_above_the_right_is_refused(
        self, backend: BackendProcess, issuer: IssuerServer
    ) -> None:
        """Trainers may submit the template, but not what displaces others."""
        answer = submitted(backend, PRODUCTION, issuer.token_of(groups=["trainers"]))

        assert answer.status == 403
        assert answer.body["mistakes"] == [
            "job: a training job of template production with priority critical is beyond your "
            "rights",
            "trainers may submit training jobs of development, production, without a priority",
        ]

    def test_a_kind_without_the_right_is_refused(
        self, backend: BackendProcess, issuer: IssuerServer
    ) -> None:
        due = {**RESEARCH, "deadline": _tomorrow()}
        due["job"] = {"image": RESEARCH["job"]["image"], "script": "/train.py"}

        answer = submitted(backend, due, issuer.token_of(groups=["researchers"]))

        assert answer.status == 403
        assert "a training job of template development" in answer.body["mistakes"][0]

    def test_a_template_without_the_right_is_refused(
        self, backend: BackendProcess, issuer: IssuerServer
    ) -> None:
        answer = submitted(backend, RESEARCH, issuer.token_of(groups=["trainers"]))

        assert answer.status == 403

    def test_two_rights_are_not_added_up(
        self, backend: BackendProcess, issuer: IssuerServer
    ) -> None:
        """A class of the one and a template of the other are a right to nothing."""
        both = issuer.token_of(groups=["trainers", "researchers"])

        assert submitted(backend, PRODUCTION, both).status == 403

    def test_a_group_of_the_issuer_is_no_service_account(
        self, backend: BackendProcess, issuer: IssuerServer
    ) -> None:
        forged = ["system:serviceaccounts:web", "system:serviceaccount:ops:ops"]

        assert submitted(backend, PRODUCTION, issuer.token_of(groups=forged)).status == 403

    def test_a_user_of_the_issuer_who_is_named_as_a_group_is_not_in_it(
        self, backend: BackendProcess, issuer: IssuerServer
    ) -> None:
        token = issuer.token_of(user="platform")

        assert submitted(backend, RESEARCH, token).status == 403

    def test_one_group_may_be_a_text(self, backend: BackendProcess, issuer: IssuerServer) -> None:
        token = issuer.keys[-1].sign(issuer.claims("ada") | {"groups": "researchers"})

        assert submitted(backend, RESEARCH, token).status == 201


def _tomorrow() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))


class TestOwners:
    """A caller sees and cancels own requests only, unless a right says more."""

    @pytest.fixture
    def ada(self, issuer: IssuerServer) -> str:
        return issuer.token_of("ada", ["researchers"])

    @pytest.fixture
    def eve(self, issuer: IssuerServer) -> str:
        return issuer.token_of("eve", ["researchers"])

    @pytest.fixture
    def admin(self, stub: ReviewingServer) -> str:
        return stub.token_of("ops:ops")

    @pytest.mark.parametrize(
        ("method", "path"),
        [("GET", ""), ("GET", "/pods"), ("DELETE", "")],
        ids=["show", "pods", "cancel"],
    )
    def test_anothers_request_is_like_one_that_is_not_there(
        self, backend: BackendProcess, ada: str, eve: str, method: str, path: str
    ) -> None:
        request = submitted(backend, RESEARCH, ada).body

        hers = backend.ask(method, f"/requests/{request['id']}{path}", token=eve)
        nowhere = backend.ask(method, f"{NOWHERE}{path}", token=eve)

        assert hers.status == 404
        assert (hers.status, hers.body) == (nowhere.status, nowhere.body)
        shown = backend.ask("GET", f"/requests/{request['id']}", token=ada).body
        assert shown["cancel_requested"] is False
        (line,) = (
            line
            for line in backend.logged()
            if line.get("request") == request["id"] and line.get("decision") == "hidden"
        )
        assert line["caller"].endswith("#eve")

    def test_a_list_has_the_callers_own_alone(
        self, backend: BackendProcess, ada: str, eve: str
    ) -> None:
        request = submitted(backend, RESEARCH, ada).body
        mine = submitted(backend, RESEARCH, eve).body

        listed = backend.ask("GET", "/requests?limit=500", token=eve).body["requests"]

        assert mine["id"] in {each["id"] for each in listed}
        assert {each["owner"] for each in listed} == {mine["owner"]}
        after = backend.ask("GET", f"/requests?after={request['id']}", token=eve)
        nowhere = backend.ask("GET", f"/requests?after={NOWHERE[10:]}", token=eve)
        assert after.body == nowhere.body

    def test_an_admin_sees_and_cancels_those_of_all(
        self, backend: BackendProcess, ada: str, admin: str
    ) -> None:
        request = submitted(backend, RESEARCH, ada).body
        path = f"/requests/{request['id']}"

        listed = backend.ask("GET", "/requests?limit=500", token=admin).body["requests"]
        cancelled = backend.ask("DELETE", path, token=admin)

        assert request["id"] in {each["id"] for each in listed}
        assert cancelled.status == 202
        eventually(lambda: backend.ask("GET", path, token=ada).body["state"] == "cancelled")

    def test_the_owner_cancels_without_the_right_to_submit(
        self, backend: BackendProcess, issuer: IssuerServer, ada: str
    ) -> None:
        request = submitted(backend, RESEARCH, ada).body

        answer = backend.ask(
            "DELETE", f"/requests/{request['id']}", token=issuer.token_of("ada", [])
        )

        assert answer.status == 202

    def test_a_key_that_another_used_is_neither_taken_nor_answered(
        self, backend: BackendProcess, ada: str, eve: str
    ) -> None:
        """Whoever guesses the key of a nightly job learns nothing, and does not stop it."""
        stolen = key()
        first = backend.ask("POST", "/requests", RESEARCH, key=stolen, token=eve)
        hers = backend.ask("POST", "/requests", RESEARCH, key=stolen, token=ada)
        again = backend.ask("POST", "/requests", RESEARCH, key=stolen, token=ada)

        assert (first.status, hers.status, again.status) == (201, 201, 200)
        assert first.body["id"] != hers.body["id"] == again.body["id"]
        assert first.body["job_name"] != hers.body["job_name"]

    def test_requests_from_before_there_were_owners_are_of_admins_alone(
        self,
        backend: BackendProcess,
        here: Site,
        postgres: PostgresServer,
        ada: str,
        admin: str,
    ) -> None:
        old = key()
        request = backend.ask("POST", "/requests", RESEARCH, key=key(), token=ada).body
        database = here.environment["DATABASE_URL"].rpartition("/")[2].partition("?")[0]
        postgres.ask(
            database,
            f"UPDATE requests SET owner = NULL, idempotency_key = '{old}' "
            f"WHERE id = '{request['id']}'",
        )
        path = f"/requests/{request['id']}"

        assert backend.ask("GET", path, token=ada).status == 404
        assert backend.ask("GET", path, token=admin).body["owner"] is None
        # To record it for a caller would make the job twice.
        again = backend.ask("POST", "/requests", RESEARCH, key=old, token=ada)
        assert again.status == 422
        assert "before requests had owners" in again.body["mistakes"][0]
        of_admin = backend.ask("POST", "/requests", RESEARCH, key=old, token=admin)
        assert (of_admin.status, of_admin.body["id"]) == (200, request["id"])
        assert backend.ask("DELETE", path, token=admin).status == 202


class TestAudit:
    """Log entries of requests."""

    def test_each_request_is_a_line_that_names_its_caller_and_what_was_decided(
        self, backend: BackendProcess, stub: ReviewingServer
    ) -> None:
        token = stub.token_of("web:audited")
        request = submitted(backend, RESEARCH, token).body
        backend.ask("GET", f"/requests/{request['id']}", token=token)
        backend.ask("DELETE", f"/requests/{request['id']}", token=token)
        submitted(backend, RESEARCH, stub.token_of("jobs:audited"))
        caller = "system:serviceaccount:web:audited"

        def lines(name: str) -> list[tuple[str, str, str, int]]:
            return [
                (line["verb"], line["request"], line["decision"], line["status"])
                for line in backend.logged()
                if line.get("caller") == name
            ]

        eventually(lambda: len(lines("system:serviceaccount:jobs:audited")) == 1)
        assert lines(caller) == [
            ("submit", request["id"], "allowed", 201),
            ("get", request["id"], "allowed", 200),
            ("cancel", request["id"], "allowed", 202),
        ]
        assert lines("system:serviceaccount:jobs:audited") == [("submit", "", "forbidden", 403)]

    def test_no_line_holds_a_token(
        self, backend: BackendProcess, stub: ReviewingServer, issuer: IssuerServer
    ) -> None:
        tokens = [stub.token_of("web:quiet"), issuer.token_of("quiet"), stub.token_of("x:y") + "x"]
        for token in tokens:
            submitted(backend, RESEARCH, token)

        log = backend.log.read_text()
        assert not [token for token in tokens if token in log or token.split(".")[2] in log]


def test_a_key_that_the_issuer_has_just_begun_to_use_is_looked_for(
    here: Site, issuer: IssuerServer
) -> None:
    """And one that it has withdrawn is worth nothing once the keys were read again."""
    old = issuer.token_of("ada", ["researchers"])
    with here.replica(OIDC_CA_FILE=str(issuer.ca_file)) as backend:
        issuer.keys[:] = [SigningKey("two")]
        new = issuer.token_of("ada", ["researchers"])

        assert submitted(backend, RESEARCH, new).status == 201
        assert submitted(backend, RESEARCH, old).status == 401
        asked = len(issuer.asked)
        for number in range(5):
            forged = SigningKey(f"forged-{number}").sign(issuer.claims("eve", ["platform"]))
            assert submitted(backend, RESEARCH, forged).status == 401
        # Whoever invents keys does not make the backend ask the issuer each time.
        assert len(issuer.asked) == asked


def test_while_the_api_server_is_away_nobody_new_is_let_in_and_known_callers_go_on(
    here: Site, stub: ReviewingServer
) -> None:
    known = stub.token_of("web:known")
    with here.replica() as backend:
        assert submitted(backend, RESEARCH, known).status == 201
        stub.away = True
        try:
            stranger = submitted(backend, RESEARCH, stub.token_of("web:new"))
            again = submitted(backend, RESEARCH, known)
        finally:
            stub.away = False

        assert stranger.status == 503
        assert "retry-after" in stranger.headers
        assert again.status == 201
        assert submitted(backend, RESEARCH, stub.token_of("web:new")).status == 201


def test_an_issuer_that_was_never_reached_lets_nobody_in(here: Site, issuer: IssuerServer) -> None:
    issuer.away = True
    try:
        with here.replica(OIDC_CA_FILE=str(issuer.ca_file)) as backend:
            answer = submitted(backend, RESEARCH, issuer.token_of("ada", ["platform"]))
    finally:
        issuer.away = False

    assert answer.status == 503


class TestStart:
    """Settings for authentication, and the setting that lets everybody in."""

    @pytest.fixture
    def plain(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        postgres: PostgresServer,
        stub: ReviewingServer,
    ) -> Site:
        """Return a site whose cluster file says nothing of callers."""
        head, _, _ = CLUSTER.partition("  identity:")
        folder = tmp_path_factory.mktemp("plain")
        return site(folder, postgres, postgres.new_database(), stub, cluster_file=head)

    def test_it_does_not_start_where_nobody_can_be_told_apart(
        self, plain: Site, stub: ReviewingServer
    ) -> None:
        stub.lacks = True
        try:
            backend = BackendProcess(plain.folder, plain.environment)
            assert backend.process.wait(timeout=20) == 1
        finally:
            stub.lacks = False

        assert "--insecure-anonymous" in backend.logged()[-1]["message"]

    def test_it_starts_with_the_issuer_alone(
        self, here: Site, stub: ReviewingServer, issuer: IssuerServer
    ) -> None:
        stub.lacks = True
        try:
            with here.replica(OIDC_CA_FILE=str(issuer.ca_file)) as backend:
                person = submitted(backend, RESEARCH, issuer.token_of(groups=["researchers"]))
                account = submitted(backend, RESEARCH, stub.token_of())
        finally:
            stub.lacks = False

        assert (person.status, account.status) == (201, 401)

    def test_everybody_is_let_in_where_the_command_says_so_and_each_start_says_it(
        self, plain: Site
    ) -> None:
        for _ in range(2):
            with plain.replica("--insecure-anonymous") as backend:
                request = submitted(backend, PRODUCTION, None)
                path = f"/requests/{request.body['id']}"
                cancelled = backend.ask("DELETE", path, token=None)
                warnings = [line for line in backend.logged() if line["level"] == "WARNING"]

            assert (request.status, cancelled.status) == (201, 202)
            assert request.body["owner"] == "system:anonymous"
            assert warnings[0]["message"].startswith("INSECURE: callers are not authenticated")

    def test_it_does_not_let_everybody_in_where_the_file_names_callers(self, here: Site) -> None:
        backend = BackendProcess(here.folder, here.environment, "--insecure-anonymous")

        assert backend.process.wait(timeout=20) == 1
        assert "leave one of them out" in backend.logged()[-1]["message"]

    def test_without_a_word_of_callers_nobody_may_submit(
        self, plain: Site, stub: ReviewingServer
    ) -> None:
        with plain.replica() as backend:
            assert submitted(backend, RESEARCH, None).status == 401
            assert submitted(backend, RESEARCH, stub.token_of()).status == 403
