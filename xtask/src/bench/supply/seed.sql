-- Copies a row of a table so often, with new values for what tells the copies apart. `changed` is a list of
-- 'name', expression pairs over the row `r` and the copy's number `g`.
create function bench_copy(t regclass, which text, changed text, copies int) returns void language plpgsql as $$
begin
  execute format('insert into %s select p.* from %s r cross join generate_series(1, %s) g
    cross join lateral jsonb_populate_record(null::%s, to_jsonb(r) || jsonb_build_object(%s)) p where %s',
    t, t, copies, t, changed, which);
end $$;
