//! Recognises messages that a client sends again. Agent libraries, for example, keep the messages of a run themselves, and send all
//! of them with each request.

use threadkeep::core::limits::PAGE;
use threadkeep::{Bound, Draft, Message, MessageQuery, Part, Role, Scope, ThreadId, ToolCall, Value};

use crate::app::App;
use crate::error::ApiError;

/// The maximum number of pages of the thread that are searched. Together they contain more messages than one request can contain.
const MAX_PAGES: usize = 3;

/// Removes the messages that the thread already contains from a request: the longest prefix that ends with an answer and also
/// occurs in the thread.
pub(super) async fn without_resent(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    mut drafts: Vec<Draft>,
) -> Result<Vec<Draft>, ApiError> {
    // For each answer: the number of pieces and the number of messages up to and including the answer.
    let (mut sent, mut answers) = (Vec::new(), Vec::new());
    for (index, draft) in drafts.iter().enumerate() {
        sent.extend(pieces(draft.content.role, &draft.content.parts));
        if draft.content.role == Role::Assistant {
            answers.push((sent.len(), index + 1));
        }
    }
    if answers.is_empty() {
        return Ok(drafts);
    }
    let messages = newest_messages(app, scope, thread, sent.len()).await?;
    let stored: Vec<Piece<'_>> =
        messages.iter().flat_map(|message| pieces(message.content.role, &message.content.parts)).collect();
    let ends: Vec<usize> = answers.iter().map(|(length, _)| *length).collect();
    let known = known_prefix(&sent, &ends, &stored);
    let count = answers.iter().rev().find(|(length, _)| known > 0 && *length == known).map_or(0, |(_, count)| *count);
    Ok(drafts.split_off(count))
}

/// Returns a thread's latest messages, oldest first. Their number is about twice `sent`, the number of pieces in the request,
/// because other messages may have been added since.
async fn newest_messages(app: &App, scope: &Scope, thread: ThreadId, sent: usize) -> Result<Vec<Message>, ApiError> {
    let (mut pages, mut before) = (Vec::new(), None);
    let mut remaining = sent.saturating_mul(2);
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
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(Role, String),
    /// The id, the name and the arguments of a call. The arguments are compared as values, because clients may format JSON
    /// differently.
    Call(&'a str, &'a str, Value),
    Other(Role, &'a Part),
}

/// Returns the pieces of a message. Reasoning and instructions are left out.
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
