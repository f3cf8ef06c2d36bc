//! The interpretation of a question: its topic, and the time of the messages that it asks about.

use std::collections::HashSet;

use threadkeep::core::text::content_terms;
use threadkeep::dialogue::time::{TimeExpression, find_times};
use threadkeep::dialogue::{Utterance, is_question};

use super::sentences;

/// The stems of a word.
pub(crate) type Stems = Vec<String>;

/// A question, with the earlier questions that it refers to.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The words of the question that name its topic.
    pub(crate) topic: Vec<Stems>,
    /// The topic words of the earlier questions that the question does not contain.
    pub(crate) earlier_topic: Vec<Stems>,
    /// The words of the question's time expressions.
    pub(crate) time_words: Vec<Stems>,
    /// Whether the question asks what the user said, rather than what is true.
    pub(crate) asks_what_was_said: bool,
    /// Whether the question asks what the user did or said: documents do not answer it.
    pub(crate) asks_about_user: bool,
    /// The first time expression. If the question asks what was said, it selects messages by the time at which they were sent.
    pub(crate) time: Option<TimeExpression>,
}

impl Question {
    /// Parses a question and the texts of the earlier questions that it refers to.
    pub(crate) fn new(message: &str, earlier: &str) -> Self {
        let question = questions_of(message);
        let (topic, time_words) = topic_and_time_words(&question);
        let (mut earlier_topic, _) = topic_and_time_words(earlier);
        earlier_topic.retain(|stems| !topic.contains(stems));
        let own = Utterance::new(&*question);
        let topic = if topic.is_empty() && asks_for_name(&own) { vec![name_stems()] } else { topic };
        let both = Utterance::new(format!("{question}\n{earlier}"));
        let asks_what_was_said = asks_what_was_said(&own) || (topic.is_empty() && asks_what_was_said(&both));
        let time = find_times(&both).first().map(|found| found.time);
        let word = |word: &str| own.words().iter().any(|known| known.folded == word);
        let asks_about_user = asks_what_was_said || (word("did") && (word("i") || word("we")));
        Self { topic, earlier_topic, time_words, asks_what_was_said, asks_about_user, time }
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

/// Returns the questions of a message: the second sentence of "Only two came. When was it due?". If no sentence is a question, the
/// whole message counts as one.
fn questions_of(message: &str) -> String {
    let questions: Vec<&str> = sentences(message).filter(|sentence| is_question(sentence)).map(asked_part).collect();
    if questions.is_empty() { message.to_owned() } else { questions.join(" ") }
}

/// Returns the part of a long, polite question that contains the actual question: "I would be grateful if you could tell me | which cloth they chose".
fn asked_part(sentence: &str) -> &str {
    let utterance = Utterance::new(sentence);
    let words = utterance.words();
    if words.len() <= MAX_PLAIN_WORDS {
        return sentence;
    }
    let is_asking = |at: &usize| {
        matches!(words[*at].folded.as_str(), "tell" | "know" | "remind" | "wonder" | "wondering" | "remember")
    };
    let is_interrogative = |at: &usize| INTERROGATIVES.contains(&words[*at].folded.as_str());
    let asking = (0..words.len()).rfind(is_asking);
    let start = asking.and_then(|asking| (asking..words.len().min(asking + 5)).find(is_interrogative));
    start.map_or(sentence, |start| &sentence[words[start].place.start..])
}

/// Questions of at most this number of words are not shortened.
const MAX_PLAIN_WORDS: usize = 20;

/// Splits a message that asks several things at once: "what day is judo and who goes to music?"
pub(crate) fn split_questions(message: &str) -> Vec<String> {
    let text = questions_of(message);
    let utterance = Utterance::new(&*text);
    let words = utterance.words();
    let is_border = |at: &usize| {
        matches!(words[*at].folded.as_str(), "and" | "y" | "also")
            && words.get(at + 1).is_some_and(|next| INTERROGATIVES.contains(&next.folded.as_str()))
    };
    let mut parts = Vec::new();
    let mut start = 0;
    for at in (1..words.len()).filter(is_border) {
        parts.push(text[start..words[at].place.start].to_owned());
        start = words[at + 1].place.start;
    }
    parts.push(text[start..].to_owned());
    parts
}

/// Whether a message asks for the user's name. In other questions, words such as "name" are not a topic.
fn asks_for_name(utterance: &Utterance) -> bool {
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let pairs = [["my", "name"], ["me", "llamo"], ["mi", "nombre"], ["i", "called"], ["be", "called"], ["name", "do"]];
    words.windows(2).any(|pair| pairs.iter().any(|known| pair == known))
}

/// The stems of the preference names for a user's name.
fn name_stems() -> Stems {
    content_terms("name nombre").into_iter().flat_map(|(_, stems)| stems).collect()
}

/// Words that begin a question after "and".
const INTERROGATIVES: [&str; 21] = [
    "what", "whats", "when", "whens", "where", "wheres", "which", "who", "whos", "whose", "how", "que", "cuando",
    "donde", "quien", "quienes", "cual", "cuales", "cuanto", "cuantos", "como",
];

/// Returns the stems of the words that name the topic, and the stems of the words in time expressions.
fn topic_and_time_words(text: &str) -> (Vec<Stems>, Vec<Stems>) {
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
                time_words.push(stems);
            } else if !is_request_word(&folded) || (at > MAX_REQUEST_POSITION && NOUNS_TOO.contains(&folded.as_str())) {
                topic.push(stems);
            }
        }
    }
    (topic, time_words)
}

/// Words that are requests at the start of a message and nouns elsewhere: "find my notes", but "the search service".
const NOUNS_TOO: [&str; 10] =
    ["search", "list", "show", "look", "name", "detail", "details", "question", "report", "share"];
/// The last position at which such a word is a request.
const MAX_REQUEST_POSITION: usize = 1;

fn is_request_word(folded: &str) -> bool {
    REQUEST_WORDS.contains(&folded) || SAYING.contains(&folded) || SAYING_IN_SPANISH.contains(&folded)
}

/// Whether a message asks what the user said: a verb of saying with "I" or "we", or a Spanish form that contains them.
fn asks_what_was_said(utterance: &Utterance) -> bool {
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let says = |word: &&str| SAYING.contains(word);
    let spanish = words.iter().any(|word| SAYING_IN_SPANISH.contains(word));
    spanish || words.iter().any(says) && words.iter().any(|word| matches!(*word, "i" | "we" | "ive"))
}

const SAYING: [&str; 30] = [
    "say",
    "said",
    "saying",
    "tell",
    "told",
    "telling",
    "talk",
    "talked",
    "talking",
    "speak",
    "spoke",
    "mention",
    "mentioned",
    "discuss",
    "discussed",
    "write",
    "wrote",
    "written",
    "note",
    "noted",
    "report",
    "reported",
    "share",
    "shared",
    "chat",
    "chatted",
    "state",
    "stated",
    "type",
    "typed",
];
const SAYING_IN_SPANISH: [&str; 20] = [
    "dije",
    "dijimos",
    "conte",
    "contamos",
    "hable",
    "hablamos",
    "hablado",
    "dicho",
    "contado",
    "mencione",
    "mencionamos",
    "mencionado",
    "escribi",
    "escribimos",
    "escrito",
    "anote",
    "apunte",
    "comente",
    "comentamos",
    "comentado",
];

/// Words of requests that do not name a topic.
const REQUEST_WORDS: [&str; 159] = [
    "tell",
    "told",
    "telling",
    "remind",
    "say",
    "said",
    "saying",
    "know",
    "knew",
    "remember",
    "recall",
    "mention",
    "mentioned",
    "talk",
    "talked",
    "talking",
    "speak",
    "spoke",
    "discuss",
    "discussed",
    "ask",
    "asked",
    "asking",
    "find",
    "search",
    "look",
    "lookup",
    "give",
    "show",
    "list",
    "need",
    "want",
    "wanted",
    "wondering",
    "wonder",
    "please",
    "pls",
    "thanks",
    "exactly",
    "actually",
    "again",
    "earlier",
    "before",
    "previously",
    "already",
    "still",
    "now",
    "currently",
    "today",
    "anything",
    "something",
    "everything",
    "thing",
    "things",
    "stuff",
    "info",
    "information",
    "detail",
    "details",
    "hey",
    "hi",
    "hello",
    "ok",
    "okay",
    "quick",
    "question",
    "get",
    "got",
    "go",
    "back",
    "one",
    "whats",
    "whens",
    "wheres",
    "whos",
    "hows",
    "u",
    "im",
    "ive",
    "dont",
    "didnt",
    "cant",
    "supposed",
    "dime",
    "dije",
    "dijimos",
    "dicho",
    "recuerdame",
    "recuerdas",
    "recordar",
    "sabes",
    "saber",
    "conte",
    "contado",
    "hablamos",
    "hablado",
    "mencione",
    "busca",
    "buscar",
    "acuerdas",
    "acuerdo",
    "ahora",
    "algo",
    "todo",
    "cosas",
    "favor",
    "day",
    "days",
    "date",
    "dates",
    "time",
    "hour",
    "hours",
    "much",
    "many",
    "long",
    "name",
    "called",
    "kindly",
    "grateful",
    "sorry",
    "excuse",
    "pardon",
    "perdona",
    "perdon",
    "disculpa",
    "oye",
    "otra",
    "vez",
    "dia",
    "dias",
    "fecha",
    "hora",
    "tengo",
    "tiene",
    "tienes",
    "hay",
    "tenia",
    "tenemos",
    "nombre",
    "llama",
    "llamaba",
    "mucho",
    "cuanto",
    "era",
    "fue",
    "sera",
    "soy",
    "eres",
    "dijo",
    "happen",
    "happened",
    "happening",
    "whatever",
    "ever",
    "wen",
    "anyway",
    "roughly",
    "right",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(stems: &[Stems]) -> Vec<&str> {
        stems.iter().map(|stems| stems[0].as_str()).collect()
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
