//! What the words of a message mean that point at something said before it: the result that "that number" means in "remember that number as
//! the pump hours", the option that "the last one" means in "I'll go for the last one".

use jiff::tz::TimeZone;
use threadkeep::agent::{Excerpt, SourceQuery};
use threadkeep::dialogue::time::{Direction, Relation, TimeExpression, TimeMention, find_times};
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{Bound, MessageQuery, Role, Timestamp};

use super::MAX_REFERENCE;
use crate::evidence::heading::{HOLDS, Heading, with_meaning, with_reference};
use crate::offline::{listed_items, ordinal};

/// How many earlier messages are searched for a result or a list.
const REACH: u64 = 12;
/// The minimum number of options in a list.
const MIN_OPTIONS: usize = 2;

/// What a message points at.
#[derive(Clone, Debug, PartialEq)]
enum Pointer {
    /// The last result of a calculation.
    Result,
    /// The option with this ordinal.
    Option(String),
}

/// Adds to the heading of an excerpt what its words mean.
pub(super) async fn add_meaning(source_query: &SourceQuery<'_>, excerpt: &mut Excerpt) {
    let is_by_user = Heading::parse(&excerpt.heading).is_some_and(|heading| heading.is_by_user());
    let Some(pointer) = pointer(&excerpt.text).filter(|_| is_by_user) else { return };
    let Some((thread, seq)) = excerpt.source.message_position() else { return };
    let query = MessageQuery {
        before: Some(Bound::Seq(seq)),
        after: Some(Bound::Seq(seq.saturating_sub(REACH + 1))),
        ..MessageQuery::newest(usize::try_from(REACH).unwrap_or(usize::MAX))
    };
    let Ok(page) = source_query.memory.messages(source_query.scope, thread, &query).await else { return };
    let earlier: Vec<(Role, String)> =
        page.messages.iter().map(|message| (message.content.role, message.plain_text().into_owned())).collect();
    match pointer {
        Pointer::Result => {
            let replies = earlier.iter().rev().filter(|(role, text)| *role == Role::Assistant && !text.is_empty());
            let result = replies.map(|(_, text)| text).next().and_then(|reply| result_of(reply));
            if let Some(result) = result {
                excerpt.heading = with_meaning(&excerpt.heading, result);
            }
        }
        Pointer::Option(word) => {
            let said = earlier.iter().rev().filter(|(role, text)| *role == Role::User && !is_question(text));
            let list = said.map(|(_, text)| (text, listed_items(text))).find(|(_, items)| items.len() >= MIN_OPTIONS);
            let Some((text, items)) = list else { return };
            let Some(item) = ordinal(&word, items.len()).and_then(|at| items.get(at)) else { return };
            excerpt.heading = with_meaning(&excerpt.heading, item);
            if Heading::parse(&excerpt.heading).is_some_and(|heading| heading.after.is_none()) {
                let text: String = text.chars().take(MAX_REFERENCE).collect();
                excerpt.heading = with_reference(&excerpt.heading, &text);
            }
        }
    }
}

/// Adds to the heading of a statement that announces a change which of its two parts holds on a day: "Gwen waters the plants, but from Monday
/// on Idris does".
pub(super) fn add_holding(excerpt: &mut Excerpt, now: Timestamp) {
    let fields = &excerpt.source.fields;
    let said_at: Option<Timestamp> = fields.get("said_at").and_then(|at| at.as_str()).and_then(|at| at.parse().ok());
    let holding = said_at.and_then(|said_at| holding(&excerpt.text, said_at, now)).map(str::to_owned);
    if let Some(holding) = holding {
        excerpt.heading = with_meaning(&excerpt.heading, &format!("{HOLDS}{holding}"));
    }
}

/// Returns the part of a statement that holds on a day, if the other part holds before or after a day that it names.
fn holding(text: &str, said_at: Timestamp, now: Timestamp) -> Option<&str> {
    const BOUNDARIES: [&str; 12] =
        [", but ", " but ", "; ", ". ", ", and ", " and ", ", pero ", " pero ", ", y ", " y ", ", then ", ", "];
    let utterance = Utterance::new(text);
    let today = jiff::Timestamp::from_microsecond(said_at.as_micros()).ok()?.to_zoned(TimeZone::UTC);
    let starts = |found: &TimeMention| {
        let word = |at: Option<usize>| at.map_or("", |at| utterance.word(at));
        let before = word(found.words.start.checked_sub(1));
        matches!(word(Some(found.words.start)), "from" | "starting" | "desde" | "since")
            || matches!(before, "from" | "starting" | "of" | "partir" | "desde")
    };
    let [ref found] = find_times(&utterance).into_iter().filter(starts).collect::<Vec<_>>()[..] else { return None };
    let cue = utterance.words().get(found.words.start)?.span.start;
    let (boundary, mark) = BOUNDARIES
        .iter()
        .filter_map(|mark| Some((text[..cue].rfind(mark)?, *mark)))
        .max_by_key(|(at, mark)| (at + mark.len(), mark.len()))?;
    let (before, after) = (&text[..boundary], &text[boundary + mark.len()..]);
    let from = TimeExpression { relation: Relation::At, ..found.time };
    let start = from.span(&today, Direction::Future)?.0?;
    let start = Timestamp::from_micros(start.timestamp().as_microsecond()).ok()?;
    let is_announced = said_at < start;
    let is_statement = |part: &str| Utterance::new(part).words().len() >= MIN_PART_WORDS;
    (is_announced && is_statement(before) && is_statement(after)).then_some(if now < start { before } else { after })
}

/// The minimum number of words in each part of a statement that announces a change.
const MIN_PART_WORDS: usize = 3;

/// Returns the result in an answer such as "7*365 = 2555".
fn result_of(reply: &str) -> Option<&str> {
    let (_, result) = reply.trim_end().rsplit_once(" = ")?;
    result.starts_with(|c: char| c.is_ascii_digit() || c == '-').then_some(result)
}

/// Returns what a message points at.
fn pointer(text: &str) -> Option<Pointer> {
    const NAMING: [&str; 26] = [
        "remember",
        "save",
        "keep",
        "note",
        "store",
        "call",
        "as",
        "is",
        "thats",
        "put",
        "write",
        "my",
        "recuerda",
        "guarda",
        "apunta",
        "anota",
        "como",
        "es",
        "llamalo",
        "guardalo",
        "apuntalo",
        "recuerdalo",
        "mi",
        "called",
        "make",
        "label",
    ];
    const CHOOSING: [&str; 34] = [
        "go", "going", "take", "taking", "took", "choose", "chose", "pick", "picked", "want", "went", "decided",
        "prefer", "like", "settle", "settled", "book", "booked", "buy", "get", "have", "quedo", "elijo", "elegi",
        "cojo", "prefiero", "quiero", "escojo", "gusta", "voy", "vamos", "tomo", "compro", "reservo",
    ];
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    if is_question(text) || text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let names_result = words.windows(2).any(|pair| {
        matches!(pair[0], "that" | "this" | "the" | "ese" | "este" | "esa" | "el" | "la")
            && matches!(
                pair[1],
                "number"
                    | "result"
                    | "figure"
                    | "total"
                    | "amount"
                    | "sum"
                    | "answer"
                    | "numero"
                    | "resultado"
                    | "cifra"
            )
    });
    let points = words.windows(2).any(|pair| matches!(pair, ["that" | "it" | "this" | "eso" | "esto", "as" | "como"]))
        || has(&["guardalo", "apuntalo", "recuerdalo", "llamalo"]);
    if has(&NAMING) && (names_result || points) {
        return Some(Pointer::Result);
    }
    if !has(&CHOOSING) {
        return None;
    }
    // "I'll go for the last one", "me quedo con la primera"
    let found = (0..words.len()).find(|at| {
        let ends = words.get(at + 1).is_none_or(|next| {
            matches!(
                *next,
                "one" | "option" | "choice" | "idea" | "opcion" | "then" | "please" | "pls" | "thanks" | "gracias"
            )
        });
        let is_introduced = at.checked_sub(1).is_some_and(|before| matches!(words[before], "the" | "el" | "la" | "lo"));
        ends && is_introduced && ordinal(words[*at], MIN_OPTIONS).is_some()
    })?;
    Some(Pointer::Option(words[found].to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_point_at_results_and_options() {
        let option = |word: &str| Some(Pointer::Option(word.to_owned()));
        for (text, expected) in [
            ("remember that number as the pump hours", Some(Pointer::Result)),
            ("save that as my budget", Some(Pointer::Result)),
            ("guárdalo como el total de la obra", Some(Pointer::Result)),
            ("I think I'll go for the last one", option("last")),
            ("pues me quedo con la primera", option("primera")),
            ("remember that the key is with Ana", None),
            ("I went there on the last day", None),
            ("which one did I go for, the last one?", None),
        ] {
            assert_eq!(pointer(text), expected, "{text}");
        }
        let (said_at, later) = ("2026-05-06T12:00:00Z".parse().unwrap(), "2026-05-12T12:00:00Z".parse().unwrap());
        let plants = "Gwen waters the plants, but from Monday 11 May on Idris waters them";
        assert_eq!(holding(plants, said_at, said_at), Some("Gwen waters the plants"));
        assert_eq!(holding(plants, said_at, later), Some("from Monday 11 May on Idris waters them"));
        assert_eq!(holding("the train from Monday was late, and I slept", said_at, later), None);
        assert_eq!(result_of("7*365 = 2555"), Some("2555"));
        assert_eq!(result_of("You said: x = y"), None);
    }
}
