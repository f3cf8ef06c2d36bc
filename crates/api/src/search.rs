use std::ops::Range;

use serde::Serialize;
use threadkeep::{SearchResults, ThreadId};
use utoipa::ToSchema;

use crate::message::MessageJson;

/// The hits, most relevant first.
#[derive(Debug, Serialize, ToSchema)]
pub struct HitsJson<'a> {
    hits: Vec<HitJson<'a>>,
    /// Whether more messages matched than can be ranked.
    truncated: bool,
    /// The value of `after` for the next page; null on the last page. A search returns at most 1,000 hits on all its pages.
    next: Option<String>,
    /// Threads whose newest messages are not indexed yet.
    #[schema(value_type = Vec<String>)]
    incomplete: Vec<ThreadId>,
    /// Words that no message contains, and what was searched for instead.
    corrections: Vec<CorrectionJson<'a>>,
}

/// A word that was corrected.
#[derive(Debug, Serialize, ToSchema)]
pub struct CorrectionJson<'a> {
    word: &'a str,
    instead: &'a str,
}

/// A message that matches.
#[derive(Debug, Serialize, ToSchema)]
pub struct HitJson<'a> {
    #[schema(value_type = String, format = Uuid)]
    thread: ThreadId,
    /// The relevance: larger is better. Scores can be compared only within one search.
    score: f64,
    snippet: SnippetJson<'a>,
    message: MessageJson<'a>,
}

/// The part of the text that contains the matches.
#[derive(Debug, Serialize, ToSchema)]
pub struct SnippetJson<'a> {
    text: &'a str,
    /// The matching words, as ranges of bytes in `text`.
    matches: Vec<MatchJson>,
    cut_before: bool,
    cut_after: bool,
}

/// A matching word.
#[derive(Debug, Serialize, ToSchema)]
pub struct MatchJson {
    start: usize,
    end: usize,
}

impl<'a> HitsJson<'a> {
    /// Converts the hits of one page, whose numbers are in `page`. `next` is the value of `after` for the next page.
    pub fn page(results: &'a SearchResults, page: Range<usize>, next: Option<String>) -> Self {
        let hits = results.hits.iter().take(page.end).skip(page.start).map(|hit| {
            let matches = hit.snippet.matches.iter().map(|range| MatchJson { start: range.start, end: range.end });
            let snippet = SnippetJson {
                matches: matches.collect(),
                text: &hit.snippet.text,
                cut_before: hit.snippet.cut_before,
                cut_after: hit.snippet.cut_after,
            };
            HitJson { thread: hit.thread, score: hit.score, snippet, message: (&hit.message).into() }
        });
        let corrections = results
            .corrections
            .iter()
            .map(|correction| CorrectionJson { word: &correction.word, instead: &correction.instead });
        Self {
            hits: hits.collect(),
            truncated: results.truncated,
            next,
            incomplete: results.unsearched.iter().map(|unsearched| unsearched.thread).collect(),
            corrections: corrections.collect(),
        }
    }
}
