-- The tag of a thread's last commit, and of the one at which a document was written; NULL from before. It is made of the commit's
-- key (the first 4 bytes of its SHA-256), so the change log needs no column for it.
ALTER TABLE threadkeep.threads ADD COLUMN tag integer;
ALTER TABLE threadkeep.thread_documents ADD COLUMN tag integer;
-- Those of users and tenants have none; the column is there so that both tables are read alike.
ALTER TABLE threadkeep.documents ADD COLUMN tag integer;

ALTER TYPE threadkeep.shown_thread ADD ATTRIBUTE tag integer;
CREATE OR REPLACE FUNCTION threadkeep.show_thread(p_no bigint) RETURNS threadkeep.shown_thread LANGUAGE sql AS $$
  SELECT id, owner, key, body, seq, change, first_seq, message_count, created_at, updated_at, expires_at, tag
  FROM threadkeep.threads WHERE no = p_no
$$;

-- Changes one thread, as before, and holds what is expected of the thread and of its documents against their tags, too. The new
-- parameters may be left out, so that an instance of the version before goes on while others are updated.
--
-- `outcome` is 'done', 'replayed' or what stood in the way. 'words' asks for the call to be made again with new words made
-- from `body`; 'replaced' for checksums over what `body` tells of the replaced messages, one pair for each replacement;
-- 'locked' for the call to be made alone: without `p_waits` a thread that another transaction holds is not waited for.
DROP FUNCTION threadkeep.commit(
  text, text, uuid, bigint, bigint, bytea, bigint, boolean, boolean, bigint, bigint, text[], text[], bigint[], uuid[],
  smallint[], bigint[], text[], text[], uuid[], smallint[], text[], text[], uuid[], bigint, text[], text[], text[],
  text[], bigint[], text[], text[], text[], boolean, boolean, text, text, boolean, bigint, boolean, boolean,
  integer[], text, integer[]
);
CREATE FUNCTION threadkeep.commit(
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
  p_expected_tag integer DEFAULT NULL, p_require_tags integer[] DEFAULT NULL,
  OUT outcome text, OUT change bigint, OUT first_seq bigint, OUT count bigint,
  OUT place integer, OUT actual bigint, OUT owner text, OUT body text, OUT tag integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
  r record;
  v_seq bigint;
  v_version bigint;
  v_version_tag integer;
  v_tag integer := ('x' || left(encode(sha256(p_key), 'hex'), 8))::bit(32)::integer;
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
  IF NOT p_append_only AND t.owner = '' AND p_caller LIKE 'user/%' THEN outcome := 'denied'; RETURN; END IF;

  -- A statement of its own, after the lock: one that waited must see what it waited for.
  SELECT c.change, c.at, c.fingerprint, c.first_seq, c.count, x.clashes INTO r
    FROM (SELECT EXISTS (SELECT 1 FROM messages WHERE thread_no = t.no AND id = ANY (p_ids)) AS clashes) AS x
    LEFT JOIN LATERAL (SELECT change, at, fingerprint, first_seq, count FROM commits
      WHERE thread_no = t.no AND key = p_key ORDER BY change DESC LIMIT 1) AS c ON true;
  IF r.at + p_window > p_now THEN
    outcome := CASE WHEN r.fingerprint = p_fingerprint THEN 'replayed' ELSE 'key' END;
    change := r.change; first_seq := r.first_seq; count := r.count; tag := v_tag;
    RETURN;
  END IF;
  IF p_expected_seq <> t.seq THEN outcome := 'seq'; actual := t.seq; RETURN; END IF;
  -- A tag that either side does not have is not compared.
  IF p_expected_change <> t.change OR p_expected_tag <> t.tag THEN
    outcome := 'change'; actual := t.change; tag := t.tag; RETURN;
  END IF;
  FOR i IN 1 .. cardinality(p_require_keys) LOOP
    SELECT version, tag INTO v_version, v_version_tag FROM thread_documents
      WHERE thread_no = t.no AND namespace = p_require_namespaces[i] AND key = p_require_keys[i]
      AND (expires_at IS NULL OR expires_at > p_now);
    -- An absent document is asked for as version -1.
    IF coalesce(v_version, -1) <> p_require_versions[i] OR v_version_tag <> p_require_tags[i] THEN
      outcome := 'document'; place := i; actual := v_version; tag := v_version_tag; RETURN;
    END IF;
  END LOOP;
  first_seq := t.seq + 1;
  count := v_count;
  IF p_empty THEN outcome := 'done'; change := t.change; tag := t.tag; RETURN; END IF;

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
  tag := v_tag;
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
    INSERT INTO thread_documents AS d (thread_no, namespace, key, tenant, owner, version, tag, expires_at, value)
      VALUES (t.no, p_put_namespaces[i], p_put_keys[i], p_tenant, t.owner, change, v_tag, p_put_expiries[i], p_put_values[i])
      ON CONFLICT (thread_no, namespace, key)
      DO UPDATE SET version = excluded.version, tag = excluded.tag, expires_at = excluded.expires_at, value = excluded.value;
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
  UPDATE threads SET seq = t.seq + v_count, change = t.change + 1, tag = v_tag, first_seq = v_first,
      message_count = message_count + v_count - v_removed, updated_at = greatest(updated_at, p_now)
    WHERE no = t.no;
  IF p_patches_words THEN UPDATE threads SET body = p_new_body WHERE no = t.no; END IF;
  IF p_patches_expiry THEN UPDATE threads SET expires_at = p_expires_at WHERE no = t.no; END IF;
  outcome := 'done';
  body := NULL;
END $$;
REVOKE ALL ON FUNCTION threadkeep.commit(
  text, text, uuid, bigint, bigint, bytea, bigint, boolean, boolean, bigint, bigint, text[], text[], bigint[], uuid[],
  smallint[], bigint[], text[], text[], uuid[], smallint[], text[], text[], uuid[], bigint, text[], text[], text[],
  text[], bigint[], text[], text[], text[], boolean, boolean, text, text, boolean, bigint, boolean, boolean,
  integer[], text, integer[], integer, integer[]
) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threadkeep.commit(
  text, text, uuid, bigint, bigint, bytea, bigint, boolean, boolean, bigint, bigint, text[], text[], bigint[], uuid[],
  smallint[], bigint[], text[], text[], uuid[], smallint[], text[], text[], uuid[], bigint, text[], text[], text[],
  text[], bigint[], text[], text[], text[], boolean, boolean, text, text, boolean, bigint, boolean, boolean,
  integer[], text, integer[], integer, integer[]
) TO threadkeep_server;

-- For instances from before checksums that go on beside newer ones: what they write has none.
CREATE OR REPLACE FUNCTION threadkeep.commit(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint, p_window bigint, p_key bytea, p_fingerprint bigint,
  p_append_only boolean, p_empty boolean, p_expected_seq bigint, p_expected_change bigint, p_require_namespaces
  text[], p_require_keys text[], p_require_versions bigint[], p_ids uuid[], p_roles smallint[], p_instants bigint[],
  p_external_ids text[], p_bodies text[], p_replace_ids uuid[], p_replace_roles smallint[], p_replace_bodies text[],
  p_replace_terms text[], p_erase_ids uuid[], p_trim_below bigint, p_put_namespaces text[], p_put_keys text[],
  p_put_names text[], p_put_values text[], p_put_expiries bigint[], p_delete_namespaces text[], p_delete_keys text[],
  p_delete_names text[], p_patched boolean, p_patches_words boolean, p_old_body text, p_new_body text,
  p_patches_expiry boolean, p_expires_at bigint, p_waits boolean, p_deferred boolean,
  OUT outcome text, OUT change bigint, OUT first_seq bigint, OUT count bigint,
  OUT place integer, OUT actual bigint, OUT owner text, OUT body text
) LANGUAGE sql AS $$
  SELECT outcome, change, first_seq, count, place, actual, owner, body FROM threadkeep.commit(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
    $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41,
    NULL::integer[], NULL::text, NULL::integer[])
$$;
DROP FUNCTION threadkeep.list_messages(text, text, uuid, bigint, bigint, bigint, bigint, bigint, integer, boolean, boolean, integer, bigint);
-- As before, with the thread's tag. Reads a page of a thread's messages in the order of reading. Every row also tells where the thread stands; a thread with no
-- such message answers one row of it alone, and no row at all: there is no such thread. Asked for one message more than the
-- page holds; the text of what is beyond the page's bytes is left out. STABLE, so that all of it is one snapshot.
CREATE FUNCTION threadkeep.list_messages(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint, p_first bigint, p_last bigint,
  p_after_instant bigint, p_before_instant bigint, p_roles integer, p_by_instant boolean, p_newest boolean,
  p_limit integer, p_bytes bigint
) RETURNS TABLE (thread_seq bigint, change bigint, first_seq bigint,
  seq bigint, id uuid, external_id text, revision integer, created_at bigint, body text, thread_tag integer)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  v_set text;
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  IF p_by_instant AND p_newest THEN
    RETURN QUERY SELECT t.seq, t.change, t.first_seq, m.seq, m.id, m.external_id, m.revision, m.created_at,
        CASE WHEN sum(octet_length(m.body)) OVER w - octet_length(m.body) < p_bytes THEN m.body END, t.tag
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM threadkeep.messages m
        WHERE m.thread_no = t.no AND m.seq BETWEEN greatest(p_first, t.first_seq) AND least(p_last, t.seq)
        AND m.created_at > p_after_instant AND m.created_at < p_before_instant
        AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) AND m.body IS NOT NULL
        ORDER BY m.created_at DESC, m.seq DESC LIMIT p_limit
      ) AS m ON true
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now)
      WINDOW w AS (ORDER BY m.created_at DESC, m.seq DESC ROWS UNBOUNDED PRECEDING);
  ELSIF p_by_instant THEN
    RETURN QUERY SELECT t.seq, t.change, t.first_seq, m.seq, m.id, m.external_id, m.revision, m.created_at,
        CASE WHEN sum(octet_length(m.body)) OVER w - octet_length(m.body) < p_bytes THEN m.body END, t.tag
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM threadkeep.messages m
        WHERE m.thread_no = t.no AND m.seq BETWEEN greatest(p_first, t.first_seq) AND least(p_last, t.seq)
        AND m.created_at > p_after_instant AND m.created_at < p_before_instant
        AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) AND m.body IS NOT NULL
        ORDER BY m.created_at, m.seq LIMIT p_limit
      ) AS m ON true
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now)
      WINDOW w AS (ORDER BY m.created_at, m.seq ROWS UNBOUNDED PRECEDING);
  ELSIF p_newest THEN
    RETURN QUERY SELECT t.seq, t.change, t.first_seq, m.seq, m.id, m.external_id, m.revision, m.created_at,
        CASE WHEN sum(octet_length(m.body)) OVER w - octet_length(m.body) < p_bytes THEN m.body END, t.tag
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM threadkeep.messages m
        WHERE m.thread_no = t.no AND m.seq BETWEEN greatest(p_first, t.first_seq) AND least(p_last, t.seq)
        AND m.created_at > p_after_instant AND m.created_at < p_before_instant
        AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) AND m.body IS NOT NULL
        ORDER BY m.seq DESC LIMIT p_limit
      ) AS m ON true
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now)
      WINDOW w AS (ORDER BY m.seq DESC ROWS UNBOUNDED PRECEDING);
  ELSE
    RETURN QUERY SELECT t.seq, t.change, t.first_seq, m.seq, m.id, m.external_id, m.revision, m.created_at,
        CASE WHEN sum(octet_length(m.body)) OVER w - octet_length(m.body) < p_bytes THEN m.body END, t.tag
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM threadkeep.messages m
        WHERE m.thread_no = t.no AND m.seq BETWEEN greatest(p_first, t.first_seq) AND least(p_last, t.seq)
        AND m.created_at > p_after_instant AND m.created_at < p_before_instant
        AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) AND m.body IS NOT NULL
        ORDER BY m.seq LIMIT p_limit
      ) AS m ON true
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now)
      WINDOW w AS (ORDER BY m.seq ROWS UNBOUNDED PRECEDING);
  END IF;
END $$;
REVOKE ALL ON FUNCTION threadkeep.list_messages(
  text, text, uuid, bigint, bigint, bigint, bigint, bigint, integer, boolean, boolean, integer, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threadkeep.list_messages(
  text, text, uuid, bigint, bigint, bigint, bigint, bigint, integer, boolean, boolean, integer, bigint) TO threadkeep_server;

DROP FUNCTION threadkeep.list_changes(text, text, uuid, bigint, bigint, bigint);
-- Reads a thread's changes after a position, oldest first, each with its commit's tag. Every row also tells where the thread stands and how far its log
-- is forgotten, and the tag of its change at that position (NULL where the log does not hold it); where nothing follows, one row of that alone, and no row at all: there is no such thread. STABLE, so that all
-- of it is one snapshot.
CREATE FUNCTION threadkeep.list_changes(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint, p_after bigint, p_limit bigint
) RETURNS TABLE (thread_seq bigint, thread_change bigint, thread_first_seq bigint, log_from bigint,
  change bigint, at bigint, first_seq bigint, count bigint, effects text,
  thread_tag integer, after_tag integer, tag integer)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  v_set text;
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  RETURN QUERY SELECT t.seq, t.change, t.first_seq, t.log_from, c.change, c.at, c.first_seq, c.count, c.effects,
      t.tag, (SELECT ('x' || left(encode(sha256(a.key), 'hex'), 8))::bit(32)::integer FROM threadkeep.commits a
        WHERE a.thread_no = t.no AND a.change = p_after), c.tag
    FROM threadkeep.threads t LEFT JOIN LATERAL (
      SELECT c.change, c.at, c.first_seq, c.count, c.effects, ('x' || left(encode(sha256(c.key), 'hex'), 8))::bit(32)::integer AS tag
      FROM threadkeep.commits c
      WHERE c.thread_no = t.no AND c.change > p_after ORDER BY c.change LIMIT p_limit
    ) AS c ON true
    WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
    AND (t.expires_at IS NULL OR t.expires_at > p_now)
    ORDER BY c.change;
END $$;
REVOKE ALL ON FUNCTION threadkeep.list_changes(
  text, text, uuid, bigint, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threadkeep.list_changes(
  text, text, uuid, bigint, bigint, bigint) TO threadkeep_server;

DROP FUNCTION threadkeep.list_followed(text[], text[], uuid[], bigint[], bigint[], bigint[], bigint, bigint);
-- As before, with tags as threadkeep.list_changes has them. Reads what came after a position in each of some threads, and the messages that it added, in one call: who waits for several
-- threads to change is told of all of them at once. Each thread is read in its own scope. A thread's rows come together: first
-- its changes, oldest first, or one row of its positions alone where nothing follows; then the messages, in their order, without
-- text beyond `p_bytes`. Of a thread that is not there comes no row. Changes end early once they bring `p_messages`. STABLE, so
-- that all of it is one snapshot.
CREATE FUNCTION threadkeep.list_followed(
  p_tenants text[], p_callers text[], p_threads uuid[], p_nows bigint[], p_afters bigint[], p_limits bigint[],
  p_messages bigint, p_bytes bigint
) RETURNS TABLE (place integer, thread_seq bigint, thread_change bigint, thread_first_seq bigint, log_from bigint,
  change bigint, at bigint, first_seq bigint, count bigint, effects text,
  seq bigint, id uuid, external_id text, revision integer, created_at bigint, body text,
  thread_tag integer, after_tag integer, tag integer)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  r record;
  v_set text;
  v_no bigint;
  v_first bigint;
  v_count bigint;
BEGIN
  FOR i IN 1 .. cardinality(p_threads) LOOP
    -- Whoever looks at several threads enters once.
    IF i = 1 OR (p_tenants[i], p_callers[i]) IS DISTINCT FROM (p_tenants[i - 1], p_callers[i - 1]) THEN
      v_set := threadkeep.enter(p_tenants[i], p_callers[i]);
    END IF;
    place := i;
    v_count := 0;
    FOR r IN SELECT t.no, t.seq, t.change, t.first_seq, t.log_from,
        c.change AS c_change, c.at, c.first_seq AS c_first_seq, c.count, c.effects,
        t.tag AS t_tag, (SELECT ('x' || left(encode(sha256(a.key), 'hex'), 8))::bit(32)::integer FROM threadkeep.commits a
          WHERE a.thread_no = t.no AND a.change = p_afters[i]) AS a_tag, c.tag AS c_tag
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT c.change, c.at, c.first_seq, c.count, c.effects,
          ('x' || left(encode(sha256(c.key), 'hex'), 8))::bit(32)::integer AS tag
        FROM threadkeep.commits c
        WHERE c.thread_no = t.no AND c.change > p_afters[i] ORDER BY c.change LIMIT p_limits[i]
      ) AS c ON true
      WHERE t.tenant = p_tenants[i] AND t.id = p_threads[i] AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_nows[i])
      ORDER BY c.change
    LOOP
      thread_seq := r.seq; thread_change := r.change; thread_first_seq := r.first_seq; log_from := r.log_from;
      change := r.c_change; at := r.at; first_seq := r.c_first_seq; count := r.count; effects := r.effects;
      thread_tag := r.t_tag; after_tag := r.a_tag; tag := r.c_tag;
      RETURN NEXT;
      IF r.count > 0 THEN
        IF v_count = 0 THEN v_no := r.no; v_first := greatest(r.c_first_seq, r.first_seq); END IF;
        v_count := r.c_first_seq + r.count - v_first;
        EXIT WHEN v_count >= p_messages;
      END IF;
    END LOOP;
    IF v_count > 0 THEN
      RETURN QUERY SELECT i, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint,
          NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text,
          m.seq, m.id, m.external_id, m.revision, m.created_at,
          CASE WHEN sum(octet_length(m.body)) OVER w - octet_length(m.body) < p_bytes THEN m.body END,
          NULL::integer, NULL::integer, NULL::integer
        FROM threadkeep.messages m
        WHERE m.thread_no = v_no AND m.seq >= v_first AND m.seq < v_first + v_count AND m.body IS NOT NULL
        WINDOW w AS (ORDER BY m.seq ROWS UNBOUNDED PRECEDING);
    END IF;
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION threadkeep.list_followed(
  text[], text[], uuid[], bigint[], bigint[], bigint[], bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threadkeep.list_followed(
  text[], text[], uuid[], bigint[], bigint[], bigint[], bigint, bigint) TO threadkeep_server;

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
