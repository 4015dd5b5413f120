create table idempotency_keys (
  key text primary key,
  fingerprint text not null,
  status_code integer,
  response json,
  created_at timestamptz not null default now()
);
