-- Changes one thread. All checks come before the first write, in the order of the contract of `Store::commit`; the conformance
-- suite tests this order with batches that fail two checks.
--
-- `outcome` is 'done', 'replayed' or the check that failed. `place` is the entry of the batch that failed it, from 1; `actual` is
-- the position or version that was found instead. Three outcomes require another call:
--   'words'     with `p_patch.old_body` set to the returned `body`, and `new_body` computed from it;
--   'replaced'  with `p_replace.stays` set to the returned `body`, and checksums computed from it: the fields of each message that
--               a replacement does not change, as a JSON array of pairs of time and external id. NULL stores no checksums;
--   'locked'    with `p_waits`, in a separate transaction: another transaction has locked the thread.
CREATE OR REPLACE FUNCTION threadkeep.commit(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint,
  p_idempotency threadkeep.idempotency,
  p_conditions threadkeep.conditions,
  p_append threadkeep.new_messages,
  p_replace threadkeep.replacements,
  p_erase uuid[],
  p_trim_below bigint,
  p_put threadkeep.new_documents,
  p_delete threadkeep.document_names,
  p_patch threadkeep.patch,
  p_waits boolean, p_deferred boolean,
  OUT outcome text, OUT change bigint, OUT first_seq bigint, OUT count bigint,
  OUT place integer, OUT actual bigint, OUT owner text, OUT body text, OUT tag integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
  v_earlier record;
  -- A composite IS NULL if all its fields are.
  v_patches CONSTANT boolean := NOT (p_patch IS NULL);
  v_appends_only CONSTANT boolean := p_trim_below IS NULL AND NOT v_patches
    AND cardinality(p_replace.ids) + cardinality(p_erase) + cardinality(p_put.keys) + cardinality(p_delete.keys) = 0;
  v_count CONSTANT integer := cardinality(p_append.ids);
  -- Elements of an array are accessed directly in a variable, but sequentially in a composite.
  v_external_ids CONSTANT text[] := p_append.external_ids;
  v_bodies CONSTANT text[] := p_replace.bodies;
  v_terms CONSTANT text[] := p_replace.terms;
  v_set text;
  v_seq bigint;
  v_tag CONSTANT integer := threadkeep.tag_of(p_idempotency.key);
  v_version bigint;
  v_version_tag integer;
  v_expiry bigint;
  v_stays json[] := '{}';
  v_stale bigint[] := '{}';
  v_effects json[] := '{}';
  v_first bigint;
  v_removed bigint;
  v_indexed bigint;
  v_stamp bigint;
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  IF p_deferred THEN v_set := set_config('synchronous_commit', 'off', true); END IF;
  IF p_waits THEN
    SELECT no, owner, seq, change, first_seq, tag INTO t FROM threads
      WHERE tenant = p_tenant AND id = p_thread AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now)
      FOR NO KEY UPDATE;
  ELSE
    SELECT no, owner, seq, change, first_seq, tag INTO t FROM threads
      WHERE tenant = p_tenant AND id = p_thread AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now)
      FOR NO KEY UPDATE SKIP LOCKED;
  END IF;
  IF NOT FOUND THEN
    PERFORM 1 FROM threads WHERE NOT p_waits AND tenant = p_tenant AND id = p_thread;
    outcome := CASE WHEN FOUND THEN 'locked' ELSE 'thread' END;
    RETURN;
  END IF;
  owner := t.owner;
  IF NOT v_appends_only AND t.owner = '' AND p_caller LIKE 'user/%' THEN outcome := 'denied'; RETURN; END IF;

  -- A separate statement after the lock, so that its snapshot includes what the lock waited for.
  SELECT c.change, c.at, c.fingerprint, c.first_seq, c.count, x.clashes INTO v_earlier
    FROM (SELECT EXISTS (SELECT 1 FROM messages WHERE thread_no = t.no AND id = ANY (p_append.ids)) AS clashes) AS x
    LEFT JOIN LATERAL (SELECT change, at, fingerprint, first_seq, count FROM commits
      WHERE thread_no = t.no AND key = p_idempotency.key ORDER BY change DESC LIMIT 1) AS c ON true;
  IF v_earlier.at + p_idempotency.repeatable > p_now THEN
    outcome := CASE WHEN v_earlier.fingerprint = p_idempotency.fingerprint THEN 'replayed' ELSE 'key' END;
    change := v_earlier.change; first_seq := v_earlier.first_seq; count := v_earlier.count; tag := v_tag;
    RETURN;
  END IF;
  IF p_conditions.seq <> t.seq THEN outcome := 'seq'; actual := t.seq; RETURN; END IF;
  IF p_conditions.change <> t.change OR p_conditions.tag <> t.tag THEN
    outcome := 'change'; actual := t.change; tag := t.tag; RETURN;
  END IF;
  FOR i IN 1 .. cardinality(p_conditions.keys) LOOP
    SELECT version, tag INTO v_version, v_version_tag FROM thread_documents
      WHERE thread_no = t.no AND namespace = p_conditions.namespaces[i] AND key = p_conditions.keys[i]
      AND (expires_at IS NULL OR expires_at > p_now);
    IF v_version IS DISTINCT FROM p_conditions.versions[i] OR v_version_tag <> p_conditions.tags[i] THEN
      outcome := 'document'; place := i; actual := v_version; tag := v_version_tag; RETURN;
    END IF;
  END LOOP;
  first_seq := t.seq + 1;
  count := v_count;
  IF v_appends_only AND v_count = 0 THEN outcome := 'done'; change := t.change; tag := t.tag; RETURN; END IF;

  -- Ids are looked up individually only if one is taken or an external id is given.
  IF v_earlier.clashes OR num_nonnulls(VARIADIC p_append.external_ids) > 0 THEN
    FOR i IN 1 .. v_count LOOP
      SELECT seq INTO v_seq FROM messages WHERE thread_no = t.no AND id = p_append.ids[i];
      IF v_seq >= t.first_seq THEN outcome := 'message_id'; place := i; actual := v_seq; RETURN; END IF;
      -- A trimmed message keeps its row until the sweep, but its ids are free.
      IF v_seq IS NOT NULL THEN v_stale := v_stale || v_seq; END IF;
      IF v_external_ids[i] IS NOT NULL THEN
        SELECT seq INTO v_seq FROM messages WHERE thread_no = t.no AND external_id = v_external_ids[i];
        IF v_seq >= t.first_seq THEN outcome := 'external_id'; actual := v_seq; RETURN; END IF;
        IF v_seq IS NOT NULL THEN v_stale := v_stale || v_seq; END IF;
      END IF;
    END LOOP;
  END IF;
  FOR i IN 1 .. cardinality(p_replace.ids) LOOP
    SELECT v_stays || json_build_array(created_at, external_id) INTO v_stays FROM messages
      WHERE thread_no = t.no AND id = p_replace.ids[i] AND body IS NOT NULL AND seq >= t.first_seq;
    IF NOT FOUND THEN outcome := 'message'; RETURN; END IF;
  END LOOP;
  FOR i IN 1 .. cardinality(p_erase) LOOP
    PERFORM 1 FROM messages WHERE thread_no = t.no AND id = p_erase[i] AND body IS NOT NULL AND seq >= t.first_seq;
    IF NOT FOUND THEN outcome := 'message'; RETURN; END IF;
  END LOOP;
  IF p_trim_below > t.seq + v_count + 1 THEN outcome := 'trim'; RETURN; END IF;
  -- The limit of positions is the same in every store.
  actual := greatest(t.seq + v_count, t.change + 1);
  IF actual > 4294967294 THEN outcome := 'positions'; RETURN; END IF;
  IF p_patch.changes_words THEN
    SELECT body INTO body FROM threads WHERE no = t.no;
    IF p_patch.old_body IS DISTINCT FROM body THEN outcome := 'words'; RETURN; END IF;
  END IF;
  IF cardinality(p_replace.ids) > 0 AND p_replace.stays <> array_to_json(v_stays)::text THEN
    outcome := 'replaced'; body := array_to_json(v_stays); RETURN;
  END IF;

  change := t.change + 1;
  tag := v_tag;
  v_first := t.first_seq;
  v_removed := cardinality(p_erase);
  IF cardinality(v_stale) > 0 THEN DELETE FROM messages WHERE thread_no = t.no AND seq = ANY (v_stale); END IF;
  IF cardinality(p_replace.ids) > 0 THEN SELECT seq INTO v_indexed FROM indexed WHERE thread_no = t.no; END IF;
  FOR i IN 1 .. cardinality(p_replace.ids) LOOP
    UPDATE messages SET body = v_bodies[i], role = p_replace.roles[i], checksum = p_replace.checksums[i],
        revision = revision + 1
      WHERE thread_no = t.no AND id = p_replace.ids[i] RETURNING seq INTO v_seq;
    IF v_seq <= v_indexed THEN
      UPDATE message_terms SET terms = threadkeep.terms(t.no, p_tenant, t.owner, v_terms[i])
        WHERE thread_no = t.no AND seq = v_seq;
    END IF;
    v_effects := v_effects || json_build_object('replaced', json_build_object('seq', v_seq, 'id', p_replace.ids[i]));
  END LOOP;
  FOR i IN 1 .. cardinality(p_erase) LOOP
    UPDATE messages SET body = NULL, role = NULL, external_id = NULL, checksum = NULL, revision = 0, created_at = p_now
      WHERE thread_no = t.no AND id = p_erase[i] RETURNING seq INTO v_seq;
    DELETE FROM message_terms WHERE thread_no = t.no AND seq = v_seq;
    v_effects := v_effects || json_build_object('erased', json_build_object('seq', v_seq, 'id', p_erase[i]));
  END LOOP;
  IF p_trim_below > v_first THEN
    -- The lower bound excludes rows that wait for the sweep.
    SELECT v_removed + count(*) INTO v_removed FROM messages
      WHERE thread_no = t.no AND seq >= v_first AND seq < p_trim_below AND body IS NOT NULL;
    -- Messages that this commit both appends and trims are not inserted yet.
    v_removed := v_removed + greatest(p_trim_below - t.seq - 1, 0);
    v_first := p_trim_below;
    INSERT INTO leftovers AS l (thread_no, tenant, owner, below) VALUES (t.no, p_tenant, t.owner, v_first)
      ON CONFLICT (thread_no) DO UPDATE SET below = excluded.below;
    v_effects := v_effects || json_build_object('trimmed', json_build_object('first_seq', v_first));
  END IF;
  IF cardinality(p_put.keys) > 0 THEN
    INSERT INTO thread_documents AS d (thread_no, namespace, key, tenant, owner, version, tag, expires_at, value)
      SELECT t.no, n.namespace, n.key, p_tenant, t.owner, t.change + 1, v_tag, n.expires_at, n.value
      FROM unnest(p_put.namespaces, p_put.keys, p_put.expiries, p_put.values) AS n (namespace, key, expires_at, value)
      ON CONFLICT (thread_no, namespace, key)
      DO UPDATE SET version = excluded.version, tag = excluded.tag, expires_at = excluded.expires_at, value = excluded.value;
    v_effects := v_effects || ARRAY(
      SELECT json_build_object('document_put', json_build_object(
        'name', json_build_object('namespace', n.namespace, 'key', n.key), 'version', t.change + 1))
      FROM unnest(p_put.namespaces, p_put.keys) WITH ORDINALITY AS n (namespace, key, place) ORDER BY place);
  END IF;
  FOR i IN 1 .. cardinality(p_delete.keys) LOOP
    DELETE FROM thread_documents
      WHERE thread_no = t.no AND namespace = p_delete.namespaces[i] AND key = p_delete.keys[i]
      RETURNING expires_at INTO v_expiry;
    IF FOUND AND (v_expiry IS NULL OR v_expiry > p_now) THEN
      v_effects := v_effects || json_build_object('document_deleted', json_build_object(
        'name', json_build_object('namespace', p_delete.namespaces[i], 'key', p_delete.keys[i])));
    END IF;
  END LOOP;
  IF v_patches THEN v_effects := v_effects || to_json('patched'::text); END IF;
  v_stamp := threadkeep.stamp();
  -- One statement, because the overhead of a statement exceeds its execution.
  WITH appended AS (
    INSERT INTO messages (thread_no, seq, tenant, owner, id, role, revision, created_at, external_id, body, checksum)
      SELECT t.no, t.seq + n.place, p_tenant, t.owner, n.id, n.role, 0, n.instant, n.external_id, n.body, n.checksum
      FROM unnest(p_append.ids, p_append.roles, p_append.instants, p_append.external_ids, p_append.bodies, p_append.checksums)
        WITH ORDINALITY AS n (id, role, instant, external_id, body, checksum, place)
  ), logged AS (
    INSERT INTO commits (thread_no, change, tenant, owner, at, key, fingerprint, first_seq, count, effects)
      VALUES (t.no, t.change + 1, p_tenant, t.owner, p_now, p_idempotency.key, p_idempotency.fingerprint, t.seq + 1, v_count,
        -- Most commits only append, which the columns describe. There are no nulls: json_strip_nulls removes the blanks, so
        -- that the text equals what a restore writes.
        CASE WHEN cardinality(v_effects) > 0 THEN json_strip_nulls(array_to_json(v_effects))::text END)
  ), stamped AS (
    UPDATE stamps SET stamp = v_stamp WHERE thread_no = t.no
  )
  UPDATE threads SET seq = t.seq + v_count, change = t.change + 1, tag = v_tag, first_seq = v_first,
      message_count = message_count + v_count - v_removed, updated_at = greatest(updated_at, p_now)
    WHERE no = t.no;
  IF p_patch.changes_words THEN UPDATE threads SET body = p_patch.new_body WHERE no = t.no; END IF;
  IF p_patch.changes_expiry THEN UPDATE threads SET expires_at = p_patch.expires_at WHERE no = t.no; END IF;
  outcome := 'done';
  body := NULL;
END $$;
