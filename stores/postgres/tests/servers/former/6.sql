-- Changes one thread, as before, and refuses ('positions') what would go beyond the last position that a thread gives. Every
-- check comes before the first write, in the order of the contract of `Store::commit`: the suite commits batches with every
-- pair of failures.
--
-- `outcome` is 'done', 'replayed' or what stood in the way. 'words' asks for the call to be made again with new words made
-- from `body`; 'replaced' for checksums over what `body` tells of the replaced messages, one pair for each replacement;
-- 'locked' for the call to be made alone: without `p_waits` a thread that another transaction holds is not waited for.
CREATE OR REPLACE FUNCTION threadkeep.commit(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint, p_window bigint, p_key bytea, p_fingerprint bigint,
  p_append_only boolean, p_empty boolean, p_expected_seq bigint, p_expected_change bigint,
  p_require_namespaces text[], p_require_keys text[], p_require_versions bigint[],
  p_ids uuid[], p_roles smallint[], p_instants bigint[], p_external_ids text[], p_bodies text[],
  p_replace_ids uuid[], p_replace_roles smallint[], p_replace_bodies text[], p_replace_terms text[],
  p_erase_ids uuid[], p_trim_below bigint,
  p_put_namespaces text[], p_put_keys text[], p_put_names text[], p_put_values text[], p_put_expiries bigint[],
  p_delete_namespaces text[], p_delete_keys text[], p_delete_names text[],
  p_patched boolean, p_patches_words boolean, p_old_body text, p_new_body text,
  p_patches_expiry boolean, p_expires_at bigint, p_waits boolean, p_deferred boolean,
  p_checksums integer[], p_replace_facts text, p_replace_checksums integer[],
  OUT outcome text, OUT change bigint, OUT first_seq bigint, OUT count bigint,
  OUT place integer, OUT actual bigint, OUT owner text, OUT body text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
  r record;
  v_seq bigint;
  v_version bigint;
  v_expiry bigint;
  v_stale bigint[] := '{}';
  v_replaced bigint[] := '{}';
  v_erased bigint[] := '{}';
  v_effects text[] := '{}';
  v_facts text[] := '{}';
  v_indexed bigint;
  v_first bigint;
  v_removed bigint := 0;
  v_set text;
  v_stamp bigint;
  v_count integer := cardinality(p_ids);
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  IF p_deferred THEN v_set := set_config('synchronous_commit', 'off', true); END IF;
  IF p_waits THEN
    SELECT no, owner, seq, change, first_seq INTO t FROM threads
      WHERE tenant = p_tenant AND id = p_thread AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now)
      FOR NO KEY UPDATE;
  ELSE
    SELECT no, owner, seq, change, first_seq INTO t FROM threads
      WHERE tenant = p_tenant AND id = p_thread AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now)
      FOR NO KEY UPDATE SKIP LOCKED;
  END IF;
  IF NOT FOUND THEN
    PERFORM 1 FROM threads WHERE NOT p_waits AND tenant = p_tenant AND id = p_thread;
    outcome := CASE WHEN FOUND THEN 'locked' ELSE 'thread' END;
    RETURN;
  END IF;
  owner := t.owner;
  IF NOT p_append_only AND t.owner = '' AND p_caller LIKE 'user/%' THEN outcome := 'denied'; RETURN; END IF;

  -- A statement of its own, after the lock: one that waited must see what it waited for.
  SELECT c.change, c.at, c.fingerprint, c.first_seq, c.count, x.clashes INTO r
    FROM (SELECT EXISTS (SELECT 1 FROM messages WHERE thread_no = t.no AND id = ANY (p_ids)) AS clashes) AS x
    LEFT JOIN LATERAL (SELECT change, at, fingerprint, first_seq, count FROM commits
      WHERE thread_no = t.no AND key = p_key ORDER BY change DESC LIMIT 1) AS c ON true;
  IF r.at + p_window > p_now THEN
    outcome := CASE WHEN r.fingerprint = p_fingerprint THEN 'replayed' ELSE 'key' END;
    change := r.change; first_seq := r.first_seq; count := r.count;
    RETURN;
  END IF;
  IF p_expected_seq <> t.seq THEN outcome := 'seq'; actual := t.seq; RETURN; END IF;
  IF p_expected_change <> t.change THEN outcome := 'change'; actual := t.change; RETURN; END IF;
  FOR i IN 1 .. cardinality(p_require_keys) LOOP
    SELECT version INTO v_version FROM thread_documents
      WHERE thread_no = t.no AND namespace = p_require_namespaces[i] AND key = p_require_keys[i]
      AND (expires_at IS NULL OR expires_at > p_now);
    -- An absent document is asked for as version -1.
    IF coalesce(v_version, -1) <> p_require_versions[i] THEN
      outcome := 'document'; place := i; actual := v_version; RETURN;
    END IF;
  END LOOP;
  first_seq := t.seq + 1;
  count := v_count;
  IF p_empty THEN outcome := 'done'; change := t.change; RETURN; END IF;

  -- Names are looked up one by one only where one is taken, or given by somebody else.
  IF r.clashes OR num_nonnulls(VARIADIC p_external_ids) > 0 THEN
    FOR i IN 1 .. v_count LOOP
      SELECT seq INTO v_seq FROM messages WHERE thread_no = t.no AND id = p_ids[i];
      IF v_seq >= t.first_seq THEN outcome := 'message_id'; place := i; actual := v_seq; RETURN; END IF;
      -- A trimmed message keeps its row until the sweep; its names are free again all the same.
      IF v_seq IS NOT NULL THEN v_stale := v_stale || v_seq; END IF;
      IF p_external_ids[i] IS NOT NULL THEN
        SELECT seq INTO v_seq FROM messages WHERE thread_no = t.no AND external_id = p_external_ids[i];
        IF v_seq >= t.first_seq THEN outcome := 'external_id'; actual := v_seq; RETURN; END IF;
        IF v_seq IS NOT NULL THEN v_stale := v_stale || v_seq; END IF;
      END IF;
    END LOOP;
  END IF;
  FOR i IN 1 .. cardinality(p_replace_ids) LOOP
    SELECT seq, json_build_array(created_at, external_id)::text INTO v_seq, v_set FROM messages
      WHERE thread_no = t.no AND id = p_replace_ids[i] AND body IS NOT NULL AND seq >= t.first_seq;
    IF NOT FOUND THEN outcome := 'message'; RETURN; END IF;
    v_replaced := v_replaced || v_seq;
    v_facts := v_facts || v_set;
  END LOOP;
  FOR i IN 1 .. cardinality(p_erase_ids) LOOP
    SELECT seq INTO v_seq FROM messages
      WHERE thread_no = t.no AND id = p_erase_ids[i] AND body IS NOT NULL AND seq >= t.first_seq;
    IF NOT FOUND THEN outcome := 'message'; RETURN; END IF;
    v_erased := v_erased || v_seq;
  END LOOP;
  IF p_trim_below > t.seq + v_count + 1 THEN outcome := 'trim'; RETURN; END IF;
  -- The last position that a thread gives, in every store.
  actual := greatest(t.seq + v_count, t.change + 1);
  IF actual > 4294967294 THEN outcome := 'positions'; RETURN; END IF;
  IF p_patches_words THEN
    SELECT body INTO body FROM threads WHERE no = t.no;
    IF p_old_body IS DISTINCT FROM body THEN outcome := 'words'; RETURN; END IF;
  END IF;
  IF cardinality(v_facts) > 0 AND p_replace_facts <> '[' || array_to_string(v_facts, ',') || ']' THEN
    outcome := 'replaced';
    body := '[' || array_to_string(v_facts, ',') || ']';
    RETURN;
  END IF;

  change := t.change + 1;
  v_first := t.first_seq;
  IF cardinality(v_stale) > 0 THEN DELETE FROM messages WHERE thread_no = t.no AND seq = ANY (v_stale); END IF;
  IF cardinality(v_replaced) + cardinality(v_erased) > 0 THEN
    SELECT seq INTO v_indexed FROM indexed WHERE thread_no = t.no;
  END IF;
  FOR i IN 1 .. cardinality(v_replaced) LOOP
    UPDATE messages SET body = p_replace_bodies[i], role = p_replace_roles[i], checksum = p_replace_checksums[i],
        revision = revision + 1
      WHERE thread_no = t.no AND seq = v_replaced[i];
    IF v_replaced[i] <= v_indexed THEN
      UPDATE message_terms SET terms = threadkeep.terms(t.no, p_tenant, t.owner, p_replace_terms[i])
        WHERE thread_no = t.no AND seq = v_replaced[i];
    END IF;
    v_effects := v_effects || format('{"replaced":{"seq":%s,"id":"%s"}}', v_replaced[i], p_replace_ids[i]);
  END LOOP;
  FOR i IN 1 .. cardinality(v_erased) LOOP
    UPDATE messages SET body = NULL, role = NULL, external_id = NULL, checksum = NULL, revision = 0, created_at = p_now
      WHERE thread_no = t.no AND seq = v_erased[i];
    DELETE FROM message_terms WHERE thread_no = t.no AND seq = v_erased[i];
    v_effects := v_effects || format('{"erased":{"seq":%s,"id":"%s"}}', v_erased[i], p_erase_ids[i]);
  END LOOP;
  v_removed := cardinality(v_erased);
  IF p_trim_below > v_first THEN
    -- The lower bound is named, or the rows that wait for the sweep would be read as well.
    SELECT v_removed + count(*) INTO v_removed FROM messages
      WHERE thread_no = t.no AND seq >= v_first AND seq < p_trim_below AND body IS NOT NULL;
    -- What this commit appends and trims at once is not there yet.
    v_removed := v_removed + greatest(p_trim_below - t.seq - 1, 0);
    v_first := p_trim_below;
    INSERT INTO leftovers AS l (thread_no, tenant, owner, below) VALUES (t.no, p_tenant, t.owner, v_first)
      ON CONFLICT (thread_no) DO UPDATE SET below = excluded.below;
    v_effects := v_effects || format('{"trimmed":{"first_seq":%s}}', v_first);
  END IF;
  FOR i IN 1 .. cardinality(p_put_keys) LOOP
    INSERT INTO thread_documents AS d (thread_no, namespace, key, tenant, owner, version, expires_at, value)
      VALUES (t.no, p_put_namespaces[i], p_put_keys[i], p_tenant, t.owner, change, p_put_expiries[i], p_put_values[i])
      ON CONFLICT (thread_no, namespace, key)
      DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at, value = excluded.value;
    v_effects := v_effects || format('{"document_put":{"name":%s,"version":%s}}', p_put_names[i], t.change + 1);
  END LOOP;
  FOR i IN 1 .. cardinality(p_delete_keys) LOOP
    DELETE FROM thread_documents
      WHERE thread_no = t.no AND namespace = p_delete_namespaces[i] AND key = p_delete_keys[i]
      RETURNING expires_at INTO v_expiry;
    IF FOUND AND (v_expiry IS NULL OR v_expiry > p_now) THEN
      v_effects := v_effects || format('{"document_deleted":{"name":%s}}', p_delete_names[i]);
    END IF;
  END LOOP;
  IF p_patched THEN v_effects := v_effects || '"patched"'::text; END IF;
  v_stamp := threadkeep.stamp();
  -- One statement, as each costs more to begin than to carry out.
  WITH appended AS (
    INSERT INTO messages (thread_no, seq, tenant, owner, id, role, revision, created_at, external_id, body, checksum)
      SELECT t.no, t.seq + n.place, p_tenant, t.owner, n.id, n.role, 0, n.instant, n.external_id, n.body, n.checksum
      FROM unnest(p_ids, p_roles, p_instants, p_external_ids, p_bodies, p_checksums)
        WITH ORDINALITY AS n (id, role, instant, external_id, body, checksum, place)
  ), logged AS (
    INSERT INTO commits (thread_no, change, tenant, owner, at, key, fingerprint, first_seq, count, effects)
      VALUES (t.no, t.change + 1, p_tenant, t.owner, p_now, p_key, p_fingerprint, t.seq + 1, v_count,
        -- Appending is told by the columns; most commits do nothing else.
        CASE WHEN cardinality(v_effects) > 0 THEN '[' || array_to_string(v_effects, ',') || ']' END)
  ), stamped AS (
    UPDATE stamps SET stamp = v_stamp WHERE thread_no = t.no
  )
  UPDATE threads SET seq = t.seq + v_count, change = t.change + 1, first_seq = v_first,
      message_count = message_count + v_count - v_removed, updated_at = greatest(updated_at, p_now)
    WHERE no = t.no;
  IF p_patches_words THEN UPDATE threads SET body = p_new_body WHERE no = t.no; END IF;
  IF p_patches_expiry THEN UPDATE threads SET expires_at = p_expires_at WHERE no = t.no; END IF;
  outcome := 'done';
  body := NULL;
END $$;
