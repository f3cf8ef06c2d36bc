-- Begins every transaction of the store: from here on it is the server's role, in one scope, until it ends. A caller is
-- 'user/NAME', 'tenant' (all of the tenant) or 'keeper' (maintenance, all tenants).
CREATE FUNCTION threadkeep.enter(p_tenant text, p_caller text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('role', 'threadkeep_server', true),
          set_config('threadkeep.tenant', p_tenant, true),
          set_config('threadkeep.caller', p_caller, true),
          set_config('search_path', 'threadkeep, pg_catalog', true),
          -- A plan that was made while a table was small must not read it whole when it is large.
          set_config('enable_seqscan', 'off', true),
          -- Our statements are written for one plan whatever the values; making plans anew costs more than running them.
          set_config('plan_cache_mode', 'force_generic_plan', true),
          -- Where a plan without one is not to be had, its cost seems so high that PostgreSQL would compile it.
          set_config('jit', 'off', true),
          set_config('lock_timeout', '10s', true);
END $$;

-- The scope of this transaction; NULL or '' where none was set, which no row has.
CREATE FUNCTION threadkeep.tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT current_setting('threadkeep.tenant', true) $$;
CREATE FUNCTION threadkeep.caller() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT current_setting('threadkeep.caller', true) $$;

-- What this transaction's changes are stamped with: its id, above all stamps from before the data moved to this server.
CREATE FUNCTION threadkeep.stamp() RETURNS bigint LANGUAGE sql AS $$
  SELECT pg_current_xact_id()::text::bigint + (SELECT value FROM threadkeep.marks WHERE name = 'stamp_offset')
$$;

-- Whether what carries a stamp had happened when a snapshot was taken.
CREATE FUNCTION threadkeep.is_before(p_stamp bigint, p_snapshot pg_snapshot) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT p_stamp <= o.value OR pg_visible_in_snapshot((p_stamp - o.value)::text::xid8, p_snapshot)
  FROM threadkeep.marks o WHERE o.name = 'stamp_offset'
$$;

-- Where the data stands, and in which of its pasts: another server, database or timeline is another past.
CREATE FUNCTION threadkeep.home() RETURNS text LANGUAGE sql AS $$
  SELECT md5(concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END))
$$;
