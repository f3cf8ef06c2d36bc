-- The server's role: it owns nothing, cannot log in, and row security holds for it as for the tables' owner. Whoever
-- connects must be its member, and becomes it in every transaction (threadkeep.enter).
REVOKE ALL ON SCHEMA threadkeep FROM PUBLIC;
GRANT USAGE ON SCHEMA threadkeep TO threadkeep_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA threadkeep TO threadkeep_server;

DO $$
DECLARE
  -- Settings are read for each row: to begin a statement that reads them once costs more than the few rows that most read.
  v_keeper CONSTANT text := 'threadkeep.caller() = ''keeper''';
  v_tenant CONSTANT text := 'tenant = threadkeep.tenant()';
  -- What the scope has in full, and what a user may also read and add to: the tenant's own, shared things.
  v_own CONSTANT text := '(threadkeep.caller() = ''tenant'' '
    || 'OR (owner <> '''' AND threadkeep.caller() = ''user/'' || owner))';
  v_shared CONSTANT text := '(owner = '''' AND threadkeep.caller() LIKE ''user/_%'')';
  v_full CONSTANT text := format('%s OR (%s AND %s)', v_keeper, v_tenant, v_own);
  v_reached CONSTANT text := format('%s OR (%s AND (%s OR %s))', v_keeper, v_tenant, v_own, v_shared);
  v_change text;
  v_remove text;
  v_add text;
  v_table text;
BEGIN
  FOREACH v_table IN ARRAY ARRAY['owners', 'threads', 'stamps', 'messages', 'commits', 'thread_documents', 'documents',
    'deleted_threads', 'leftovers', 'indexed', 'message_terms'] LOOP
    -- A user adds to a shared thread: messages, a log entry, and new positions in the thread's row. Of what is there
    -- already only what a trim has left for the sweep may go, as it stands in the way of its own names.
    v_change := CASE WHEN v_table IN ('threads', 'stamps') THEN v_reached ELSE v_full END;
    v_add := CASE WHEN v_table IN ('owners', 'threads', 'stamps', 'messages', 'commits') THEN v_reached ELSE v_full END;
    v_remove := v_full;
    IF v_table = 'messages' THEN
      v_remove := format('%s OR (%s AND %s AND seq < (SELECT t.first_seq FROM threadkeep.threads t WHERE t.no = thread_no))',
        v_full, v_tenant, v_shared);
    END IF;
    EXECUTE format('ALTER TABLE threadkeep.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', v_table);
    EXECUTE format('CREATE POLICY reading ON threadkeep.%I FOR SELECT TO threadkeep_server USING (%s)', v_table, v_reached);
    EXECUTE format('CREATE POLICY adding ON threadkeep.%I FOR INSERT TO threadkeep_server WITH CHECK (%s)', v_table, v_add);
    EXECUTE format('CREATE POLICY changing ON threadkeep.%I FOR UPDATE TO threadkeep_server USING (%s) WITH CHECK (%s)',
      v_table, v_change, v_change);
    EXECUTE format('CREATE POLICY removing ON threadkeep.%I FOR DELETE TO threadkeep_server USING (%s)', v_table, v_remove);
  END LOOP;
  ALTER TABLE threadkeep.marks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
  CREATE POLICY reading ON threadkeep.marks FOR SELECT TO threadkeep_server USING (true);
  EXECUTE format('CREATE POLICY changing ON threadkeep.marks TO threadkeep_server USING (%s)', v_keeper);
  -- For threadkeep.matching alone, which adds the scope by itself.
  FOREACH v_table IN ARRAY ARRAY['owners', 'threads', 'message_terms'] LOOP
    EXECUTE format('CREATE POLICY matching ON threadkeep.%I FOR SELECT TO CURRENT_USER USING (true)', v_table);
  END LOOP;
END $$;
