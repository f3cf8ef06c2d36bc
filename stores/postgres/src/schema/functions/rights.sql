-- Only the server's role may execute the functions. Runs in the transaction that creates them.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA threadkeep FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA threadkeep TO threadkeep_server;
