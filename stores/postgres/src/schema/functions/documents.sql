-- Writes or deletes a document of a user or the tenant. `outcome` is 'done' or 'document'.
CREATE OR REPLACE FUNCTION threadkeep.write_document(
  p_tenant text, p_caller text, p_owner text, p_namespace text, p_key text, p_expected bigint, p_value text,
  p_expires_at bigint, p_now bigint, OUT outcome text, OUT version bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_last bigint;
BEGIN
  PERFORM threadkeep.enter(p_tenant, p_caller);
  FOR attempt IN 1 .. 2 LOOP
    -- Locks the owner's row, for which all writers of its documents wait.
    SELECT document_version INTO v_last FROM owners WHERE tenant = p_tenant AND owner = p_owner FOR NO KEY UPDATE;
    EXIT WHEN FOUND OR p_value IS NULL OR p_expected > 0;
    PERFORM threadkeep.remember_owner(p_tenant, p_owner);
  END LOOP;
  SELECT version INTO version FROM documents
    WHERE tenant = p_tenant AND owner = p_owner AND namespace = p_namespace AND key = p_key
    AND (expires_at IS NULL OR expires_at > p_now);
  IF p_expected <> coalesce(version, 0) THEN outcome := 'document'; RETURN; END IF;
  outcome := 'done';
  IF p_value IS NULL THEN
    DELETE FROM documents WHERE tenant = p_tenant AND owner = p_owner AND namespace = p_namespace AND key = p_key;
    version := 0;
    RETURN;
  END IF;
  version := v_last + 1;
  UPDATE owners SET document_version = v_last + 1 WHERE tenant = p_tenant AND owner = p_owner;
  INSERT INTO documents AS d (tenant, owner, namespace, key, version, expires_at, value)
    VALUES (p_tenant, p_owner, p_namespace, p_key, v_last + 1, p_expires_at, p_value)
    ON CONFLICT (tenant, owner, namespace, key)
    DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at, value = excluded.value;
END $$;

-- Writes a derived document of a thread whose last change is `p_at_change`. Changes nothing else of the thread. `outcome` is
-- 'done' or the check that failed, in the order of the contract of `Store::write_derived`. Derived data can be computed again,
-- so the commit does not wait for the disk.
CREATE OR REPLACE FUNCTION threadkeep.write_derived(
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
  -- A separate statement after the lock, so that its snapshot includes what the lock waited for.
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
