CREATE OR REPLACE FUNCTION threadkeep.show_thread(p_no bigint) RETURNS threadkeep.shown_thread LANGUAGE sql AS $$
  SELECT id, owner, key, body, seq, change, first_seq, message_count, created_at, updated_at, expires_at, tag
  FROM threadkeep.threads WHERE no = p_no
$$;

-- Adds an owner, after its tenant, unless they exist.
CREATE OR REPLACE FUNCTION threadkeep.remember_owner(p_tenant text, p_owner text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO threadkeep.owners (tenant, owner) SELECT p_tenant, o.owner FROM unnest(ARRAY['', p_owner]) AS o (owner)
    WHERE NOT EXISTS (SELECT 1 FROM threadkeep.owners k WHERE k.tenant = p_tenant AND k.owner = o.owner)
    GROUP BY o.owner ORDER BY o.owner
    ON CONFLICT (tenant, owner) DO NOTHING
$$;

-- Removes a thread's row, stamp and documents. Its messages and change log are left to the sweep.
CREATE OR REPLACE FUNCTION threadkeep.remove_thread(p_no bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO threadkeep.leftovers (thread_no, tenant, owner, below)
    SELECT no, tenant, owner, NULL FROM threadkeep.threads WHERE no = p_no
    ON CONFLICT (thread_no) DO UPDATE SET below = NULL;
  DELETE FROM threadkeep.thread_documents WHERE thread_no = p_no;
  DELETE FROM threadkeep.stamps WHERE thread_no = p_no;
  DELETE FROM threadkeep.threads WHERE no = p_no;
END $$;

-- Finds or creates a thread. `outcome` is 'found', 'created', 'thread' or 'conflict'.
CREATE OR REPLACE FUNCTION threadkeep.open_thread(
  p_tenant text, p_caller text, p_owner text, p_id uuid, p_key text, p_body text, p_created_at bigint,
  p_expires_at bigint, p_now bigint, p_window bigint, OUT outcome text, OUT shown threadkeep.shown_thread
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
  v_no bigint;
BEGIN
  FOR attempt IN 1 .. 100 LOOP
    PERFORM threadkeep.enter(p_tenant, p_caller);
    IF p_key IS NOT NULL THEN
      SELECT no INTO v_no FROM threads WHERE tenant = p_tenant AND owner = p_owner AND key = p_key AND NOT restoring
        AND (expires_at IS NULL OR expires_at > p_now);
      IF FOUND THEN outcome := 'found'; shown := threadkeep.show_thread(v_no); RETURN; END IF;
    END IF;
    -- Ids are unique within the tenant, and expired threads of any owner are replaced, so this part runs in the tenant's
    -- scope. The caller learns only that an id is taken.
    PERFORM threadkeep.enter(p_tenant, 'tenant');
    SELECT no, owner, restoring INTO t FROM threads
      WHERE tenant = p_tenant AND id = p_id AND (restoring OR expires_at IS NULL OR expires_at > p_now);
    IF FOUND THEN
      outcome := CASE
        WHEN t.restoring OR NOT (p_caller = 'tenant' OR t.owner = '' OR p_caller = 'user/' || t.owner) THEN 'thread'
        WHEN p_key IS NOT NULL THEN 'conflict'
        ELSE 'found' END;
      IF outcome = 'found' THEN shown := threadkeep.show_thread(t.no); END IF;
      RETURN;
    END IF;
    PERFORM 1 FROM deleted_threads WHERE tenant = p_tenant AND id = p_id AND deleted_at + p_window > p_now;
    IF FOUND THEN outcome := 'thread'; RETURN; END IF;
    PERFORM threadkeep.remove_thread(no) FROM threads WHERE tenant = p_tenant AND id = p_id AND expires_at <= p_now;
    PERFORM threadkeep.remove_thread(no) FROM threads
      WHERE tenant = p_tenant AND owner = p_owner AND key = p_key AND expires_at <= p_now;
    -- A thread with this id may have been deleted before the idempotency window.
    DELETE FROM deleted_threads WHERE tenant = p_tenant AND id = p_id;

    PERFORM threadkeep.enter(p_tenant, p_caller);
    PERFORM threadkeep.remember_owner(p_tenant, p_owner);
    INSERT INTO threads (tenant, owner, id, created_at, updated_at, expires_at, key, body)
      VALUES (p_tenant, p_owner, p_id, p_created_at, p_now, p_expires_at, p_key, p_body)
      ON CONFLICT DO NOTHING RETURNING no INTO v_no;
    IF FOUND THEN
      INSERT INTO stamps (thread_no, tenant, owner, stamp) VALUES (v_no, p_tenant, p_owner, threadkeep.stamp());
      outcome := 'created';
      shown := threadkeep.show_thread(v_no);
      RETURN;
    END IF;
    -- A concurrent transaction inserted the thread first; the next attempt finds it.
  END LOOP;
  outcome := 'thread';
END $$;

-- Deletes a thread. `outcome` is 'done', 'thread' or 'denied'.
CREATE OR REPLACE FUNCTION threadkeep.delete_thread(
  p_tenant text, p_caller text, p_id uuid, p_now bigint, OUT outcome text, OUT owner text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
BEGIN
  PERFORM threadkeep.enter(p_tenant, p_caller);
  SELECT no, owner INTO t FROM threads
    WHERE tenant = p_tenant AND id = p_id AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now) FOR UPDATE;
  IF NOT FOUND THEN outcome := 'thread'; RETURN; END IF;
  owner := t.owner;
  IF t.owner = '' AND p_caller LIKE 'user/%' THEN outcome := 'denied'; RETURN; END IF;
  INSERT INTO deleted_threads (tenant, owner, id, stamp, deleted_at)
    VALUES (p_tenant, t.owner, p_id, threadkeep.stamp(), p_now)
    ON CONFLICT (tenant, id)
    DO UPDATE SET owner = excluded.owner, stamp = excluded.stamp, deleted_at = excluded.deleted_at;
  PERFORM threadkeep.remove_thread(t.no);
  outcome := 'done';
END $$;
