CREATE OR REPLACE FUNCTION threadkeep.collection_token(p_no bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
  $$ SELECT U&'\E003' || p_no $$;

-- Returns the index entry of an entry: its terms (separated by blanks) and the token of its collection.
CREATE OR REPLACE FUNCTION threadkeep.terms_of_entry(p_no bigint, p_terms text) RETURNS tsvector LANGUAGE sql STABLE AS $$
  SELECT array_to_tsvector(ARRAY(
    SELECT DISTINCT term FROM unnest(string_to_array(p_terms, ' ') || threadkeep.collection_token(p_no)) AS u (term)
    WHERE term <> ''))
$$;

-- Removes entries of a collection and returns their number.
CREATE OR REPLACE FUNCTION threadkeep.take_entries(p_no bigint, p_ids text[]) RETURNS bigint LANGUAGE sql AS $$
  WITH removed AS (
    DELETE FROM threadkeep.entries WHERE collection_no = p_no AND id = ANY (p_ids) RETURNING no
  ), without_terms AS (
    DELETE FROM threadkeep.entry_terms WHERE collection_no = p_no AND no = ANY (ARRAY(SELECT no FROM removed))
  ), without_point AS (
    DELETE FROM threadkeep.entry_points WHERE collection_no = p_no AND no = ANY (ARRAY(SELECT no FROM removed))
  )
  SELECT count(*) FROM removed
$$;

-- Writes entries, replacing those with the same ids. Vectors are passed as the text of an array.
CREATE OR REPLACE FUNCTION threadkeep.put_entries(
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

CREATE OR REPLACE FUNCTION threadkeep.remove_entries(p_tenant text, p_caller text, p_owner text, p_name text, p_ids text[])
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

-- Returns the collections with a name that this transaction's scope searches: the tenant's, and for a user also the user's.
CREATE OR REPLACE FUNCTION threadkeep.parts(p_name text) RETURNS bigint[] LANGUAGE sql STABLE AS $$
  SELECT coalesce(array_agg(no), '{}') FROM threadkeep.collections
  WHERE tenant = threadkeep.tenant() AND name = p_name
  AND (threadkeep.caller() = 'tenant' OR threadkeep.caller() LIKE 'user/_%')
  AND (owner = '' OR 'user/' || owner = threadkeep.caller())
$$;

-- Finds the newest entries in this transaction's scope that contain a term (any, if it is null) and match a filter, unless it is
-- empty: at most `p_limit` of each collection. Runs as the tables' owner for the same reason as threadkeep.matching, and also
-- uses the transaction's scope.
CREATE OR REPLACE FUNCTION threadkeep.matching_entries(p_name text, p_term text, p_limit bigint, p_filter text)
RETURNS TABLE (collection_no bigint, no bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_no bigint;
  v_filter text := CASE WHEN p_filter = '' THEN '' ELSE ' & ' || p_filter END;
BEGIN
  IF p_term = '' THEN RETURN; END IF;
  IF p_term IS NOT NULL THEN
    -- The whole term is quoted, so that it contains no operators.
    v_filter := format(' & ''%s''', replace(replace(p_term, '\', '\\'), '''', '''''')) || v_filter;
  END IF;
  FOREACH v_no IN ARRAY threadkeep.parts(p_name) LOOP
    RETURN QUERY SELECT e.collection_no, e.no FROM threadkeep.entry_terms e
      WHERE e.terms @@ (format('''%s''', threadkeep.collection_token(v_no)) || v_filter)::tsquery
      ORDER BY e.no DESC LIMIT p_limit;
  END LOOP;
END $$;

-- Finds entries that contain some of the terms and match the filter, ranked by the rarity of their terms, then newest first.
-- Returns one row of arrays.
CREATE OR REPLACE FUNCTION threadkeep.search_entries(
  p_name text, p_terms text[], p_per_term bigint, p_limit bigint, p_filter text,
  OUT documents bigint, OUT frequencies bigint[], OUT collection_nos bigint[], OUT nos bigint[]
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  SELECT coalesce(sum(entry_count), 0)::bigint INTO documents FROM threadkeep.collections
    WHERE no = ANY (threadkeep.parts(p_name));
  WITH matched AS MATERIALIZED (
    SELECT w.place, m.collection_no, m.no FROM unnest(p_terms) WITH ORDINALITY AS w (term, place)
    CROSS JOIN LATERAL threadkeep.matching_entries(p_name, w.term, p_per_term, p_filter) AS m
  ), counted AS (
    SELECT place, count(*) AS frequency FROM matched GROUP BY place
  ), rarity AS (
    SELECT place, ln(1 + greatest(documents - frequency + 0.5::float8, 0) / (frequency + 0.5::float8)) AS rarity
    FROM counted
  ), ranked AS (
    -- Summed in the order of the terms: another order may round differently and change the ranking.
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

-- Returns vectors to compare with a given one: with the pgvector extension the nearest `p_limit`, with their distances in single
-- precision; without it all, at most `p_bound`, which the caller compares. Only of entries that match the filter, unless it is
-- empty.
CREATE OR REPLACE FUNCTION threadkeep.near_points(
  p_name text, p_model text, p_point real[], p_limit bigint, p_bound bigint, p_filter text
) RETURNS TABLE (distance float8, collection_no bigint, no bigint, point real[]) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  v_filter tsquery := nullif(p_filter, '')::tsquery;
  v_schema text;
  v_parts bigint[] := threadkeep.parts(p_name);
BEGIN
  SELECT n.nspname INTO v_schema FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector' AND has_schema_privilege(n.oid, 'USAGE');
  IF NOT FOUND THEN
    RETURN QUERY SELECT NULL::float8, p.collection_no, p.no, p.point FROM threadkeep.entry_points p
      WHERE p.collection_no = ANY (v_parts) AND p.model = p_model AND p.dimensions = cardinality(p_point)
      AND (v_filter IS NULL OR EXISTS (SELECT 1 FROM threadkeep.entry_terms t
        WHERE t.collection_no = p.collection_no AND t.no = p.no AND t.terms @@ v_filter))
      LIMIT p_bound;
    RETURN;
  END IF;
  RETURN QUERY EXECUTE format(
    'SELECT p.point::%1$I.vector OPERATOR(%1$I.<=>) $3::%1$I.vector AS distance, p.collection_no, p.no, p.point '
    'FROM threadkeep.entry_points p WHERE p.collection_no = ANY ($1) AND p.model = $2 AND p.dimensions = cardinality($3) '
    'AND ($5 IS NULL OR EXISTS (SELECT 1 FROM threadkeep.entry_terms t '
    'WHERE t.collection_no = p.collection_no AND t.no = p.no AND t.terms @@ $5)) '
    'ORDER BY distance, p.no DESC LIMIT $4', v_schema)
    USING v_parts, p_model, p_point, p_limit, v_filter;
END $$;
