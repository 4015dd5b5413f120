-- Webhook events, their arrivals and their certificates (AuditVisa specification sections 5 to 12).
-- Needs platform_core_schema_v1.

-- One row an event: the idempotency record of section 8.1, with the claim columns of the door.
create table if not exists certify_events (
  id {pk},
  -- av_evt_...: one for one identity (scope of the source, event id); the key of the record.
  ref text not null,
  source text not null,
  scope text not null,
  event_id text not null,
  event_type text not null,
  mode text not null check (mode in ('live', 'test')),
  occurred_at {time},
  sid text,
  payload_hash {bytes} not null,
  -- The projected event: what a later attempt, a rebuild or a person needs. Null once erased.
  input {json},
  reason text,
  cause text,
  mark text check (mark in ('imported', 'adopted', 'erased')),
  -- The event whose certificate this one points at, where a sender reported one change under two ids.
  certificate_event {int} references certify_events (id),
  -- Claim columns.
  status text not null check (status in ('received', 'processing', 'processed', 'failed', 'orphaned')),
  fingerprint {bytes} not null,
  claim_token {bytes},
  attempt_no {int} not null default 1,
  locked_until {time},
  response_code {int},
  response_body {json},
  expires_at {time},
  created_at {time} not null,
  updated_at {time} not null
) {strict};
create unique index if not exists uq_certify_events_ref on certify_events (ref);
-- What recovery and an operator look for; finished events are not in it.
create index if not exists ix_certify_events_open
  on certify_events (status, updated_at) where status in ('processing', 'failed', 'orphaned');

create index if not exists ix_certify_events_certificate
  on certify_events (certificate_event) where certificate_event is not null;

-- One row an arrival, the first included: section 12.2, questions 1 to 5.
create table if not exists certify_arrivals (
  event {int} not null references certify_events (id),
  n {int} not null,
  received_at {time} not null,
  source text not null,
  verdict text not null check (verdict in ('processed', 'received', 'duplicate_reused', 'failed', 'processing')),
  differs text not null default 'none' check (differs in ('none', 'rendering', 'payload')),
  payload_hash {bytes} not null,
  request_id text not null,
  trace_id text not null,
  client_ip {inet},
  primary key (event, n)
) {strict_by_key};

-- Every state an event passed through, with its time: section 12.1.
create table if not exists certify_transitions (
  event {int} not null references certify_events (id),
  n {int} not null,
  status text not null,
  at {time} not null,
  note text,
  primary key (event, n)
) {strict_by_key};

-- The formal result, by the event that it was issued for. The files are a cache of this row.
create table if not exists certify_certificates (
  event {key} references certify_events (id),
  slug text not null,
  -- Digest of account, object and transition, where a sender may report one change under two ids. It
  -- guards the effect: the second id finds the first one's certificate here.
  change_key {bytes},
  -- What the files are built from (the signed `run`). Null once erased.
  run {json},
  run_hash {bytes} not null,
  key_id text not null,
  signature {bytes} not null,
  html_hash {bytes} not null,
  zip_hash {bytes} not null,
  json_hash {bytes} not null,
  issued_at {time} not null,
  created_at {time} not null
) {strict};
create unique index if not exists uq_certify_certificates_slug on certify_certificates (slug);
create unique index if not exists uq_certify_certificates_change
  on certify_certificates (change_key) where change_key is not null;

-- Narrow words (eight bytes of a digest) for the search by session, payment and mail; a hit is compared
-- with the row itself.
create table if not exists certify_search (
  word {int} not null,
  event {int} not null references certify_events (id),
  primary key (word, event)
) {strict_by_key};

-- Erasing takes an event's words; new ones go to this index's end.
create index if not exists ix_certify_search_event on certify_search (event);

-- What a foreign step of a leased work returned, kept under its fence before the next step begins.
create table if not exists certify_steps (
  event {int} not null references certify_events (id),
  name text not null,
  attempt_no {int} not null,
  result {bytes} not null,
  recorded_at {time} not null,
  primary key (event, name)
) {strict_by_key};

-- Raw payloads, only where the policy keeps them, and only until then.
create table if not exists certify_payloads (
  event {key},
  body {bytes} not null,
  keep_until {time} not null
) {strict};
create index if not exists ix_certify_payloads_end on certify_payloads (keep_until);

-- Public halves of the anchor keys and their periods; private halves are files. At most one is announced
-- and one active. A closing key signs nothing new: transactions that saw it active are not all over yet.
create table if not exists certify_keys (
  key_id text primary key,
  public_key {bytes} not null,
  status text not null check (status in ('announced', 'active', 'closing', 'retired')),
  announced_at {time} not null,
  active_from {time},
  retired_at {time},
  check (status = 'announced' or active_from is not null),
  check ((status = 'retired') = (retired_at is not null))
) {strict};
create unique index if not exists uq_certify_keys_next on certify_keys (status) where status in ('announced', 'active');

-- One row: the digest of the secret behind slugs and mail digests, by which a folder with another secret is
-- told from the right one.
create table if not exists certify_secret (
  id {key} check (id = 1),
  digest {bytes} not null,
  begun_at {time} not null
) {strict};

-- The servers that share the store, and the private keys that each could load when it was last seen.
create table if not exists certify_nodes (
  node_id text primary key,
  address text not null,
  seen_at {time} not null,
  -- Ids of the keys, with blanks between them.
  loaded text not null,
  -- What it can't load and why; null when all is well.
  trouble text
) {strict};

-- How far a background worker has come: exported lines, synced files.
create table if not exists certify_marks (
  name text primary key,
  value {int} not null,
  updated_at {time} not null
) {strict};
