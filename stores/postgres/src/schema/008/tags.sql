-- The tag of a thread's last commit, and of the one at which a document was written; NULL from before. It is made of the commit's
-- key (the first 4 bytes of its SHA-256), so the change log needs no column for it.
ALTER TABLE threadkeep.threads ADD COLUMN tag integer;
ALTER TABLE threadkeep.thread_documents ADD COLUMN tag integer;
-- Those of users and tenants have none; the column is there so that both tables are read alike.
ALTER TABLE threadkeep.documents ADD COLUMN tag integer;

ALTER TYPE threadkeep.shown_thread ADD ATTRIBUTE tag integer;
CREATE OR REPLACE FUNCTION threadkeep.show_thread(p_no bigint) RETURNS threadkeep.shown_thread LANGUAGE sql AS $$
  SELECT id, owner, key, body, seq, change, first_seq, message_count, created_at, updated_at, expires_at, tag
  FROM threadkeep.threads WHERE no = p_no
$$;

