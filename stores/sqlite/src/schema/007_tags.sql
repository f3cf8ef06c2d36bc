-- The tag of the change of its thread that a document was written at; NULL for documents from before and for those of users and
-- tenants. It stands before the value, so that nobody reads a long one to get to it.
--
-- A thread's own tag shares a column with its change, for the same reason: tag << 32 | change. 0 above is no tag.
CREATE TABLE tagged_documents (
  no INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  owner_no INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  tag INTEGER,
  expires_at INTEGER,
  value TEXT NOT NULL,
  UNIQUE (kind, owner_no, namespace, key)
);
INSERT INTO tagged_documents (no, kind, owner_no, namespace, key, version, expires_at, value)
  SELECT no, kind, owner_no, namespace, key, version, expires_at, value FROM documents;
DROP TABLE documents;
ALTER TABLE tagged_documents RENAME TO documents;
CREATE INDEX documents_by_expiry ON documents (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX documents_of_drivers ON documents (owner_no) WHERE kind = 0 AND namespace = 'system/run' AND key = 'active';
