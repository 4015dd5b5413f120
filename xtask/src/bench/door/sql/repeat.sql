insert into audit_events (event_id, event_name, action, tenant_id, operator_id, operator_type, operator_role, object_type, object_id, request_id, idempotency_key, trace_id, result_code, rule_code, before_state, after_state, metadata, client_ip, created_at) values (int8send(:n) || int8send(:b), 'bench.transfer.repeated', 'repeated', :tenant, 1, 'system', 'system', 'bench_transfer', :a::text, :request, :a::text, :request, 'REPLAYED', null, '{}', '{}', '{}', null, now());
select 1;
commit;
