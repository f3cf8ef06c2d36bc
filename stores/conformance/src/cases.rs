//! The list of all cases. Nobody picks from it.

mod atomicity;
mod documents;
mod idempotency;
mod keys;
mod paging;
mod positions;
mod replace_erase_trim;
mod threads;
mod time_order;

use futures::future::BoxFuture;

use crate::run::Stage;

/// One case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a Stage<'a>) -> BoxFuture<'a, ()>,
}

macro_rules! cases {
    ($($theme:ident { $($case:ident),+ $(,)? })+) => {
        &[$($(Case {
            name: concat!(stringify!($theme), "::", stringify!($case)),
            run: |stage| Box::pin($theme::$case(stage)),
        }),+),+]
    };
}

/// All cases, by theme.
pub(crate) const CASES: &[Case] = cases! {
    atomicity {
        nothing_of_a_refused_batch_is_visible,
        all_of_an_accepted_batch_is_visible,
        preconditions_are_checked_in_order,
        empty_batches_leave_no_trace,
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
        messages_are_found_by_name,
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
    documents {
        a_user_has_documents,
        documents_are_compared_and_set,
        versions_never_come_back,
        one_of_many_writers_wins,
        one_of_many_commits_meets_its_condition,
        namespaces_do_not_mix,
        documents_are_listed_in_byte_order,
        absent_documents_may_be_deleted,
        another_user_has_other_documents,
    }
};
