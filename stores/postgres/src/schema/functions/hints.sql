-- Returns the channel of notifications. A listener holds a shared lock as long as its connection is open, by which senders detect
-- that there are no listeners. An unneeded notification would cost about as much as a commit.
CREATE OR REPLACE FUNCTION threadkeep.channel() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM threadkeep.enter('', 'keeper');
  PERFORM pg_advisory_lock_shared(127991827922946);
  RETURN (SELECT name FROM threadkeep.channels);
END $$;

-- Sends notifications and returns whether there are listeners. A new listener waits for this transaction; the changes that it
-- announces were committed before, so the listener reads them when it starts.
CREATE OR REPLACE FUNCTION threadkeep.tell(p_payloads text[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM threadkeep.enter('', 'keeper');
  IF pg_try_advisory_xact_lock(127991827922946) THEN RETURN false; END IF;
  -- Notifications may be lost if the server crashes, so the commit does not wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_notify(c.name, p.payload) FROM threadkeep.channels c, unnest(p_payloads) AS p (payload);
  RETURN true;
END $$;
