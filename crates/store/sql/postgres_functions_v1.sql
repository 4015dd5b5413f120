-- What statements on PostgreSQL lean on.

-- Raises unless a write hit exactly one row: a commit that is already on the wire must find the
-- transaction undone.
create or replace function onceseal_hit(hits bigint) returns boolean
language plpgsql as $$
begin
  if hits <> 1 then
    raise exception using errcode = 'OS001', message = hits::text;
  end if;
  return true;
end $$;

create or replace function onceseal_append_only() returns trigger
language plpgsql as $$
begin
  raise exception using errcode = 'OS002', message = tg_table_name || ' is append-only';
end $$;
