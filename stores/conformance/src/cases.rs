//! The list of all cases. Nobody picks from it.

mod atomicity;
mod idempotency;
mod positions;

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
};
