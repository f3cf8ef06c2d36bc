-- Every key begins with the thread (by its number) or with the tenant and its owner; nothing is unique across threads but
-- a thread's id in its tenant and its key with its owner. Text is compared byte by byte, so all of it is COLLATE "C".
-- Instants are microseconds since 1970 UTC. What people said stands in `body` and `value`, as opaque text.

-- Named numbers: what is added to a transaction's id to make a stamp, how far the index came, what is forgotten.
CREATE TABLE threadkeep.marks (
  name text COLLATE "C" PRIMARY KEY,
  value bigint NOT NULL
);
INSERT INTO threadkeep.marks (name, value) VALUES ('stamp_offset', 0), ('index_stamp', 0), ('forgotten_stamp', -1);

-- Tenants (owner '') and users. The number stands for the owner in the index of words; the version is the last that a
-- document of the owner got.
CREATE TABLE threadkeep.owners (
  no bigint GENERATED ALWAYS AS IDENTITY,
  tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
  owner text COLLATE "C" NOT NULL,
  document_version bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, owner)
);

-- A number is never given again, so leftovers of a deleted thread can wait for the sweep. No indexed column changes with
-- a commit, so the row's new version stays in its page.
CREATE TABLE threadkeep.threads (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
  owner text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  seq bigint NOT NULL DEFAULT 0,
  change bigint NOT NULL DEFAULT 0,
  first_seq bigint NOT NULL DEFAULT 1,
  log_from bigint NOT NULL DEFAULT 0,       -- changes up to this one are no longer in the log
  message_count bigint NOT NULL DEFAULT 0,
  restoring boolean NOT NULL DEFAULT false, -- while a restoration is not complete
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint,
  key text COLLATE "C",
  body text COLLATE "C" NOT NULL,
  UNIQUE (tenant, id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX threads_by_key ON threadkeep.threads (tenant, owner, key) WHERE key IS NOT NULL;
CREATE INDEX threads_by_owner ON threadkeep.threads (tenant, owner, no);
CREATE INDEX threads_by_tenant ON threadkeep.threads (tenant, no);
CREATE INDEX threads_by_expiry ON threadkeep.threads (expires_at) WHERE expires_at IS NOT NULL;

-- When each thread last changed, as the id of the transaction that did it. Beside the threads, not in them: this is the one
-- indexed thing that every commit changes.
CREATE TABLE threadkeep.stamps (
  thread_no bigint PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  stamp bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX stamps_by_owner ON threadkeep.stamps (tenant, owner, stamp, thread_no);
CREATE INDEX stamps_by_tenant ON threadkeep.stamps (tenant, stamp, thread_no);
CREATE INDEX stamps_by_stamp ON threadkeep.stamps (stamp);

-- A tombstone has no role and no body; its instant is that of the erasure.
CREATE TABLE threadkeep.messages (
  thread_no bigint NOT NULL,
  seq bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  role smallint,
  revision integer NOT NULL,
  created_at bigint NOT NULL,
  external_id text COLLATE "C",
  body text COLLATE "C",
  PRIMARY KEY (thread_no, seq)
);
CREATE UNIQUE INDEX messages_by_id ON threadkeep.messages (thread_no, id);
CREATE UNIQUE INDEX messages_by_external_id ON threadkeep.messages (thread_no, external_id)
  WHERE external_id IS NOT NULL;

-- The change log and the idempotency records at once.
CREATE TABLE threadkeep.commits (
  thread_no bigint NOT NULL,
  change bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  key bytea NOT NULL,
  fingerprint bigint NOT NULL,
  first_seq bigint NOT NULL,
  count bigint NOT NULL,
  effects text COLLATE "C",
  PRIMARY KEY (thread_no, change)
);
CREATE INDEX commits_by_key ON threadkeep.commits (thread_no, key);
-- Rows come in about in the order of their instants, so that a few bytes for each range of pages find the old ones.
CREATE INDEX commits_by_instant ON threadkeep.commits USING brin (at);

CREATE TABLE threadkeep.thread_documents (
  thread_no bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  expires_at bigint,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (thread_no, namespace, key)
);
CREATE INDEX thread_documents_by_expiry ON threadkeep.thread_documents (expires_at) WHERE expires_at IS NOT NULL;

-- Of users and of tenants (owner '').
CREATE TABLE threadkeep.documents (
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  expires_at bigint,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, owner, namespace, key)
);
CREATE INDEX documents_by_expiry ON threadkeep.documents (expires_at) WHERE expires_at IS NOT NULL;

-- Deleted ids, so that they do not come back within the window.
CREATE TABLE threadkeep.deleted_threads (
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  stamp bigint NOT NULL,
  deleted_at bigint NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX deleted_threads_by_stamp ON threadkeep.deleted_threads (tenant, stamp);
CREATE INDEX deleted_threads_by_instant ON threadkeep.deleted_threads (deleted_at);

-- What a trim (below this seq) or a deletion (all: NULL) left to be removed off the commit path.
CREATE TABLE threadkeep.leftovers (
  thread_no bigint PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  below bigint
);

-- The index follows the log: per thread up to a seq, and all threads up to a stamp (mark 'index_stamp').
CREATE TABLE threadkeep.indexed (
  thread_no bigint PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  seq bigint NOT NULL
);
-- Analysed terms of a message, and three of its place (owner, tenant, thread) that no text can contain. No positions are
-- kept: ranking reads the candidates' text.
CREATE TABLE threadkeep.message_terms (
  thread_no bigint NOT NULL,
  seq bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  terms tsvector NOT NULL,
  PRIMARY KEY (thread_no, seq)
);
CREATE INDEX message_terms_by_term ON threadkeep.message_terms USING gin (terms) WITH (fastupdate = off);
