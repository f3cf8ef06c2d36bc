-- Collections that applications fill. An owner's part of one has a number, which is a term of its entries in the index.
CREATE TABLE collections (
  no INTEGER PRIMARY KEY,
  owner_no INTEGER NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (owner_no, name)
);

-- AUTOINCREMENT: a number is never given again, so what the index still holds of a removed entry names nothing else.
CREATE TABLE entries (
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  collection_no INTEGER NOT NULL,
  id TEXT NOT NULL,
  text TEXT NOT NULL,
  fields TEXT,
  model TEXT,
  vector BLOB,                     -- little-endian float32
  UNIQUE (collection_no, id)
);
CREATE INDEX entries_with_vector ON entries (collection_no, model) WHERE model IS NOT NULL;

-- As message_terms, under the entry's number; filled by the same transaction as the entry.
CREATE VIRTUAL TABLE entry_terms USING fts5 (terms, content = '', detail = none, columnsize = 0, tokenize = 'ascii');
INSERT INTO entry_terms (entry_terms, rank) VALUES ('automerge', 8);
