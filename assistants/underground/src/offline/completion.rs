//! Rewrites messages that the intents cannot interpret as written: with fillers, corrections, and unusual word order.

use std::ops::Range;

use threadkeep::dialogue::{Extractor as _, Utterance};
use threadkeep::{ChatMessage, Role};
use threadkeep_transit::offline::in_plain_words;

use super::{SPEECH, conditions, disruptions, line_questions, namesakes, rewording, states, train_questions};
use crate::lines::line_runs;
use crate::network::gazetteer;
use crate::spoken_lines::{SpokenLines, may_refer_to_lines};

/// Sounds without a meaning.
const FILLERS: [&str; 10] = ["uh", "uhh", "uhm", "um", "umm", "erm", "er", "ehm", "mmm", "uhhh"];
/// Words between a place and the one that replaces it: "Greenwich, no wait, London Bridge".
const CORRECTING: [&str; 13] =
    ["no", "wait", "sorry", "actually", "i", "mean", "meant", "oops", "rather", "or", "hang", "on", "hold"];
/// Those of them that show a correction.
const DECISIVE: [&str; 6] = ["no", "wait", "sorry", "mean", "meant", "rather"];
/// Words before a place that the corrected place may repeat.
const PREPOSITIONS: [&str; 6] = ["to", "from", "at", "for", "in", "towards"];
/// Maximum number of corrections in a message.
const MAX_CORRECTIONS: usize = 4;

/// Returns the message to interpret instead of a message; `None` if it can be interpreted as written.
pub(super) fn complete(message: &str, earlier: &[ChatMessage]) -> Option<String> {
    let mut text = without_fillers(message);
    text = in_plain_words(&text).unwrap_or(text);
    for _ in 0..MAX_CORRECTIONS {
        let Some(corrected) = corrected_place(&Utterance::new(text.as_str())) else { break };
        text.replace_range(corrected, "");
    }
    if let Some(text) = SPEECH.with_earlier_boards(&text, earlier).or_else(|| namesakes::as_meant(&text, earlier)) {
        return Some(text);
    }
    let text = disruptions::of_disruption(&text, earlier).unwrap_or(text);
    let text = SPEECH.with_last_trip(&text, earlier).unwrap_or(text);
    let text = with_next_train(&text, earlier).unwrap_or(text);
    if let Some(text) =
        train_questions::with_train(&text, earlier).or_else(|| train_questions::with_other_board(&text, earlier))
    {
        return Some(text);
    }
    if let Some(text) = line_questions::with_line(&text, earlier).or_else(|| line_questions::with_lines_asked(&text)) {
        return Some(text);
    }
    let text = without_known_trouble(&text).or_else(|| only_state_asked(&text)).unwrap_or(text);
    let text = with_question_first(&text).unwrap_or(text);
    let text = with_role_first(&text).unwrap_or(text);
    let text = as_line(&text, earlier).unwrap_or(text);
    let text = without_namesake(&text).unwrap_or(text);
    let text = with_subject(&text, earlier).unwrap_or(text);
    let text = about_no_line(&text).unwrap_or(text);
    let text = namesakes::with_line_of_trip(&text, earlier).unwrap_or(text);
    let text = with_lines_named(&text, earlier).unwrap_or(text);
    let text = rewording::with_lines_of_section(&text).unwrap_or(text);
    let text = rewording::without_mistake(&text, earlier).unwrap_or(text);
    let text = rewording::with_lines_of_place(&text).or_else(|| rewording::with_line_to_place(&text)).unwrap_or(text);
    let text = rewording::with_boarding(&text).or_else(|| rewording::with_commute(&text)).unwrap_or(text);
    let text = rewording::with_own_line(&text, earlier).unwrap_or(text);
    let text = rewording::with_usual_line(&text).unwrap_or(text);
    let text = rewording::with_reason(&text, earlier).unwrap_or(text);
    let text = conditions::with_condition_asked(&text).unwrap_or(text);
    let text = rewording::with_board(&text, earlier).unwrap_or(text);
    let text = namesakes::with_namesake(&text, earlier).unwrap_or(text);
    (text != message).then_some(text)
}

/// Asks for the next train in "when is the first to Morden?", after a departure board.
fn with_next_train(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const OF_DAYS: [&str; 12] = [
        "morning", "tomorrow", "tonight", "today", "day", "train", "trains", "sunday", "saturday", "night", "service",
        "last",
    ];
    let message = Utterance::new(text);
    let first = (0..message.words().len()).find(|at| {
        let end = at + 1 + usize::from(message.word(at + 1) == "one");
        message.word(*at) == "first" && matches!(message.word(end), "to" | "via" | "towards" | "for")
    })?;
    let is_of_day = message.words().iter().any(|word| OF_DAYS.contains(&word.folded.as_str()));
    let mut calls = earlier.iter().rev().flat_map(ChatMessage::tool_calls);
    let follows_board = calls.next()?.name == "get_next_trains" && !gazetteer().find(&message).is_empty();
    let end = first + usize::from(message.word(first + 1) == "one");
    let bytes = message.words()[first].span.start..message.words()[end].span.end;
    (follows_board && !is_of_day).then(|| format!("{}next train{}", &text[..bytes.start], &text[bytes.end..]))
}

/// Keeps only the question in "I need City Airport, is the DLR fine?": where the user goes does not change the state of the line.
fn only_state_asked(text: &str) -> Option<String> {
    let (before, question) = text.rsplit_once(['.', ',', ';'])?;
    let (before, question) = (Utterance::new(before), Utterance::new(question.trim()));
    const ASKING: [&str; 12] =
        ["next", "when", "whens", "how", "which", "what", "where", "is", "are", "does", "if", "from"];
    let is_statement = !before.text().contains('?')
        && line_runs(&before).is_empty()
        && !before.words().iter().any(|word| ASKING.contains(&word.folded.as_str()))
        && !gazetteer().find(&before).is_empty();
    let asks = gazetteer().find(&question).is_empty() && !states::find_states(&question).is_empty();
    (is_statement && asks).then(|| question.text().to_owned())
}

/// Keeps only the question in "I know the Central is bad. Is anything else disrupted?", which is about all lines.
fn without_known_trouble(text: &str) -> Option<String> {
    let (before, question) = text.split_once(['.', ',', ';'])?;
    let (before, question) = (Utterance::new(before), Utterance::new(question));
    let has = |words: &[&str]| question.words().iter().any(|word| words.contains(&word.folded.as_str()));
    let asks = has(&["else", "other", "others"])
        && has(&["disrupted", "delayed", "down", "bad", "affected", "wrong", "delays", "problems", "closed"]);
    let is_known = !line_runs(&before).is_empty()
        && before.words().iter().any(|word| matches!(&*word.folded, "know" | "apart" | "besides" | "aside"));
    (asks && is_known && line_runs(&question).is_empty()).then(|| question.text().trim().to_owned())
}

/// Names the lines to which the message refers.
fn with_lines_named(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    may_refer_to_lines(text).then(|| {
        let spoken = earlier.iter().map(|message| (message.role, message.plain_text()));
        SpokenLines::of(spoken).with_names(text)
    })?
}

/// Moves a question from the end to the front: "so X to Y is how long?" asks how long it is.
fn with_question_first(text: &str) -> Option<String> {
    const QUESTIONS: [&str; 5] = ["how long", "how far", "how much time", "how many minutes", "how many mins"];
    let utterance = Utterance::new(text);
    let count = utterance.words().len();
    let end = QUESTIONS.iter().find_map(|question| {
        let words: Vec<&str> = question.split(' ').collect();
        let start = count.checked_sub(words.len()).filter(|start| *start > 1)?;
        words.iter().enumerate().all(|(at, word)| utterance.word(start + at) == *word).then_some(start)
    })?;
    let start = (end - 1..end).find(|at| matches!(utterance.word(*at), "is" | "takes" | "s" | "be"))?;
    let start = if utterance.word(start) == "be" { start.checked_sub(1)? } else { start };
    (start > 1).then(|| format!("{} is {}", utterance.said(end..count), utterance.said(0..start)))
}

/// Puts the role of a place before it: "make it West Ham start" starts from West Ham.
fn with_role_first(text: &str) -> Option<String> {
    let utterance = Utterance::new(text);
    let place = gazetteer().find(&utterance).into_iter().next_back()?;
    let mut at = place.words.end;
    while matches!(utterance.word(at), "as" | "the" | "a" | "my" | "for") {
        at += 1;
    }
    let preposition = match utterance.word(at) {
        "start" | "origin" => "from",
        "end" | "destination" => "to",
        _ => return None,
    };
    let before = place.words.start.checked_sub(1).map_or("", |at| utterance.word(at));
    let is_last = matches!(utterance.word(at + 1), "" | "instead" | "please" | "then");
    let span = |at: usize| utterance.words()[at].span.clone();
    // "The Waterloo end" is an end of a line.
    (is_last && before != "the" && !PREPOSITIONS.contains(&before)).then(|| {
        let (start, rest) = (span(place.words.start).start, &text[span(at).end..]);
        format!("{}{preposition} {}{rest}", &text[..start], utterance.said(place.words.clone()))
    })
}

/// After a question about the status of a line, "what about Victoria" means the line.
fn as_line(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const AROUND: [&str; 12] = ["and", "what", "about", "how", "the", "is", "ok", "okay", "or", "also", "then", "hows"];
    let utterance = Utterance::new(text).corrected(|message, at| SPEECH.correct(message, at));
    let at = (0..utterance.words().len()).find(|at| utterance.word(*at) == "victoria")?;
    let is_bare = |other: usize| other == at || AROUND.contains(&utterance.word(other));
    let calls = earlier.iter().rev().take_while(|message| message.role != Role::User);
    let last = calls.into_iter().flat_map(ChatMessage::tool_calls).last()?;
    (last.name == "get_line_status" && (0..utterance.words().len()).all(is_bare)).then(|| {
        let span = &utterance.words()[at].span;
        format!("{}the Victoria line{}", &text[..span.start], &text[span.end..])
    })
}

/// Removes "not the station" after a line, which only says what the name means: "the Victoria line, not the station".
fn without_namesake(text: &str) -> Option<String> {
    let utterance = Utterance::new(text);
    let runs = line_runs(&utterance);
    let [run] = &runs[..] else { return None };
    let at = run.words.end;
    let is_namesake = utterance.word(at) == "not"
        && utterance.word(at + 1) == "the"
        && matches!(utterance.word(at + 2), "station" | "stop" | "tube" | "place");
    let word = |at: usize| &utterance.words()[at].span;
    is_namesake.then(|| format!("{}{}", &text[..word(at - 1).end], &text[word(at + 2).end..]))
}

/// Names the subject of a question about the state of the line in the last answer: "on time?"
fn with_subject(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const BARE: [&str; 8] = [
        "on time",
        "running ok",
        "running okay",
        "running fine",
        "running normally",
        "delayed",
        "ok today",
        "all right today",
    ];
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let words = match &words[..] {
        ["and" | "is", rest @ ..] => rest.join(" "),
        all => all.join(" "),
    };
    let has_answer = earlier.iter().any(|message| message.role == Role::Assistant);
    (has_answer && BARE.contains(&words.as_str())).then(|| format!("is it {words}?"))
}

/// Replaces the "it" of "is it direct" and of "is it going to rain", which is no line.
fn about_no_line(text: &str) -> Option<String> {
    const OF_TRIPS: [&str; 8] = ["direct", "straight", "far", "quick", "through", "one", "walkable", "a"];
    const WEATHER: [&str; 10] =
        ["rain", "raining", "rainy", "snow", "snowing", "sunny", "cold", "hot", "windy", "warm"];
    let utterance = Utterance::new(text);
    let count = utterance.words().len();
    let has_weather = (0..count).any(|at| WEATHER.contains(&utterance.word(at)));
    let is_trip = |at: usize| OF_TRIPS.contains(&utterance.word(at)) && utterance.word(at + 1) != "line";
    let at = (0..count)
        .find(|at| utterance.word(*at) == "is" && utterance.word(at + 1) == "it" && (has_weather || is_trip(at + 2)))?;
    let span = &utterance.words()[at + 1].span;
    Some(format!("{}that{}", &text[..span.start], &text[span.end..]))
}

fn without_fillers(message: &str) -> String {
    let utterance = Utterance::new(message);
    let words = utterance.words();
    let fillers = words.iter().enumerate().filter(|(_, word)| FILLERS.contains(&word.folded.as_str())).rev();
    let mut text = message.to_owned();
    for (at, word) in fillers.filter(|_| words.len() > 2) {
        let end = words.get(at + 1).map_or(word.span.end, |next| next.span.start);
        text.replace_range(word.span.start..end, "");
    }
    text
}

/// Returns the bytes of a place that the message corrects, up to the place that replaces it.
fn corrected_place(message: &Utterance) -> Option<Range<usize>> {
    let places = gazetteer().find(message);
    places.iter().zip(places.iter().skip(1)).find_map(|(first, second)| {
        let before = first.words.start.checked_sub(1).map_or("", |at| message.word(at));
        let mut gap = first.words.end..second.words.start;
        // "to Bank, sorry, to Angel"
        if !gap.is_empty() && PREPOSITIONS.contains(&before) && message.word(gap.end - 1) == before {
            gap.end -= 1;
        }
        let is_correction = gap.clone().all(|at| CORRECTING.contains(&message.word(at)))
            && gap.clone().any(|at| DECISIVE.contains(&message.word(at)));
        let start = message.words()[first.words.start].span.start;
        let end = message.words()[second.words.start].span.start;
        is_correction.then_some(start..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_rewritten() {
        for (said, meant) in [
            (
                "i'm at bank and i need to get to uh greenwich no wait london bridge sorry london bridge",
                Some("i'm at bank and i need to get to london bridge"),
            ),
            ("from Oval to Bank, sorry, to Angel", Some("from Oval to Angel")),
            ("um how do i get to Bank", Some("how do i get to Bank")),
            ("from Oval, sorry, to Angel", None),
            ("no wait sorry, King's Cross", None),
            ("Bank or Monument", None),
            ("Is it direct", Some("Is that direct")),
            ("is it running", None),
            ("the Victoria line, not the station - delays?", Some("the Victoria line - delays?")),
            ("not Oval but Bank", None),
            ("So journey from work to home is how long?", Some("how long is So journey from work to home")),
            ("make it West Ham start", Some("make it from West Ham")),
            ("make Bank the destination please", Some("make to Bank please")),
        ] {
            assert_eq!(complete(said, &[]).as_deref(), meant, "{said}");
        }
    }
}
