-- The rows that every subject with PostgreSQL debits. An account is debited by one key only, so that its
-- balance tells how many effects that key had.
create table accounts (
  id bigint primary key,
  balance bigint not null check (balance >= 0)
);
insert into accounts select n, 1000000000 from generate_series(100000, 999999) as n;

-- What was transferred, written with the debit.
create table transfers (
  id bigint generated always as identity primary key,
  key text not null,
  account bigint not null references accounts (id),
  amount bigint not null,
  created_at timestamptz not null default now()
);
