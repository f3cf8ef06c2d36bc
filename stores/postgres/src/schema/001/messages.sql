-- Reads a page of a thread's messages in the order of reading, then one row with where the thread stands and whether more
-- follow (its `id` is NULL). No row at all: there is no such thread. STABLE, so that all of it is one snapshot.
CREATE FUNCTION threadkeep.list_messages(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint, p_first bigint, p_last bigint,
  p_after_instant bigint, p_before_instant bigint, p_roles integer, p_by_instant boolean, p_newest boolean,
  p_limit integer, p_bytes bigint
) RETURNS TABLE (seq bigint, id uuid, external_id text, revision integer, created_at bigint, body text,
  change bigint, first_seq bigint, more boolean)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  t record;
  v_first bigint;
  v_last bigint;
  v_rows refcursor;
  v_count integer := 0;
  v_bytes bigint := 0;
BEGIN
  PERFORM threadkeep.enter(p_tenant, p_caller);
  SELECT no, seq, change, first_seq INTO t FROM threads
    WHERE tenant = p_tenant AND id = p_thread AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now);
  IF NOT FOUND THEN RETURN; END IF;
  v_first := greatest(p_first, t.first_seq);
  v_last := least(p_last, t.seq);
  IF p_by_instant AND p_newest THEN
    OPEN v_rows FOR SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM messages m
      WHERE m.thread_no = t.no AND m.seq BETWEEN v_first AND v_last AND m.body IS NOT NULL
      AND m.created_at > p_after_instant AND m.created_at < p_before_instant
      AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) ORDER BY m.created_at DESC, m.seq DESC LIMIT p_limit + 1;
  ELSIF p_by_instant THEN
    OPEN v_rows FOR SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM messages m
      WHERE m.thread_no = t.no AND m.seq BETWEEN v_first AND v_last AND m.body IS NOT NULL
      AND m.created_at > p_after_instant AND m.created_at < p_before_instant
      AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) ORDER BY m.created_at, m.seq LIMIT p_limit + 1;
  ELSIF p_newest THEN
    OPEN v_rows FOR SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM messages m
      WHERE m.thread_no = t.no AND m.seq BETWEEN v_first AND v_last AND m.body IS NOT NULL
      AND m.created_at > p_after_instant AND m.created_at < p_before_instant
      AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) ORDER BY m.thread_no DESC, m.seq DESC LIMIT p_limit + 1;
  ELSE
    OPEN v_rows FOR SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM messages m
      WHERE m.thread_no = t.no AND m.seq BETWEEN v_first AND v_last AND m.body IS NOT NULL
      AND m.created_at > p_after_instant AND m.created_at < p_before_instant
      AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) ORDER BY m.thread_no, m.seq LIMIT p_limit + 1;
  END IF;
  more := false;
  LOOP
    FETCH v_rows INTO seq, id, external_id, revision, created_at, body;
    EXIT WHEN NOT FOUND;
    IF v_count = p_limit OR v_bytes >= p_bytes THEN more := true; EXIT; END IF;
    v_count := v_count + 1;
    v_bytes := v_bytes + octet_length(body);
    RETURN NEXT;
  END LOOP;
  CLOSE v_rows;
  seq := t.seq; id := NULL; external_id := NULL; revision := NULL; created_at := NULL; body := NULL;
  change := t.change; first_seq := t.first_seq;
  RETURN NEXT;
END $$;
