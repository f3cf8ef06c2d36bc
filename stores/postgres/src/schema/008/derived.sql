DROP FUNCTION threadkeep.write_derived(text, text, uuid, text, text, bigint, bigint, bigint, text, bigint);
-- As before, and holds the thread and the document against their tags, too; the document gets the thread's. Writes a derived
-- document of a thread that stands at `p_at_change`, and nothing else of the thread. `outcome` is 'done' or
-- what stood in the way, checked in the order of the contract of `Store::write_derived`. What is derived can be derived again, so
-- the answer does not wait for the disk.
CREATE FUNCTION threadkeep.write_derived(
  p_tenant text, p_caller text, p_thread uuid, p_namespace text, p_key text, p_at_change bigint, p_expected bigint,
  p_version bigint, p_value text, p_now bigint, p_at_tag integer DEFAULT NULL, p_expected_tag integer DEFAULT NULL,
  OUT outcome text, OUT actual bigint, OUT tag integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
  v_tag integer;
BEGIN
  PERFORM threadkeep.enter(p_tenant, p_caller);
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT no, owner, change, tag INTO t FROM threads
    WHERE tenant = p_tenant AND id = p_thread AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now)
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN outcome := 'thread'; RETURN; END IF;
  IF t.owner = '' AND p_caller LIKE 'user/%' THEN outcome := 'denied'; RETURN; END IF;
  tag := t.tag;
  IF t.change <> p_at_change OR t.tag <> p_at_tag THEN outcome := 'change'; actual := t.change; RETURN; END IF;
  -- A statement of its own, after the lock: one that waited must see what it waited for.
  SELECT version, tag INTO actual, v_tag FROM thread_documents
    WHERE thread_no = t.no AND namespace = p_namespace AND key = p_key AND (expires_at IS NULL OR expires_at > p_now);
  IF actual IS DISTINCT FROM p_expected OR v_tag <> p_expected_tag THEN
    outcome := 'document'; tag := v_tag; RETURN;
  END IF;
  INSERT INTO thread_documents AS d (thread_no, namespace, key, tenant, owner, version, tag, expires_at, value)
    VALUES (t.no, p_namespace, p_key, p_tenant, t.owner, p_version, t.tag, NULL, p_value)
    ON CONFLICT (thread_no, namespace, key)
    DO UPDATE SET version = excluded.version, tag = excluded.tag, expires_at = excluded.expires_at, value = excluded.value;
  outcome := 'done';
END $$;
REVOKE ALL ON FUNCTION threadkeep.write_derived(
  text, text, uuid, text, text, bigint, bigint, bigint, text, bigint, integer, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threadkeep.write_derived(
  text, text, uuid, text, text, bigint, bigint, bigint, text, bigint, integer, integer)
  TO threadkeep_server;
