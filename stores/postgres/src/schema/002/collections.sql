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
