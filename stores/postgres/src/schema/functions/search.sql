-- The tokens of a message's owner, tenant and thread. Private-use characters are never part of a term.
-- In PL/pgSQL, because an SQL function that reads a table is planned again by every statement that calls it.
CREATE OR REPLACE FUNCTION threadkeep.owner_token(p_tenant text, p_owner text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT (CASE p_owner WHEN '' THEN U&'\E001' ELSE U&'\E000' END) || no
    FROM threadkeep.owners WHERE tenant = p_tenant AND owner = p_owner);
END $$;
CREATE OR REPLACE FUNCTION threadkeep.thread_token(p_no bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
  $$ SELECT U&'\E002' || p_no $$;

-- Returns the index entry of a message: its terms (separated by blanks) and the tokens of its owner, tenant and thread.
CREATE OR REPLACE FUNCTION threadkeep.terms(p_no bigint, p_tenant text, p_owner text, p_terms text) RETURNS tsvector
LANGUAGE sql STABLE AS $$
  SELECT array_to_tsvector(ARRAY(
    SELECT DISTINCT term FROM unnest(string_to_array(p_terms, ' ') || threadkeep.owner_token(p_tenant, '')
      || threadkeep.owner_token(p_tenant, p_owner) || threadkeep.thread_token(p_no)) AS u (term)
    WHERE term <> ''))
$$;

-- Adds messages of a thread to the index, if the thread is unchanged since they were read: it exists, is indexed up to the same
-- position, and none of its messages were replaced or erased. Appended messages do not matter.
CREATE OR REPLACE FUNCTION threadkeep.index_messages(
  p_no bigint, p_change bigint, p_indexed bigint, p_upto bigint, p_seqs bigint[], p_terms text[]
) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
BEGIN
  SELECT tenant, owner INTO t FROM threadkeep.threads WHERE no = p_no FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM 1 FROM threadkeep.commits WHERE thread_no = p_no AND change > p_change AND effects IS NOT NULL;
  IF FOUND THEN RETURN false; END IF;
  IF p_indexed <> coalesce((SELECT seq FROM threadkeep.indexed WHERE thread_no = p_no), 0) THEN RETURN false; END IF;
  INSERT INTO threadkeep.message_terms (thread_no, seq, tenant, owner, terms)
    SELECT p_no, n.seq, t.tenant, t.owner, threadkeep.terms(p_no, t.tenant, t.owner, n.terms)
    FROM unnest(p_seqs, p_terms) AS n (seq, terms);
  INSERT INTO threadkeep.indexed AS i (thread_no, tenant, owner, seq) VALUES (p_no, t.tenant, t.owner, p_upto)
    ON CONFLICT (thread_no) DO UPDATE SET seq = excluded.seq;
  RETURN true;
END $$;

-- Finds the messages in this transaction's scope that contain a term, at most `p_limit` for each term, grouped by term (its
-- number) and thread. Runs as the tables' owner, to whom the policies on the index do not apply: with them, PostgreSQL would not
-- use the index. The scope is still that of the transaction, as a token that every match must contain, and callers join the
-- result with `threads`, under row security. With `p_nos`, only messages of these threads count.
CREATE OR REPLACE FUNCTION threadkeep.matching(p_no bigint, p_nos bigint[], p_terms text[], p_limit bigint)
RETURNS TABLE (place bigint, thread_no bigint, seqs bigint[])
-- ROWS 1 makes callers look up each thread by index instead of scanning all threads.
LANGUAGE plpgsql STABLE ROWS 1 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_tenant text := current_setting('threadkeep.tenant', true);
  v_caller text := current_setting('threadkeep.caller', true);
  v_place text;
  v_query tsquery;
BEGIN
  -- A thread is selected by its token. It must be owned by the scope or shared by the tenant.
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
    -- The whole term is quoted, so that it contains no operators.
    v_query := format('''%s'' & ''%s''', v_place, replace(replace(p_terms[i], '\', '\\'), '''', ''''''));
    RETURN QUERY SELECT i::bigint, m.thread_no, array_agg(m.seq) FROM (
      SELECT m.thread_no, m.seq FROM threadkeep.message_terms m
      WHERE m.terms @@ v_query AND (p_nos IS NULL OR m.thread_no IN (SELECT unnest(p_nos))) LIMIT p_limit
    ) AS m GROUP BY m.thread_no;
  END LOOP;
END $$;

-- Finds the messages that contain each term, grouped by term (its number) and thread. The last row is not for a term: it contains
-- the number of messages in the scope and the threads with unindexed messages. No row if the thread does not exist. A filter on
-- metadata has `p_conditions` conditions, and `p_metadata` has their terms: only threads that meet all conditions are searched.
CREATE OR REPLACE FUNCTION threadkeep.search(
  p_tenant text, p_caller text, p_thread uuid, p_terms text[], p_per_term bigint, p_now bigint, p_metadata bytea[],
  p_conditions bigint
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
  v_passing bigint[];
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  -- Separate statements, so that each uses the index for its condition.
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
  IF p_conditions > 0 AND v_no IS NOT NULL THEN
    v_passing := ARRAY(SELECT x.thread_no FROM thread_metadata x WHERE x.thread_no = v_no AND x.term = ANY (p_metadata)
      GROUP BY x.thread_no HAVING count(*) = p_conditions);
  ELSIF p_conditions > 0 THEN
    v_passing := ARRAY(SELECT x.thread_no FROM thread_metadata x WHERE x.tenant = p_tenant AND x.term = ANY (p_metadata)
      AND (v_owner IS NULL OR x.owner = v_owner) GROUP BY x.thread_no HAVING count(*) = p_conditions);
  END IF;
  IF v_passing IS NOT NULL THEN
    v_nos := ARRAY(SELECT unnest(v_nos) INTERSECT SELECT unnest(v_passing));
  END IF;
  RETURN QUERY SELECT m.place, t.id, t.no, t.first_seq, m.seqs, NULL::bigint, NULL::uuid[], NULL::bigint[], NULL::bigint
    FROM threadkeep.matching(v_no, v_passing, p_terms, p_per_term) AS m JOIN threads t ON t.no = m.thread_no
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
