//! Recognises messages that a client sends again: agents store the messages of a run themselves and send all of them with each
//! request.

use threadkeep::core::limits::PAGE;
use threadkeep::{Bound, Draft, Message, MessageQuery, Part, Role, Scope, ThreadId, ToolCall, Value};

use crate::app::App;
use crate::error::ApiError;

/// The most pages of the thread that are searched: together they have more messages than one request can have.
const MAX_PAGES: usize = 3;

/// Returns the new messages of a request: without the longest prefix that ends with an answer and is in the thread as well.
pub(super) async fn without_resent(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    mut drafts: Vec<Draft>,
) -> Result<Vec<Draft>, ApiError> {
    // Up to each answer: the number of pieces, and of messages.
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
    let messages = newest(app, scope, thread, sent.len()).await?;
    let stored: Vec<Piece<'_>> =
        messages.iter().flat_map(|message| pieces(message.content.role, &message.content.parts)).collect();
    let ends: Vec<usize> = answers.iter().map(|(length, _)| *length).collect();
    let known = known_prefix(&sent, &ends, &stored);
    let count = answers.iter().rev().find(|(length, _)| known > 0 && *length == known).map_or(0, |(_, count)| *count);
    Ok(drafts.split_off(count))
}

/// Returns a thread's latest messages, oldest first: twice as many as were sent, because others may have been added since.
async fn newest(app: &App, scope: &Scope, thread: ThreadId, sent: usize) -> Result<Vec<Message>, ApiError> {
    let (mut pages, mut before) = (Vec::new(), None);
    let mut left = sent.saturating_mul(2);
    while left > 0 && pages.len() < MAX_PAGES {
        let query = MessageQuery { before, ..MessageQuery::newest(left.min(PAGE)) };
        let page = app.memory().messages(scope, thread, &query).await?;
        left = left.saturating_sub(page.messages.len());
        before = page.messages.first().map(|message| Bound::Seq(message.seq));
        let is_last = !page.more || before.is_none();
        pages.push(page.messages);
        if is_last {
            break;
        }
    }
    Ok(pages.into_iter().rev().flatten().collect())
}

/// A part of the content, independent of how parts are divided into messages: the calls of an answer may be in one message or in
/// one message each.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(Role, String),
    /// A call's id, name and arguments. The arguments are compared as values, because clients may format their JSON differently.
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

/// Returns the length of the longest prefix of `sent` that ends at one of `ends` and occurs anywhere in `stored`. Takes time
/// linear in both lengths (Knuth-Morris-Pratt search).
fn known_prefix(sent: &[Piece<'_>], ends: &[usize], stored: &[Piece<'_>]) -> usize {
    if sent.is_empty() {
        return 0;
    }
    // For each prefix: the longest shorter prefix that is its suffix (the failure function), and the longest suffix of it that is
    // a prefix ending at one of `ends`.
    let (mut shorter, mut ending) = (vec![0; sent.len() + 1], vec![0; sent.len() + 1]);
    for length in 1..=sent.len() {
        if length > 1 {
            shorter[length] = extended(sent, &shorter, shorter[length - 1], &sent[length - 1]);
        }
        ending[length] = if ends.binary_search(&length).is_ok() { length } else { ending[shorter[length]] };
    }
    let (mut length, mut most) = (0, 0);
    for piece in stored {
        let from = if length == sent.len() { shorter[length] } else { length };
        length = extended(sent, &shorter, from, piece);
        most = most.max(ending[length]);
    }
    most
}

/// Returns the length of the longest prefix that matches up to and including a piece, after a match of `length` before it.
fn extended(sent: &[Piece<'_>], shorter: &[usize], mut length: usize, piece: &Piece<'_>) -> usize {
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

    /// Each letter is a message; capitals are answers.
    fn known_of(sent: &str, stored: &str) -> usize {
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
            assert_eq!(known_of(sent, stored), known, "{sent} in {stored}");
        }
    }

    #[test]
    fn the_linear_search_finds_the_same_as_trying_every_position() {
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
            assert_eq!(known_of(&sent, &stored), (1..=6).filter(is_end).max().unwrap_or(0), "{sent} in {stored}");
        }
    }
}
