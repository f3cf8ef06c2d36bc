//! Ranks messages that may answer a question, identically for every store.
//!
//! Parse the question into a [`Question`], look up its [`Question::terms`] in the search index, load the hits with their
//! neighbours, and order them with [`rank`]. This module performs no I/O, and the current time is an argument.
//!
//! The score of a message is the sum of these parts ([`ScoreParts`]):
//! - its **words**: BM25 with the statistics of the scope ([`bm25`]);
//! - the **passage**: which of the question's words occur in it or within a few messages of it, since people spread one
//!   thought over several messages;
//! - its **neighbours**: a share of the scores of the adjacent messages, larger after a question, because an answer seldom
//!   repeats the question's words;
//! - the **speaker**: a bonus for messages by a speaker whom the question names (by the user if it says "I");
//! - **time**: a bonus for messages from the days that the question refers to ([`Period`]) and, for questions that ask
//!   when, for messages that mention a time.
//!
//! Equal scores are ordered by age, newest first. An embedder's ranking can be combined with this one by [`combine_by_rank`] or
//! [`combine_by_score`].

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
