//! Ranks messages that may answer a question, identically for every store.
//!
//! Parse the question into a [`Question`], look up its [`Question::terms`] in the search index, load the hits with their
//! neighbours, and order them with [`rank`]. This module performs no I/O, and the current time is an argument.
//!
//! The score of a message is the sum of these parts ([`ScoreParts`]):
//! - **words**: BM25 of the message with the statistics of the scope ([`bm25`]).
//! - **passage**: the question's words that occur in the message or within a few messages of it, because people spread one
//!   thought over several messages.
//! - **neighbours**: a share of the scores of the adjacent messages. The share is larger after a question, because an answer
//!   seldom repeats the words of the question.
//! - **speaker**: a bonus for messages by a speaker whom the question names. "I" names the user.
//! - **time**: a bonus for messages from the days that the question refers to ([`Period`]) and, if the question asks when,
//!   for messages that mention a time.
//!
//! Messages with equal scores are ordered newest first. [`combine_by_rank`] and [`combine_by_score`] combine this ranking with
//! that of an embedder.

mod bm25;
mod fusion;
mod period;
mod question;
mod rank;

pub use bm25::{Statistics, bm25, weights};
pub use fusion::{combine_by_rank, combine_by_score};
pub use period::{Period, periods};
pub use question::{Question, WORDS};
pub use rank::{REACH, RankCandidate, Ranked, ScoreParts, Weights, rank, rank_by_words};
