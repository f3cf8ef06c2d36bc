//! Interprets questions: the topic, and the time of the messages that the question asks about.

mod parts;
mod words;

use std::collections::HashSet;

use threadkeep::core::text::content_terms;
use threadkeep::dialogue::Utterance;
use threadkeep::dialogue::time::{Period, TimeExpression, find_times};

use parts::questions_of;
pub(crate) use parts::{asks_in_clause, asks_within, has_accented_interrogative, split_questions};
use words::{
    LIGHT, MAX_REQUEST_POSITION, MAX_RETURN_QUESTION_WORDS, REQUESTS_OR_NOUNS, SAYING, SAYING_IN_SPANISH,
    is_request_word,
};

use super::{is_name_word, spelling};

/// A word of a question.
#[derive(Clone, Debug)]
pub(crate) struct QuestionWord {
    /// The word, normalized.
    pub(crate) word: String,
    /// Its stems.
    pub(crate) stems: Vec<String>,
    /// Whether the word says little about the topic: "get", "take".
    pub(crate) is_light: bool,
}

/// Returns other ways to write a small number: "two" and "dos" for "2".
fn number_words(word: &str) -> impl Iterator<Item = &'static str> {
    const NUMBERS: [[&str; 3]; 11] = [
        ["2", "two", "dos"],
        ["3", "three", "tres"],
        ["4", "four", "cuatro"],
        ["5", "five", "cinco"],
        ["6", "six", "seis"],
        ["7", "seven", "siete"],
        ["8", "eight", "ocho"],
        ["9", "nine", "nueve"],
        ["10", "ten", "diez"],
        ["11", "eleven", "once"],
        ["12", "twelve", "doce"],
    ];
    let written = NUMBERS.iter().find(|written| written.contains(&word));
    written.into_iter().flatten().copied().filter(move |other| *other != word).collect::<Vec<_>>().into_iter()
}

/// Returns the number in an ordinal such as "29th".
fn day_of_month(word: &str) -> Option<String> {
    let number = ["st", "nd", "rd", "th"].iter().find_map(|suffix| word.strip_suffix(suffix))?;
    number.parse::<u8>().ok().filter(|number| (1..=31).contains(number)).map(|number| number.to_string())
}

/// Whether a word says little about the topic of a message.
pub(crate) fn is_light(word: &str) -> bool {
    LIGHT.contains(&word)
}

impl QuestionWord {
    fn new(word: String, mut stems: Vec<String>) -> Self {
        let is_light = is_light(&word);
        let similar: Vec<String> =
            spelling::similar(&word).flat_map(content_terms).flat_map(|(_, similar)| similar).collect();
        stems.extend(similar);
        // "the 29th" matches "29 January".
        stems.extend(day_of_month(&word));
        // "round 2" matches "round two".
        stems.extend(number_words(&word).map(str::to_owned));
        Self { word, stems, is_light }
    }

    /// Returns the weight of the word when the share of matched words is computed.
    pub(crate) fn share(&self) -> f64 {
        if self.is_light { 0.3 } else { 1.0 }
    }

    /// Whether the word identifies something: "4c", but not the day "4th".
    pub(crate) fn is_identifier(&self) -> bool {
        self.word.contains(|c: char| c.is_ascii_digit()) && day_of_month(&self.word).is_none()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, String> {
        self.stems.iter()
    }
}

impl PartialEq for QuestionWord {
    fn eq(&self, other: &Self) -> bool {
        self.stems == other.stems
    }
}

/// The kind of value that answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedValue {
    /// A time: "when", "what time".
    Time,
    /// A number: "how much", "the code".
    Number,
    /// Any text.
    Any,
}

/// A question, together with the earlier questions that it refers to.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The words of the question that name its topic.
    pub(crate) topic: Vec<QuestionWord>,
    /// The topic words of the earlier questions that do not occur in the question itself.
    pub(crate) earlier_topic: Vec<QuestionWord>,
    /// The words of the question's time expressions.
    pub(crate) time_words: Vec<QuestionWord>,
    /// The kind of value that answers the question.
    pub(crate) wanted: WantedValue,
    /// Whether the question asks what the user said, rather than what is true.
    pub(crate) asks_what_was_said: bool,
    /// Whether the question asks what the user did or said, which documents cannot answer.
    pub(crate) asks_about_user: bool,
    /// Whether the question asks for the user's name.
    pub(crate) asks_for_name: bool,
    /// Whether the question asks what was true in the past: "what was it last week".
    pub(crate) asks_past: bool,
    /// Whether the question asks how long ago something was, or how far ahead it is.
    pub(crate) asks_distance: bool,
    /// The first time expression. If the question asks what was said, it selects messages by the time at which they were sent.
    pub(crate) time: Option<TimeExpression>,
}

impl Question {
    /// Parses a question and the texts of the earlier questions that it refers to.
    pub(crate) fn new(message: &str, earlier: &str) -> Self {
        let question = spelling::corrected(&questions_of(&spelling::corrected(message)));
        let (topic, time_words) = topic_and_time_words(&question);
        let (mut earlier_topic, _) = topic_and_time_words(earlier);
        earlier_topic.retain(|stems| !topic.contains(stems));
        let own = Utterance::new(&*question);
        let is_name = |word: &QuestionWord| is_name_word(&word.word);
        let asks_for_name = topic.iter().all(|word| word.is_light || is_name(word)) && asks_for_name(&own);
        let topic = if asks_for_name { vec![QuestionWord::new("name".to_owned(), name_stems())] } else { topic };
        let both = Utterance::new(format!("{question}\n{earlier}"));
        // In "two months ago", which names no time that is understood, the words are a condition.
        let asks_distance = asks_distance(&both);
        let is_distance = |word: &QuestionWord| matches!(&*word.word, "ago" | "until" | "till");
        let topic: Vec<QuestionWord> = topic.into_iter().filter(|word| !asks_distance || !is_distance(word)).collect();
        let wanted = if asks_distance { WantedValue::Time } else { wanted(&own) };
        let asks_what_was_said = asks_what_was_said(&own) || (topic.is_empty() && asks_what_was_said(&both));
        let time = find_times(&both).first().map(|found| found.time);
        let word = |word: &str| own.words().iter().any(|known| known.folded == word);
        let asks_past = ["was", "were", "era", "estaba", "fue"].into_iter().any(word);
        let asks_about_user = asks_what_was_said || (word("did") && (word("i") || word("we")));
        Self {
            topic,
            earlier_topic,
            time_words,
            wanted,
            asks_what_was_said,
            asks_about_user,
            asks_for_name,
            asks_past,
            asks_distance,
            time,
        }
    }

    /// Whether the question asks for everything that happens on a day: "what have I got on today?", "what did I do on 2 May?"
    pub(crate) fn asks_for_events(&self) -> bool {
        let names_day = self.time.and_then(|time| time.period).is_some_and(Period::names_day);
        let is_general = |word: &QuestionWord| EVENTS.contains(&word.word.as_str());
        names_day && !self.asks_what_was_said && self.topic.iter().chain(&self.earlier_topic).all(is_general)
    }

    /// The time at which the messages must have been sent, if the question asks what was said at a time.
    pub(crate) fn time_of_messages(&self) -> Option<TimeExpression> {
        self.time.filter(|_| self.asks_what_was_said)
    }

    /// Whether the question asks for everything that was said at a time.
    pub(crate) fn has_no_topic(&self) -> bool {
        self.topic.is_empty() && self.earlier_topic.is_empty()
    }
}

/// Words of a question for everything that happens on a day.
const EVENTS: [&str; 14] = [
    "plans",
    "planned",
    "plan",
    "diary",
    "calendar",
    "agenda",
    "schedule",
    "scheduled",
    "going",
    "planes",
    "events",
    "coming",
    "hacer",
    "hice",
];

/// Whether a question asks how long ago something was, or how far ahead it is: "how many days ago", "hace cuánto".
fn asks_distance(question: &Utterance) -> bool {
    let words: Vec<&str> = question.words().iter().map(|word| word.folded.as_str()).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let asks_length = words.windows(2).any(|pair| {
        matches!(
            pair,
            ["how", "many" | "long"] | ["hace" | "faltan" | "falta", "cuanto" | "cuantos"] | ["cuantos" | "cuantas", _]
        )
    });
    let units = has(&["days", "day", "weeks", "long", "dias", "semanas", "cuanto"]);
    let names_days = has(&["days", "day", "dias"]);
    asks_length
        && units
        && (has(&["ago", "hace", "faltan", "falta"]) || names_days && has(&["until", "till", "since", "away", "left"]))
}

/// Returns the kind of value that a question asks for.
fn wanted(question: &Utterance) -> WantedValue {
    let words: Vec<&str> = question.words().iter().map(|word| word.folded.as_str()).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let pairs: [[&str; 2]; 11] = [
        ["what", "time"],
        ["what", "day"],
        ["which", "day"],
        ["what", "date"],
        ["how", "long"],
        ["how", "soon"],
        ["how", "often"],
        ["que", "dia"],
        ["que", "hora"],
        ["que", "fecha"],
        ["which", "year"],
    ];
    let has_pair = words.windows(2).any(|two| pairs.iter().any(|pair| two == pair));
    if has(&["when", "whens", "cuando", "hora", "fecha", "date", "deadline"]) || has_pair {
        return WantedValue::Time;
    }
    let asks_amount = words.windows(2).any(|two| matches!(two, ["how", "much" | "many" | "big" | "tall" | "heavy"]));
    let names_number = [
        "cuanto",
        "cuanta",
        "cuantos",
        "cuantas",
        "code",
        "pin",
        "number",
        "price",
        "cost",
        "weight",
        "rent",
        "budget",
        "phone",
        "telephone",
        "salary",
        "codigo",
        "clave",
        "numero",
        "precio",
        "telefono",
        "peso",
    ];
    if asks_amount || has(&names_number) { WantedValue::Number } else { WantedValue::Any }
}

/// Whether a message asks for the user's name. In other questions, words such as "name" are not a topic.
fn asks_for_name(utterance: &Utterance) -> bool {
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let pairs = [["my", "name"], ["me", "llamo"], ["mi", "nombre"], ["i", "called"], ["be", "called"], ["name", "do"]];
    words.windows(2).any(|pair| pairs.iter().any(|known| pair == known))
}

/// Returns the stems of the preferences that hold a user's name.
fn name_stems() -> Vec<String> {
    content_terms("name nombre").into_iter().flat_map(|(_, stems)| stems).collect()
}

/// Returns the stems of the words that name the topic, and the stems of the words in time expressions.
fn topic_and_time_words(text: &str) -> (Vec<QuestionWord>, Vec<QuestionWord>) {
    let utterance = Utterance::new(text);
    let times: Vec<_> = find_times(&utterance).into_iter().map(|found| found.words).collect();
    let (mut topic, mut time_words) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for (at, word) in utterance.words().iter().enumerate() {
        for (folded, stems) in content_terms(&word.folded) {
            if !seen.insert(folded.clone()) {
                continue;
            }
            if times.iter().any(|range| range.contains(&at)) {
                time_words.push(QuestionWord::new(folded, stems));
            } else if !is_request_word(&folded)
                || (folded == "back" && utterance.words().len() <= MAX_RETURN_QUESTION_WORDS)
                || (at > MAX_REQUEST_POSITION && REQUESTS_OR_NOUNS.contains(&folded.as_str()))
            {
                topic.push(QuestionWord::new(folded, stems));
            }
        }
    }
    (topic, time_words)
}

/// Whether a message asks what the user said: it contains a verb of saying with "I" or "we", or such a Spanish verb in the first person.
fn asks_what_was_said(utterance: &Utterance) -> bool {
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let says = |word: &&str| SAYING.contains(word);
    let spanish = words.iter().any(|word| SAYING_IN_SPANISH.contains(word));
    // "Who do I tell?" asks what to do.
    let is_rule = words.windows(2).any(|pair| {
        matches!(pair, ["do" | "must" | "should" | "can" | "could" | "may" | "shall" | "would", "i" | "we"])
    });
    let is_past = words.iter().any(|word| matches!(*word, "did" | "have" | "ive" | "had"));
    spanish
        || words.iter().any(says)
            && words.iter().any(|word| matches!(*word, "i" | "we" | "ive"))
            && (is_past || !is_rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(stems: &[QuestionWord]) -> Vec<&str> {
        stems.iter().map(|word| word.stems[0].as_str()).collect()
    }

    #[test]
    fn messages_are_split_into_questions() {
        let split = split_questions("Only two came. what day is judo and who goes to music?");
        assert_eq!(split, ["what day is judo ", "who goes to music?"]);
        assert_eq!(split_questions("bread and butter"), ["bread and butter"]);
    }

    #[test]
    fn topics_exclude_requests_and_times() {
        let question = Question::new("What did I say about the Falcon budget last week?", "");
        assert_eq!(
            (words(&question.topic), words(&question.time_words)),
            (vec!["falcon", "budget"], vec!["last", "week"])
        );
        assert!(question.time_of_messages().is_some() && !question.has_no_topic());
        let follow_up = Question::new("and yesterday?", "What did I say about the Falcon budget last week?");
        assert_eq!((words(&follow_up.topic), words(&follow_up.earlier_topic)), (vec![], vec!["falcon", "budget"]));
        assert!(follow_up.time_of_messages().is_some_and(|time| format!("{time:?}").contains("Day(-1)")));
        assert!(Question::new("¿Qué te dije ayer?", "").has_no_topic());
        let event = Question::new("Who did I meet on Friday?", "");
        assert!(event.time_of_messages().is_none() && event.time.is_some());
    }
}
