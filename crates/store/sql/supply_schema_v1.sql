-- The six supply tables: file 2 of section 10 of the supply specification. Needs platform_core_schema_v1.
-- The encryption, unit and audit fields that section 10 demands of each come with the patch of 2026-03-27.
--
-- tenant_id is the supplier's tenant. user_id and supplier_user_id are the supplier's principal, never the
-- operator who acts for it. Money, quotas and prices have six decimals.

create table if not exists supply_accounts (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  user_id {int} not null references iam_users (id),
  {varchar platform 50} not null,
  {varchar account_type 20} not null,
  {varchar account_name 100},
  -- The envelope; nothing once deleted, or disabled because the secret got out.
  encrypted_credentials text not null,
  -- Random, made by the platform, without a part of the secret.
  {varchar key_id 100} not null,
  {varchar status 20} not null default 'pending',
  {varchar risk_level 20} not null default 'normal',
  risk_score integer not null,
  risk_reason text,
  total_quota {quota} not null default 0,
  available_quota {quota} not null default 0,
  frozen_quota {quota} not null default 0,
  min_quota_threshold {quota},
  is_verified {flag} not null default false,
  verified_at {time},
  last_check_at {time},
  tos_compliant {flag} not null default false,
  tos_check_result text not null default '',
  risk_ack_at {time} not null,
  {varchar risk_ack_version 32} not null,
  is_frozen {flag} not null default false,
  frozen_reason text not null default '',
  total_requests {int} not null default 0,
  total_tokens {int} not null default 0,
  total_cost {money} not null default 0,
  success_rate {decimal} not null default 0,
  deleted_at {time},
  created_at {time} not null,
  updated_at {time} not null,
  created_by {int} not null references iam_users (id),
  updated_by {int} not null references iam_users (id),
  constraint account_platform check (platform in ('openai', 'anthropic', 'gemini', 'baidu', 'xfyun', 'tencent')),
  constraint account_type_known check (account_type in ('api_key', 'oauth')),
  constraint account_name_not_empty check (account_name <> ''),
  constraint account_key_id check (length(key_id) = 25 and substr(key_id, 1, 3) = 'ck_'),
  constraint account_status check (status in ('pending', 'active', 'suspended', 'disabled')),
  constraint account_risk_level check (risk_level in ('low', 'normal', 'high')),
  constraint account_risk_score check (risk_score between 0 and 100),
  -- What is neither available nor frozen was consumed.
  constraint account_quota_not_negative check (available_quota >= 0 and frozen_quota >= 0),
  constraint account_quota_identity check (available_quota + frozen_quota <= total_quota),
  constraint account_threshold check (min_quota_threshold >= 0),
  constraint account_verified_at check (not is_verified or verified_at is not null),
  constraint account_risk_ack check (risk_ack_version <> ''),
  constraint account_statistics check (total_requests >= 0 and total_tokens >= 0 and total_cost >= 0),
  constraint account_success_rate check (success_rate between 0 and 100 * {one}),
  -- INV-ACC-001. Deleting leaves nothing to decrypt.
  constraint account_active_not_deleted check (deleted_at is null or status <> 'active'),
  constraint account_deleted_is_empty check (deleted_at is null or encrypted_credentials = ''),
  constraint account_envelope check (encrypted_credentials <> '' or deleted_at is not null or status = 'disabled')
) {strict};
create unique index if not exists uq_account_key_id on supply_accounts (key_id);
-- What a package's account is found by, so that it can only be one of the same tenant.
create unique index if not exists uq_account_of_tenant on supply_accounts (tenant_id, id);

create table if not exists supply_packages (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  supply_account_id {int} not null,
  user_id {int} not null references iam_users (id),
  {varchar platform 50} not null,
  {varchar model 100} not null,
  total_quota {quota} not null,
  available_quota {quota} not null,
  sold_quota {quota} not null default 0,
  reserved_quota {quota} not null default 0,
  price_per_1m_input {price} not null,
  price_per_1m_output {price} not null,
  min_purchase {quota} not null default {one},
  valid_days integer not null,
  start_at {time},
  end_at {time},
  {varchar status 20} not null default 'draft',
  {varchar close_reason 32},
  platform_frozen {flag} not null default false,
  max_concurrent integer not null default 10,
  rate_limit_rpm integer not null default 60,
  total_orders integer not null default 0,
  total_revenue {money} not null default 0,
  rating {decimal} not null default 0,
  rating_count integer not null default 0,
  cloned_from_id {int} references supply_packages (id),
  created_at {time} not null,
  updated_at {time} not null,
  foreign key (tenant_id, supply_account_id) references supply_accounts (tenant_id, id),
  constraint package_platform check (platform in ('openai', 'anthropic', 'gemini', 'baidu', 'xfyun', 'tencent')),
  constraint package_model check (model <> ''),
  constraint package_quota_not_negative check (available_quota >= 0 and sold_quota >= 0 and reserved_quota >= 0),
  constraint package_quota_identity check (total_quota = available_quota + reserved_quota + sold_quota),
  constraint package_price_input check (price_per_1m_input between 0 and 1000000 * {one}),
  constraint package_price_output check (price_per_1m_output between 0 and 1000000 * {one}),
  constraint package_min_purchase check (min_purchase > 0),
  -- And so above zero.
  constraint package_total_quota check (total_quota >= min_purchase),
  constraint package_valid_days check (valid_days between 1 and 365),
  constraint package_status check (status in ('draft', 'active', 'paused', 'sold_out', 'expired')),
  -- The first publication sets both, for good.
  constraint package_start check ((status = 'draft') = (start_at is null)),
  constraint package_end check ((start_at is null) = (end_at is null)),
  constraint package_validity check (end_at > start_at),
  constraint package_close_reason check (close_reason in ('unlisted', 'validity_ended')),
  constraint package_closed_with_reason check ((status = 'expired') = (close_reason is not null)),
  constraint package_max_concurrent check (max_concurrent between 1 and 1000),
  constraint package_rate_limit check (rate_limit_rpm between 1 and 100000),
  constraint package_statistics check (total_orders >= 0 and total_revenue >= 0 and rating_count >= 0),
  constraint package_rating check (rating >= 0 and rating < 10 * {one})
) {strict};
-- What an order's package is found by.
create unique index if not exists uq_package_of_tenant on supply_packages (tenant_id, id);

create table if not exists supply_orders (
  id {pk},
  {varchar order_no 64} not null,
  tenant_id {int} not null references core_tenants (id),
  buyer_user_id {int} not null references iam_users (id),
  buyer_tenant_id {int} not null references core_tenants (id),
  buyer_team_id {int},
  supply_account_id {int} not null references supply_accounts (id),
  supplier_user_id {int} not null references iam_users (id),
  supply_package_id {int} not null,
  {varchar platform 50} not null,
  {varchar model 100} not null,
  quota_amount {quota} not null,
  quota_tokens {int},
  -- Prices as they were; a later change touches no order. The unit price is the higher of the two, so that
  -- the escrow suffices in the worst case.
  price_per_1m_input {price} not null,
  price_per_1m_output {price} not null,
  unit_price {price} not null,
  -- The escrow, in whole minor units.
  total_amount {money} not null,
  -- Running totals of what usage made.
  platform_fee {money} not null default 0,
  supplier_earnings {money} not null default 0,
  {varchar status 20} not null default 'pending',
  {varchar close_reason 32},
  used_quota {quota} not null default 0,
  remaining_quota {quota} not null,
  expired_at {time},
  {varchar payment_method 20},
  {varchar payment_transaction_id 100},
  paid_at {time},
  created_at {time} not null,
  updated_at {time} not null,
  foreign key (tenant_id, supply_package_id) references supply_packages (tenant_id, id),
  constraint order_no_form check (length(order_no) = 23 and substr(order_no, 1, 3) = 'ORD'),
  constraint order_quota check (quota_amount > 0),
  constraint order_quota_not_negative check (used_quota >= 0 and remaining_quota >= 0),
  constraint order_quota_identity check (used_quota + remaining_quota = quota_amount),
  constraint order_price_input check (price_per_1m_input between 0 and 1000000 * {one}),
  constraint order_price_output check (price_per_1m_output between 0 and 1000000 * {one}),
  constraint order_unit_price check (unit_price = case
    when price_per_1m_input > price_per_1m_output then price_per_1m_input else price_per_1m_output end),
  constraint order_total check (total_amount > 0),
  constraint order_total_whole check (total_amount % {one} = 0),
  constraint order_totals_not_negative check (platform_fee >= 0 and supplier_earnings >= 0),
  constraint order_charges_within_escrow check (platform_fee + supplier_earnings <= total_amount),
  constraint order_status check (status in ('pending', 'paid', 'using', 'expired', 'refunded')),
  constraint order_close_reason check (close_reason in (
    'payment_timeout', 'buyer_cancelled', 'validity_ended', 'quota_used_up', 'refunded')),
  constraint order_closed_with_reason check ((status in ('expired', 'refunded')) = (close_reason is not null)),
  constraint order_refunded check ((status = 'refunded') = (coalesce(close_reason, '') = 'refunded')),
  constraint order_paid check (status not in ('paid', 'using') or (paid_at is not null and expired_at is not null))
) {strict};
create unique index if not exists uq_order_no on supply_orders (order_no);

-- Only grows. A call of a buyer, by the platform's credential, and what it cost.
create table if not exists supply_usage_records (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  order_id {int} not null references supply_orders (id),
  buyer_user_id {int} not null references iam_users (id),
  client_tenant_id {int} not null references core_tenants (id),
  api_key_id {int} not null references auth_api_keys (id),
  supply_account_id {int} not null references supply_accounts (id),
  supplier_user_id {int} not null references iam_users (id),
  {varchar upstream_request_id 128},
  {varchar trace_id 64} not null,
  {varchar platform 50} not null,
  {varchar model 100} not null,
  {varchar endpoint 200} not null,
  {varchar billing_unit 16} not null default 'token',
  request_tokens {int} not null,
  response_tokens {int} not null,
  total_tokens {int} generated always as (request_tokens + response_tokens) stored,
  unit_price {price} not null,
  input_cost {money} not null,
  output_cost {money} not null,
  total_cost {money} not null,
  platform_fee {money} not null,
  supplier_part {money} not null,
  response_status integer not null,
  latency_ms {int} not null,
  {varchar error_message 500},
  success {flag} not null,
  started_at {time} not null,
  completed_at {time} not null,
  created_at {time} not null,
  constraint usage_trace check (trace_id <> ''),
  constraint usage_billing_unit check (billing_unit in ('token', 'request', 'credit')),
  constraint usage_tokens check (request_tokens >= 0 and response_tokens >= 0),
  constraint usage_unit_price check (unit_price >= 0),
  constraint usage_costs_not_negative check (
    input_cost >= 0 and output_cost >= 0 and platform_fee >= 0 and supplier_part >= 0),
  constraint usage_cost_is_input_and_output check (total_cost = input_cost + output_cost),
  constraint usage_cost_is_fee_and_part check (total_cost = platform_fee + supplier_part),
  constraint usage_failed_is_free check (success or total_cost = 0),
  constraint usage_response_status check (response_status between 100 and 599),
  constraint usage_latency check (latency_ms >= 0),
  constraint usage_times check (completed_at >= started_at)
) {strict};
{append_only supply_usage_records}
create table if not exists supply_earnings (
  id {pk},
  tenant_id {int} not null references core_tenants (id),
  user_id {int} not null references iam_users (id),
  supply_account_id {int} references supply_accounts (id),
  order_id {int} references supply_orders (id),
  usage_record_id {int} references supply_usage_records (id),
  {varchar earnings_type 20} not null,
  amount {money} not null,
  available_amount {money} not null default 0,
  frozen_amount {money} not null default 0,
  withdrawn_amount {money} not null default 0,
  -- Taken back by refunds and for debts.
  reversed_amount {money} not null default 0,
  {varchar status 20} not null default 'pending',
  description text not null default '',
  earned_at {time} not null,
  available_at {time} not null,
  {varchar source_request_id 64} not null,
  created_at {time} not null,
  updated_at {time} not null,
  constraint earning_type check (earnings_type in ('usage', 'bonus', 'refund')),
  constraint earning_sign check (
    (earnings_type = 'refund' and amount < 0) or (earnings_type <> 'refund' and amount > 0)),
  constraint earning_source check (earnings_type <> 'usage'
    or (usage_record_id is not null and order_id is not null and supply_account_id is not null)),
  constraint earning_source_request check (source_request_id <> ''),
  constraint earning_parts_not_negative check (
    available_amount >= 0 and frozen_amount >= 0 and withdrawn_amount >= 0 and reversed_amount >= 0),
  -- A refund is there to be shown; what it takes back stands in the rows that it was taken from.
  constraint earning_refund_has_no_parts check (amount > 0
    or (available_amount = 0 and frozen_amount = 0 and withdrawn_amount = 0 and reversed_amount = 0)),
  constraint earning_held_has_no_parts check (status <> 'pending'
    or (available_amount = 0 and frozen_amount = 0 and withdrawn_amount = 0)),
  constraint earning_reversed_within_amount check (amount < 0 or reversed_amount <= amount),
  constraint earning_parts_identity check (amount < 0 or status = 'pending'
    or amount = available_amount + frozen_amount + withdrawn_amount + reversed_amount),
  -- Once released, the state follows from the parts.
  constraint earning_status check (status = 'pending' or status = case
    when frozen_amount > 0 then 'frozen' when available_amount > 0 then 'available' else 'withdrawn' end),
  constraint earning_hold check (available_at >= earned_at)
) {strict};
-- A call is earned from once.
create unique index if not exists uq_earning_usage
  on supply_earnings (usage_record_id) where earnings_type = 'usage';

create table if not exists supply_settlements (
  id {pk},
  {varchar settlement_no 64} not null,
  tenant_id {int} not null references core_tenants (id),
  user_id {int} not null references iam_users (id),
  total_amount {money} not null,
  fee_amount {money} not null,
  net_amount {money} not null,
  {varchar status 20} not null default 'pending',
  {varchar fail_reason 32},
  {varchar payment_method 20} not null,
  -- Encrypted; what is shown is the masked one.
  payment_account text not null,
  {varchar payment_account_masked 40} not null,
  {varchar payment_transaction_id 100},
  paid_at {time},
  -- First and last day (Asia/Shanghai, as 2026-03-27) on which the settled amounts were earned.
  {varchar period_start 10} not null,
  {varchar period_end 10} not null,
  total_orders integer not null,
  total_usage_records integer not null,
  processing_at {time},
  closed_at {time},
  returned_at {time},
  created_at {time} not null,
  updated_at {time} not null,
  constraint settlement_no_form check (length(settlement_no) = 23 and substr(settlement_no, 1, 3) = 'STL'),
  constraint settlement_amounts check (total_amount > 0 and fee_amount >= 0 and net_amount > 0),
  constraint settlement_total_is_fee_and_net check (total_amount = fee_amount + net_amount),
  constraint settlement_amounts_whole check (total_amount % {one} = 0 and fee_amount % {one} = 0),
  constraint settlement_status check (status in ('pending', 'processing', 'completed', 'failed')),
  constraint settlement_fail_reason check (fail_reason in ('cancelled', 'risk_rejected', 'payout_failed')),
  constraint settlement_failed_with_reason check ((status = 'failed') = (fail_reason is not null)),
  constraint settlement_payment_method check (payment_method in ('bank', 'alipay', 'wechat')),
  constraint settlement_payment_account check (payment_account <> '' and payment_account_masked <> ''),
  constraint settlement_paid check ((status = 'completed') = (paid_at is not null)),
  constraint settlement_paid_with_reference check ((status = 'completed') = (payment_transaction_id is not null)),
  constraint settlement_period_form check (period_start like '____-__-__' and period_end like '____-__-__'),
  constraint settlement_period check (period_start <= period_end),
  constraint settlement_counts check (total_orders >= 0 and total_usage_records >= 0),
  -- INV-SET-001: what was on its way to be paid out can't have been cancelled.
  constraint settlement_processing_at check ((processing_at is not null)
    = (status in ('processing', 'completed') or coalesce(fail_reason, '') = 'payout_failed')),
  constraint settlement_closed_at check ((status in ('completed', 'failed')) = (closed_at is not null)),
  constraint settlement_returned check (returned_at is null or status = 'completed')
) {strict};
create unique index if not exists uq_settlement_no on supply_settlements (settlement_no);
