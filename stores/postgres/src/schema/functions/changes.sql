-- Reads a thread's changes after a position, oldest first. Every row also contains the thread's positions and the end of the
-- removed part of its log; without changes there is one row with only these, and if the thread does not exist, no row. STABLE,
-- so that everything is read in one snapshot.
CREATE OR REPLACE FUNCTION threadkeep.list_changes(
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
      t.tag, (SELECT threadkeep.tag_of(a.key) FROM threadkeep.commits a
        WHERE a.thread_no = t.no AND a.change = p_after), c.tag
    FROM threadkeep.threads t LEFT JOIN LATERAL (
      SELECT c.change, c.at, c.first_seq, c.count, c.effects, threadkeep.tag_of(c.key) AS tag
      FROM threadkeep.commits c
      WHERE c.thread_no = t.no AND c.change > p_after ORDER BY c.change LIMIT p_limit
    ) AS c ON true
    WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
    AND (t.expires_at IS NULL OR t.expires_at > p_now)
    ORDER BY c.change;
END $$;

-- Reads the changes after a position, with the messages that they appended, of several threads in one call. Each thread is read
-- in its own scope. The rows of a thread are adjacent: first its changes, oldest first, or one row with only its positions if
-- there are none; then the messages in order, without text beyond `p_bytes`. A thread that does not exist has no rows. Changes
-- end early when they have appended `p_messages`. STABLE, so that everything is read in one snapshot.
CREATE OR REPLACE FUNCTION threadkeep.list_followed(
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
    -- Consecutive threads of the same caller share one call of `enter`.
    IF i = 1 OR (p_tenants[i], p_callers[i]) IS DISTINCT FROM (p_tenants[i - 1], p_callers[i - 1]) THEN
      v_set := threadkeep.enter(p_tenants[i], p_callers[i]);
    END IF;
    place := i;
    v_count := 0;
    FOR r IN SELECT t.no, t.seq, t.change, t.first_seq, t.log_from,
        c.change AS c_change, c.at, c.first_seq AS c_first_seq, c.count, c.effects,
        t.tag AS t_tag, (SELECT threadkeep.tag_of(a.key) FROM threadkeep.commits a
          WHERE a.thread_no = t.no AND a.change = p_afters[i]) AS a_tag, c.tag AS c_tag
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT c.change, c.at, c.first_seq, c.count, c.effects,
          threadkeep.tag_of(c.key) AS tag
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
