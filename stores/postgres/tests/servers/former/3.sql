-- Threads that somebody drives: what a crash cut is found by it, however many threads there are. It holds what runs now.
CREATE INDEX thread_documents_of_drivers ON threadkeep.thread_documents (thread_no)
  WHERE namespace = 'system/run' AND key = 'active';
-- Reads a thread's changes after a position, oldest first. Every row also tells where the thread stands and how far its log
-- is forgotten; where nothing follows, one row of that alone, and no row at all: there is no such thread. STABLE, so that all
-- of it is one snapshot.
CREATE FUNCTION threadkeep.list_changes(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint, p_after bigint, p_limit bigint
) RETURNS TABLE (thread_seq bigint, thread_change bigint, thread_first_seq bigint, log_from bigint,
  change bigint, at bigint, first_seq bigint, count bigint, effects text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  v_set text;
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  RETURN QUERY SELECT t.seq, t.change, t.first_seq, t.log_from, c.change, c.at, c.first_seq, c.count, c.effects
    FROM threadkeep.threads t LEFT JOIN LATERAL (
      SELECT c.change, c.at, c.first_seq, c.count, c.effects FROM threadkeep.commits c
      WHERE c.thread_no = t.no AND c.change > p_after ORDER BY c.change LIMIT p_limit
    ) AS c ON true
    WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
    AND (t.expires_at IS NULL OR t.expires_at > p_now)
    ORDER BY c.change;
END $$;
REVOKE ALL ON FUNCTION threadkeep.list_changes(text, text, uuid, bigint, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threadkeep.list_changes(text, text, uuid, bigint, bigint, bigint) TO threadkeep_server;

-- As before, and cheaper where there is little to find: the owner's token is looked up here, and each term by a statement that
-- has nothing to join.
CREATE OR REPLACE FUNCTION threadkeep.matching(p_no bigint, p_terms text[], p_limit bigint)
RETURNS TABLE (place bigint, thread_no bigint, seqs bigint[])
-- Few threads are expected, so that each is looked up and not all of them are read.
LANGUAGE plpgsql STABLE ROWS 1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_tenant text := current_setting('threadkeep.tenant', true);
  v_caller text := current_setting('threadkeep.caller', true);
  v_place text;
  v_query tsquery;
BEGIN
  -- One thread is named by its own token, and is the scope's or the tenant's shared one, or nothing.
  IF p_no IS NOT NULL THEN
    SELECT threadkeep.thread_token(t.no) INTO v_place FROM threadkeep.threads t
      WHERE t.no = p_no AND t.tenant = v_tenant
      AND (v_caller = 'tenant' OR t.owner = '' OR v_caller = 'user/' || t.owner);
  ELSIF v_caller LIKE 'user/_%' THEN
    SELECT U&'\E000' || o.no INTO v_place FROM threadkeep.owners o
      WHERE o.tenant = v_tenant AND o.owner = substr(v_caller, 6);
  ELSIF v_caller = 'tenant' THEN
    SELECT U&'\E001' || o.no INTO v_place FROM threadkeep.owners o WHERE o.tenant = v_tenant AND o.owner = '';
  END IF;
  IF v_place IS NULL THEN RETURN; END IF;
  FOR i IN 1 .. cardinality(p_terms) LOOP
    CONTINUE WHEN p_terms[i] = '';
    -- A term is quoted whole: nothing in it is an operator.
    v_query := format('''%s'' & ''%s''', v_place, replace(replace(p_terms[i], '\', '\\'), '''', ''''''));
    RETURN QUERY SELECT i::bigint, m.thread_no, array_agg(m.seq) FROM (
      SELECT m.thread_no, m.seq FROM threadkeep.message_terms m WHERE m.terms @@ v_query LIMIT p_limit
    ) AS m GROUP BY m.thread_no;
  END LOOP;
END $$;

-- As before; how many messages there are and what the index has not reached are looked up at once.
CREATE OR REPLACE FUNCTION threadkeep.search(
  p_tenant text, p_caller text, p_thread uuid, p_terms text[], p_per_term bigint, p_now bigint
) RETURNS TABLE (place bigint, thread uuid, thread_no bigint, first_seq bigint, seqs bigint[],
  documents bigint, behind_threads uuid[], behind_seqs bigint[], missing bigint)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  v_set text;
  v_no bigint;
  v_owner text := CASE WHEN p_caller LIKE 'user/%' THEN substr(p_caller, 6) END;
  v_documents bigint;
  v_nos bigint[];
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  -- Each by the index that leads to it.
  IF p_thread IS NOT NULL THEN
    SELECT t.no, t.message_count INTO v_no, v_documents FROM threads t
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now);
    IF NOT FOUND THEN RETURN; END IF;
    v_nos := ARRAY[v_no];
  ELSIF v_owner IS NOT NULL THEN
    SELECT coalesce(sum(counted.message_count), 0)::bigint,
        ARRAY(SELECT thread_no FROM stamps WHERE tenant = p_tenant AND owner = v_owner
          AND stamp >= (SELECT value FROM marks WHERE name = 'index_stamp'))
      INTO v_documents, v_nos FROM
      (SELECT message_count FROM threads WHERE tenant = p_tenant AND owner = v_owner LIMIT 20000) AS counted;
  ELSE
    SELECT coalesce(sum(counted.message_count), 0)::bigint,
        ARRAY(SELECT thread_no FROM stamps WHERE tenant = p_tenant
          AND stamp >= (SELECT value FROM marks WHERE name = 'index_stamp'))
      INTO v_documents, v_nos FROM
      (SELECT message_count FROM threads WHERE tenant = p_tenant LIMIT 20000) AS counted;
  END IF;
  RETURN QUERY SELECT m.place, t.id, t.no, t.first_seq, m.seqs, NULL::bigint, NULL::uuid[], NULL::bigint[], NULL::bigint
    FROM threadkeep.matching(v_no, p_terms, p_per_term) AS m JOIN threads t ON t.no = m.thread_no
    WHERE NOT t.restoring AND (t.expires_at IS NULL OR t.expires_at > p_now);
  documents := v_documents;
  behind_threads := '{}';
  behind_seqs := '{}';
  missing := 0;
  IF cardinality(v_nos) > 0 THEN
    SELECT coalesce(array_agg(t.id), '{}'), coalesce(array_agg(coalesce(i.seq, 0)), '{}'),
        coalesce(sum(t.seq - coalesce(i.seq, 0)), 0)::bigint
      INTO behind_threads, behind_seqs, missing
      FROM threads t LEFT JOIN indexed i ON i.thread_no = t.no
      WHERE t.no = ANY (v_nos) AND t.seq > coalesce(i.seq, 0) AND t.seq >= t.first_seq AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now);
  END IF;
  RETURN NEXT;
END $$;
