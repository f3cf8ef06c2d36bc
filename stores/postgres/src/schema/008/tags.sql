-- The tag of a thread's last commit, and of the one at which a document was written; NULL from before. It is made of the commit's
-- key (the first 4 bytes of its SHA-256), so the change log needs no column for it.
ALTER TABLE threadkeep.threads ADD COLUMN tag integer;
ALTER TABLE threadkeep.thread_documents ADD COLUMN tag integer;
-- Those of users and tenants have none; the column is there so that both tables are read alike.
ALTER TABLE threadkeep.documents ADD COLUMN tag integer;

ALTER TYPE threadkeep.shown_thread ADD ATTRIBUTE tag integer;

-- Their answers have a tag from this version on, and a function cannot change the type of its answer.
DROP FUNCTION IF EXISTS threadkeep.commit( text, text, uuid, bigint, bigint, bytea, bigint, boolean, boolean, bigint, bigint, text[], text[], bigint[], uuid[], smallint[], bigint[], text[], text[], uuid[], smallint[], text[], text[], uuid[], bigint, text[], text[], text[], text[], bigint[], text[], text[], text[], boolean, boolean, text, text, boolean, bigint, boolean, boolean, integer[], text, integer[] );
DROP FUNCTION IF EXISTS threadkeep.list_messages(text, text, uuid, bigint, bigint, bigint, bigint, bigint, integer, boolean, boolean, integer, bigint);
DROP FUNCTION IF EXISTS threadkeep.list_changes(text, text, uuid, bigint, bigint, bigint);
DROP FUNCTION IF EXISTS threadkeep.list_followed(text[], text[], uuid[], bigint[], bigint[], bigint[], bigint, bigint);
DROP FUNCTION IF EXISTS threadkeep.write_derived(text, text, uuid, text, text, bigint, bigint, bigint, text, bigint);
