-- What repeats go to: keys as pgbench computes them.
insert into bench_records (tenant_id, key, account_id, amount, status, fingerprint, attempt_no, response_code, response_body, expires_at, created_at, updated_at)
select 1, (1000000000000000000 + n)::text, 100000 + n, 100, 'succeeded', sha256(int8send(1000000000000000000 + n)), 1, 200,
  '{"status":"succeeded","transfer":"1000000000000000000","account":100000,"amount":100}', now() + interval '1 day', now(), now()
from generate_series(1, 1000) as n;
