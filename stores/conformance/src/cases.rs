//! The list of all cases.

mod atomicity;
mod changes;
mod collections;
mod concurrency;
mod content;
mod corrupt;
mod decisions;
mod derived;
mod dump_restore;
mod durability;
mod erasure;
mod expiry;
mod golden;
mod idempotency;
mod keys;
mod limits;
mod maintenance;
mod metadata;
mod paging;
mod positions;
mod reading;
mod records;
mod replace_erase_trim;
mod scopes;
mod search;
mod snapshots;
mod tags;
mod threads;
mod time_order;
mod unsupported;
mod wake_ups;

pub(crate) use self::content::{TEXTS, full_content};
pub(crate) use self::dump_restore::thread_with_history;

use futures::future::BoxFuture;

use crate::run::TestEnv;

/// A case and its name, `THEME::CASE`.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a TestEnv<'a>) -> BoxFuture<'a, ()>,
}

/// Calls a macro of this crate with the given arguments, followed by the list of all cases by theme.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_all_cases {
    ($macro:ident $given:tt) => {
        $crate::$macro! { $given
            atomicity {
                rejected_batches_have_no_effects,
                accepted_batches_apply_every_operation,
                preconditions_are_checked_in_order,
                empty_batches_have_no_effects,
            }
            decisions {
                the_first_failed_check_determines_the_error,
                positions_have_a_maximum,
            }
            idempotency {
                repeated_commits_return_the_first_outcome,
                replays_survive_trimming_and_erasing,
                a_different_fingerprint_is_a_conflict,
                replays_skip_preconditions,
                outcomes_expire_after_the_window,
                keys_are_scoped_to_a_thread,
                keys_from_callers_and_generated_keys_do_not_collide,
            }
            positions {
                positions_increase_without_gaps,
                an_expected_seq_must_match,
                an_expected_change_must_match,
                external_ids_are_unique_in_a_thread,
                message_ids_are_unique_in_a_thread,
            }
            paging {
                newest_messages_are_listed_in_ascending_order,
                oldest_messages_can_be_listed,
                bounds_are_exclusive,
                pages_are_filtered_by_role,
                pages_are_stable_during_appends,
                gaps_do_not_shorten_pages,
                an_empty_thread_has_an_empty_page,
                pages_are_limited_by_bytes,
                messages_are_found_by_reference,
            }
            reading {
                a_combined_read_equals_separate_reads,
                a_combined_read_is_a_snapshot,
                a_combined_read_has_limits,
            }
            time_order {
                equal_timestamps_keep_append_order,
                time_bounds_apply_to_both_orders,
                timestamps_keep_microseconds,
            }
            replace_erase_trim {
                replacing_keeps_the_position,
                missing_messages_cannot_be_edited,
                erasing_leaves_only_a_tombstone,
                trimming_leaves_no_tombstones,
                trimming_may_leave_an_empty_thread,
                trimming_below_the_first_position_removes_nothing,
                trimming_applies_to_messages_of_the_same_batch,
                ids_are_checked_against_the_state_before_the_batch,
            }
            metadata {
                threads_are_filtered_by_metadata,
                long_values_are_compared_exactly,
                filtered_pages_are_full_in_both_orders,
                restored_threads_are_filtered,
                filters_stay_in_the_scope,
                filters_follow_changes_of_metadata,
                searches_are_filtered_by_metadata,
                other_threads_do_not_use_up_the_limit_of_a_search,
            }
            threads {
                opening_stores_all_fields,
                unknown_threads_are_not_found,
                patches_change_only_named_fields,
                deleting_a_thread_deletes_its_data,
                commits_after_a_deletion_fail,
                a_deleted_id_is_reserved_during_the_window,
                threads_are_listed_in_creation_order,
                threads_are_listed_by_recency,
                a_full_last_page_has_no_cursor,
                an_id_has_at_most_one_key,
            }
            keys {
                concurrent_opens_of_a_key_create_one_thread,
                concurrent_opens_of_an_id_create_one_thread,
                each_owner_has_its_own_keys,
                keys_are_compared_byte_by_byte,
            }
            scopes {
                threads_of_others_look_like_unknown_threads,
                threads_of_others_cannot_be_opened,
                tenants_may_use_the_same_ids,
                lists_of_others_are_empty,
                records_of_others_are_inaccessible,
                users_read_and_append_to_shared_threads,
                users_open_and_list_shared_threads,
                the_application_acts_for_its_users,
            }
            records {
                users_have_records,
                records_support_compare_and_set,
                versions_are_never_reused,
                one_concurrent_writer_wins,
                one_concurrent_commit_meets_its_condition,
                namespaces_are_separate,
                records_are_listed_in_byte_order,
                deleting_an_absent_record_succeeds,
                each_user_has_separate_records,
            }
            derived {
                a_derived_write_does_not_change_its_thread,
                a_derived_write_requires_the_current_change,
                a_derived_write_requires_the_current_version,
                versions_are_never_reused_by_any_writer,
                derived_writes_require_full_access,
                derived_writes_require_a_live_thread,
                derived_records_have_limits,
                derived_records_are_removed_with_their_thread,
                derived_records_are_dumped_with_their_thread,
                one_concurrent_derived_write_wins,
                an_erasure_removes_text_derived_concurrently,
                rewriting_a_derived_record_removes_previous_text_from_files,
            }
            expiry {
                an_expired_thread_is_invisible,
                opening_replaces_an_expired_thread,
                an_expiry_can_be_changed,
                expired_threads_do_not_shorten_pages,
                an_expired_record_is_invisible,
                thread_records_expire_independently,
            }
            wake_ups {
                commits_wake_subscribers,
                every_write_changes_the_stamp,
                record_writes_change_the_records_stamp,
                opening_and_deleting_wake_subscribers,
                user_and_tenant_records_wake_subscribers,
                a_slow_subscriber_does_not_block_writers,
            }
            changes {
                each_effect_is_logged,
                changes_are_returned_with_their_messages,
                large_changes_are_returned_in_parts,
                a_new_thread_has_no_changes,
                swept_changes_return_a_reset,
                changed_threads_are_listed_once_in_order,
                changed_threads_are_in_order_while_others_read,
                changed_threads_are_limited_to_the_scope,
                a_new_thread_counts_as_changed,
                an_unusable_cursor_returns_a_reset,
            }
            dump_restore {
                a_thread_is_restored_verbatim,
                a_restored_thread_is_searchable,
                an_unfinished_restore_is_invisible,
                a_first_chunk_discards_an_unfinished_restore,
                restoring_does_not_overwrite_a_thread,
                records_are_restored_verbatim,
                tenants_and_owners_are_listed,
                stored_bodies_are_restored_unchanged,
            }
            snapshots {
                a_snapshot_ignores_later_writes,
                snapshots_are_independent,
                a_snapshot_is_read_in_chunks_of_any_size,
                snapshots_exclude_expired_data,
            }
            search {
                words_are_found,
                terms_are_not_query_syntax,
                only_the_scope_is_searched,
                a_search_can_be_limited_to_a_thread,
                removed_messages_are_not_found,
                a_new_thread_does_not_inherit_hits,
                rarer_terms_rank_first,
                image_descriptions_are_indexed,
                searches_run_concurrently_with_commits,
                the_number_of_terms_is_limited,
                alternatives_count_as_one_term,
                messages_with_the_same_terms_are_found_newest_first,
                the_number_of_alternatives_is_limited,
            }
            collections {
                entries_are_found_by_words,
                upserting_replaces_an_entry,
                collections_are_scoped,
                the_nearest_vectors_are_found,
                entries_are_filtered_by_fields,
                filters_do_not_use_up_the_limit,
                filters_follow_replaced_and_removed_entries,
                filters_have_limits,
                entries_have_limits,
                entries_survive_a_repair,
                removing_an_entry_removes_its_text_from_files,
                remove_collections_affects_only_its_scope,
                remove_collections_removes_all_text_from_files,
                removals_run_concurrently_with_upserts,
            }
            content {
                content_round_trips,
                raw_items_keep_every_byte,
                numbers_round_trip_exactly,
                unicode_text_round_trips,
                long_messages_round_trip,
                returned_values_are_copies,
            }
            corrupt {
                a_corrupt_message_is_reported,
                a_corrupt_thread_is_reported,
                messages_have_checksums,
                a_modified_message_is_detected,
                swapped_contents_are_detected,
                messages_without_checksums_are_counted,
                lost_positions_are_restored,
            }
            limits {
                messages_have_limits,
                commits_have_limits,
                threads_and_records_have_limits,
                pages_have_limits,
                nul_is_rejected_everywhere,
                commits_reject_duplicate_names,
            }
            tags {
                every_change_has_the_tag_of_its_commit,
                a_reassigned_change_number_is_rejected,
                commits_of_a_replaced_driver_are_rejected,
                a_derived_write_at_a_lost_change_is_rejected,
                a_reader_at_a_lost_change_gets_a_reset,
                a_lost_commit_can_be_repeated_with_its_key,
                untagged_changes_are_compared_by_number,
                tags_are_dumped_with_their_thread,
            }
            unsupported {
                messages_do_not_support_vectors,
                named_collections_do_not_support_alternatives,
                messages_cannot_be_upserted,
                compaction_succeeds_or_is_unsupported,
            }
            concurrency {
                concurrent_writers_leave_no_gaps,
                threads_are_independent,
                readers_see_whole_commits,
                a_deletion_stops_all_writers,
                dropped_writes_are_atomic,
            }
            durability {
                data_survives_reopening,
                wake_ups_end_when_the_store_closes,
            }
            erasure {
                erasing_removes_text_from_files,
                replacing_removes_previous_text_from_files,
                trimming_removes_text_from_files,
                deleting_a_thread_removes_its_text_from_files,
                expiry_of_a_thread_removes_its_text_from_files,
                changing_a_title_removes_the_previous_one_from_files,
                writing_a_record_removes_the_previous_value_from_files,
            }
            maintenance {
                a_sweep_reports_what_it_removed,
                a_healthy_store_has_no_findings,
                a_repair_does_not_change_data,
                driven_threads_are_listed_across_tenants,
            }
            golden {
                golden_files_are_readable,
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __list {
    ({} $($theme:ident { $($case:ident),+ $(,)? })+) => {
        &[$($(Case {
            name: concat!(stringify!($theme), "::", stringify!($case)),
            run: |env| Box::pin($theme::$case(env)),
        }),+),+]
    };
}

/// All cases, by theme.
pub(crate) const CASES: &[Case] = __with_all_cases!(__list {});
