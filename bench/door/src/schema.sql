-- Accounts that keyed transfers debit, and the record table of their keys, as a domain of the product has
-- them. Needs platform_core_schema_v1.

create table if not exists bench_accounts (
  id {key},
  balance {int} not null check (balance >= 0),
  version {int} not null default 0,
  updated_at {time} not null
) {strict};

create table if not exists bench_records (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  key text not null,
  account_id {int} not null references bench_accounts (id),
  amount {int} not null check (amount > 0),
  -- Claim columns.
  status text not null check (status in ('processing', 'succeeded', 'failed', 'orphaned')),
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
create unique index if not exists uq_bench_records_key on bench_records (tenant_id, key);
create index if not exists ix_bench_records_open
  on bench_records (status, updated_at) where status in ('processing', 'failed', 'orphaned');

create table if not exists bench_steps (
  event {int} not null references bench_records (id),
  name text not null,
  attempt_no {int} not null,
  result {bytes} not null,
  recorded_at {time} not null,
  primary key (event, name)
) {strict_by_key};
