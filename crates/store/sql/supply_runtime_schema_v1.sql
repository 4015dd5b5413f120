-- What the supply side needs to run beyond the three files of section 10: suppliers, what a settlement is made
-- of, price floors, SMS codes, batches, payouts. File 4; needs supply_schema_v1_patch_2026-03-27.

-- One principal a tenant; operators act for it.
create table if not exists supply_suppliers (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  user_id {int} not null references iam_users (id),
  -- The row that a withdrawal locks. It is there before the supplier is, so there is always something to lock.
  available_account_id {int} not null references billing_accounts (id),
  {varchar supplier_type 16} not null,
  {varchar status 20} not null default 'active',
  -- The number that gets the SMS codes (E.164), encrypted, and as it is shown.
  phone_cipher text not null,
  {varchar phone_cipher_algo 32} not null default 'AES-256-GCM',
  {varchar phone_kms_key_alias 128} not null,
  phone_key_version integer not null,
  {char phone_fingerprint 64} not null,
  {varchar phone_masked 20} not null,
  {char currency_code 3} not null default 'CNY',
  open_risk_cases integer not null default 0,
  {varchar request_id 64} not null,
  {varchar audit_trace_id 64} not null,
  version {int} not null default 0,
  created_at {time} not null,
  updated_at {time} not null,
  constraint supplier_type_known check (supplier_type in ('individual', 'company')),
  constraint supplier_status check (status in ('active', 'suspended', 'closed')),
  constraint supplier_phone check (phone_cipher <> '' and phone_cipher_algo <> '' and phone_kms_key_alias <> ''),
  constraint supplier_phone_key_version check (phone_key_version >= 1),
  constraint supplier_phone_masked check (phone_masked like '%****%'),
  constraint supplier_currency_upper check (currency_code = upper(currency_code)),
  constraint supplier_open_risk_cases check (open_risk_cases >= 0),
  constraint supplier_request_id check (request_id <> ''),
  constraint supplier_audit_trace_id check (audit_trace_id <> ''),
  constraint supplier_version check (version >= 0)
) {strict};
create unique index if not exists uq_supplier_tenant on supply_suppliers (tenant_id);
create unique index if not exists uq_supplier_user on supply_suppliers (user_id);
create unique index if not exists uq_supplier_available_account on supply_suppliers (available_account_id);
create index if not exists ix_supply_suppliers_request on supply_suppliers (request_id);
create index if not exists ix_supply_suppliers_trace on supply_suppliers (audit_trace_id);

-- One withdrawal of a supplier at a time, waiting or on its way.
create unique index if not exists uq_settlement_supplier_open
  on supply_settlements (user_id) where status in ('pending', 'processing');

-- Only grows. From which earnings a settlement was taken; the sum is its total.
create table if not exists supply_settlement_items (
  settlement_id {int} not null references supply_settlements (id),
  earning_id {int} not null references supply_earnings (id),
  tenant_id {int} not null references core_tenants (id),
  amount {money} not null,
  created_at {time} not null,
  constraint settlement_item_amount check (amount > 0),
  primary key (settlement_id, earning_id)
) {strict_by_key};
create index if not exists ix_supply_settlement_items_earning on supply_settlement_items (earning_id);
{append_only supply_settlement_items}
-- The lowest allowed price of a model, by direction, from an instant on. Without a row the model is not allowed.
create table if not exists supply_price_protection (
  id {pk},
  -- The platform's own.
  tenant_id {int} not null default 1 references core_tenants (id),
  {varchar provider 50} not null,
  {varchar model 100} not null,
  {varchar direction 16} not null,
  floor_price {price} not null,
  {char currency_code 3} not null default 'CNY',
  effective_from {time} not null,
  {varchar request_id 64} not null,
  created_at {time} not null,
  created_by {int} not null references iam_users (id),
  constraint floor_provider check (provider in ('openai', 'anthropic', 'gemini', 'baidu', 'xfyun', 'tencent')),
  constraint floor_model check (model <> ''),
  constraint floor_direction check (direction in ('input', 'output')),
  constraint floor_price_range check (floor_price > 0 and floor_price <= 1000000 * {one}),
  constraint floor_currency_upper check (currency_code = upper(currency_code)),
  constraint floor_request_id check (request_id <> '')
) {strict};
create unique index if not exists uq_price_protection
  on supply_price_protection (provider, model, direction, currency_code, effective_from);
create index if not exists ix_supply_price_protection_request on supply_price_protection (request_id);

-- Codes for a withdrawal. The code itself stands nowhere: it is derived from code_ref under the SMS key when it
-- is sent.
create table if not exists supply_sms_codes (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  supplier_id {int} not null references supply_suppliers (id),
  {varchar purpose 32} not null,
  {varchar code_ref 64} not null,
  {char code_hash 64} not null,
  key_version integer not null,
  expires_at {time} not null,
  attempts integer not null default 0,
  consumed_at {time},
  {varchar request_id 64} not null,
  created_at {time} not null,
  created_by {int} not null references iam_users (id),
  constraint sms_purpose check (purpose in ('withdraw')),
  constraint sms_code_ref check (length(code_ref) >= 16),
  constraint sms_key_version check (key_version >= 1),
  constraint sms_life check (expires_at > created_at),
  -- The fifth wrong try kills it.
  constraint sms_attempts check (attempts between 0 and 5),
  constraint sms_consumed check (consumed_at is null or (attempts < 5 and consumed_at < expires_at)),
  constraint sms_request_id check (request_id <> '')
) {strict};
create unique index if not exists uq_sms_code_ref on supply_sms_codes (code_ref);
create index if not exists ix_supply_sms_codes_supplier
  on supply_sms_codes (supplier_id, purpose, created_at desc);
create index if not exists ix_supply_sms_codes_request on supply_sms_codes (request_id);

-- A batch of price changes under its key, and what became of each item so far: a take-over goes on from there.
create table if not exists supply_batch_jobs (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  operator_id {int} not null references iam_users (id),
  idempotency_record_id {int} not null,
  claim_generation integer not null,
  {varchar request_id 64} not null,
  {varchar audit_trace_id 64} not null,
  total integer not null,
  success_count integer not null default 0,
  failed_count integer not null default 0,
  created_at {time} not null,
  finished_at {time},
  constraint batch_generation check (claim_generation >= 1),
  constraint batch_request_id check (request_id <> ''),
  constraint batch_audit_trace_id check (audit_trace_id <> ''),
  constraint batch_total check (total between 1 and 200),
  constraint batch_counts_not_negative check (success_count >= 0 and failed_count >= 0),
  constraint batch_counts_within_total check (success_count + failed_count <= total),
  constraint batch_finished_is_complete check (finished_at is null or success_count + failed_count = total)
) {strict};
create unique index if not exists uq_batch_job_record
  on supply_batch_jobs (idempotency_record_id, claim_generation);
create index if not exists ix_supply_batch_jobs_request on supply_batch_jobs (request_id);
create index if not exists ix_supply_batch_jobs_trace on supply_batch_jobs (audit_trace_id);

-- package_id may name no package of the tenant: that item failed.
create table if not exists supply_batch_items (
  job_id {int} not null references supply_batch_jobs (id),
  package_id {int} not null,
  tenant_id {int} not null references core_tenants (id),
  -- Place in the request, from 0: the order of the answer.
  position integer not null,
  {varchar result 16} not null,
  {varchar error_code 64},
  created_at {time} not null,
  constraint batch_item_position check (position between 0 and 199),
  constraint batch_item_result check (result in ('success', 'failed')),
  constraint batch_item_failed_with_code check ((result = 'failed') = (error_code is not null)),
  primary key (job_id, package_id)
) {strict_by_key};
create unique index if not exists uq_batch_item_position on supply_batch_items (job_id, position);

-- Every attempt to pay a settlement out. The reference is the settlement's number on each, so that the channel
-- pays once.
create table if not exists supply_payout_attempts (
  settlement_id {int} not null references supply_settlements (id),
  attempt integer not null,
  tenant_id {int} not null references core_tenants (id),
  {varchar payout_ref 64} not null references supply_settlements (settlement_no),
  {varchar result 16} not null default 'pending',
  -- The channel's own code, redacted.
  {varchar raw_code 64},
  created_at {time} not null,
  ended_at {time},
  constraint payout_attempt check (attempt >= 1),
  constraint payout_result check (result in ('pending', 'succeeded', 'failed', 'unknown')),
  constraint payout_ended check ((result = 'pending') = (ended_at is null)),
  primary key (settlement_id, attempt)
) {strict_by_key};

-- What a foreign step of a leased command returned, as the door keeps it; event is the record's id.
create table if not exists supply_steps (
  event {int} not null,
  name text not null,
  attempt_no integer not null,
  result {bytes} not null,
  recorded_at {time} not null,
  primary key (event, name)
) {strict_by_key};

-- What the system's commands look for, by state, never by a mark of how far they came.
create index if not exists ix_supply_earnings_due
  on supply_earnings (available_at, id) where status = 'pending' and amount > 0;
create index if not exists ix_supply_packages_ending
  on supply_packages (end_at) where status in ('active', 'paused', 'sold_out');
create index if not exists ix_supply_packages_restock
  on supply_packages (id) where status = 'sold_out' and available_quota > 0;
create index if not exists ix_supply_orders_unpaid on supply_orders (created_at) where status = 'pending';
create index if not exists ix_supply_orders_ending
  on supply_orders (expired_at) where status in ('paid', 'using');
create index if not exists ix_supply_settlements_waiting
  on supply_settlements (created_at) where status = 'pending';
create index if not exists ix_supply_settlements_paying
  on supply_settlements (processing_at) where status = 'processing';

-- What a command looks for: the earnings to withdraw from, oldest first; what is still open below an object.
create index if not exists ix_supply_earnings_open
  on supply_earnings (user_id, available_at, id) where available_amount > 0;
create index if not exists ix_supply_earnings_user on supply_earnings (user_id, earned_at desc, id desc);
create index if not exists ix_supply_packages_account on supply_packages (supply_account_id, status);
create index if not exists ix_supply_orders_package on supply_orders (supply_package_id, status);
create index if not exists ix_supply_orders_account
  on supply_orders (supply_account_id) where status in ('pending', 'paid', 'using');
create index if not exists ix_supply_usage_records_order on supply_usage_records (order_id);
create index if not exists ix_supply_usage_records_supplier
  on supply_usage_records (supplier_user_id, started_at);
