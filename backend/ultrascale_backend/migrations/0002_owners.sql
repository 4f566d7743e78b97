-- Who asked for a request. Requests from before callers were known have no owner, and only admins see
-- them. The keys of a caller are hashed with its name from now on, into the same column: the version
-- before, which runs beside this one while a Deployment rolls, needs it to be unique by itself.
ALTER TABLE requests ADD COLUMN owner text;

CREATE INDEX requests_of_owner ON requests (owner, created_at DESC, id DESC);
