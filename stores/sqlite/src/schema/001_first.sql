-- Named counters and marks: the store's incarnation, the last stamp of a deletion, how far the index came.
CREATE TABLE marks (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

-- Tenants (user '') and users get a number, for short keys. Rows stay: numbers are cached by every process.
CREATE TABLE owners (
  no INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  user TEXT NOT NULL,
  UNIQUE (tenant, user)
);

-- AUTOINCREMENT: a number is never given again, so leftovers of a deleted thread can wait for the sweep.
CREATE TABLE threads (
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_no INTEGER NOT NULL,
  owner_no INTEGER NOT NULL,
  id BLOB NOT NULL,
  seq INTEGER NOT NULL,
  change INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  log_from INTEGER NOT NULL,       -- changes up to this one are no longer in the log
  message_count INTEGER NOT NULL,
  stamp INTEGER NOT NULL,          -- the store-wide number of the thread's last commit
  restoring INTEGER NOT NULL,      -- 1 while a restoration is not complete
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER,
  key TEXT,
  body TEXT NOT NULL,
  UNIQUE (tenant_no, id)
);
CREATE UNIQUE INDEX threads_by_key ON threads (owner_no, key) WHERE key IS NOT NULL;
CREATE INDEX threads_by_owner ON threads (owner_no);
CREATE INDEX threads_by_stamp ON threads (stamp);
CREATE INDEX threads_by_expiry ON threads (expires_at) WHERE expires_at IS NOT NULL;

-- position = thread number << 32 | seq. A tombstone has no role and no body; its instant is that of the erasure.
CREATE TABLE messages (
  position INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  role INTEGER,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  external_id TEXT,
  body TEXT
);
-- The id comes first: ours grow with time, so that writers of many threads add to the same page.
CREATE UNIQUE INDEX messages_by_id ON messages (id, position >> 32);
CREATE UNIQUE INDEX messages_by_external_id ON messages (position >> 32, external_id) WHERE external_id IS NOT NULL;

-- position = thread number << 32 | change. The change log and the idempotency records at once.
CREATE TABLE commits (
  position INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  key BLOB NOT NULL,
  fingerprint INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  count INTEGER NOT NULL,
  effects TEXT
);
CREATE INDEX commits_by_key ON commits (key, position >> 32);

-- Of threads (kind 0, by thread number) and of users and tenants (kind 1, by owner number).
CREATE TABLE documents (
  kind INTEGER NOT NULL,
  owner_no INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  expires_at INTEGER,
  value TEXT NOT NULL,
  PRIMARY KEY (kind, owner_no, namespace, key)
) WITHOUT ROWID;
CREATE INDEX documents_by_expiry ON documents (expires_at) WHERE expires_at IS NOT NULL;

-- Deleted ids, so that they do not come back within the window.
CREATE TABLE deleted_threads (
  tenant_no INTEGER NOT NULL,
  id BLOB NOT NULL,
  owner_no INTEGER NOT NULL,
  stamp INTEGER NOT NULL,
  deleted_at INTEGER NOT NULL,
  PRIMARY KEY (tenant_no, id)
) WITHOUT ROWID;

-- What a trim (below this seq) or a deletion (all: NULL) left to be removed off the commit path.
CREATE TABLE leftovers (
  thread_no INTEGER PRIMARY KEY,
  owner_no INTEGER NOT NULL,
  tenant_no INTEGER NOT NULL,
  below INTEGER
);

-- The index follows the log: per thread up to a seq, and all threads up to a stamp (mark 'index_stamp').
CREATE TABLE indexed (
  thread_no INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL
);
-- Holds analysed terms and two scope terms per message, under the message's position. Contentless: the log is the content.
-- No positions and no sizes are kept, ranking reads the candidates' text. Removed words are marked, and purged by the sweep.
CREATE VIRTUAL TABLE message_terms USING fts5 (terms, content = '', detail = none, columnsize = 0, tokenize = 'ascii');
INSERT INTO message_terms (message_terms, rank) VALUES ('automerge', 8);
