-- Rows that are kept in the order of their names are compared by all that they hold: with every document that a look-up meets
-- on its way, its pages were read, such as those of long summaries. An index holds the names alone.
CREATE TABLE named_documents (
  no INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  owner_no INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  expires_at INTEGER,
  value TEXT NOT NULL,
  UNIQUE (kind, owner_no, namespace, key)
);
INSERT INTO named_documents (kind, owner_no, namespace, key, version, expires_at, value)
  SELECT kind, owner_no, namespace, key, version, expires_at, value FROM documents;
DROP TABLE documents;
ALTER TABLE named_documents RENAME TO documents;
CREATE INDEX documents_by_expiry ON documents (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX documents_of_drivers ON documents (owner_no) WHERE kind = 0 AND namespace = 'system/run' AND key = 'active';
