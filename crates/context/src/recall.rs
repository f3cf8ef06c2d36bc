//! Which turns of a dialogue answer a question: ranking that is the same over every store.
//!
//! A [`Question`] is taken apart once; a search index is asked for its [`Question::terms`]; [`rank`] orders the messages
//! that came back together with those around them. Nothing is read here, and `now` is an argument.
//!
//! What a turn is worth, with each part told in [`Parts`]:
//! - its **words**: BM25 with the statistics of the scope ([`bm25`]);
//! - the **passage**: which of the question's words are said by it or within a few turns of it, since people spread one
//!   thought over several turns;
//! - its **neighbours**: a turn lends to the ones before and after it, and a question to its answer, which seldom
//!   repeats the question's words;
//! - the **speaker**: more for turns of whom the question names (of the user, where it says "I");
//! - **time**: more for turns of the days that the question speaks of ([`Period`]), and, where it asks when, for turns that
//!   speak of time.
//!
//! Of equals, the newer comes first. Where an embedder is at hand its ranking is joined by [`by_rank`] or [`by_score`].

mod bm25;
mod fusion;
mod period;
mod question;
mod rank;

pub use bm25::{Statistics, bm25, weights};
pub use fusion::{by_rank, by_score};
pub use period::{Period, periods};
pub use question::{Question, WORDS};
pub use rank::{Parts, REACH, Ranked, Turn, Weights, lexical, rank};
