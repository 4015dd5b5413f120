create table if not exists events (
    id integer primary key,
    source text not null,
    event_id text not null,
    kind text not null,
    payload_hash text not null,
    status text not null,
    outcome text not null,
    arrivals integer not null,
    created_at integer not null,
    updated_at integer not null,
    unique (source, event_id)
) strict;

create table if not exists arrivals (
    id integer primary key,
    event integer not null references events (id),
    payload_hash text not null,
    met text not null,
    received_at integer not null
) strict;

create index if not exists arrivals_event on arrivals (event);

create table if not exists states (
    event integer not null references events (id),
    status text not null,
    at integer not null,
    primary key (event, status)
) strict, without rowid;

create table if not exists audit (
    id integer primary key,
    event integer not null references events (id),
    event_id text not null,
    ref text not null,
    sid text,
    payload_hash text not null,
    run_hash text,
    signature_state text not null,
    announcement_state text not null,
    action text not null,
    at integer not null
) strict;

create index if not exists audit_event on audit (event);

create table if not exists outbox (
    id integer primary key,
    event integer not null references events (id),
    channel text not null,
    body text not null,
    created_at integer not null,
    sent_at integer
) strict;

create index if not exists outbox_unsent on outbox (id) where sent_at is null;
