//! Recognises messages that a client sends again. Agent libraries, for example, keep the messages of a run themselves, and send all
//! of them with each request.

use threadkeep::core::limits::PAGE;
use threadkeep::{Bound, Content, Draft, Message, MessageQuery, Part, Role, Scope, ThreadId, ToolCall, Value};

use super::references::ResolvedItem;
use crate::app::App;
use crate::error::ApiError;

/// The maximum number of pages of the thread that are searched. Together they contain more messages than one request can contain.
const MAX_PAGES: usize = 3;
/// The minimum number of messages that are searched, if any.
const MIN_MESSAGES: usize = 50;

/// Removes from a request the messages that the thread already contains: the longest prefix that ends with an answer or a call
/// and also occurs in the thread.
pub(super) async fn without_resent(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    mut drafts: Vec<Draft>,
) -> Result<Vec<Draft>, ApiError> {
    let contents: Vec<&Content> = drafts.iter().map(|draft| &draft.content).collect();
    let count = count_resent(app, scope, thread, &contents).await?;
    Ok(drafts.split_off(count))
}

/// Like [`without_resent`], but also removes items whose ids the thread contains, at any place in the request.
pub(super) async fn without_resent_items(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    mut items: Vec<ResolvedItem>,
) -> Result<Vec<Draft>, ApiError> {
    let contents: Vec<&Content> = items.iter().map(ResolvedItem::content).collect();
    let count = count_resent(app, scope, thread, &contents).await?;
    Ok(items.split_off(count).into_iter().filter_map(ResolvedItem::into_new).collect())
}

/// Returns the number of messages at the start of a request that the thread already contains.
async fn count_resent(app: &App, scope: &Scope, thread: ThreadId, contents: &[&Content]) -> Result<usize, ApiError> {
    let refers_to_answers = |content: &&&Content| matches!(content.role, Role::Assistant | Role::Tool);
    if !contents.iter().any(|content| refers_to_answers(&content)) {
        return Ok(0);
    }
    let count: usize = contents.iter().map(|content| content.parts.len()).sum();
    let messages = newest_messages(app, scope, thread, count).await?;
    let stored: Vec<Piece<'_>> =
        messages.iter().flat_map(|message| pieces(message.content.role, &message.content.parts)).collect();
    let sent = SentPieces::of(contents, &stored);
    let known = known_prefix(&sent.pieces, &sent.ends, &stored);
    Ok(sent.message_count(known))
}

/// The pieces of a request.
struct SentPieces<'a> {
    pieces: Vec<Piece<'a>>,
    /// The numbers of pieces up to and including each answer or call, in ascending order.
    ends: Vec<usize>,
    /// For each of `ends`, the number of messages of the request up to there.
    message_counts: Vec<usize>,
}

impl<'a> SentPieces<'a> {
    /// Returns the pieces of a request. Some clients omit the calls of a stored answer and send only their results: those calls
    /// are inserted before the results, as they are in the thread.
    fn of(contents: &[&'a Content], stored: &[Piece<'a>]) -> Self {
        let mut sent = Self { pieces: Vec::new(), ends: Vec::new(), message_counts: Vec::new() };
        for (index, content) in contents.iter().enumerate() {
            if content.role == Role::Tool {
                sent.insert_missing_calls(content, stored, index);
            }
            sent.pieces.extend(pieces(content.role, &content.parts));
            if content.role == Role::Assistant {
                sent.push_end(index + 1);
            }
        }
        sent
    }

    fn insert_missing_calls(&mut self, results: &Content, stored: &[Piece<'a>], message_count: usize) {
        for part in &results.parts {
            let Part::ToolResult(result) = part else { continue };
            let is_call = |piece: &Piece<'_>| matches!(piece, Piece::Call(id, ..) if *id == result.call_id);
            if self.pieces.iter().any(is_call) {
                continue;
            }
            let Some(position) = stored.iter().rposition(is_call) else { continue };
            // All of the answer is missing, not only this call.
            let start = stored[..position].iter().rposition(|piece| !piece.is_answer()).map_or(0, |before| before + 1);
            let length = stored[start..].iter().take_while(|piece| piece.is_answer()).count();
            self.pieces.extend(stored[start..start + length].iter().cloned());
            self.push_end(message_count);
        }
    }

    fn push_end(&mut self, message_count: usize) {
        self.ends.push(self.pieces.len());
        self.message_counts.push(message_count);
    }

    /// Returns the number of messages in the first `known` pieces.
    fn message_count(&self, known: usize) -> usize {
        let end = self.ends.iter().rposition(|end| known > 0 && *end == known);
        end.map_or(0, |end| self.message_counts[end])
    }
}

/// Returns a thread's latest messages, oldest first. Their number is about twice `sent`, the number of pieces in the request,
/// because other messages may have been added in the meantime.
async fn newest_messages(app: &App, scope: &Scope, thread: ThreadId, sent: usize) -> Result<Vec<Message>, ApiError> {
    let (mut pages, mut before) = (Vec::new(), None);
    let mut remaining = sent.saturating_mul(2).max(MIN_MESSAGES);
    while remaining > 0 && pages.len() < MAX_PAGES {
        let query = MessageQuery { before, ..MessageQuery::newest(remaining.min(PAGE)) };
        let page = app.memory().messages(scope, thread, &query).await?;
        remaining = remaining.saturating_sub(page.messages.len());
        before = page.messages.first().map(|message| Bound::Seq(message.seq));
        let is_last = !page.more || before.is_none();
        pages.push(page.messages);
        if is_last {
            break;
        }
    }
    Ok(pages.into_iter().rev().flatten().collect())
}

/// A part of the content. Pieces are compared instead of messages, because clients divide content into messages differently: the
/// tool calls of an answer may be in one message, or each in its own.
#[derive(Clone, Debug, PartialEq)]
enum Piece<'a> {
    Text(Role, String),
    /// The id, the name and the arguments of a call. The arguments are compared as values, because clients may format JSON
    /// differently.
    Call(&'a str, &'a str, Value),
    Other(Role, &'a Part),
}

impl Piece<'_> {
    /// Whether the model wrote the piece.
    fn is_answer(&self) -> bool {
        matches!(self, Self::Text(Role::Assistant, _) | Self::Call(..) | Self::Other(Role::Assistant, _))
    }
}

/// Returns the pieces of a message. Reasoning and instructions are omitted.
fn pieces(role: Role, parts: &[Part]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::with_capacity(parts.len());
    for part in parts.iter().filter(|_| role != Role::System) {
        match (part, pieces.last_mut()) {
            (Part::Reasoning(_), _) => {}
            (Part::Text(text), _) if text.is_empty() => {}
            (Part::Text(text), Some(Piece::Text(_, last))) => last.push_str(text),
            (Part::Text(text), _) => pieces.push(Piece::Text(role, text.clone())),
            (Part::ToolCall(ToolCall { id, name, arguments }), _) => {
                pieces.push(Piece::Call(id, name, arguments.read().unwrap_or_default()));
            }
            (other, _) => pieces.push(Piece::Other(role, other)),
        }
    }
    pieces
}

/// Returns the length of the longest prefix of `sent` that ends at one of `ends` and occurs anywhere in `stored`; 0 if there is
/// none. Takes time linear in both lengths (Knuth-Morris-Pratt search).
fn known_prefix(sent: &[Piece<'_>], ends: &[usize], stored: &[Piece<'_>]) -> usize {
    if sent.is_empty() {
        return 0;
    }
    // For each prefix, by its length: `shorter` is the length of the longest shorter prefix that is also a suffix of it (the
    // failure function), and `ending` is the length of its longest suffix that is also a prefix ending at one of `ends`.
    let (mut shorter, mut ending) = (vec![0; sent.len() + 1], vec![0; sent.len() + 1]);
    for length in 1..=sent.len() {
        if length > 1 {
            shorter[length] = extend_match(sent, &shorter, shorter[length - 1], &sent[length - 1]);
        }
        ending[length] = if ends.binary_search(&length).is_ok() { length } else { ending[shorter[length]] };
    }
    let (mut length, mut longest) = (0, 0);
    for piece in stored {
        let from = if length == sent.len() { shorter[length] } else { length };
        length = extend_match(sent, &shorter, from, piece);
        longest = longest.max(ending[length]);
    }
    longest
}

/// Returns the length of the longest prefix of `sent` that matches up to and including `piece`, if a prefix of `length` matches
/// before it.
fn extend_match(sent: &[Piece<'_>], shorter: &[usize], mut length: usize, piece: &Piece<'_>) -> usize {
    while length > 0 && sent[length] != *piece {
        length = shorter[length];
    }
    if sent[length] == *piece { length + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces_of(texts: &str) -> Vec<Piece<'static>> {
        let role = |text: char| if text.is_uppercase() { Role::Assistant } else { Role::User };
        texts.chars().map(|text| Piece::Text(role(text), text.to_string())).collect()
    }

    /// Calls [`known_prefix`] with messages of one letter each. Capital letters are answers.
    fn known_prefix_of_letters(sent: &str, stored: &str) -> usize {
        let ends: Vec<usize> = (1..=sent.len()).filter(|end| sent.as_bytes()[end - 1].is_ascii_uppercase()).collect();
        known_prefix(&pieces_of(sent), &ends, &pieces_of(stored))
    }

    #[test]
    fn the_longest_stored_prefix_that_ends_with_an_answer_is_known() {
        for (sent, stored, known) in [
            ("aAb", "aA", 2),
            ("aAbBc", "xXaAbB", 4),
            ("bBc", "aAbB", 2),
            ("aAb", "aAbB", 2),
            ("aAbBc", "aAxX", 2),
            ("aAaAaAb", "aAaA", 4),
            ("aAaAb", "aAaAaA", 4),
            ("aXbB", "aAbB", 0),
            ("sSbBc", "aAbB", 0),
            ("abA", "ab", 0),
            ("aA", "", 0),
            ("", "aA", 0),
        ] {
            assert_eq!(known_prefix_of_letters(sent, stored), known, "{sent} in {stored}");
        }
    }

    #[test]
    fn linear_search_finds_the_same_prefix_as_trying_every_position() {
        let letters = |mut number: usize, length: usize| -> String {
            let mut letter = || {
                let letter = ['a', 'A', 'b', 'B'][number % 4];
                number /= 4;
                letter
            };
            (0..length).map(|_| letter()).collect()
        };
        for (sent, stored) in (0..4096).flat_map(|sent| (0..4096).step_by(331).map(move |stored| (sent, stored))) {
            let (sent, stored) = (letters(sent, 6), letters(stored, 6));
            let is_end = |end: &usize| sent.as_bytes()[end - 1].is_ascii_uppercase() && stored.contains(&sent[..*end]);
            let expected = (1..=6).filter(is_end).max().unwrap_or(0);
            assert_eq!(known_prefix_of_letters(&sent, &stored), expected, "{sent} in {stored}");
        }
    }
}
