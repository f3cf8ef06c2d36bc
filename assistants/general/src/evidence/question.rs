//! Interprets questions: the topic, and the time of the messages that the question asks about.

use std::collections::HashSet;

use threadkeep::core::text::content_terms;
use threadkeep::dialogue::time::{TimeExpression, find_times};
use threadkeep::dialogue::{Utterance, is_question};

use super::{is_name_word, sentences, spelling};

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

/// Words that occur in questions about almost anything. A statement that answers the question may lack them.
const LIGHT: [&str; 114] = [
    "start", "starts", "starting", "finish", "finishes", "begin", "begins", "empieza", "termina", "acaba", "empezar",
    "often", "menudo", "seguido", "turn", "turns", "number", "numero", "numbers", "messages", "message", "mensajes",
    "saved", "stored", "porfa", "latest", "quick", "exact", "put", "puts", "give", "gives", "given", "giving", "gave",
    "take", "takes", "took", "taking", "make", "makes", "made", "making", "bring", "brings", "bringing", "come",
    "comes", "coming", "came", "go", "goes", "went", "use", "uses", "using", "used", "keep", "keeps", "kept", "see",
    "seeing", "seen", "call", "calls", "ring", "say", "says", "like", "set", "look", "looks", "work", "works",
    "working", "let", "lets", "try", "think", "mean", "means", "happens", "dear", "supposed", "need", "needs",
    "needed", "want", "wants", "going", "gets", "getting", "left", "new", "current", "entonces", "viene", "vienen",
    "venir", "voy", "ir", "hace", "hacen", "hacer", "pone", "ponen", "lleva", "llevan", "llevar", "dar", "queda",
    "llega", "trae", "saben",
];

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
        let wanted = wanted(&own);
        let both = Utterance::new(format!("{question}\n{earlier}"));
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
            time,
        }
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

/// Returns the questions in a message, such as the second sentence of "Only two came. When was it due?". If no sentence is a question, the
/// whole message counts as one.
fn questions_of(message: &str) -> String {
    let asks =
        |sentence: &&str| is_question(sentence) || asks_in_clause(sentence) || has_accented_interrogative(sentence);
    let questions: Vec<&str> = sentences(message).filter(asks).map(asked_part).collect();
    if questions.is_empty() { message.to_owned() } else { questions.join(" ") }
}

/// Returns the part of a long, polite question that contains the actual question: "I would be grateful if you could tell me | which cloth they chose".
fn asked_part(sentence: &str) -> &str {
    let sentence = without_reason(sentence);
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
    start.map_or(sentence, |start| &sentence[words[start].span.start..])
}

/// Removes a remark from a question: "what was the hotel called, want to leave a review", "left my goggles, how long are they kept".
fn without_reason(sentence: &str) -> &str {
    let Some((first, rest)) = sentence.split_once(',') else { return sentence };
    let first_word = |text: &str| Utterance::new(text).word(0).to_owned();
    let asks = |text: &str| INTERROGATIVES.contains(&first_word(text).as_str());
    let is_remark = |text: &str| REMARKS.contains(&first_word(text).as_str());
    let (first_asks, rest_asks) = (asks(first), asks(rest));
    match (first_asks, rest_asks) {
        (true, false) if is_remark(rest) && Utterance::new(first).words().len() > 2 => first,
        (false, true) if is_remark_before(first, rest) => rest.trim_start(),
        _ => sentence,
    }
}

/// Whether the first part of a sentence is a remark, and the rest a question that can be understood without it. A condition is part of the
/// question: "if the centrifuge shows E7, what do I do?"
fn is_remark_before(first: &str, rest: &str) -> bool {
    let first = Utterance::new(first);
    let is_condition = matches!(first.word(0), "if" | "si" | "when" | "cuando" | "for" | "in" | "about" | "para");
    !is_condition && first.words().len() > 3 && content_terms(rest).len() > 2
}

/// Whether a clause after the first is a question: "left my goggles there last week, how long do they keep stuff".
pub(crate) fn asks_in_clause(sentence: &str) -> bool {
    sentence.split([',', ';']).skip(1).any(|clause| {
        let clause = Utterance::new(clause);
        INTERROGATIVES.contains(&clause.word(0))
            && AFTER_INTERROGATIVES.contains(&clause.word(1))
            && clause.words().len() > 2
            || matches!(clause.word(0), "whats" | "wheres" | "whens" | "whos")
    })
}

/// Whether a short text contains a Spanish interrogative with its accent: "y la llave quién la tiene".
pub(crate) fn has_accented_interrogative(text: &str) -> bool {
    const ACCENTED: [&str; 12] = [
        "qué", "quién", "quiénes", "cuándo", "dónde", "cuál", "cuáles", "cuánto", "cuánta", "cuántos", "cuántas",
        "cómo",
    ];
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.len() <= MAX_PLAIN_WORDS && words.iter().any(|word| ACCENTED.contains(word))
}

/// Whether a sentence asks something in any of its parts: "the water bill was how much", "brisket how many lb".
pub(crate) fn asks_within(sentence: &str) -> bool {
    let utterance = Utterance::new(sentence);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let is_pair = |pair: &[&str]| {
        matches!(pair, ["how", "much" | "many" | "long" | "often" | "soon"] | ["what", "time" | "day" | "date"])
    };
    let ends = words.last().is_some_and(|last| {
        matches!(*last, "who" | "when" | "where" | "what" | "which" | "quien" | "cuando" | "donde")
    });
    let starts =
        words.iter().take(MAX_START).any(|word| INTERROGATIVES.contains(word) || matches!(*word, "cuanta" | "cuantas"));
    asks_in_clause(sentence) || ends || starts || words.windows(2).any(is_pair)
}

/// How many words at the start of a sentence are searched for an interrogative: "y quien", "con cuánta antelación".
const MAX_START: usize = 2;

/// Words that follow an interrogative: "how long", "what is".
const AFTER_INTERROGATIVES: [&str; 43] = [
    "is", "are", "was", "were", "do", "does", "did", "can", "could", "will", "would", "should", "has", "have", "had",
    "long", "much", "many", "often", "soon", "far", "time", "day", "date", "number", "es", "son", "era", "esta",
    "estan", "hay", "hago", "hace", "puedo", "tengo", "tiene", "dia", "hora", "fecha", "vale", "cuesta", "me", "lo",
];

/// First words of remarks after a question.
const REMARKS: [&str; 25] = [
    "i", "im", "ive", "want", "need", "because", "cause", "cos", "so", "since", "as", "its", "just", "thinking",
    "trying", "hoping", "asking", "quiero", "necesito", "porque", "es", "pues", "para", "voy", "tengo",
];

/// Questions with at most this many words are not shortened.
const MAX_PLAIN_WORDS: usize = 20;

/// Splits a message that asks several questions at once: "what day is judo and who goes to music?"
pub(crate) fn split_questions(message: &str) -> Vec<String> {
    let text = questions_of(&spelling::corrected(message));
    let utterance = Utterance::new(&*text);
    let words = utterance.words();
    let is_boundary = |at: &usize| {
        matches!(words[*at].folded.as_str(), "and" | "y" | "also")
            && words.get(at + 1).is_some_and(|next| INTERROGATIVES.contains(&next.folded.as_str()))
    };
    let mut parts = Vec::new();
    let mut start = 0;
    for at in (1..words.len()).filter(is_boundary) {
        parts.push(text[start..words[at].span.start].to_owned());
        start = words[at + 1].span.start;
    }
    parts.push(text[start..].to_owned());
    parts
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

/// Words that begin questions.
const INTERROGATIVES: [&str; 21] = [
    "what", "whats", "when", "whens", "where", "wheres", "which", "who", "whos", "whose", "how", "que", "cuando",
    "donde", "quien", "quienes", "cual", "cuales", "cuanto", "cuantos", "como",
];

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

/// Words that are requests at the start of a message but nouns elsewhere: "find my notes", but "the search service".
const REQUESTS_OR_NOUNS: [&str; 10] =
    ["search", "list", "show", "look", "name", "detail", "details", "question", "report", "share"];
/// The maximum number of words of a question in which "back" means a return: "and back?"
const MAX_RETURN_QUESTION_WORDS: usize = 4;
/// The last position at which a word in [`REQUESTS_OR_NOUNS`] counts as a request.
const MAX_REQUEST_POSITION: usize = 1;

fn is_request_word(folded: &str) -> bool {
    REQUEST_WORDS.contains(&folded) || SAYING.contains(&folded) || SAYING_IN_SPANISH.contains(&folded)
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

/// Words in requests that do not name a topic.
const REQUEST_WORDS: [&str; 175] = [
    "per",
    "doesnt",
    "isnt",
    "wont",
    "wasnt",
    "havent",
    "hasnt",
    "shouldnt",
    "wouldnt",
    "couldnt",
    "arent",
    "werent",
    "meant",
    "mean",
    "llamo",
    "llaman",
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
