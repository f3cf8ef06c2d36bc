-- Reads a page of a thread's messages in the requested order. Every row also contains the thread's positions; if no message
-- matches, there is one row with only these, and if the thread does not exist, no row. Callers request one message more than
-- the page has; the text of messages beyond the page's size is omitted. STABLE, so that everything is read in one snapshot.
CREATE OR REPLACE FUNCTION threadkeep.list_messages(
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
