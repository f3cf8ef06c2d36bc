-- Begins every transaction of the store: from here on it is the server's role, in one scope, until it ends. A caller is
-- 'user/NAME', 'tenant' (all of the tenant) or 'keeper' (maintenance, all tenants).
CREATE OR REPLACE FUNCTION threadkeep.enter(p_tenant text, p_caller text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_set text;
BEGIN
  -- Assignments, as they are evaluated without running a query.
  v_set := set_config('role', 'threadkeep_server', true);
  v_set := set_config('threadkeep.tenant', p_tenant, true);
  v_set := set_config('threadkeep.caller', p_caller, true);
  -- Our own connections begin with the rest; behind a pooler it is set for each transaction.
  IF current_setting('search_path') <> 'threadkeep, pg_catalog' OR current_setting('enable_seqscan') <> 'off'
      OR current_setting('plan_cache_mode') <> 'force_generic_plan' OR current_setting('jit') <> 'off'
      OR current_setting('lock_timeout') <> '10s' THEN
    PERFORM set_config('search_path', 'threadkeep, pg_catalog', true),
            -- A plan that was made while a table was small must not read it whole when it is large.
            set_config('enable_seqscan', 'off', true),
            -- Our statements are written for one plan whatever the values; making plans anew costs more than running them.
            set_config('plan_cache_mode', 'force_generic_plan', true),
            -- Where a plan without one is not to be had, its cost seems so high that PostgreSQL would compile it.
            set_config('jit', 'off', true),
            set_config('lock_timeout', '10s', true);
  END IF;
  RETURN p_caller;
END $$;

-- What this transaction's changes are stamped with: its id, above all stamps from before the data moved to this server.
-- PL/pgSQL, as the plan of a function in SQL is made anew with every statement that calls it.
CREATE OR REPLACE FUNCTION threadkeep.stamp() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN pg_current_xact_id()::text::bigint + (SELECT value FROM threadkeep.marks WHERE name = 'stamp_offset');
END $$;

-- The tag of the commit that has this key.
CREATE OR REPLACE FUNCTION threadkeep.tag_of(p_key bytea) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT ('x' || left(encode(sha256(p_key), 'hex'), 8))::bit(32)::integer $$;

-- Whether what carries a stamp had happened when a snapshot was taken.
CREATE OR REPLACE FUNCTION threadkeep.is_before(p_stamp bigint, p_snapshot pg_snapshot) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT p_stamp <= o.value OR pg_visible_in_snapshot((p_stamp - o.value)::text::xid8, p_snapshot)
  FROM threadkeep.marks o WHERE o.name = 'stamp_offset'
$$;

-- Where the data stands, and in which of its pasts: another server, database or timeline is another past.
CREATE OR REPLACE FUNCTION threadkeep.home() RETURNS text LANGUAGE sql AS $$
  SELECT md5(concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END))
$$;
