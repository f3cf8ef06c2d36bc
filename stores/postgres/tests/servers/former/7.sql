-- Writes a derived document of a thread that stands at `p_at_change`, and nothing else of the thread. `outcome` is 'done' or
-- what stood in the way, checked in the order of the contract of `Store::write_derived`. What is derived can be derived again, so
-- the answer does not wait for the disk.
CREATE FUNCTION threadkeep.write_derived(
  p_tenant text, p_caller text, p_thread uuid, p_namespace text, p_key text, p_at_change bigint, p_expected bigint,
  p_version bigint, p_value text, p_now bigint, OUT outcome text, OUT actual bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
BEGIN
  PERFORM threadkeep.enter(p_tenant, p_caller);
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT no, owner, change INTO t FROM threads
    WHERE tenant = p_tenant AND id = p_thread AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now)
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN outcome := 'thread'; RETURN; END IF;
  IF t.owner = '' AND p_caller LIKE 'user/%' THEN outcome := 'denied'; RETURN; END IF;
  IF t.change <> p_at_change THEN outcome := 'change'; actual := t.change; RETURN; END IF;
  -- A statement of its own, after the lock: one that waited must see what it waited for.
  SELECT version INTO actual FROM thread_documents
    WHERE thread_no = t.no AND namespace = p_namespace AND key = p_key AND (expires_at IS NULL OR expires_at > p_now);
  IF actual IS DISTINCT FROM p_expected THEN outcome := 'document'; RETURN; END IF;
  INSERT INTO thread_documents AS d (thread_no, namespace, key, tenant, owner, version, expires_at, value)
    VALUES (t.no, p_namespace, p_key, p_tenant, t.owner, p_version, NULL, p_value)
    ON CONFLICT (thread_no, namespace, key)
    DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at, value = excluded.value;
  outcome := 'done';
END $$;
REVOKE ALL ON FUNCTION threadkeep.write_derived(text, text, uuid, text, text, bigint, bigint, bigint, text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threadkeep.write_derived(text, text, uuid, text, text, bigint, bigint, bigint, text, bigint)
  TO threadkeep_server;
