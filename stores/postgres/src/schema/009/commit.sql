-- What `threadkeep.commit` is given. Of a list there is one array for each column; an entry has the same place in all of them.
-- A type never changes, as instances of the former version go on calling with it: what a later version adds is a parameter with
-- a default, or another type.

-- A repetition within `repeatable` microseconds has the same key, and the same fingerprint of what was asked for.
CREATE TYPE threadkeep.idempotency AS (key bytea, fingerprint bigint, repeatable bigint);

-- What must hold of the thread. A position may be any if it is NULL; a document whose version is NULL must not be there. A tag is
-- not compared if either side has none.
CREATE TYPE threadkeep.conditions AS (
  seq bigint, change bigint, tag integer, namespaces text[], keys text[], versions bigint[], tags integer[]
);

CREATE TYPE threadkeep.new_messages AS (
  ids uuid[], roles smallint[], instants bigint[], external_ids text[], bodies text[], checksums integer[]
);

-- `terms` are what the index of words keeps of a body, with blanks between. The checksums are of messages of which `stays` is
-- what an earlier call answered.
CREATE TYPE threadkeep.replacements AS (
  ids uuid[], roles smallint[], bodies text[], terms text[], checksums integer[], stays text
);

CREATE TYPE threadkeep.new_documents AS (namespaces text[], keys text[], values text[], expiries bigint[]);
CREATE TYPE threadkeep.document_names AS (namespaces text[], keys text[]);

-- What changes in the thread's own row: its words, from `old_body` to `new_body`, and when it expires.
CREATE TYPE threadkeep.patch AS (
  changes_words boolean, old_body text, new_body text, changes_expiry boolean, expires_at bigint
);
