//! What the screen shows of threads, hits and messages: small, and safe to print on a terminal.

use threadkeep::core::query::{Exclusion, TextQuery};
use threadkeep::{Correction, Hit, Message, Part, Role, SearchResults, Thread, ThreadId, Timestamp};

use crate::commands::search;
use crate::instants;
use crate::output::{printable, printable_line};
use crate::thread_name;
use crate::transcript::{part_text, speaker};

/// The maximum size of a message's text on the screen, unless the user opens this message.
const TEXT_BYTES: usize = 64 * 1024;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadInfo {
    pub(super) id: ThreadId,
    pub(super) title: String,
    /// Where the thread comes from, such as the format of an import. Empty if unknown.
    pub(super) source: String,
    pub(super) message_count: u64,
}

/// A thread in the list of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadRow {
    pub(super) thread: ThreadInfo,
    /// The time of the last message.
    pub(super) at: String,
}

/// A hit in the list of hits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HitRow {
    pub(super) thread: ThreadInfo,
    pub(super) seq: u64,
    pub(super) role: Role,
    pub(super) speaker: String,
    pub(super) at: String,
    pub(super) score: f64,
    /// The excerpt, in pieces that do or do not match.
    pub(super) excerpt: Vec<(String, bool)>,
}

/// The results of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) query: String,
    pub(super) hits: Vec<HitRow>,
    /// The words that occur nowhere, and what was searched for instead.
    pub(super) corrections: Vec<(String, String)>,
    /// The maximum number of hits that were requested.
    pub(super) limit: usize,
    /// Whether there were more candidates than can be ranked.
    pub(super) is_truncated: bool,
    /// Whether some messages are not indexed yet.
    pub(super) is_incomplete: bool,
}

/// A message of the conversation that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageRow {
    pub(super) seq: u64,
    /// `None` if the message cannot be decoded.
    pub(super) role: Option<Role>,
    pub(super) speaker: String,
    /// The time, the position and further details.
    pub(super) details: String,
    pub(super) parts: Vec<TextPart>,
}

/// The text of a part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextPart {
    pub(super) text: String,
    /// Whether the part is something else than a text, such as a tool call.
    pub(super) is_dim: bool,
}

impl ThreadInfo {
    pub(super) fn new(thread: &Thread) -> Self {
        let mark = thread_name::branch(thread).map_or_else(String::new, |mark| format!(" ({mark})"));
        Self {
            id: thread.id,
            title: thread_name::title(thread) + &mark,
            source: thread_name::source(thread),
            message_count: thread.message_count,
        }
    }
}

impl ThreadRow {
    pub(super) fn new(thread: &Thread, at: Timestamp) -> Self {
        Self { thread: ThreadInfo::new(thread), at: instants::minute(at) }
    }
}

impl HitRow {
    pub(super) fn new(hit: &Hit, thread: ThreadInfo) -> Self {
        let message = &hit.message;
        Self {
            thread,
            seq: message.seq,
            role: message.content.role,
            speaker: speaker(message.content.author.as_deref(), message.content.role),
            at: instants::minute(message.created_at),
            score: hit.score,
            excerpt: search::excerpt(&hit.snippet),
        }
    }

    /// Returns the words of the excerpt that match, each once.
    pub(super) fn matches(&self) -> Vec<&str> {
        let mut words: Vec<&str> = Vec::new();
        for (piece, is_match) in &self.excerpt {
            let is_known = words.iter().any(|word| word.to_lowercase() == piece.to_lowercase());
            if *is_match && !is_known {
                words.push(piece);
            }
        }
        words
    }
}

impl Found {
    pub(super) fn new(query: String, limit: usize, results: &SearchResults, hits: Vec<HitRow>) -> Self {
        let corrections = results.corrections.iter();
        Self {
            query,
            limit,
            hits,
            corrections: corrections
                .map(|Correction { word, instead }| (printable_line(word), printable_line(instead)))
                .collect(),
            is_truncated: results.truncated,
            is_incomplete: !results.unsearched.is_empty(),
        }
    }

    /// Whether a search with a larger limit may return more hits.
    pub(super) fn has_more(&self) -> bool {
        self.hits.len() >= self.limit
    }

    /// Explains why a message was found.
    pub(super) fn reasons(&self, hit: &HitRow) -> String {
        let words = hit.matches();
        let mut reasons = Vec::new();
        if !words.is_empty() {
            reasons.push(format!("words: {}", words.join(", ")));
        }
        for (word, instead) in &self.corrections {
            reasons.push(format!("corrected: {word} → {instead}"));
        }
        if hit.score > 0.0 {
            let is_lowered = hit.role == Role::Tool;
            reasons.push(format!("score {:.2}{}", hit.score, if is_lowered { " (output of a tool)" } else { "" }));
        }
        let conditions = conditions(&TextQuery::parse(&self.query));
        if !conditions.is_empty() {
            reasons.push(format!("conditions: {}", conditions.join(" ")));
        }
        reasons.join(" · ")
    }
}

/// Returns the conditions of a query, written as in a query.
fn conditions(query: &TextQuery) -> Vec<String> {
    let quoted = |text: &String| format!("\"{}\"", printable_line(text));
    let plain = |text: &String| if text.contains(char::is_whitespace) { quoted(text) } else { printable_line(text) };
    let mut conditions: Vec<String> = query.phrases.iter().map(quoted).collect();
    conditions.extend(query.exclusions.iter().map(|exclusion| match exclusion {
        Exclusion::Word(word) => format!("-{}", plain(word)),
        Exclusion::Phrase(phrase) => format!("-{}", quoted(phrase)),
    }));
    for (name, values) in [("title", &query.titles), ("in", &query.formats), ("project", &query.projects)] {
        conditions.extend(values.iter().map(|value| format!("{name}:{}", plain(value))));
    }
    conditions.extend(query.roles.iter().map(|role| format!("role:{role}")));
    conditions.extend(query.since.map(|since| format!("since:{since}")));
    conditions.extend(query.until.map(|until| format!("before {until}")));
    conditions
}

impl MessageRow {
    /// Creates a row. The text of a long message is cut unless `is_whole`.
    pub(super) fn new(message: &Message, is_whole: bool) -> Self {
        let content = &message.content;
        let role_note = content.author.as_ref().map_or_else(String::new, |_| format!(" ({})", content.role));
        let agent = content.agent.as_deref().map_or_else(String::new, |agent| format!(" · {}", printable_line(agent)));
        let edited = if message.revision > 0 { " · edited" } else { "" };
        let at = instants::minute(message.created_at);
        let mut room = if is_whole { usize::MAX } else { TEXT_BYTES };
        let mut parts = Vec::new();
        for part in &content.parts {
            let text = part_text(part);
            let shown = &text[..text.floor_char_boundary(room)];
            parts.push(TextPart { text: printable(shown), is_dim: !matches!(part, Part::Text(_)) });
            room -= shown.len();
            if shown.len() < text.len() {
                let text = "… (the message is longer: select it and press Enter)".to_owned();
                parts.push(TextPart { text, is_dim: true });
                break;
            }
        }
        Self {
            seq: message.seq,
            role: Some(content.role),
            speaker: speaker(content.author.as_deref(), content.role),
            details: format!("{role_note} · {at} · #{}{agent}{edited}", message.seq),
            parts,
        }
    }

    /// Creates a row for a message that cannot be decoded.
    pub(super) fn unreadable(seq: u64, detail: &str) -> Self {
        let parts = vec![TextPart { text: printable_line(detail), is_dim: true }];
        let details = format!(" · #{seq}");
        Self { seq, role: None, speaker: "cannot be read".to_owned(), details, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_words_corrections_conditions_and_score() {
        let excerpt =
            [("The ", false), ("ledger", true), (" or ", false), ("Ledger", true), (" in ", false), ("SQLite", true)];
        let hit = HitRow {
            thread: ThreadInfo {
                id: "01a214d9-0f9c-7000-8000-000000000001".parse().unwrap(),
                title: String::new(),
                source: String::new(),
                message_count: 1,
            },
            seq: 1,
            role: Role::Tool,
            speaker: "tool".to_owned(),
            at: String::new(),
            score: 1.456,
            excerpt: excerpt.map(|(text, is_match)| (text.to_owned(), is_match)).to_vec(),
        };
        let query =
            "legder \"a file\" -postgres -\"one writer\" title:storage in:codex role:tool since:2026-03 until:2026-03";
        let corrections = vec![("legder".to_owned(), "ledger".to_owned())];
        let found = Found { query: query.to_owned(), corrections, ..Found::default() };
        assert_eq!(
            found.reasons(&hit),
            "words: ledger, SQLite · corrected: legder → ledger · score 1.46 (output of a tool) · \
             conditions: \"a file\" -postgres -\"one writer\" title:storage \
             in:codex role:tool since:2026-03-01T00:00:00Z before 2026-04-01T00:00:00Z"
        );
        assert_eq!(Found::default().reasons(&HitRow { score: 0.0, excerpt: Vec::new(), ..hit }), "");
    }
}
