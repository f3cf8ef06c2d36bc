-- Hints go over a channel whose name nobody knows but the server's role: whoever may connect to a database may listen on
-- any channel of it, and notify on any, whatever rights it has.
CREATE TABLE threadkeep.channels (
  name text COLLATE "C" PRIMARY KEY
);
INSERT INTO threadkeep.channels (name) VALUES ('threadkeep_' || replace(gen_random_uuid()::text, '-', ''));
ALTER TABLE threadkeep.channels ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reading ON threadkeep.channels FOR SELECT TO threadkeep_server USING (true);
GRANT SELECT ON threadkeep.channels TO threadkeep_server;

CREATE FUNCTION threadkeep.channel() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM threadkeep.enter('', 'keeper');
  RETURN (SELECT name FROM threadkeep.channels);
END $$;

-- A hint may be lost with the server, so nobody waits for it to reach the disk.
CREATE FUNCTION threadkeep.tell(p_payloads text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM threadkeep.enter('', 'keeper');
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_notify(c.name, p.payload) FROM threadkeep.channels c, unnest(p_payloads) AS p (payload);
END $$;

REVOKE ALL ON FUNCTION threadkeep.channel(), threadkeep.tell(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION threadkeep.channel(), threadkeep.tell(text[]) TO threadkeep_server;
