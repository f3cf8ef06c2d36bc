-- Whoever listens holds a lock for as long as its connection lives, so that whoever tells can see that nobody does. A hint for
-- nobody would cost about as much as a commit.
CREATE OR REPLACE FUNCTION threadkeep.channel() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM threadkeep.enter('', 'keeper');
  PERFORM pg_advisory_lock_shared(127991827922946);
  RETURN (SELECT name FROM threadkeep.channels);
END $$;

-- Says whether anybody listens. Who begins to listen at this moment waits for this transaction: what it tells of was committed
-- before, and is read by whoever listens from then on.
CREATE OR REPLACE FUNCTION threadkeep.tell(p_payloads text[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM threadkeep.enter('', 'keeper');
  IF pg_try_advisory_xact_lock(127991827922946) THEN RETURN false; END IF;
  -- A hint may be lost with the server, so nobody waits for it to reach the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_notify(c.name, p.payload) FROM threadkeep.channels c, unnest(p_payloads) AS p (payload);
  RETURN true;
END $$;
