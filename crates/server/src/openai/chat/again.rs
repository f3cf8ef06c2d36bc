//! What a client sends again of a thread: agents keep what was said in a run themselves, and send all of it with each request.

use threadkeep::core::limits::PAGE;
use threadkeep::{Bound, Draft, Message, MessageQuery, Part, Role, Scope, ThreadId, ToolCall, Value};

use crate::app::App;
use crate::error::ApiError;

/// Pages of the thread that are looked at: more than one request can hold.
const PAGES: usize = 3;

/// What is new of what a client sends into a thread: without what it begins with, up to an answer, where that stands in the
/// thread just so.
pub(super) async fn without_known(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    mut said: Vec<Draft>,
) -> Result<Vec<Draft>, ApiError> {
    // How much was said, in pieces, and how many messages that are, up to each answer.
    let (mut sent, mut answers) = (Vec::new(), Vec::new());
    for (index, draft) in said.iter().enumerate() {
        sent.extend(pieces(draft.content.role, &draft.content.parts));
        if draft.content.role == Role::Assistant {
            answers.push((sent.len(), index + 1));
        }
    }
    if answers.is_empty() {
        return Ok(said);
    }
    let messages = newest(app, scope, thread, sent.len()).await?;
    let there: Vec<Piece<'_>> =
        messages.iter().flat_map(|message| pieces(message.content.role, &message.content.parts)).collect();
    let ends: Vec<usize> = answers.iter().map(|(length, _)| *length).collect();
    let known = known(&sent, &ends, &there);
    let count = answers.iter().rev().find(|(length, _)| known > 0 && *length == known).map_or(0, |(_, count)| *count);
    Ok(said.split_off(count))
}

/// The end of a thread, oldest first: twice what was sent, as much may have been said since.
async fn newest(app: &App, scope: &Scope, thread: ThreadId, sent: usize) -> Result<Vec<Message>, ApiError> {
    let (mut pages, mut before) = (Vec::new(), None);
    let mut left = sent.saturating_mul(2);
    while left > 0 && pages.len() < PAGES {
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

/// A piece of what was said, the same however it is kept: an answer's calls in one message or each in its own.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Words(Role, String),
    /// Clients write arguments anew.
    Call(&'a str, &'a str, Value),
    Other(Role, &'a Part),
}

/// What a message says; what models do not take back, and instructions, are no part of it.
fn pieces(role: Role, parts: &[Part]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::with_capacity(parts.len());
    for part in parts.iter().filter(|_| role != Role::System) {
        match (part, pieces.last_mut()) {
            (Part::Reasoning(_), _) => {}
            (Part::Text(text), _) if text.is_empty() => {}
            (Part::Text(text), Some(Piece::Words(_, words))) => words.push_str(text),
            (Part::Text(text), _) => pieces.push(Piece::Words(role, text.clone())),
            (Part::ToolCall(ToolCall { id, name, arguments }), _) => {
                pieces.push(Piece::Call(id, name, arguments.read().unwrap_or_default()));
            }
            (other, _) => pieces.push(Piece::Other(role, other)),
        }
    }
    pieces
}

/// How much of the beginning of what was sent is there: the most that stands anywhere in the thread and ends at one of the ends.
/// It takes as long as both are, whatever is said (the search of Knuth, Morris and Pratt).
fn known(sent: &[Piece<'_>], ends: &[usize], there: &[Piece<'_>]) -> usize {
    if sent.is_empty() {
        return 0;
    }
    // Of each beginning the longest shorter one that ends it, and the longest that ends it at an end.
    let (mut shorter, mut ending) = (vec![0; sent.len() + 1], vec![0; sent.len() + 1]);
    for length in 1..=sent.len() {
        if length > 1 {
            shorter[length] = longer(sent, &shorter, shorter[length - 1], &sent[length - 1]);
        }
        ending[length] = if ends.binary_search(&length).is_ok() { length } else { ending[shorter[length]] };
    }
    let (mut length, mut most) = (0, 0);
    for piece in there {
        let from = if length == sent.len() { shorter[length] } else { length };
        length = longer(sent, &shorter, from, piece);
        most = most.max(ending[length]);
    }
    most
}

/// How long a beginning ends with a piece, where one of a length ended before it.
fn longer(sent: &[Piece<'_>], shorter: &[usize], mut length: usize, piece: &Piece<'_>) -> usize {
    while length > 0 && sent[length] != *piece {
        length = shorter[length];
    }
    if sent[length] == *piece { length + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(said: &str) -> Vec<Piece<'static>> {
        let role = |word: char| if word.is_uppercase() { Role::Assistant } else { Role::User };
        said.chars().map(|word| Piece::Words(role(word), word.to_string())).collect()
    }

    /// Capitals are answers.
    fn known_of(sent: &str, there: &str) -> usize {
        let ends: Vec<usize> = (1..=sent.len()).filter(|end| sent.as_bytes()[end - 1].is_ascii_uppercase()).collect();
        known(&words(sent), &ends, &words(there))
    }

    #[test]
    fn the_longest_beginning_that_is_there_is_known() {
        for (sent, there, known) in [
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
            assert_eq!(known_of(sent, there), known, "{sent} in {there}");
        }
    }

    #[test]
    fn the_search_finds_what_trying_every_place_finds() {
        let said = |mut number: usize, length: usize| -> String {
            let mut word = || {
                let word = ['a', 'A', 'b', 'B'][number % 4];
                number /= 4;
                word
            };
            (0..length).map(|_| word()).collect()
        };
        for (sent, there) in (0..4096).flat_map(|sent| (0..4096).step_by(331).map(move |there| (sent, there))) {
            let (sent, there) = (said(sent, 6), said(there, 6));
            let is_end = |end: &usize| sent.as_bytes()[end - 1].is_ascii_uppercase() && there.contains(&sent[..*end]);
            assert_eq!(known_of(&sent, &there), (1..=6).filter(is_end).max().unwrap_or(0), "{sent} in {there}");
        }
    }
}
