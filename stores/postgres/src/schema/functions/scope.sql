-- Starts every transaction of the store: switches to the server's role and sets the scope, both until the transaction ends. A
-- caller is 'user/NAME', 'tenant' (all of the tenant) or 'keeper' (maintenance, all tenants).
CREATE OR REPLACE FUNCTION threadkeep.enter(p_tenant text, p_caller text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_set text;
BEGIN
  -- Assignments, because PL/pgSQL evaluates them without running a query.
  v_set := set_config('role', 'threadkeep_server', true);
  v_set := set_config('threadkeep.tenant', p_tenant, true);
  v_set := set_config('threadkeep.caller', p_caller, true);
  -- Direct connections start with the remaining settings; behind a pooler they are set in each transaction.
  IF current_setting('search_path') <> 'threadkeep, pg_catalog' OR current_setting('enable_seqscan') <> 'off'
      OR current_setting('plan_cache_mode') <> 'force_generic_plan' OR current_setting('jit') <> 'off'
      OR current_setting('lock_timeout') <> '10s' THEN
    PERFORM set_config('search_path', 'threadkeep, pg_catalog', true),
            -- A plan made while a table was small must not scan it sequentially after it has grown.
            set_config('enable_seqscan', 'off', true),
            -- The statements need only one plan for all values; planning again costs more than running them.
            set_config('plan_cache_mode', 'force_generic_plan', true),
            -- If a sequential scan is unavoidable, its estimated cost is so high that PostgreSQL would use JIT compilation.
            set_config('jit', 'off', true),
            set_config('lock_timeout', '10s', true);
  END IF;
  RETURN p_caller;
END $$;

-- Returns the stamp of this transaction's changes: its id plus an offset that makes it higher than all stamps from before the
-- data moved to this server. In PL/pgSQL, because an SQL function is planned again by every statement that calls it.
CREATE OR REPLACE FUNCTION threadkeep.stamp() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN pg_current_xact_id()::text::bigint + (SELECT value FROM threadkeep.marks WHERE name = 'stamp_offset');
END $$;

-- Returns the tag of the commit with this idempotency key.
CREATE OR REPLACE FUNCTION threadkeep.tag_of(p_key bytea) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  $$ SELECT ('x' || left(encode(sha256(p_key), 'hex'), 8))::bit(32)::integer $$;

-- Whether the change with a stamp was visible in a snapshot.
CREATE OR REPLACE FUNCTION threadkeep.is_before(p_stamp bigint, p_snapshot pg_snapshot) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT p_stamp <= o.value OR pg_visible_in_snapshot((p_stamp - o.value)::text::xid8, p_snapshot)
  FROM threadkeep.marks o WHERE o.name = 'stamp_offset'
$$;

-- Returns the identity of the history of the data: a different server, database or timeline has a different one.
CREATE OR REPLACE FUNCTION threadkeep.home() RETURNS text LANGUAGE sql AS $$
  SELECT md5(concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END))
$$;
