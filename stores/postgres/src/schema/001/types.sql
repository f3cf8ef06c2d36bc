-- A thread as it is shown.
CREATE TYPE threadkeep.shown_thread AS (
  id uuid, owner text, key text, body text, seq bigint, change bigint, first_seq bigint, message_count bigint,
  created_at bigint, updated_at bigint, expires_at bigint
);
