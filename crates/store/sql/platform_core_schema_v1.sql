-- Core, IAM, Auth, Billing, Audit and Outbox: the ground that both domains stand on.
-- Supply specification sections 5.1, 8, 10; tokens in braces differ by engine.

create table if not exists core_tenants (
  id {pk},
  code text not null unique,
  name text not null,
  type text not null check (type in ('supplier', 'consumer', 'platform')),
  status text not null default 'active' check (status in ('active', 'suspended', 'closed')),
  created_at {time} not null,
  updated_at {time} not null
) {strict};

create table if not exists core_projects (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  code text not null,
  name text not null,
  status text not null default 'active' check (status in ('active', 'closed')),
  created_at {time} not null,
  updated_at {time} not null,
  unique (tenant_id, code)
) {strict};

create table if not exists iam_users (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  name text not null,
  status text not null default 'active' check (status in ('active', 'disabled')),
  created_at {time} not null,
  updated_at {time} not null,
  unique (tenant_id, name)
) {strict};

create table if not exists iam_roles (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  code text not null,
  status text not null default 'active' check (status in ('active', 'retired')),
  created_at {time} not null,
  updated_at {time} not null,
  unique (tenant_id, code)
) {strict};

create table if not exists iam_scopes (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  code text not null,
  status text not null default 'active' check (status in ('active', 'retired')),
  created_at {time} not null,
  updated_at {time} not null,
  unique (tenant_id, code)
) {strict};

-- Only a fingerprint (SHA-256) of a token is kept. What an issued token claims stands in the columns from
-- user_id on; they are null for a token that stands for no user.
create table if not exists auth_tokens (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  name text not null,
  fingerprint {bytes} not null unique,
  state text not null default 'active' check (state in ('active', 'revoked', 'expired')),
  expires_at {time},
  user_id {int} references iam_users (id),
  role text check (role in ('owner', 'viewer', 'admin')),
  user_type text check (user_type in ('supply', 'consumer', 'platform')),
  scope {jsonb},
  -- Until when an active token may be renewed.
  refresh_until {time},
  created_at {time} not null,
  updated_at {time} not null,
  constraint token_claims check (
    (user_id is null) = (role is null) and (user_id is null) = (user_type is null)
    and (user_id is null) = (scope is null)),
  constraint token_ends check (user_id is null or (expires_at is not null and refresh_until is not null))
) {strict};

-- Of one name, one is good.
create unique index if not exists uq_auth_tokens_active on auth_tokens (tenant_id, name) where state = 'active';

-- Only an HMAC of a key and the prefix that is shown are kept.
create table if not exists auth_api_keys (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  user_id {int} not null references iam_users (id),
  name text not null,
  prefix text not null,
  key_hmac {bytes} not null unique,
  status text not null default 'active' check (status in ('active', 'revoked', 'expired')),
  expires_at {time},
  created_at {time} not null,
  updated_at {time} not null
) {strict};

create table if not exists billing_accounts (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  owner_type text not null check (owner_type in ('supplier', 'buyer', 'order', 'platform')),
  owner_id {int} not null,
  account_code text not null check (account_code in (
    'cash_clearing', 'buyer_prepaid', 'order_escrow', 'supplier_pending', 'supplier_available',
    'supplier_frozen', 'supplier_receivable', 'platform_fee_revenue', 'withdraw_fee_revenue',
    'bonus_expense', 'compensation_expense')),
  currency_code text not null check (length(currency_code) = 3),
  -- Null for the platform's accounts: one hot row would serialise all money.
  balance {money},
  version {int} not null default 0,
  status text not null default 'active' check (status in ('active', 'blocked', 'closed')),
  created_at {time} not null,
  updated_at {time} not null,
  unique (owner_type, owner_id, account_code, currency_code),
  constraint billing_balance_cached check ((owner_type = 'platform') = (balance is null)),
  -- Also what INV-SET-002 falls back on.
  constraint billing_balance_not_negative check (balance >= 0),
  constraint billing_owner_id check ((owner_type = 'platform') = (owner_id = 0)),
  constraint billing_owner_fits check (owner_type = case
    when account_code = 'buyer_prepaid' then 'buyer'
    when account_code = 'order_escrow' then 'order'
    when account_code in ('supplier_pending', 'supplier_available', 'supplier_frozen', 'supplier_receivable')
      then 'supplier'
    else 'platform' end)
) {strict};

create table if not exists billing_journals (
  id {pk},
  journal_type text not null constraint journal_type_known check (journal_type in (
    'J-TOPUP', 'J-ORDER-PAY', 'J-USAGE', 'J-BONUS', 'J-RELEASE', 'J-RECOVER', 'J-WITHDRAW', 'J-CANCEL',
    'J-PAYOUT-OK', 'J-PAYOUT-FAIL', 'J-PAYOUT-RETURN', 'J-REFUND', 'J-ORDER-CLOSE', 'J-COMPENSATE')),
  source_type text not null,
  source_id text not null,
  tenant_id {int} not null references core_tenants (id),
  request_id text not null,
  trace_id text not null,
  occurred_at {time} not null,
  created_at {time} not null,
  -- A fact is posted once.
  unique (journal_type, source_type, source_id)
) {strict};
-- A settlement ends once.
create unique index if not exists uq_billing_journals_closing on billing_journals (source_type, source_id)
  where source_type = 'settlement' and journal_type in ('J-CANCEL', 'J-PAYOUT-OK', 'J-PAYOUT-FAIL');
create index if not exists ix_billing_journals_request on billing_journals (request_id);
create index if not exists ix_billing_journals_trace on billing_journals (trace_id);
{append_only billing_journals}

create table if not exists billing_ledger_entries (
  id {pk},
  journal_id {int} not null references billing_journals (id),
  billing_account_id {int} not null references billing_accounts (id),
  tenant_id {int} not null references core_tenants (id),
  request_id text not null,
  trace_id text not null,
  idempotency_key text,
  entry_type text not null,
  direction text not null check (direction in ('dr', 'cr')),
  amount {money} not null check (amount > 0),
  amount_unit text not null default 'minor' check (amount_unit = 'minor'),
  currency_code text not null check (length(currency_code) = 3),
  -- Null where the account has no cached balance.
  balance_after {money} constraint entry_balance check (balance_after >= 0),
  ref_type text not null,
  ref_id text not null,
  occurred_at {time} not null,
  created_at {time} not null
) {strict};
create index if not exists ix_billing_ledger_entries_account
  on billing_ledger_entries (billing_account_id, occurred_at desc);
create index if not exists ix_billing_ledger_entries_journal on billing_ledger_entries (journal_id);
create index if not exists ix_billing_ledger_entries_request on billing_ledger_entries (request_id);
create index if not exists ix_billing_ledger_entries_trace on billing_ledger_entries (trace_id);
{append_only billing_ledger_entries}
create table if not exists security_kms_key_registry (
  id {pk},
  key_alias text not null,
  cipher_algo text not null,
  key_version {int} not null check (key_version >= 1),
  status text not null check (status in ('active', 'rotating', 'retired')),
  rotated_at {time},
  created_at {time} not null,
  updated_at {time} not null,
  -- Retired versions stay: rows that they wrapped are still to be opened.
  constraint uq_security_kms_key_version unique (key_alias, key_version)
) {strict};
-- Of one alias, one version wraps and at most one is on its way.
create unique index if not exists uq_security_kms_key_current
  on security_kms_key_registry (key_alias, status) where status in ('active', 'rotating');

-- Written in the transaction of the change it tells of; never changed, never deleted.
create table if not exists audit_events (
  id {pk},
  event_id {bytes} not null,
  event_name text not null constraint audit_event_name check (event_name <> ''),
  action text not null constraint audit_action check (action <> ''),
  tenant_id {int} not null check (tenant_id > 0),
  operator_id {int} not null check (operator_id > 0),
  operator_type text not null check (operator_type in ('user', 'admin', 'system')),
  operator_role text not null check (operator_role <> ''),
  object_type text not null check (object_type <> ''),
  object_id text not null check (object_id <> ''),
  request_id text not null check (request_id <> ''),
  idempotency_key text check (idempotency_key <> ''),
  trace_id text not null check (trace_id <> ''),
  result_code text not null check (result_code <> ''),
  rule_code text,
  before_state {jsonb} not null,
  after_state {jsonb} not null,
  metadata {jsonb} not null,
  client_ip {inet},
  user_agent text check (length(user_agent) <= 256),
  created_at {time} not null,
  constraint audit_rule_code check (event_name <> 'invariant_violation' or coalesce(rule_code, '') <> '')
) {strict};
-- Ids of events are made in the order of time, so that this index grows at its end.
create unique index if not exists uq_audit_events_event on audit_events (event_id);
-- From an object, a request or a trace of a tenant to its events. Events of the platform's own tenant, which
-- the certificate side writes at a rate, have no part in them; a query must say so (tenant_id > 1).
create index if not exists ix_audit_events_object
  on audit_events (tenant_id, object_type, object_id, id) where tenant_id > 1;
create index if not exists ix_audit_events_request on audit_events (request_id) where tenant_id > 1;
create index if not exists ix_audit_events_trace on audit_events (trace_id) where tenant_id > 1;
{append_only audit_events}
-- An event of ours as a fact; who is to be told stands in outbox_deliveries.
create table if not exists outbox (
  id {pk},
  event_id {bytes} not null unique,
  event_name text not null,
  object_type text not null,
  object_id text not null,
  aggregate_version {int} not null,
  tenant_id {int} not null,
  operator_id {int} not null,
  request_id text not null,
  schema_version {int} not null default 1,
  payload {jsonb} not null,
  occurred_at {time} not null,
  created_at {time} not null
) {strict};
create index if not exists ix_outbox_request on outbox (request_id) where tenant_id > 1;

create table if not exists outbox_deliveries (
  id {pk},
  outbox_id {int} not null references outbox (id),
  destination text not null,
  object_key text not null,
  status text not null default 'pending'
    check (status in ('pending', 'sending', 'delivered', 'refused', 'uncertain', 'dead')),
  attempt {int} not null default 0,
  next_attempt_at {time} not null,
  claimed_by {bytes},
  fence {int} not null default 0,
  claimed_until {time},
  outcome text,
  error text,
  created_at {time} not null,
  updated_at {time} not null,
  unique (outbox_id, destination)
) {strict};
-- What is still to be done; by state, never by a watermark of ids, since rows commit out of order.
create index if not exists ix_outbox_deliveries_due
  on outbox_deliveries (destination, next_attempt_at) where status in ('pending', 'sending');
-- The order of one object's deliveries, and what was told of an object.
create index if not exists ix_outbox_deliveries_object on outbox_deliveries (object_key, destination, outbox_id);
create index if not exists ix_outbox_deliveries_held
  on outbox_deliveries (status, id) where status in ('refused', 'uncertain', 'dead');

create table if not exists outbox_consumed (
  consumer text not null,
  event_id {bytes} not null,
  consumed_at {time} not null,
  primary key (consumer, event_id)
) {strict_by_key};

-- The platform itself: commands of the system and of webhooks act as this principal. Both get the id 1.
insert into core_tenants (code, name, type, status, created_at, updated_at)
values ('platform', 'Platform', 'platform', 'active', {epoch}, {epoch}) on conflict do nothing;
insert into iam_users (tenant_id, name, status, created_at, updated_at)
select id, 'system', 'active', {epoch}, {epoch} from core_tenants where code = 'platform' on conflict do nothing;
