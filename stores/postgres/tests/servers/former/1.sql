-- Every key begins with the thread (by its number) or with the tenant and its owner; nothing is unique across threads but
-- a thread's id in its tenant and its key with its owner. Text is compared byte by byte, so all of it is COLLATE "C".
-- Instants are microseconds since 1970 UTC. What people said stands in `body` and `value`, as opaque text.

-- Named numbers: what is added to a transaction's id to make a stamp, how far the index came, what is forgotten.
CREATE TABLE threadkeep.marks (
  name text COLLATE "C" PRIMARY KEY,
  value bigint NOT NULL
);
INSERT INTO threadkeep.marks (name, value) VALUES ('stamp_offset', 0), ('index_stamp', 0), ('forgotten_stamp', -1);

-- Tenants (owner '') and users. The number stands for the owner in the index of words; the version is the last that a
-- document of the owner got.
CREATE TABLE threadkeep.owners (
  no bigint GENERATED ALWAYS AS IDENTITY,
  tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
  owner text COLLATE "C" NOT NULL,
  document_version bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, owner)
);

-- A number is never given again, so leftovers of a deleted thread can wait for the sweep. No indexed column changes with
-- a commit, so the row's new version stays in its page.
CREATE TABLE threadkeep.threads (
  no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
  owner text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  seq bigint NOT NULL DEFAULT 0,
  change bigint NOT NULL DEFAULT 0,
  first_seq bigint NOT NULL DEFAULT 1,
  log_from bigint NOT NULL DEFAULT 0,       -- changes up to this one are no longer in the log
  message_count bigint NOT NULL DEFAULT 0,
  restoring boolean NOT NULL DEFAULT false, -- while a restoration is not complete
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  expires_at bigint,
  key text COLLATE "C",
  body text COLLATE "C" NOT NULL,
  UNIQUE (tenant, id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX threads_by_key ON threadkeep.threads (tenant, owner, key) WHERE key IS NOT NULL;
CREATE INDEX threads_by_owner ON threadkeep.threads (tenant, owner, no);
CREATE INDEX threads_by_tenant ON threadkeep.threads (tenant, no);
CREATE INDEX threads_by_expiry ON threadkeep.threads (expires_at) WHERE expires_at IS NOT NULL;

-- When each thread last changed, as the id of the transaction that did it. Beside the threads, not in them: this is the one
-- indexed thing that every commit changes.
CREATE TABLE threadkeep.stamps (
  thread_no bigint PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  stamp bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX stamps_by_owner ON threadkeep.stamps (tenant, owner, stamp, thread_no);
CREATE INDEX stamps_by_tenant ON threadkeep.stamps (tenant, stamp, thread_no);
CREATE INDEX stamps_by_stamp ON threadkeep.stamps (stamp);

-- A tombstone has no role and no body; its instant is that of the erasure.
CREATE TABLE threadkeep.messages (
  thread_no bigint NOT NULL,
  seq bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  role smallint,
  revision integer NOT NULL,
  created_at bigint NOT NULL,
  external_id text COLLATE "C",
  body text COLLATE "C",
  PRIMARY KEY (thread_no, seq)
);
CREATE UNIQUE INDEX messages_by_id ON threadkeep.messages (thread_no, id);
CREATE UNIQUE INDEX messages_by_external_id ON threadkeep.messages (thread_no, external_id)
  WHERE external_id IS NOT NULL;

-- The change log and the idempotency records at once.
CREATE TABLE threadkeep.commits (
  thread_no bigint NOT NULL,
  change bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  key bytea NOT NULL,
  fingerprint bigint NOT NULL,
  first_seq bigint NOT NULL,
  count bigint NOT NULL,
  effects text COLLATE "C",
  PRIMARY KEY (thread_no, change)
);
CREATE INDEX commits_by_key ON threadkeep.commits (thread_no, key);
-- Rows come in about in the order of their instants, so that a few bytes for each range of pages find the old ones.
CREATE INDEX commits_by_instant ON threadkeep.commits USING brin (at);

CREATE TABLE threadkeep.thread_documents (
  thread_no bigint NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  expires_at bigint,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (thread_no, namespace, key)
);
CREATE INDEX thread_documents_by_expiry ON threadkeep.thread_documents (expires_at) WHERE expires_at IS NOT NULL;

-- Of users and of tenants (owner '').
CREATE TABLE threadkeep.documents (
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  namespace text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  expires_at bigint,
  value text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, owner, namespace, key)
);
CREATE INDEX documents_by_expiry ON threadkeep.documents (expires_at) WHERE expires_at IS NOT NULL;

-- Deleted ids, so that they do not come back within the window.
CREATE TABLE threadkeep.deleted_threads (
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  stamp bigint NOT NULL,
  deleted_at bigint NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX deleted_threads_by_stamp ON threadkeep.deleted_threads (tenant, stamp);
CREATE INDEX deleted_threads_by_instant ON threadkeep.deleted_threads (deleted_at);

-- What a trim (below this seq) or a deletion (all: NULL) left to be removed off the commit path.
CREATE TABLE threadkeep.leftovers (
  thread_no bigint PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  below bigint
);

-- The index follows the log: per thread up to a seq, and all threads up to a stamp (mark 'index_stamp').
CREATE TABLE threadkeep.indexed (
  thread_no bigint PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  seq bigint NOT NULL
);
-- Analysed terms of a message, and three of its place (owner, tenant, thread) that no text can contain. No positions are
-- kept: ranking reads the candidates' text.
CREATE TABLE threadkeep.message_terms (
  thread_no bigint NOT NULL,
  seq bigint NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  terms tsvector NOT NULL,
  PRIMARY KEY (thread_no, seq)
);
CREATE INDEX message_terms_by_term ON threadkeep.message_terms USING gin (terms) WITH (fastupdate = off);
-- Begins every transaction of the store: from here on it is the server's role, in one scope, until it ends. A caller is
-- 'user/NAME', 'tenant' (all of the tenant) or 'keeper' (maintenance, all tenants).
CREATE FUNCTION threadkeep.enter(p_tenant text, p_caller text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_set text;
BEGIN
  -- Assignments, as they are evaluated without running a query.
  v_set := set_config('role', 'threadkeep_server', true);
  v_set := set_config('threadkeep.tenant', p_tenant, true);
  v_set := set_config('threadkeep.caller', p_caller, true);
  -- Our own connections begin with the rest; behind a pooler it is set for each transaction.
  IF current_setting('search_path') <> 'threadkeep, pg_catalog' OR current_setting('enable_seqscan') <> 'off'
      OR current_setting('plan_cache_mode') <> 'force_generic_plan' OR current_setting('jit') <> 'off'
      OR current_setting('lock_timeout') <> '10s' THEN
    PERFORM set_config('search_path', 'threadkeep, pg_catalog', true),
            -- A plan that was made while a table was small must not read it whole when it is large.
            set_config('enable_seqscan', 'off', true),
            -- Our statements are written for one plan whatever the values; making plans anew costs more than running them.
            set_config('plan_cache_mode', 'force_generic_plan', true),
            -- Where a plan without one is not to be had, its cost seems so high that PostgreSQL would compile it.
            set_config('jit', 'off', true),
            set_config('lock_timeout', '10s', true);
  END IF;
  RETURN p_caller;
END $$;

-- The scope of this transaction; NULL or '' where none was set, which no row has.
CREATE FUNCTION threadkeep.tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT current_setting('threadkeep.tenant', true) $$;
CREATE FUNCTION threadkeep.caller() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS
  $$ SELECT current_setting('threadkeep.caller', true) $$;

-- What this transaction's changes are stamped with: its id, above all stamps from before the data moved to this server.
-- PL/pgSQL, as the plan of a function in SQL is made anew with every statement that calls it.
CREATE FUNCTION threadkeep.stamp() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN pg_current_xact_id()::text::bigint + (SELECT value FROM threadkeep.marks WHERE name = 'stamp_offset');
END $$;

-- Whether what carries a stamp had happened when a snapshot was taken.
CREATE FUNCTION threadkeep.is_before(p_stamp bigint, p_snapshot pg_snapshot) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT p_stamp <= o.value OR pg_visible_in_snapshot((p_stamp - o.value)::text::xid8, p_snapshot)
  FROM threadkeep.marks o WHERE o.name = 'stamp_offset'
$$;

-- Where the data stands, and in which of its pasts: another server, database or timeline is another past.
CREATE FUNCTION threadkeep.home() RETURNS text LANGUAGE sql AS $$
  SELECT md5(concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END))
$$;
-- Changes one thread: every check first, then every write. `outcome` is 'done', 'replayed' or what stood in the way;
-- 'words' asks for the call to be made again with new words made from `body`, 'locked' for it to be made alone: without
-- `p_waits` a thread that another transaction holds is not waited for.
CREATE FUNCTION threadkeep.commit(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint, p_window bigint, p_key bytea, p_fingerprint bigint,
  p_append_only boolean, p_empty boolean, p_expected_seq bigint, p_expected_change bigint,
  p_require_namespaces text[], p_require_keys text[], p_require_versions bigint[],
  p_ids uuid[], p_roles smallint[], p_instants bigint[], p_external_ids text[], p_bodies text[],
  p_replace_ids uuid[], p_replace_roles smallint[], p_replace_bodies text[], p_replace_terms text[],
  p_erase_ids uuid[], p_trim_below bigint,
  p_put_namespaces text[], p_put_keys text[], p_put_names text[], p_put_values text[], p_put_expiries bigint[],
  p_delete_namespaces text[], p_delete_keys text[], p_delete_names text[],
  p_patched boolean, p_patches_words boolean, p_old_body text, p_new_body text,
  p_patches_expiry boolean, p_expires_at bigint, p_waits boolean, p_deferred boolean,
  OUT outcome text, OUT change bigint, OUT first_seq bigint, OUT count bigint,
  OUT place integer, OUT actual bigint, OUT owner text, OUT body text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
  r record;
  v_seq bigint;
  v_version bigint;
  v_expiry bigint;
  v_stale bigint[] := '{}';
  v_replaced bigint[] := '{}';
  v_erased bigint[] := '{}';
  v_effects text[] := '{}';
  v_indexed bigint;
  v_first bigint;
  v_removed bigint := 0;
  v_set text;
  v_stamp bigint;
  v_count integer := cardinality(p_ids);
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  IF p_deferred THEN v_set := set_config('synchronous_commit', 'off', true); END IF;
  IF p_waits THEN
    SELECT no, owner, seq, change, first_seq INTO t FROM threads
      WHERE tenant = p_tenant AND id = p_thread AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now)
      FOR NO KEY UPDATE;
  ELSE
    SELECT no, owner, seq, change, first_seq INTO t FROM threads
      WHERE tenant = p_tenant AND id = p_thread AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now)
      FOR NO KEY UPDATE SKIP LOCKED;
  END IF;
  IF NOT FOUND THEN
    PERFORM 1 FROM threads WHERE NOT p_waits AND tenant = p_tenant AND id = p_thread;
    outcome := CASE WHEN FOUND THEN 'locked' ELSE 'thread' END;
    RETURN;
  END IF;
  owner := t.owner;
  IF NOT p_append_only AND t.owner = '' AND p_caller LIKE 'user/%' THEN outcome := 'denied'; RETURN; END IF;

  -- A statement of its own, after the lock: one that waited must see what it waited for.
  SELECT c.change, c.at, c.fingerprint, c.first_seq, c.count, x.clashes INTO r
    FROM (SELECT EXISTS (SELECT 1 FROM messages WHERE thread_no = t.no AND id = ANY (p_ids)) AS clashes) AS x
    LEFT JOIN LATERAL (SELECT change, at, fingerprint, first_seq, count FROM commits
      WHERE thread_no = t.no AND key = p_key ORDER BY change DESC LIMIT 1) AS c ON true;
  IF r.at + p_window > p_now THEN
    outcome := CASE WHEN r.fingerprint = p_fingerprint THEN 'replayed' ELSE 'key' END;
    change := r.change; first_seq := r.first_seq; count := r.count;
    RETURN;
  END IF;
  IF p_expected_seq <> t.seq THEN outcome := 'seq'; actual := t.seq; RETURN; END IF;
  IF p_expected_change <> t.change THEN outcome := 'change'; actual := t.change; RETURN; END IF;
  FOR i IN 1 .. cardinality(p_require_keys) LOOP
    SELECT version INTO v_version FROM thread_documents
      WHERE thread_no = t.no AND namespace = p_require_namespaces[i] AND key = p_require_keys[i]
      AND (expires_at IS NULL OR expires_at > p_now);
    -- An absent document is asked for as version -1.
    IF coalesce(v_version, -1) <> p_require_versions[i] THEN
      outcome := 'document'; place := i; actual := v_version; RETURN;
    END IF;
  END LOOP;
  first_seq := t.seq + 1;
  count := v_count;
  IF p_empty THEN outcome := 'done'; change := t.change; RETURN; END IF;

  -- Names are looked up one by one only where one is taken, or given by somebody else.
  IF r.clashes OR num_nonnulls(VARIADIC p_external_ids) > 0 THEN
    FOR i IN 1 .. v_count LOOP
      SELECT seq INTO v_seq FROM messages WHERE thread_no = t.no AND id = p_ids[i];
      IF v_seq >= t.first_seq THEN outcome := 'message_id'; place := i; actual := v_seq; RETURN; END IF;
      -- A trimmed message keeps its row until the sweep; its names are free again all the same.
      IF v_seq IS NOT NULL THEN v_stale := v_stale || v_seq; END IF;
      IF p_external_ids[i] IS NOT NULL THEN
        SELECT seq INTO v_seq FROM messages WHERE thread_no = t.no AND external_id = p_external_ids[i];
        IF v_seq >= t.first_seq THEN outcome := 'external_id'; actual := v_seq; RETURN; END IF;
        IF v_seq IS NOT NULL THEN v_stale := v_stale || v_seq; END IF;
      END IF;
    END LOOP;
  END IF;
  FOR i IN 1 .. cardinality(p_replace_ids) LOOP
    SELECT seq INTO v_seq FROM messages
      WHERE thread_no = t.no AND id = p_replace_ids[i] AND body IS NOT NULL AND seq >= t.first_seq;
    IF NOT FOUND THEN outcome := 'message'; RETURN; END IF;
    v_replaced := v_replaced || v_seq;
  END LOOP;
  FOR i IN 1 .. cardinality(p_erase_ids) LOOP
    SELECT seq INTO v_seq FROM messages
      WHERE thread_no = t.no AND id = p_erase_ids[i] AND body IS NOT NULL AND seq >= t.first_seq;
    IF NOT FOUND THEN outcome := 'message'; RETURN; END IF;
    v_erased := v_erased || v_seq;
  END LOOP;
  IF p_trim_below > t.seq + v_count + 1 THEN outcome := 'trim'; RETURN; END IF;
  IF p_patches_words THEN
    SELECT body INTO body FROM threads WHERE no = t.no;
    IF p_old_body IS DISTINCT FROM body THEN outcome := 'words'; RETURN; END IF;
  END IF;

  change := t.change + 1;
  v_first := t.first_seq;
  IF cardinality(v_stale) > 0 THEN DELETE FROM messages WHERE thread_no = t.no AND seq = ANY (v_stale); END IF;
  IF cardinality(v_replaced) + cardinality(v_erased) > 0 THEN
    SELECT seq INTO v_indexed FROM indexed WHERE thread_no = t.no;
  END IF;
  FOR i IN 1 .. cardinality(v_replaced) LOOP
    UPDATE messages SET body = p_replace_bodies[i], role = p_replace_roles[i], revision = revision + 1
      WHERE thread_no = t.no AND seq = v_replaced[i];
    IF v_replaced[i] <= v_indexed THEN
      UPDATE message_terms SET terms = threadkeep.terms(t.no, p_tenant, t.owner, p_replace_terms[i])
        WHERE thread_no = t.no AND seq = v_replaced[i];
    END IF;
    v_effects := v_effects || format('{"replaced":{"seq":%s,"id":"%s"}}', v_replaced[i], p_replace_ids[i]);
  END LOOP;
  FOR i IN 1 .. cardinality(v_erased) LOOP
    UPDATE messages SET body = NULL, role = NULL, external_id = NULL, revision = 0, created_at = p_now
      WHERE thread_no = t.no AND seq = v_erased[i];
    DELETE FROM message_terms WHERE thread_no = t.no AND seq = v_erased[i];
    v_effects := v_effects || format('{"erased":{"seq":%s,"id":"%s"}}', v_erased[i], p_erase_ids[i]);
  END LOOP;
  v_removed := cardinality(v_erased);
  IF p_trim_below > v_first THEN
    -- The lower bound is named, or the rows that wait for the sweep would be read as well.
    SELECT v_removed + count(*) INTO v_removed FROM messages
      WHERE thread_no = t.no AND seq >= v_first AND seq < p_trim_below AND body IS NOT NULL;
    -- What this commit appends and trims at once is not there yet.
    v_removed := v_removed + greatest(p_trim_below - t.seq - 1, 0);
    v_first := p_trim_below;
    INSERT INTO leftovers AS l (thread_no, tenant, owner, below) VALUES (t.no, p_tenant, t.owner, v_first)
      ON CONFLICT (thread_no) DO UPDATE SET below = excluded.below;
    v_effects := v_effects || format('{"trimmed":{"first_seq":%s}}', v_first);
  END IF;
  FOR i IN 1 .. cardinality(p_put_keys) LOOP
    INSERT INTO thread_documents AS d (thread_no, namespace, key, tenant, owner, version, expires_at, value)
      VALUES (t.no, p_put_namespaces[i], p_put_keys[i], p_tenant, t.owner, change, p_put_expiries[i], p_put_values[i])
      ON CONFLICT (thread_no, namespace, key)
      DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at, value = excluded.value;
    v_effects := v_effects || format('{"document_put":{"name":%s,"version":%s}}', p_put_names[i], t.change + 1);
  END LOOP;
  FOR i IN 1 .. cardinality(p_delete_keys) LOOP
    DELETE FROM thread_documents
      WHERE thread_no = t.no AND namespace = p_delete_namespaces[i] AND key = p_delete_keys[i]
      RETURNING expires_at INTO v_expiry;
    IF FOUND AND (v_expiry IS NULL OR v_expiry > p_now) THEN
      v_effects := v_effects || format('{"document_deleted":{"name":%s}}', p_delete_names[i]);
    END IF;
  END LOOP;
  IF p_patched THEN v_effects := v_effects || '"patched"'::text; END IF;
  v_stamp := threadkeep.stamp();
  -- One statement, as each costs more to begin than to carry out.
  WITH appended AS (
    INSERT INTO messages (thread_no, seq, tenant, owner, id, role, revision, created_at, external_id, body)
      SELECT t.no, t.seq + n.place, p_tenant, t.owner, n.id, n.role, 0, n.instant, n.external_id, n.body
      FROM unnest(p_ids, p_roles, p_instants, p_external_ids, p_bodies)
        WITH ORDINALITY AS n (id, role, instant, external_id, body, place)
  ), logged AS (
    INSERT INTO commits (thread_no, change, tenant, owner, at, key, fingerprint, first_seq, count, effects)
      VALUES (t.no, t.change + 1, p_tenant, t.owner, p_now, p_key, p_fingerprint, t.seq + 1, v_count,
        -- Appending is told by the columns; most commits do nothing else.
        CASE WHEN cardinality(v_effects) > 0 THEN '[' || array_to_string(v_effects, ',') || ']' END)
  ), stamped AS (
    UPDATE stamps SET stamp = v_stamp WHERE thread_no = t.no
  )
  UPDATE threads SET seq = t.seq + v_count, change = t.change + 1, first_seq = v_first,
      message_count = message_count + v_count - v_removed, updated_at = greatest(updated_at, p_now)
    WHERE no = t.no;
  IF p_patches_words THEN UPDATE threads SET body = p_new_body WHERE no = t.no; END IF;
  IF p_patches_expiry THEN UPDATE threads SET expires_at = p_expires_at WHERE no = t.no; END IF;
  outcome := 'done';
  body := NULL;
END $$;
-- A thread as it is shown.
CREATE TYPE threadkeep.shown_thread AS (
  id uuid, owner text, key text, body text, seq bigint, change bigint, first_seq bigint, message_count bigint,
  created_at bigint, updated_at bigint, expires_at bigint
);

CREATE FUNCTION threadkeep.show_thread(p_no bigint) RETURNS threadkeep.shown_thread LANGUAGE sql AS $$
  SELECT id, owner, key, body, seq, change, first_seq, message_count, created_at, updated_at, expires_at
  FROM threadkeep.threads WHERE no = p_no
$$;

-- Remembers that somebody owns something; the tenant comes before its users.
CREATE FUNCTION threadkeep.remember_owner(p_tenant text, p_owner text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO threadkeep.owners (tenant, owner) SELECT p_tenant, o.owner FROM unnest(ARRAY['', p_owner]) AS o (owner)
    WHERE NOT EXISTS (SELECT 1 FROM threadkeep.owners k WHERE k.tenant = p_tenant AND k.owner = o.owner)
    GROUP BY o.owner ORDER BY o.owner
    ON CONFLICT (tenant, owner) DO NOTHING
$$;

-- Takes a thread out of sight with all that is small about it; its messages and log are left to the sweep.
CREATE FUNCTION threadkeep.remove_thread(p_no bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO threadkeep.leftovers (thread_no, tenant, owner, below)
    SELECT no, tenant, owner, NULL FROM threadkeep.threads WHERE no = p_no
    ON CONFLICT (thread_no) DO UPDATE SET below = NULL;
  DELETE FROM threadkeep.thread_documents WHERE thread_no = p_no;
  DELETE FROM threadkeep.stamps WHERE thread_no = p_no;
  DELETE FROM threadkeep.threads WHERE no = p_no;
END $$;

-- Finds the thread that is named, or makes it. `outcome` is 'found', 'created', 'thread' or 'conflict'.
CREATE FUNCTION threadkeep.open_thread(
  p_tenant text, p_caller text, p_owner text, p_id uuid, p_key text, p_body text, p_created_at bigint,
  p_expires_at bigint, p_now bigint, p_window bigint, OUT outcome text, OUT shown threadkeep.shown_thread
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
  v_no bigint;
BEGIN
  FOR attempt IN 1 .. 100 LOOP
    PERFORM threadkeep.enter(p_tenant, p_caller);
    IF p_key IS NOT NULL THEN
      SELECT no INTO v_no FROM threads WHERE tenant = p_tenant AND owner = p_owner AND key = p_key AND NOT restoring
        AND (expires_at IS NULL OR expires_at > p_now);
      IF FOUND THEN outcome := 'found'; shown := threadkeep.show_thread(v_no); RETURN; END IF;
    END IF;
    -- An id is taken whoever took it, and what is over makes room whoever owned it: for this much, the whole tenant is
    -- looked at. What is answered tells no more than that an id is taken.
    PERFORM threadkeep.enter(p_tenant, 'tenant');
    SELECT no, owner, restoring INTO t FROM threads
      WHERE tenant = p_tenant AND id = p_id AND (restoring OR expires_at IS NULL OR expires_at > p_now);
    IF FOUND THEN
      outcome := CASE
        WHEN t.restoring OR NOT (p_caller = 'tenant' OR t.owner = '' OR p_caller = 'user/' || t.owner) THEN 'thread'
        WHEN p_key IS NOT NULL THEN 'conflict'
        ELSE 'found' END;
      IF outcome = 'found' THEN shown := threadkeep.show_thread(t.no); END IF;
      RETURN;
    END IF;
    PERFORM 1 FROM deleted_threads WHERE tenant = p_tenant AND id = p_id AND deleted_at + p_window > p_now;
    IF FOUND THEN outcome := 'thread'; RETURN; END IF;
    PERFORM threadkeep.remove_thread(no) FROM threads WHERE tenant = p_tenant AND id = p_id AND expires_at <= p_now;
    PERFORM threadkeep.remove_thread(no) FROM threads
      WHERE tenant = p_tenant AND owner = p_owner AND key = p_key AND expires_at <= p_now;
    -- The id may have been deleted longer ago than the window.
    DELETE FROM deleted_threads WHERE tenant = p_tenant AND id = p_id;

    PERFORM threadkeep.enter(p_tenant, p_caller);
    PERFORM threadkeep.remember_owner(p_tenant, p_owner);
    INSERT INTO threads (tenant, owner, id, created_at, updated_at, expires_at, key, body)
      VALUES (p_tenant, p_owner, p_id, p_created_at, p_now, p_expires_at, p_key, p_body)
      ON CONFLICT DO NOTHING RETURNING no INTO v_no;
    IF FOUND THEN
      INSERT INTO stamps (thread_no, tenant, owner, stamp) VALUES (v_no, p_tenant, p_owner, threadkeep.stamp());
      outcome := 'created';
      shown := threadkeep.show_thread(v_no);
      RETURN;
    END IF;
    -- Somebody else came first: the next look sees them.
  END LOOP;
  outcome := 'thread';
END $$;

-- Deletes a thread. `outcome` is 'done', 'thread' or 'denied'.
CREATE FUNCTION threadkeep.delete_thread(
  p_tenant text, p_caller text, p_id uuid, p_now bigint, OUT outcome text, OUT owner text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
BEGIN
  PERFORM threadkeep.enter(p_tenant, p_caller);
  SELECT no, owner INTO t FROM threads
    WHERE tenant = p_tenant AND id = p_id AND NOT restoring AND (expires_at IS NULL OR expires_at > p_now) FOR UPDATE;
  IF NOT FOUND THEN outcome := 'thread'; RETURN; END IF;
  owner := t.owner;
  IF t.owner = '' AND p_caller LIKE 'user/%' THEN outcome := 'denied'; RETURN; END IF;
  INSERT INTO deleted_threads (tenant, owner, id, stamp, deleted_at)
    VALUES (p_tenant, t.owner, p_id, threadkeep.stamp(), p_now)
    ON CONFLICT (tenant, id)
    DO UPDATE SET owner = excluded.owner, stamp = excluded.stamp, deleted_at = excluded.deleted_at;
  PERFORM threadkeep.remove_thread(t.no);
  outcome := 'done';
END $$;

-- Writes or deletes a document of a user or the tenant. `outcome` is 'done' or 'document'.
CREATE FUNCTION threadkeep.write_document(
  p_tenant text, p_caller text, p_owner text, p_namespace text, p_key text, p_expected bigint, p_value text,
  p_expires_at bigint, p_now bigint, OUT outcome text, OUT version bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_last bigint;
BEGIN
  PERFORM threadkeep.enter(p_tenant, p_caller);
  FOR attempt IN 1 .. 2 LOOP
    -- The owner's row is what writers of its documents wait for.
    SELECT document_version INTO v_last FROM owners WHERE tenant = p_tenant AND owner = p_owner FOR NO KEY UPDATE;
    EXIT WHEN FOUND OR p_value IS NULL OR p_expected > 0;
    PERFORM threadkeep.remember_owner(p_tenant, p_owner);
  END LOOP;
  SELECT version INTO version FROM documents
    WHERE tenant = p_tenant AND owner = p_owner AND namespace = p_namespace AND key = p_key
    AND (expires_at IS NULL OR expires_at > p_now);
  IF p_expected <> coalesce(version, 0) THEN outcome := 'document'; RETURN; END IF;
  outcome := 'done';
  IF p_value IS NULL THEN
    DELETE FROM documents WHERE tenant = p_tenant AND owner = p_owner AND namespace = p_namespace AND key = p_key;
    version := 0;
    RETURN;
  END IF;
  version := v_last + 1;
  UPDATE owners SET document_version = v_last + 1 WHERE tenant = p_tenant AND owner = p_owner;
  INSERT INTO documents AS d (tenant, owner, namespace, key, version, expires_at, value)
    VALUES (p_tenant, p_owner, p_namespace, p_key, v_last + 1, p_expires_at, p_value)
    ON CONFLICT (tenant, owner, namespace, key)
    DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at, value = excluded.value;
END $$;
-- Reads a page of a thread's messages in the order of reading. Every row also tells where the thread stands; a thread with no
-- such message answers one row of it alone, and no row at all: there is no such thread. Asked for one message more than the
-- page holds; the text of what is beyond the page's bytes is left out. STABLE, so that all of it is one snapshot.
CREATE FUNCTION threadkeep.list_messages(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint, p_first bigint, p_last bigint,
  p_after_instant bigint, p_before_instant bigint, p_roles integer, p_by_instant boolean, p_newest boolean,
  p_limit integer, p_bytes bigint
) RETURNS TABLE (thread_seq bigint, change bigint, first_seq bigint,
  seq bigint, id uuid, external_id text, revision integer, created_at bigint, body text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  v_set text;
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  IF p_by_instant AND p_newest THEN
    RETURN QUERY SELECT t.seq, t.change, t.first_seq, m.seq, m.id, m.external_id, m.revision, m.created_at,
        CASE WHEN sum(octet_length(m.body)) OVER w - octet_length(m.body) < p_bytes THEN m.body END
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM threadkeep.messages m
        WHERE m.thread_no = t.no AND m.seq BETWEEN greatest(p_first, t.first_seq) AND least(p_last, t.seq)
        AND m.created_at > p_after_instant AND m.created_at < p_before_instant
        AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) AND m.body IS NOT NULL
        ORDER BY m.created_at DESC, m.seq DESC LIMIT p_limit
      ) AS m ON true
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now)
      WINDOW w AS (ORDER BY m.created_at DESC, m.seq DESC ROWS UNBOUNDED PRECEDING);
  ELSIF p_by_instant THEN
    RETURN QUERY SELECT t.seq, t.change, t.first_seq, m.seq, m.id, m.external_id, m.revision, m.created_at,
        CASE WHEN sum(octet_length(m.body)) OVER w - octet_length(m.body) < p_bytes THEN m.body END
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM threadkeep.messages m
        WHERE m.thread_no = t.no AND m.seq BETWEEN greatest(p_first, t.first_seq) AND least(p_last, t.seq)
        AND m.created_at > p_after_instant AND m.created_at < p_before_instant
        AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) AND m.body IS NOT NULL
        ORDER BY m.created_at, m.seq LIMIT p_limit
      ) AS m ON true
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now)
      WINDOW w AS (ORDER BY m.created_at, m.seq ROWS UNBOUNDED PRECEDING);
  ELSIF p_newest THEN
    RETURN QUERY SELECT t.seq, t.change, t.first_seq, m.seq, m.id, m.external_id, m.revision, m.created_at,
        CASE WHEN sum(octet_length(m.body)) OVER w - octet_length(m.body) < p_bytes THEN m.body END
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM threadkeep.messages m
        WHERE m.thread_no = t.no AND m.seq BETWEEN greatest(p_first, t.first_seq) AND least(p_last, t.seq)
        AND m.created_at > p_after_instant AND m.created_at < p_before_instant
        AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) AND m.body IS NOT NULL
        ORDER BY m.seq DESC LIMIT p_limit
      ) AS m ON true
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now)
      WINDOW w AS (ORDER BY m.seq DESC ROWS UNBOUNDED PRECEDING);
  ELSE
    RETURN QUERY SELECT t.seq, t.change, t.first_seq, m.seq, m.id, m.external_id, m.revision, m.created_at,
        CASE WHEN sum(octet_length(m.body)) OVER w - octet_length(m.body) < p_bytes THEN m.body END
      FROM threadkeep.threads t LEFT JOIN LATERAL (
        SELECT m.seq, m.id, m.external_id, m.revision, m.created_at, m.body FROM threadkeep.messages m
        WHERE m.thread_no = t.no AND m.seq BETWEEN greatest(p_first, t.first_seq) AND least(p_last, t.seq)
        AND m.created_at > p_after_instant AND m.created_at < p_before_instant
        AND (m.role IS NULL OR (1 << m.role) & p_roles > 0) AND m.body IS NOT NULL
        ORDER BY m.seq LIMIT p_limit
      ) AS m ON true
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now)
      WINDOW w AS (ORDER BY m.seq ROWS UNBOUNDED PRECEDING);
  END IF;
END $$;
-- The tokens of a message's place; private-use characters are never part of an analysed term.
-- PL/pgSQL, as the plan of a function in SQL that reads a table is made anew with every statement that calls it.
CREATE FUNCTION threadkeep.owner_token(p_tenant text, p_owner text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT (CASE p_owner WHEN '' THEN U&'\E001' ELSE U&'\E000' END) || no
    FROM threadkeep.owners WHERE tenant = p_tenant AND owner = p_owner);
END $$;
CREATE FUNCTION threadkeep.thread_token(p_no bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
  $$ SELECT U&'\E002' || p_no $$;

-- What is indexed of a message: its terms (with blanks between) and the tokens of its place.
CREATE FUNCTION threadkeep.terms(p_no bigint, p_tenant text, p_owner text, p_terms text) RETURNS tsvector
LANGUAGE sql STABLE AS $$
  SELECT array_to_tsvector(ARRAY(
    SELECT DISTINCT term FROM unnest(string_to_array(p_terms, ' ') || threadkeep.owner_token(p_tenant, '')
      || threadkeep.owner_token(p_tenant, p_owner) || threadkeep.thread_token(p_no)) AS u (term)
    WHERE term <> ''))
$$;

-- Puts a stretch of a thread's messages into the index, if the thread is still as it was when they were read: there,
-- indexed just so far, and nothing replaced or erased since (appending does no harm).
CREATE FUNCTION threadkeep.index_messages(
  p_no bigint, p_change bigint, p_indexed bigint, p_upto bigint, p_seqs bigint[], p_terms text[]
) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  t record;
BEGIN
  SELECT tenant, owner INTO t FROM threadkeep.threads WHERE no = p_no FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM 1 FROM threadkeep.commits WHERE thread_no = p_no AND change > p_change AND effects IS NOT NULL;
  IF FOUND THEN RETURN false; END IF;
  IF p_indexed <> coalesce((SELECT seq FROM threadkeep.indexed WHERE thread_no = p_no), 0) THEN RETURN false; END IF;
  INSERT INTO threadkeep.message_terms (thread_no, seq, tenant, owner, terms)
    SELECT p_no, n.seq, t.tenant, t.owner, threadkeep.terms(p_no, t.tenant, t.owner, n.terms)
    FROM unnest(p_seqs, p_terms) AS n (seq, terms);
  INSERT INTO threadkeep.indexed AS i (thread_no, tenant, owner, seq) VALUES (p_no, t.tenant, t.owner, p_upto)
    ON CONFLICT (thread_no) DO UPDATE SET seq = excluded.seq;
  RETURN true;
END $$;

-- Messages within the scope of this transaction that hold a term, at most `p_limit` for each term, gathered by term (its
-- place among them) and thread. Runs as the tables' owner, for whom the index of words is not hidden behind row security:
-- behind it, PostgreSQL would not use the index. The scope is taken from the transaction all the same, as a token that
-- every match must hold; and what is found is joined with `threads`, under row security, by whoever calls.
CREATE FUNCTION threadkeep.matching(p_no bigint, p_terms text[], p_limit bigint)
RETURNS TABLE (place bigint, thread_no bigint, seqs bigint[])
-- Few threads are expected, so that each is looked up and not all of them are read.
LANGUAGE plpgsql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_tenant text := current_setting('threadkeep.tenant', true);
  v_caller text := current_setting('threadkeep.caller', true);
  v_place text;
BEGIN
  IF v_caller LIKE 'user/%' THEN
    v_place := threadkeep.owner_token(v_tenant, substr(v_caller, 6));
  ELSIF v_caller = 'tenant' THEN
    v_place := threadkeep.owner_token(v_tenant, '');
  END IF;
  -- One thread is named by its own token, and is the scope's or the tenant's shared one, or nothing.
  IF p_no IS NOT NULL THEN
    v_place := NULL;
    SELECT threadkeep.thread_token(t.no) INTO v_place FROM threadkeep.threads t
      WHERE t.no = p_no AND t.tenant = v_tenant
      AND (v_caller = 'tenant' OR t.owner = '' OR v_caller = 'user/' || t.owner);
  END IF;
  IF v_place IS NULL THEN RETURN; END IF;
  -- A term is quoted whole: nothing in it is an operator.
  RETURN QUERY SELECT w.place, m.thread_no, array_agg(m.seq) FROM unnest(p_terms) WITH ORDINALITY AS w (term, place)
    CROSS JOIN LATERAL (
      SELECT m.thread_no, m.seq FROM threadkeep.message_terms m
      WHERE m.terms @@ format('''%s'' & ''%s''', v_place,
        replace(replace(w.term, '\', '\\'), '''', ''''''))::tsquery LIMIT p_limit
    ) AS m WHERE w.term <> '' GROUP BY w.place, m.thread_no;
END $$;

-- Finds the messages that hold each term, gathered by term (its place among them) and thread. The last row is of no term: it
-- tells how many messages there are, and what the index has not reached yet. No row at all: nothing to search.
CREATE FUNCTION threadkeep.search(
  p_tenant text, p_caller text, p_thread uuid, p_terms text[], p_per_term bigint, p_now bigint
) RETURNS TABLE (place bigint, thread uuid, thread_no bigint, first_seq bigint, seqs bigint[],
  documents bigint, behind_threads uuid[], behind_seqs bigint[], missing bigint)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  v_set text;
  v_no bigint;
  v_owner text := CASE WHEN p_caller LIKE 'user/%' THEN substr(p_caller, 6) END;
  v_nos bigint[];
BEGIN
  v_set := threadkeep.enter(p_tenant, p_caller);
  IF p_thread IS NOT NULL THEN
    SELECT t.no, t.message_count INTO v_no, documents FROM threads t
      WHERE t.tenant = p_tenant AND t.id = p_thread AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now);
    IF NOT FOUND THEN RETURN; END IF;
  ELSIF v_owner IS NOT NULL THEN
    SELECT coalesce(sum(message_count), 0)::bigint INTO documents FROM
      (SELECT message_count FROM threads WHERE tenant = p_tenant AND owner = v_owner LIMIT 20000) AS counted;
  ELSE
    SELECT coalesce(sum(message_count), 0)::bigint INTO documents FROM
      (SELECT message_count FROM threads WHERE tenant = p_tenant LIMIT 20000) AS counted;
  END IF;
  RETURN QUERY SELECT m.place, t.id, t.no, t.first_seq, m.seqs, NULL::bigint, NULL::uuid[], NULL::bigint[], NULL::bigint
    FROM threadkeep.matching(v_no, p_terms, p_per_term) AS m JOIN threads t ON t.no = m.thread_no
    WHERE NOT t.restoring AND (t.expires_at IS NULL OR t.expires_at > p_now);
  -- Each by the index that leads to it.
  IF v_no IS NOT NULL THEN
    v_nos := ARRAY[v_no];
  ELSIF v_owner IS NOT NULL THEN
    v_nos := ARRAY(SELECT thread_no FROM stamps WHERE tenant = p_tenant AND owner = v_owner
      AND stamp >= (SELECT value FROM marks WHERE name = 'index_stamp'));
  ELSE
    v_nos := ARRAY(SELECT thread_no FROM stamps WHERE tenant = p_tenant
      AND stamp >= (SELECT value FROM marks WHERE name = 'index_stamp'));
  END IF;
  behind_threads := '{}';
  behind_seqs := '{}';
  missing := 0;
  IF cardinality(v_nos) > 0 THEN
    SELECT coalesce(array_agg(t.id), '{}'), coalesce(array_agg(coalesce(i.seq, 0)), '{}'),
        coalesce(sum(t.seq - coalesce(i.seq, 0)), 0)::bigint
      INTO behind_threads, behind_seqs, missing
      FROM threads t LEFT JOIN indexed i ON i.thread_no = t.no
      WHERE t.no = ANY (v_nos) AND t.seq > coalesce(i.seq, 0) AND t.seq >= t.first_seq AND NOT t.restoring
      AND (t.expires_at IS NULL OR t.expires_at > p_now);
  END IF;
  RETURN NEXT;
END $$;
-- The server's role: it owns nothing, cannot log in, and row security holds for it as for the tables' owner. Whoever
-- connects must be its member, and becomes it in every transaction (threadkeep.enter).
REVOKE ALL ON SCHEMA threadkeep FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA threadkeep FROM PUBLIC;
GRANT USAGE ON SCHEMA threadkeep TO threadkeep_server;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA threadkeep TO threadkeep_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA threadkeep TO threadkeep_server;

DO $$
DECLARE
  -- Settings are read for each row: to begin a statement that reads them once costs more than the few rows that most read.
  v_keeper CONSTANT text := 'threadkeep.caller() = ''keeper''';
  v_tenant CONSTANT text := 'tenant = threadkeep.tenant()';
  -- What the scope has in full, and what a user may also read and add to: the tenant's own, shared things.
  v_own CONSTANT text := '(threadkeep.caller() = ''tenant'' '
    || 'OR (owner <> '''' AND threadkeep.caller() = ''user/'' || owner))';
  v_shared CONSTANT text := '(owner = '''' AND threadkeep.caller() LIKE ''user/_%'')';
  v_full CONSTANT text := format('%s OR (%s AND %s)', v_keeper, v_tenant, v_own);
  v_reached CONSTANT text := format('%s OR (%s AND (%s OR %s))', v_keeper, v_tenant, v_own, v_shared);
  v_change text;
  v_remove text;
  v_add text;
  v_table text;
BEGIN
  FOREACH v_table IN ARRAY ARRAY['owners', 'threads', 'stamps', 'messages', 'commits', 'thread_documents', 'documents',
    'deleted_threads', 'leftovers', 'indexed', 'message_terms'] LOOP
    -- A user adds to a shared thread: messages, a log entry, and new positions in the thread's row. Of what is there
    -- already only what a trim has left for the sweep may go, as it stands in the way of its own names.
    v_change := CASE WHEN v_table IN ('threads', 'stamps') THEN v_reached ELSE v_full END;
    v_add := CASE WHEN v_table IN ('owners', 'threads', 'stamps', 'messages', 'commits') THEN v_reached ELSE v_full END;
    v_remove := v_full;
    IF v_table = 'messages' THEN
      v_remove := format('%s OR (%s AND %s AND seq < (SELECT t.first_seq FROM threadkeep.threads t WHERE t.no = thread_no))',
        v_full, v_tenant, v_shared);
    END IF;
    EXECUTE format('ALTER TABLE threadkeep.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', v_table);
    EXECUTE format('CREATE POLICY reading ON threadkeep.%I FOR SELECT TO threadkeep_server USING (%s)', v_table, v_reached);
    EXECUTE format('CREATE POLICY adding ON threadkeep.%I FOR INSERT TO threadkeep_server WITH CHECK (%s)', v_table, v_add);
    EXECUTE format('CREATE POLICY changing ON threadkeep.%I FOR UPDATE TO threadkeep_server USING (%s) WITH CHECK (%s)',
      v_table, v_change, v_change);
    EXECUTE format('CREATE POLICY removing ON threadkeep.%I FOR DELETE TO threadkeep_server USING (%s)', v_table, v_remove);
  END LOOP;
  ALTER TABLE threadkeep.marks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
  CREATE POLICY reading ON threadkeep.marks FOR SELECT TO threadkeep_server USING (true);
  EXECUTE format('CREATE POLICY changing ON threadkeep.marks TO threadkeep_server USING (%s)', v_keeper);
  -- For threadkeep.matching alone, which adds the scope by itself.
  FOREACH v_table IN ARRAY ARRAY['owners', 'threads', 'message_terms'] LOOP
    EXECUTE format('CREATE POLICY matching ON threadkeep.%I FOR SELECT TO CURRENT_USER USING (true)', v_table);
  END LOOP;
END $$;
