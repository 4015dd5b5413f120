begin isolation level read committed read write;
select p.got, case when p.got then pg_try_advisory_xact_lock(:a) else false end, clock_timestamp() from (select pg_try_advisory_xact_lock(:b) as got offset 0) p;
select id, fingerprint, status, claim_token, attempt_no, locked_until, response_code, response_body, expires_at from bench_records where tenant_id = :tenant and key = :a::text;
select balance, version from bench_accounts where id = :account;
