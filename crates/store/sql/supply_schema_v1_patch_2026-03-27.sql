-- What section 10 of the supply specification demands of each key table: encryption, unit and audit fields.
-- File 3; needs supply_schema_v1. Then the record of idempotency keys (2.4), the one payout on its way (3.3) and
-- the combined indexes.
--
-- request_id, idempotency_key, audit_trace_id and the addresses are those of the last write. version is raised
-- by SQL alone (version = version + 1 where version = the one that was read). A default that is no value is
-- refused by the column's own rule: whoever writes a row must say it.

alter table supply_accounts add column {if_absent} {varchar credential_cipher_algo 32} not null default 'AES-256-GCM'
  constraint account_cipher_algo check (credential_cipher_algo <> '');
alter table supply_accounts add column {if_absent} {varchar credential_kms_key_alias 128} not null default ''
  constraint account_kms_key_alias check (credential_kms_key_alias <> '');
alter table supply_accounts add column {if_absent} credential_key_version integer not null default 0
  constraint account_key_version check (credential_key_version >= 1);
alter table supply_accounts add column {if_absent} {char credential_fingerprint 64} not null default '';
alter table supply_accounts add column {if_absent} last_rotation_at {time};
alter table supply_accounts add column {if_absent} {varchar quota_unit 16} not null default 'token'
  constraint account_quota_unit check (quota_unit in ('token', 'request', 'credit'))
  constraint account_quota_whole check (quota_unit = 'credit'
    or (total_quota % {one} = 0 and available_quota % {one} = 0 and frozen_quota % {one} = 0));
alter table supply_accounts add column {if_absent} {varchar amount_unit 16} not null default 'minor'
  constraint account_amount_unit check (amount_unit = 'minor');
alter table supply_accounts add column {if_absent} {char currency_code 3} not null default 'CNY'
  constraint account_currency_upper check (currency_code = upper(currency_code));
alter table supply_accounts add column {if_absent} {varchar request_id 64} not null default ''
  constraint account_request_id check (request_id <> '');
alter table supply_accounts add column {if_absent} {varchar idempotency_key 128}
  constraint account_idempotency_key check (idempotency_key <> '');
alter table supply_accounts add column {if_absent} {varchar audit_trace_id 64} not null default ''
  constraint account_audit_trace_id check (audit_trace_id <> '');
alter table supply_accounts add column {if_absent} created_ip {inet};
alter table supply_accounts add column {if_absent} updated_ip {inet};
alter table supply_accounts add column {if_absent} version {int} not null default 0
  constraint account_version check (version >= 0);

alter table supply_packages add column {if_absent} {varchar quota_unit 16} not null default 'token'
  constraint package_quota_unit check (quota_unit in ('token', 'request', 'credit'))
  constraint package_quota_whole check (quota_unit = 'credit'
    or (total_quota % {one} = 0 and available_quota % {one} = 0 and sold_quota % {one} = 0
      and reserved_quota % {one} = 0 and min_purchase % {one} = 0));
alter table supply_packages add column {if_absent} {varchar price_unit 32} not null default 'per_1m_tokens'
  constraint package_price_unit check (price_unit = 'per_1m_tokens');
alter table supply_packages add column {if_absent} {varchar amount_unit 16} not null default 'minor'
  constraint package_amount_unit check (amount_unit = 'minor');
alter table supply_packages add column {if_absent} {char currency_code 3} not null default 'CNY'
  constraint package_currency_upper check (currency_code = upper(currency_code));
alter table supply_packages add column {if_absent} {varchar request_id 64} not null default ''
  constraint package_request_id check (request_id <> '');
alter table supply_packages add column {if_absent} {varchar idempotency_key 128}
  constraint package_idempotency_key check (idempotency_key <> '');
alter table supply_packages add column {if_absent} {varchar audit_trace_id 64} not null default ''
  constraint package_audit_trace_id check (audit_trace_id <> '');
alter table supply_packages add column {if_absent} created_ip {inet};
alter table supply_packages add column {if_absent} updated_ip {inet};
alter table supply_packages add column {if_absent} version {int} not null default 0
  constraint package_version check (version >= 0);

alter table supply_orders add column {if_absent} {varchar quota_unit 16} not null default 'token'
  constraint order_quota_unit check (quota_unit in ('token', 'request', 'credit'))
  constraint order_quota_whole check (quota_unit = 'credit'
    or (quota_amount % {one} = 0 and used_quota % {one} = 0))
  constraint order_quota_tokens check ((quota_unit = 'token') = (quota_tokens is not null))
  constraint order_quota_tokens_equal check (quota_tokens * {one} = quota_amount);
alter table supply_orders add column {if_absent} {varchar price_unit 32} not null default 'per_1m_tokens'
  constraint order_price_unit check (price_unit = 'per_1m_tokens');
alter table supply_orders add column {if_absent} {varchar amount_unit 16} not null default 'minor'
  constraint order_amount_unit check (amount_unit = 'minor');
alter table supply_orders add column {if_absent} {char currency_code 3} not null default 'CNY'
  constraint order_currency_upper check (currency_code = upper(currency_code));
alter table supply_orders add column {if_absent} {varchar request_id 64} not null default ''
  constraint order_request_id check (request_id <> '');
alter table supply_orders add column {if_absent} {varchar idempotency_key 128}
  constraint order_idempotency_key check (idempotency_key <> '');
alter table supply_orders add column {if_absent} {varchar audit_trace_id 64} not null default ''
  constraint order_audit_trace_id check (audit_trace_id <> '');
alter table supply_orders add column {if_absent} created_ip {inet};
alter table supply_orders add column {if_absent} updated_ip {inet};
alter table supply_orders add column {if_absent} version {int} not null default 0
  constraint order_version check (version >= 0);

alter table supply_usage_records add column {if_absent} {varchar quota_unit 16} not null default 'token'
  constraint usage_quota_unit check (quota_unit in ('token', 'request', 'credit'));
alter table supply_usage_records add column {if_absent} {varchar price_unit 32} not null default 'per_1m_tokens'
  constraint usage_price_unit check (price_unit = 'per_1m_tokens');
alter table supply_usage_records add column {if_absent} {varchar amount_unit 16} not null default 'minor'
  constraint usage_amount_unit check (amount_unit = 'minor');
alter table supply_usage_records add column {if_absent} {char currency_code 3} not null default 'CNY'
  constraint usage_currency_upper check (currency_code = upper(currency_code));
alter table supply_usage_records add column {if_absent} {varchar request_id 64} not null default ''
  constraint usage_request_id check (request_id <> '');
alter table supply_usage_records add column {if_absent} {varchar idempotency_key 128}
  constraint usage_idempotency_key check (idempotency_key <> '');
alter table supply_usage_records add column {if_absent} {varchar audit_trace_id 64} not null default ''
  constraint usage_audit_trace_id check (audit_trace_id <> '');
alter table supply_usage_records add column {if_absent} created_ip {inet};
alter table supply_usage_records add column {if_absent} updated_ip {inet};
alter table supply_usage_records add column {if_absent} version {int} not null default 0
  constraint usage_version check (version >= 0);

alter table supply_earnings add column {if_absent} {varchar amount_unit 16} not null default 'minor'
  constraint earning_amount_unit check (amount_unit = 'minor');
alter table supply_earnings add column {if_absent} {char currency_code 3} not null default 'CNY'
  constraint earning_currency_upper check (currency_code = upper(currency_code));
alter table supply_earnings add column {if_absent} {varchar request_id 64} not null default ''
  constraint earning_request_id check (request_id <> '');
alter table supply_earnings add column {if_absent} {varchar idempotency_key 128}
  constraint earning_idempotency_key check (idempotency_key <> '');
alter table supply_earnings add column {if_absent} {varchar audit_trace_id 64} not null default ''
  constraint earning_audit_trace_id check (audit_trace_id <> '');
alter table supply_earnings add column {if_absent} created_ip {inet};
alter table supply_earnings add column {if_absent} updated_ip {inet};
alter table supply_earnings add column {if_absent} version {int} not null default 0
  constraint earning_version check (version >= 0);

alter table supply_settlements add column {if_absent} {varchar payment_account_cipher_algo 32} not null default 'AES-256-GCM'
  constraint settlement_cipher_algo check (payment_account_cipher_algo <> '');
alter table supply_settlements add column {if_absent} {varchar payment_account_kms_key_alias 128} not null default ''
  constraint settlement_kms_key_alias check (payment_account_kms_key_alias <> '');
alter table supply_settlements add column {if_absent} payment_account_key_version integer not null default 0
  constraint settlement_key_version check (payment_account_key_version >= 1);
alter table supply_settlements add column {if_absent} {char payment_account_fingerprint 64} not null default '';
alter table supply_settlements add column {if_absent} {varchar amount_unit 16} not null default 'minor'
  constraint settlement_amount_unit check (amount_unit = 'minor');
alter table supply_settlements add column {if_absent} {char currency_code 3} not null default 'CNY'
  constraint settlement_currency_upper check (currency_code = upper(currency_code));
alter table supply_settlements add column {if_absent} {varchar request_id 64} not null default ''
  constraint settlement_request_id check (request_id <> '');
alter table supply_settlements add column {if_absent} {varchar idempotency_key 128}
  constraint settlement_idempotency_key check (idempotency_key <> '');
alter table supply_settlements add column {if_absent} {varchar audit_trace_id 64} not null default ''
  constraint settlement_audit_trace_id check (audit_trace_id <> '');
alter table supply_settlements add column {if_absent} created_ip {inet};
alter table supply_settlements add column {if_absent} updated_ip {inet};
alter table supply_settlements add column {if_absent} version {int} not null default 0
  constraint settlement_version check (version >= 0);

-- A credential is mounted once: in a tenant, and anywhere. A fingerprint of a disabled account is looked for,
-- deleted or not.
create unique index if not exists uq_account_credential
  on supply_accounts (tenant_id, platform, credential_fingerprint) where deleted_at is null;
create unique index if not exists uq_account_credential_anywhere
  on supply_accounts (credential_fingerprint) where deleted_at is null;
create index if not exists ix_supply_accounts_fingerprint on supply_accounts (credential_fingerprint);
-- A call that is reported again is billed once.
create unique index if not exists uq_usage_request
  on supply_usage_records (client_tenant_id, request_id, api_key_id);
-- One payout of a supplier on its way (section 3.3).
create unique index if not exists uq_settlement_supplier_processing
  on supply_settlements (user_id) where status = 'processing';

create index if not exists ix_supply_accounts_user on supply_accounts (user_id, status, updated_at desc);
create index if not exists ix_supply_packages_user on supply_packages (user_id, status, updated_at desc);
create index if not exists ix_supply_packages_model on supply_packages (platform, model, status);
create index if not exists ix_supply_packages_active
  on supply_packages (platform, model, id) where status = 'active';
create index if not exists ix_supply_orders_buyer on supply_orders (buyer_user_id, status, created_at desc);
create index if not exists ix_supply_settlements_user
  on supply_settlements (user_id, status, updated_at desc);

-- From an alert to every row of its request.
create index if not exists ix_supply_accounts_request on supply_accounts (request_id);
create index if not exists ix_supply_accounts_trace on supply_accounts (audit_trace_id);
create index if not exists ix_supply_packages_request on supply_packages (request_id);
create index if not exists ix_supply_packages_trace on supply_packages (audit_trace_id);
create index if not exists ix_supply_orders_request on supply_orders (request_id);
create index if not exists ix_supply_orders_trace on supply_orders (audit_trace_id);
create index if not exists ix_supply_usage_records_request on supply_usage_records (request_id);
create index if not exists ix_supply_usage_records_trace on supply_usage_records (audit_trace_id);
create index if not exists ix_supply_earnings_request on supply_earnings (request_id);
create index if not exists ix_supply_earnings_trace on supply_earnings (audit_trace_id);
create index if not exists ix_supply_settlements_request on supply_settlements (request_id);
create index if not exists ix_supply_settlements_trace on supply_settlements (audit_trace_id);

-- The records of idempotency keys (section 2.4) with the claim columns of the door. Never partitioned: its unique
-- key has no column to partition by.
create table if not exists supply_idempotency_record (
  id {pk},
  tenant_id {int} not null,
  operator_id {int} not null,
  -- Concrete and normalised: /api/v1/supply/packages/17/publish.
  {varchar api_path 200} not null,
  {varchar idempotency_key 128} not null,
  {varchar request_id 64} not null,
  -- HMAC-SHA256 of method, path and canonical body, in lower hex.
  {char payload_hash 64} not null,
  -- Null while running, and after a failure that may be tried again.
  response_code integer,
  response_body {jsonb},
  {varchar status 20} not null,
  claim_token {bytes},
  -- Raised when the key is used anew after its end; what a batch did is kept by record and generation.
  claim_generation integer not null default 1,
  attempt_no integer not null default 1,
  locked_until {time},
  expires_at {time} not null,
  created_at {time} not null default {now},
  updated_at {time} not null default {now},
  constraint uq_supply_idempotency_record unique (tenant_id, operator_id, api_path, idempotency_key),
  constraint idempotency_tenant check (tenant_id > 0),
  constraint idempotency_operator check (operator_id > 0),
  constraint idempotency_key_not_empty check (idempotency_key <> ''),
  constraint idempotency_request_id check (request_id <> ''),
  constraint idempotency_status check (status in ('processing', 'succeeded', 'failed')),
  constraint idempotency_claim check (
    status <> 'processing' or (claim_token is not null and locked_until is not null)),
  constraint idempotency_claim_token check (length(claim_token) = 16),
  constraint idempotency_running_has_no_answer check (status <> 'processing' or response_code is null),
  constraint idempotency_succeeded check (
    (status = 'succeeded') = (coalesce(response_code, 0) between 200 and 299)),
  constraint idempotency_failed check (status <> 'failed' or coalesce(response_code, 400) between 400 and 599),
  constraint idempotency_answer_whole check ((response_code is null) = (response_body is null)),
  constraint idempotency_generation check (claim_generation >= 1),
  constraint idempotency_attempt check (attempt_no >= 1)
) {strict};
create index if not exists ix_supply_idempotency_record_request on supply_idempotency_record (request_id);
-- What the sweeper takes, and what recovery takes over.
create index if not exists ix_supply_idempotency_record_ended
  on supply_idempotency_record (expires_at) where status <> 'processing';
create index if not exists ix_supply_idempotency_record_running
  on supply_idempotency_record (locked_until) where status = 'processing';
