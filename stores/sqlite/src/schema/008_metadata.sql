-- The metadata of threads that filters compare: top-level strings of at most 2,048 bytes, booleans and integers. A string has the prefix
-- 's', so that it differs from the booleans 'true' and 'false'; an integer is stored as such. Triggers keep the table up to date. A body
-- that is damaged has no rows here.
CREATE TABLE thread_metadata (
  thread_no INTEGER NOT NULL,
  key TEXT NOT NULL,
  value NOT NULL,
  tenant_no INTEGER NOT NULL,
  owner_no INTEGER NOT NULL,
  PRIMARY KEY (thread_no, key)
) WITHOUT ROWID;

CREATE VIEW thread_metadata_of_bodies AS
  SELECT t.no AS thread_no, m.key AS key,
    CASE m.type WHEN 'text' THEN 's' || m.atom WHEN 'integer' THEN m.atom ELSE m.type END AS value,
    t.tenant_no AS tenant_no, t.owner_no AS owner_no
  FROM threads t, json_each(CASE WHEN json_valid(substr(t.body, 2)) THEN substr(t.body, 2) ELSE '{}' END, '$.metadata') m
  WHERE m.type IN ('true', 'false')
    OR (m.type = 'text' AND length(CAST(m.atom AS BLOB)) <= 2048)
    OR (m.type = 'integer' AND typeof(m.atom) = 'integer');

INSERT OR REPLACE INTO thread_metadata (thread_no, key, value, tenant_no, owner_no)
  SELECT thread_no, key, value, tenant_no, owner_no FROM thread_metadata_of_bodies;
CREATE INDEX thread_metadata_by_value ON thread_metadata (tenant_no, key, value, owner_no, thread_no);

CREATE TRIGGER thread_metadata_insert AFTER INSERT ON threads WHEN instr(new.body, '"metadata":{') > 0 BEGIN
  INSERT OR REPLACE INTO thread_metadata (thread_no, key, value, tenant_no, owner_no)
    SELECT thread_no, key, value, tenant_no, owner_no FROM thread_metadata_of_bodies WHERE thread_no = new.no;
END;
-- The state of an agent is in the body, too, and changes more often than the metadata.
CREATE TRIGGER thread_metadata_update AFTER UPDATE OF body ON threads
WHEN (instr(old.body, '"metadata":{') > 0 OR instr(new.body, '"metadata":{') > 0)
  AND CASE WHEN json_valid(substr(old.body, 2)) AND json_valid(substr(new.body, 2))
    THEN json_extract(substr(old.body, 2), '$.metadata') IS NOT json_extract(substr(new.body, 2), '$.metadata')
    ELSE true END
BEGIN
  DELETE FROM thread_metadata WHERE thread_no = new.no;
  INSERT OR REPLACE INTO thread_metadata (thread_no, key, value, tenant_no, owner_no)
    SELECT thread_no, key, value, tenant_no, owner_no FROM thread_metadata_of_bodies WHERE thread_no = new.no;
END;
CREATE TRIGGER thread_metadata_delete AFTER DELETE ON threads BEGIN
  DELETE FROM thread_metadata WHERE thread_no = old.no;
END;
