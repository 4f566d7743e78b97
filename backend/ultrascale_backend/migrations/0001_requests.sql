-- A request is what was asked for, and how far it is.
CREATE TABLE requests (
    id uuid PRIMARY KEY,
    idempotency_key text NOT NULL UNIQUE,
    -- SHA-256 of the body, by which another request under the same key is told apart.
    fingerprint bytea NOT NULL,
    type text NOT NULL,
    urgency text NOT NULL,
    deadline timestamptz,
    -- The rule and the template of the cluster file that it became.
    rule text NOT NULL,
    template text NOT NULL,
    namespace text NOT NULL,
    job_name text NOT NULL,
    -- What makes its pods, such as jobs.batch, and how many of these there are.
    kind text NOT NULL,
    workloads integer NOT NULL,
    -- What is sent to Kubernetes. `json` keeps the text as it is.
    objects json NOT NULL,
    notes text[] NOT NULL,
    state text NOT NULL DEFAULT 'pending' CHECK (
        state IN ('pending', 'submitted', 'running', 'succeeded', 'failed', 'cancelled')
    ),
    reason text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    cancel_requested_at timestamptz,
    submitted_at timestamptz,
    started_at timestamptz,
    ended_at timestamptz
);

CREATE INDEX requests_newest ON requests (created_at DESC, id DESC);
CREATE INDEX requests_active ON requests (state)
WHERE state IN ('pending', 'submitted', 'running');

-- A row here: something is to be done in the cluster for this request. Whoever does it holds the
-- row's lock, and deletes the row in the transaction that records what was done.
CREATE TABLE outbox (
    request_id uuid PRIMARY KEY REFERENCES requests (id),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX outbox_due ON outbox (next_attempt_at);
