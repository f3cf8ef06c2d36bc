-- What row security stands on: the scope of this transaction; NULL or '' where none was set, which no row has.
CREATE FUNCTION threadkeep.tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT current_setting('threadkeep.tenant', true) $$;
CREATE FUNCTION threadkeep.caller() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT current_setting('threadkeep.caller', true) $$;
