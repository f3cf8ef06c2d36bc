-- The metadata of threads that filters compare, as digests: a term identifies a top-level key and its value. Triggers keep the table up
-- to date, also for instances of earlier versions. Their functions are defined here, because this migration needs them.
CREATE TABLE threadkeep.thread_metadata (
  thread_no bigint NOT NULL,
  term bytea NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  PRIMARY KEY (thread_no, term)
);

-- Returns the terms of a thread's metadata: one for each string of at most 2,048 bytes, boolean and integer. A damaged body has none.
CREATE FUNCTION threadkeep.metadata_terms(p_body text) RETURNS bytea[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN ARRAY(
    SELECT substr(sha256(convert_to(octet_length(m.key) || ':' || m.key
        || CASE json_typeof(m.value) WHEN 'string' THEN 's' || (m.value #>> '{}') ELSE 'j' || m.value::text END, 'UTF8')), 1, 16)
      FROM json_each(substr(p_body, 2)::json -> 'metadata') AS m
      WHERE CASE json_typeof(m.value)
        WHEN 'string' THEN octet_length(m.value #>> '{}') <= 2048
        WHEN 'number' THEN m.value::text ~ '^-?[0-9]+$'
        ELSE json_typeof(m.value) = 'boolean' END);
EXCEPTION WHEN data_exception THEN
  RETURN '{}';
END $$;

CREATE FUNCTION threadkeep.index_metadata() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_terms bytea[];
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM threadkeep.thread_metadata WHERE thread_no = OLD.no;
    RETURN NULL;
  END IF;
  v_terms := threadkeep.metadata_terms(NEW.body);
  -- The state of an agent is in the body, too, and changes more often than the metadata: only what changed is written.
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM threadkeep.thread_metadata WHERE thread_no = NEW.no AND NOT term = ANY (v_terms);
  END IF;
  INSERT INTO threadkeep.thread_metadata (thread_no, term, tenant, owner)
    SELECT NEW.no, u.term, NEW.tenant, NEW.owner FROM unnest(v_terms) AS u (term)
    ON CONFLICT (thread_no, term) DO NOTHING;
  RETURN NULL;
END $$;

INSERT INTO threadkeep.thread_metadata (thread_no, term, tenant, owner)
  SELECT t.no, u.term, t.tenant, t.owner FROM threadkeep.threads t, unnest(threadkeep.metadata_terms(t.body)) AS u (term)
  WHERE strpos(t.body, '"metadata":{') > 0
  ON CONFLICT (thread_no, term) DO NOTHING;
CREATE INDEX thread_metadata_by_term ON threadkeep.thread_metadata (tenant, term, owner, thread_no);

CREATE TRIGGER index_metadata_on_insert AFTER INSERT ON threadkeep.threads
  FOR EACH ROW WHEN (strpos(NEW.body, '"metadata":{') > 0) EXECUTE FUNCTION threadkeep.index_metadata();
CREATE TRIGGER index_metadata_on_update AFTER UPDATE OF body ON threadkeep.threads
  FOR EACH ROW WHEN (OLD.body <> NEW.body AND (strpos(OLD.body, '"metadata":{') > 0 OR strpos(NEW.body, '"metadata":{') > 0))
  EXECUTE FUNCTION threadkeep.index_metadata();
CREATE TRIGGER index_metadata_on_delete AFTER DELETE ON threadkeep.threads
  FOR EACH ROW WHEN (strpos(OLD.body, '"metadata":{') > 0) EXECUTE FUNCTION threadkeep.index_metadata();

-- The policies of `threads`, for rows that are only added and removed.
GRANT SELECT, INSERT, DELETE ON threadkeep.thread_metadata TO threadkeep_server;
DO $$
DECLARE
  v_own CONSTANT text := '(threadkeep.caller() = ''tenant'' '
    || 'OR (owner <> '''' AND threadkeep.caller() = ''user/'' || owner))';
  v_shared CONSTANT text := '(owner = '''' AND threadkeep.caller() LIKE ''user/_%'')';
  v_full CONSTANT text := format('threadkeep.caller() = ''keeper'' OR (tenant = threadkeep.tenant() AND %s)', v_own);
  v_reached CONSTANT text := format('threadkeep.caller() = ''keeper'' OR (tenant = threadkeep.tenant() AND (%s OR %s))',
    v_own, v_shared);
BEGIN
  ALTER TABLE threadkeep.thread_metadata ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
  EXECUTE format('CREATE POLICY reading ON threadkeep.thread_metadata FOR SELECT TO threadkeep_server USING (%s)', v_reached);
  EXECUTE format('CREATE POLICY adding ON threadkeep.thread_metadata FOR INSERT TO threadkeep_server WITH CHECK (%s)', v_reached);
  EXECUTE format('CREATE POLICY removing ON threadkeep.thread_metadata FOR DELETE TO threadkeep_server USING (%s)', v_full);
END $$;

-- Replaced by a function with another parameter. Only functions of this schema call it.
DROP FUNCTION IF EXISTS threadkeep.matching(bigint, text[], bigint);
