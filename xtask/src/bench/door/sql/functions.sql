-- The keyed transfer and its repeat as one call each: what pgbench's third form runs.
create function bench_look(a bigint, b bigint, tenant bigint) returns bench_records
language plpgsql as $$
declare
  kept bench_records;
begin
  -- As in the other forms, a lock that is taken stops nobody: pgbench has no way to wait for it.
  perform case when p.got then pg_try_advisory_xact_lock(a) else false end
  from (select pg_try_advisory_xact_lock(b) as got offset 0) p;
  select * into kept from bench_records r where r.tenant_id = tenant and r.key = a::text;
  return kept;
end $$;

create function bench_transfer(
  a bigint, b bigint, n bigint, tenant bigint, account bigint, amount bigint,
  request text, answer json, before jsonb, after jsonb, payload jsonb
) returns json
language plpgsql as $$
declare
  kept bench_records;
  balance bigint;
  told bigint;
  at timestamptz;
begin
  kept := bench_look(a, b, tenant);
  at := clock_timestamp();
  if kept.response_code is not null then
    return kept.response_body;
  end if;
  select x.balance into balance from bench_accounts x where x.id = account;
  insert into bench_records (tenant_id, key, account_id, amount, status, fingerprint, claim_token, attempt_no, locked_until, response_code, response_body, expires_at, updated_at, created_at)
  values (tenant, a::text, account, amount, 'succeeded', sha256(int8send(a)), null, 1, null, 200, answer, at + interval '1 day', at, at);
  update bench_accounts x set balance = x.balance - amount, version = version + 1, updated_at = at
  where x.id = account and x.balance >= amount;
  if not found then
    raise exception 'the balance is too low';
  end if;
  insert into audit_events (event_id, event_name, action, tenant_id, operator_id, operator_type, operator_role, object_type, object_id, request_id, idempotency_key, trace_id, result_code, rule_code, before_state, after_state, metadata, client_ip, created_at)
  values (int8send(n) || int8send(b), 'bench.transfer.succeeded', 'succeeded', tenant, 1, 'system', 'system', 'bench_transfer', a::text, request, a::text, request, 'OK', null, before, after, '{}', null, at);
  insert into outbox (event_id, event_name, object_type, object_id, aggregate_version, tenant_id, operator_id, request_id, payload, occurred_at, created_at)
  values (int8send(n) || int8send(a), 'bench.account.transfer.succeeded', 'bench_account', account::text, 1, 1, 1, request, payload, at, at)
  returning id into told;
  insert into outbox_deliveries (outbox_id, destination, object_key, next_attempt_at, created_at, updated_at)
  values (told, 'log', 'bench_account:' || account::text, at, at, at);
  return answer;
end $$;

create function bench_repeat(
  a bigint, b bigint, n bigint, tenant bigint, account bigint, request text
) returns json
language plpgsql as $$
declare
  kept bench_records;
  balance bigint;
  at timestamptz;
begin
  kept := bench_look(a, b, tenant);
  at := clock_timestamp();
  select x.balance into balance from bench_accounts x where x.id = account;
  if kept.response_code is null then
    raise exception 'the key is unknown';
  end if;
  insert into audit_events (event_id, event_name, action, tenant_id, operator_id, operator_type, operator_role, object_type, object_id, request_id, idempotency_key, trace_id, result_code, rule_code, before_state, after_state, metadata, client_ip, created_at)
  values (int8send(n) || int8send(b), 'bench.transfer.repeated', 'repeated', tenant, 1, 'system', 'system', 'bench_transfer', a::text, request, a::text, request, 'REPLAYED', null, '{}', '{}', '{}', null, at);
  return kept.response_body;
end $$;
