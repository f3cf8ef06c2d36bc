-- Earlier signatures of functions, for instances of earlier versions that run concurrently with newer ones.

-- For schema 5 to 8; before 8 without the tags.
CREATE OR REPLACE FUNCTION threadkeep.commit(
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
  p_checksums integer[], p_replace_facts text, p_replace_checksums integer[],
  p_expected_tag integer DEFAULT NULL, p_require_tags integer[] DEFAULT NULL,
  OUT outcome text, OUT change bigint, OUT first_seq bigint, OUT count bigint,
  OUT place integer, OUT actual bigint, OUT owner text, OUT body text, OUT tag integer
) LANGUAGE sql AS $$
  SELECT * FROM threadkeep.commit(
    p_tenant, p_caller, p_thread, p_now,
    ROW(p_key, p_fingerprint, p_window)::threadkeep.idempotency,
    -- Version -1 means that the document must not exist.
    ROW(p_expected_seq, p_expected_change, p_expected_tag, p_require_namespaces, p_require_keys,
      array_replace(p_require_versions, -1, NULL), p_require_tags)::threadkeep.conditions,
    ROW(p_ids, p_roles, p_instants, p_external_ids, p_bodies, p_checksums)::threadkeep.new_messages,
    ROW(p_replace_ids, p_replace_roles, p_replace_bodies, p_replace_terms, p_replace_checksums, p_replace_facts)
      ::threadkeep.replacements,
    p_erase_ids, p_trim_below,
    ROW(p_put_namespaces, p_put_keys, p_put_values, p_put_expiries)::threadkeep.new_documents,
    ROW(p_delete_namespaces, p_delete_keys)::threadkeep.document_names,
    CASE WHEN p_patched THEN
      ROW(p_patches_words, p_old_body, p_new_body, p_patches_expiry, p_expires_at)::threadkeep.patch
    END,
    p_waits, p_deferred)
$$;

-- For schema 1 to 4, before checksums: messages are stored without one.
CREATE OR REPLACE FUNCTION threadkeep.commit(
  p_tenant text, p_caller text, p_thread uuid, p_now bigint, p_window bigint, p_key bytea, p_fingerprint bigint,
  p_append_only boolean, p_empty boolean, p_expected_seq bigint, p_expected_change bigint, p_require_namespaces
  text[], p_require_keys text[], p_require_versions bigint[], p_ids uuid[], p_roles smallint[], p_instants bigint[],
  p_external_ids text[], p_bodies text[], p_replace_ids uuid[], p_replace_roles smallint[], p_replace_bodies text[],
  p_replace_terms text[], p_erase_ids uuid[], p_trim_below bigint, p_put_namespaces text[], p_put_keys text[],
  p_put_names text[], p_put_values text[], p_put_expiries bigint[], p_delete_namespaces text[], p_delete_keys text[],
  p_delete_names text[], p_patched boolean, p_patches_words boolean, p_old_body text, p_new_body text,
  p_patches_expiry boolean, p_expires_at bigint, p_waits boolean, p_deferred boolean,
  OUT outcome text, OUT change bigint, OUT first_seq bigint, OUT count bigint,
  OUT place integer, OUT actual bigint, OUT owner text, OUT body text
) LANGUAGE sql AS $$
  SELECT outcome, change, first_seq, count, place, actual, owner, body FROM threadkeep.commit(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
    $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41,
    NULL::integer[], NULL::text, NULL::integer[])
$$;

-- Searches of collections without filters, for schema 2 to 9.
CREATE OR REPLACE FUNCTION threadkeep.matching_entries(p_name text, p_term text, p_limit bigint)
RETURNS TABLE (collection_no bigint, no bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT * FROM threadkeep.matching_entries(p_name, p_term, p_limit, '');
END $$;

CREATE OR REPLACE FUNCTION threadkeep.search_entries(
  p_name text, p_terms text[], p_per_term bigint, p_limit bigint,
  OUT documents bigint, OUT frequencies bigint[], OUT collection_nos bigint[], OUT nos bigint[]
) LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT f.* INTO documents, frequencies, collection_nos, nos
    FROM threadkeep.search_entries(p_name, p_terms, p_per_term, p_limit, '') AS f;
END $$;

CREATE OR REPLACE FUNCTION threadkeep.near_points(p_name text, p_model text, p_point real[], p_limit bigint, p_bound bigint)
RETURNS TABLE (distance float8, collection_no bigint, no bigint, point real[]) LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY SELECT * FROM threadkeep.near_points(p_name, p_model, p_point, p_limit, p_bound, '');
END $$;

-- Of versions without filters on metadata.
CREATE OR REPLACE FUNCTION threadkeep.search(
  p_tenant text, p_caller text, p_thread uuid, p_terms text[], p_per_term bigint, p_now bigint
) RETURNS TABLE (place bigint, thread uuid, thread_no bigint, first_seq bigint, seqs bigint[],
  documents bigint, behind_threads uuid[], behind_seqs bigint[], missing bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY SELECT * FROM threadkeep.search(p_tenant, p_caller, p_thread, p_terms, p_per_term, p_now, '{}', 0);
END $$;
