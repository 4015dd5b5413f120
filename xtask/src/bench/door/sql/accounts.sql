insert into bench_accounts (id, balance, version, updated_at)
select n, 1000000000, 0, now() from generate_series(100000, 199999) as n;
