-- Collections that applications fill. An owner's part of one has a number, which is a term of its entries in the index of
-- words. Writers of one part come one after the other: they hold its row.
CREATE TABLE threadkeep.collections (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
  owner text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  entry_count bigint NOT NULL DEFAULT 0,
  UNIQUE (tenant, owner, name)
);

-- An entry that is put over another has a new number: the higher is the newer.
CREATE SEQUENCE threadkeep.entry_numbers;
CREATE TABLE threadkeep.entries (
  collection_no bigint NOT NULL,
  no bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  text text COLLATE "C" NOT NULL,
  fields text COLLATE "C",
  PRIMARY KEY (collection_no, no),
  UNIQUE (collection_no, id)
);

-- As message_terms, with a token of the collection's part.
CREATE TABLE threadkeep.entry_terms (
  collection_no bigint NOT NULL,
  no bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  terms tsvector NOT NULL,
  PRIMARY KEY (collection_no, no)
);
CREATE INDEX entry_terms_by_term ON threadkeep.entry_terms USING gin (terms) WITH (fastupdate = off);

-- Where the meaning of an entry lies. Plain numbers, which the extension pgvector reads where it is; apart from the entries,
-- so that comparing them reads nothing else.
CREATE TABLE threadkeep.entry_points (
  collection_no bigint NOT NULL,
  no bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  dimensions integer NOT NULL GENERATED ALWAYS AS (cardinality(point)) STORED,
  point real[] NOT NULL,
  PRIMARY KEY (collection_no, no)
);
-- Such numbers cannot be compressed.
ALTER TABLE threadkeep.entry_points ALTER COLUMN point SET STORAGE EXTERNAL;

CREATE FUNCTION threadkeep.collection_token(p_no bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
  $$ SELECT U&'\E003' || p_no $$;

-- What is indexed of an entry: its terms (with blanks between) and the token of its place.
CREATE FUNCTION threadkeep.terms_of_entry(p_no bigint, p_terms text) RETURNS tsvector LANGUAGE sql STABLE AS $$
  SELECT array_to_tsvector(ARRAY(
    SELECT DISTINCT term FROM unnest(string_to_array(p_terms, ' ') || threadkeep.collection_token(p_no)) AS u (term)
    WHERE term <> ''))
$$;

-- Removes entries of a part, and says how many there were.
CREATE FUNCTION threadkeep.take_entries(p_no bigint, p_ids text[]) RETURNS bigint LANGUAGE sql AS $$
  WITH removed AS (
    DELETE FROM threadkeep.entries WHERE collection_no = p_no AND id = ANY (p_ids) RETURNING no
  ), without_terms AS (
    DELETE FROM threadkeep.entry_terms WHERE collection_no = p_no AND no = ANY (ARRAY(SELECT no FROM removed))
  ), without_point AS (
    DELETE FROM threadkeep.entry_points WHERE collection_no = p_no AND no = ANY (ARRAY(SELECT no FROM removed))
  )
  SELECT count(*) FROM removed
$$;

-- Puts entries over those with the same ids. A point comes as the text of its array.
CREATE FUNCTION threadkeep.put_entries(
  p_tenant text, p_caller text, p_owner text, p_name text, p_ids text[], p_texts text[], p_fields text[], p_terms text[],
  p_models text[], p_points text[]
) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_no bigint;
  v_removed bigint;
BEGIN
  PERFORM threadkeep.enter(p_tenant, p_caller);
  PERFORM threadkeep.remember_owner(p_tenant, p_owner);
  INSERT INTO collections (tenant, owner, name) VALUES (p_tenant, p_owner, p_name) ON CONFLICT DO NOTHING;
  SELECT no INTO v_no FROM collections WHERE tenant = p_tenant AND owner = p_owner AND name = p_name FOR NO KEY UPDATE;
  v_removed := threadkeep.take_entries(v_no, p_ids);
  WITH given AS MATERIALIZED (
    SELECT nextval('threadkeep.entry_numbers') AS no, g.*
    FROM unnest(p_ids, p_texts, p_fields, p_terms, p_models, p_points) AS g (id, said, fields, terms, model, point)
  ), put AS (
    INSERT INTO entries (collection_no, no, tenant, owner, id, text, fields)
    SELECT v_no, g.no, p_tenant, p_owner, g.id, g.said, g.fields FROM given g
  ), worded AS (
    INSERT INTO entry_terms (collection_no, no, tenant, owner, terms)
    SELECT v_no, g.no, p_tenant, p_owner, threadkeep.terms_of_entry(v_no, g.terms) FROM given g
  )
  INSERT INTO entry_points (collection_no, no, tenant, owner, model, point)
    SELECT v_no, g.no, p_tenant, p_owner, g.model, g.point::real[] FROM given g WHERE g.point IS NOT NULL;
  UPDATE collections SET entry_count = entry_count + cardinality(p_ids) - v_removed WHERE no = v_no;
END $$;

CREATE FUNCTION threadkeep.remove_entries(p_tenant text, p_caller text, p_owner text, p_name text, p_ids text[])
RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_no bigint;
  v_removed bigint;
BEGIN
  PERFORM threadkeep.enter(p_tenant, p_caller);
  SELECT no INTO v_no FROM collections WHERE tenant = p_tenant AND owner = p_owner AND name = p_name FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 0; END IF;
  v_removed := threadkeep.take_entries(v_no, p_ids);
  UPDATE collections SET entry_count = entry_count - v_removed WHERE no = v_no;
  RETURN v_removed;
END $$;

-- The parts of a collection that the scope of this transaction searches: a tenant its own, a user its own and its tenant's.
CREATE FUNCTION threadkeep.parts(p_name text) RETURNS bigint[] LANGUAGE sql STABLE AS $$
  SELECT coalesce(array_agg(no), '{}') FROM threadkeep.collections
  WHERE tenant = threadkeep.tenant() AND name = p_name
  AND (threadkeep.caller() = 'tenant' OR threadkeep.caller() LIKE 'user/_%')
  AND (owner = '' OR 'user/' || owner = threadkeep.caller())
$$;

-- The newest entries within the scope of this transaction that hold a term, at most `p_limit` of each part. Runs as the
-- tables' owner, for the reason that threadkeep.matching does, and takes its scope from the transaction as well.
CREATE FUNCTION threadkeep.matching_entries(p_name text, p_term text, p_limit bigint)
RETURNS TABLE (collection_no bigint, no bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_no bigint;
BEGIN
  IF p_term = '' THEN RETURN; END IF;
  FOREACH v_no IN ARRAY threadkeep.parts(p_name) LOOP
    -- The term is quoted whole: nothing in it is an operator.
    RETURN QUERY SELECT e.collection_no, e.no FROM threadkeep.entry_terms e
      WHERE e.terms @@ format('''%s'' & ''%s''', threadkeep.collection_token(v_no),
        replace(replace(p_term, '\', '\\'), '''', ''''''))::tsquery
      ORDER BY e.no DESC LIMIT p_limit;
  END LOOP;
END $$;

-- Entries that hold some of the terms, those with the rarer ones first, then the newest. One row of arrays.
CREATE FUNCTION threadkeep.search_entries(
  p_name text, p_terms text[], p_per_term bigint, p_limit bigint,
  OUT documents bigint, OUT frequencies bigint[], OUT collection_nos bigint[], OUT nos bigint[]
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  SELECT coalesce(sum(entry_count), 0)::bigint INTO documents FROM threadkeep.collections
    WHERE no = ANY (threadkeep.parts(p_name));
  WITH matched AS MATERIALIZED (
    SELECT w.place, m.collection_no, m.no FROM unnest(p_terms) WITH ORDINALITY AS w (term, place)
    CROSS JOIN LATERAL threadkeep.matching_entries(p_name, w.term, p_per_term) AS m
  ), counted AS (
    SELECT place, count(*) AS frequency FROM matched GROUP BY place
  ), rarity AS (
    SELECT place, ln(1 + greatest(documents - frequency + 0.5::float8, 0) / (frequency + 0.5::float8)) AS rarity
    FROM counted
  ), ranked AS (
    -- Added in the order of the terms: another order may end in another last digit, and so in another rank.
    SELECT m.collection_no, m.no, sum(r.rarity ORDER BY m.place) AS score FROM matched m JOIN rarity r USING (place)
    GROUP BY m.collection_no, m.no ORDER BY score DESC, m.no DESC LIMIT p_limit
  )
  SELECT
    ARRAY(SELECT coalesce(c.frequency, 0) FROM unnest(p_terms) WITH ORDINALITY AS w (term, place)
      LEFT JOIN counted c USING (place) ORDER BY w.place),
    ARRAY(SELECT collection_no FROM ranked ORDER BY score DESC, no DESC),
    ARRAY(SELECT no FROM ranked ORDER BY score DESC, no DESC)
  INTO frequencies, collection_nos, nos;
END $$;

-- Points to compare with one: with the extension pgvector the nearest `p_limit`, and how far they are to single
-- precision; without it all of them, at most `p_bound`, for the caller to compare.
CREATE FUNCTION threadkeep.near_points(p_name text, p_model text, p_point real[], p_limit bigint, p_bound bigint)
RETURNS TABLE (distance float8, collection_no bigint, no bigint, point real[]) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  v_schema text;
  v_parts bigint[] := threadkeep.parts(p_name);
BEGIN
  SELECT n.nspname INTO v_schema FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector' AND has_schema_privilege(n.oid, 'USAGE');
  IF NOT FOUND THEN
    RETURN QUERY SELECT NULL::float8, p.collection_no, p.no, p.point FROM threadkeep.entry_points p
      WHERE p.collection_no = ANY (v_parts) AND p.model = p_model AND p.dimensions = cardinality(p_point)
      LIMIT p_bound;
    RETURN;
  END IF;
  RETURN QUERY EXECUTE format(
    'SELECT p.point::%1$I.vector OPERATOR(%1$I.<=>) $3::%1$I.vector AS distance, p.collection_no, p.no, p.point '
    'FROM threadkeep.entry_points p WHERE p.collection_no = ANY ($1) AND p.model = $2 AND p.dimensions = cardinality($3) '
    'ORDER BY distance, p.no DESC LIMIT $4', v_schema)
    USING v_parts, p_model, p_point, p_limit;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA threadkeep FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA threadkeep TO threadkeep_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON threadkeep.collections, threadkeep.entries, threadkeep.entry_terms,
  threadkeep.entry_points TO threadkeep_server;
GRANT USAGE ON SEQUENCE threadkeep.entry_numbers TO threadkeep_server;

DO $$
DECLARE
  v_keeper CONSTANT text := '(SELECT threadkeep.caller()) = ''keeper''';
  v_tenant CONSTANT text := 'tenant = (SELECT threadkeep.tenant())';
  v_own CONSTANT text := '((SELECT threadkeep.caller()) = ''tenant'' '
    || 'OR (owner <> '''' AND (SELECT threadkeep.caller()) = ''user/'' || owner))';
  v_shared CONSTANT text := '(owner = '''' AND (SELECT threadkeep.caller()) LIKE ''user/_%'')';
  v_full CONSTANT text := format('%s OR (%s AND %s)', v_keeper, v_tenant, v_own);
  v_reached CONSTANT text := format('%s OR (%s AND (%s OR %s))', v_keeper, v_tenant, v_own, v_shared);
  v_table text;
BEGIN
  FOREACH v_table IN ARRAY ARRAY['collections', 'entries', 'entry_terms', 'entry_points'] LOOP
    EXECUTE format('ALTER TABLE threadkeep.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', v_table);
    EXECUTE format('CREATE POLICY reading ON threadkeep.%I FOR SELECT TO threadkeep_server USING (%s)', v_table, v_reached);
    EXECUTE format('CREATE POLICY adding ON threadkeep.%I FOR INSERT TO threadkeep_server WITH CHECK (%s)', v_table, v_full);
    EXECUTE format('CREATE POLICY changing ON threadkeep.%I FOR UPDATE TO threadkeep_server USING (%s) WITH CHECK (%s)',
      v_table, v_full, v_full);
    EXECUTE format('CREATE POLICY removing ON threadkeep.%I FOR DELETE TO threadkeep_server USING (%s)', v_table, v_full);
  END LOOP;
  -- For threadkeep.matching_entries alone, which adds the scope by itself.
  FOREACH v_table IN ARRAY ARRAY['collections', 'entry_terms'] LOOP
    EXECUTE format('CREATE POLICY matching ON threadkeep.%I FOR SELECT TO CURRENT_USER USING (true)', v_table);
  END LOOP;
END $$;
-- Hints go over a channel whose name nobody knows but the server's role: whoever may connect to a database may listen on
-- any channel of it, and notify on any, whatever rights it has.
CREATE TABLE threadkeep.channels (
  name text COLLATE "C" PRIMARY KEY
);
INSERT INTO threadkeep.channels (name) VALUES ('threadkeep_' || replace(gen_random_uuid()::text, '-', ''));
ALTER TABLE threadkeep.channels ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reading ON threadkeep.channels FOR SELECT TO threadkeep_server USING (true);
GRANT SELECT ON threadkeep.channels TO threadkeep_server;

CREATE FUNCTION threadkeep.channel() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM threadkeep.enter('', 'keeper');
  RETURN (SELECT name FROM threadkeep.channels);
END $$;

-- A hint may be lost with the server, so nobody waits for it to reach the disk.
CREATE FUNCTION threadkeep.tell(p_payloads text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM threadkeep.enter('', 'keeper');
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_notify(c.name, p.payload) FROM threadkeep.channels c, unnest(p_payloads) AS p (payload);
END $$;

REVOKE ALL ON FUNCTION threadkeep.channel(), threadkeep.tell(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threadkeep.channel(), threadkeep.tell(text[]) TO threadkeep_server;
