-- Hints go over a channel whose name nobody knows but the server's role: whoever may connect to a database may listen on
-- any channel of it, and notify on any, whatever rights it has.
CREATE TABLE threadkeep.channels (
  name text COLLATE "C" PRIMARY KEY
);
INSERT INTO threadkeep.channels (name) VALUES ('threadkeep_' || replace(gen_random_uuid()::text, '-', ''));
ALTER TABLE threadkeep.channels ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reading ON threadkeep.channels FOR SELECT TO threadkeep_server USING (true);
GRANT SELECT ON threadkeep.channels TO threadkeep_server;
