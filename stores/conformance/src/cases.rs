//! The list of all cases. Nobody picks from it.

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
mod upkeep;
mod wake_ups;

pub(crate) use self::content::{TEXTS, full};
pub(crate) use self::dump_restore::eventful;

use futures::future::BoxFuture;

use crate::run::Stage;

/// One case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a Stage<'a>) -> BoxFuture<'a, ()>,
}

/// Gives the list of all cases, by theme, to a macro of this crate, behind what else it is given.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_all_cases {
    ($macro:ident $given:tt) => {
        $crate::$macro! { $given
            atomicity {
                nothing_of_a_refused_batch_is_visible,
                all_of_an_accepted_batch_is_visible,
                preconditions_are_checked_in_order,
                empty_batches_leave_no_trace,
            }
            decisions {
                the_first_failure_in_order_decides,
                positions_end_at_the_same_number,
            }
            idempotency {
                repeating_answers_the_same,
                replays_survive_trimming_and_erasing,
                another_fingerprint_is_a_conflict,
                replays_come_before_preconditions,
                records_end_with_the_window,
                keys_belong_to_one_thread,
                given_and_minted_keys_differ,
            }
            positions {
                positions_grow_without_gaps,
                an_expected_seq_must_be_the_actual_one,
                an_expected_change_must_be_the_actual_one,
                external_ids_are_unique_in_their_thread,
                message_ids_are_unique_in_their_thread,
            }
            paging {
                the_newest_come_in_ascending_order,
                the_oldest_end_can_be_read,
                bounds_are_exclusive,
                roles_are_filtered,
                pages_are_stable_while_others_append,
                gaps_do_not_shorten_pages,
                an_empty_thread_has_an_empty_page,
                long_pages_end_early,
                messages_are_found_by_name,
            }
            reading {
                one_read_gives_what_many_give,
                one_read_is_of_one_instant,
                only_so_much_is_read_at_once,
            }
            time_order {
                equal_instants_keep_the_order_of_appending,
                bounds_by_time_cut_both_orders,
                instants_keep_their_microseconds,
            }
            replace_erase_trim {
                replacing_keeps_the_place,
                what_is_not_there_cannot_be_edited,
                erasing_leaves_a_tombstone_only,
                trimming_leaves_nothing,
                trimming_may_leave_an_empty_thread,
                trimming_below_the_first_does_nothing,
                trimming_reaches_what_is_appended_with_it,
                ids_are_checked_against_what_was_there_before,
            }
            threads {
                opening_keeps_what_it_is_given,
                unknown_threads_are_not_found,
                patches_change_what_they_name,
                deleting_takes_everything_along,
                late_commits_find_nothing,
                a_deleted_id_comes_back_after_the_window_only,
                threads_are_listed_in_the_order_of_creation,
                threads_are_listed_by_recency,
                a_full_last_page_has_no_next,
                an_id_belongs_to_one_key,
            }
            keys {
                one_of_many_openers_claims_a_key,
                one_of_many_openers_makes_an_id,
                each_owner_has_its_own_keys,
                keys_are_compared_byte_by_byte,
            }
            scopes {
                foreign_threads_answer_as_unknown_ones,
                foreign_ids_and_keys_open_nothing,
                tenants_may_use_the_same_ids,
                foreign_lists_are_empty,
                foreign_records_are_out_of_reach,
                users_read_and_append_to_shared_threads,
                users_open_and_list_shared_threads,
                the_application_acts_for_its_users,
            }
            records {
                a_user_has_records,
                records_are_compared_and_set,
                versions_never_come_back,
                one_of_many_writers_wins,
                one_of_many_commits_meets_its_condition,
                namespaces_do_not_mix,
                records_are_listed_in_byte_order,
                absent_records_may_be_deleted,
                another_user_has_other_records,
            }
            derived {
                a_derived_write_is_no_change_of_its_thread,
                it_is_made_at_its_change_alone,
                it_is_made_over_its_version_alone,
                versions_never_come_back_whoever_writes,
                only_who_may_change_a_thread_derives,
                a_thread_that_is_over_derives_nothing,
                derived_records_have_limits,
                derived_records_go_with_their_thread,
                a_derived_record_moves_with_its_thread,
                one_of_many_that_derive_wins,
                an_erasure_and_a_derived_write_race,
                derived_text_that_was_scrubbed_is_gone,
            }
            expiry {
                an_expired_thread_was_never_there,
                opening_replaces_an_expired_thread,
                an_expiry_can_be_moved,
                expired_threads_do_not_shorten_pages,
                an_expired_record_was_never_there,
                a_threads_records_expire_alone,
            }
            wake_ups {
                commits_wake_those_who_listen,
                a_stamp_is_another_one_after_anything_was_written,
                a_stamp_of_records_is_another_one_after_one_was_written,
                openings_and_deletions_wake_those_who_listen,
                records_of_users_and_tenants_wake_those_who_listen,
                a_slow_listener_disturbs_nobody,
            }
            changes {
                each_effect_is_told,
                changes_come_with_their_messages,
                changes_that_bring_much_come_in_parts,
                a_new_thread_has_no_changes,
                a_swept_past_answers_reset,
                changed_threads_come_once_in_order,
                changed_threads_are_those_of_the_scope,
                a_new_thread_counts_as_changed,
                a_cursor_of_a_lost_past_answers_reset,
            }
            dump_restore {
                a_thread_moves_verbatim,
                a_restored_thread_is_found_by_its_words,
                an_unfinished_restoration_is_invisible,
                a_first_chunk_discards_what_was_begun,
                restoring_overwrites_no_thread,
                records_move_verbatim,
                tenants_and_owners_are_listed,
                stored_text_is_taken_as_it_is,
            }
            snapshots {
                a_snapshot_shows_the_store_as_it_was,
                two_snapshots_show_two_instants,
                a_snapshot_is_read_in_chunks_of_any_size,
                what_has_expired_is_in_no_snapshot,
            }
            search {
                words_are_found,
                words_mean_nothing_to_the_index,
                only_the_own_scope_is_searched,
                one_thread_can_be_searched,
                what_is_gone_is_not_found,
                a_new_thread_does_not_inherit_hits,
                rarer_terms_come_first,
                descriptions_of_pictures_are_text,
                searches_and_commits_go_on_together,
                only_so_many_terms_are_looked_up,
            }
            collections {
                entries_are_found_by_their_words,
                an_entry_is_put_over_its_former_self,
                collections_belong_to_their_scope,
                the_nearest_are_found,
                entries_have_limits,
                entries_outlive_a_repair,
                removed_text_is_gone,
                all_of_a_scope_goes_and_nothing_of_others,
                all_text_of_a_scope_is_gone,
                removing_all_and_adding_go_on_together,
            }
            content {
                content_comes_back_whole,
                raw_items_keep_every_byte,
                numbers_come_back_exactly,
                all_writing_of_the_world_is_kept,
                long_messages_are_kept,
                what_a_caller_gets_is_a_copy,
            }
            corrupt {
                a_broken_message_is_told_of,
                a_broken_thread_is_no_empty_one,
                messages_carry_their_checksum,
                a_changed_message_is_found,
                swapped_contents_are_found,
                messages_from_before_checksums_are_counted,
                lost_positions_move_as_such,
            }
            limits {
                messages_have_limits,
                commits_have_limits,
                threads_and_records_have_limits,
                pages_have_limits,
                nul_is_refused_everywhere,
                nothing_is_named_twice_in_a_commit,
            }
            tags {
                a_tag_is_told_wherever_a_change_is,
                a_number_that_was_given_twice_is_refused,
                a_stale_driver_cannot_pass_the_fence,
                a_derived_record_of_a_lost_past_is_refused,
                a_reader_of_a_lost_past_is_told_to_begin_anew,
                a_lost_commit_is_made_again_by_its_key,
                what_has_no_tag_is_compared_by_its_number,
                tags_move_with_their_thread,
            }
            unsupported {
                vectors_are_not_for_messages,
                messages_come_from_the_log_alone,
                space_is_given_back_or_unsupported,
            }
            concurrency {
                writers_leave_no_gap,
                threads_do_not_wait_for_or_mix_with_each_other,
                readers_see_whole_commits,
                a_deletion_ends_all_writing,
                dropped_writes_are_done_or_not_done,
            }
            durability {
                everything_is_there_after_reopening,
                hints_end_with_the_store,
            }
            erasure {
                erased_text_is_gone,
                replaced_text_is_gone,
                trimmed_text_is_gone,
                a_deleted_threads_text_is_gone,
                an_expired_threads_text_is_gone,
                former_titles_are_gone,
                former_records_are_gone,
            }
            upkeep {
                a_sweep_tells_what_it_removed,
                a_healthy_store_verifies_clean,
                a_repair_changes_no_truth,
                driven_threads_are_found_wherever_they_are,
            }
            golden {
                what_was_written_is_read,
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
            run: |stage| Box::pin($theme::$case(stage)),
        }),+),+]
    };
}

/// All cases, by theme.
pub(crate) const CASES: &[Case] = __with_all_cases!(__list {});
