//! What a quotation does not say: another name than the one asked for, a reason, a place, a price.

use threadkeep::core::text::Language;
use threadkeep::dialogue::{Utterance, is_question};

use super::quoting::quoted_texts;
use crate::evidence::question::{Question, WantedValue};
use crate::evidence::terms::Terms;
use crate::evidence::{Candidate, contains_topic, sentences, statements};

/// Says of an answer what it lacks, or withholds it if it is about another name. `referred` is the earlier question that the question
/// continues.
pub(super) fn checked(question: &str, referred: &str, answer: Option<String>, language: Language) -> Option<String> {
    let answer = answer?;
    if let Some(name) = missing_name(question, &answer) {
        return Some(match language {
            Language::English => format!("I found nothing about “{name}”."),
            Language::Spanish => format!("No encontré nada sobre “{name}”."),
        });
    }
    // The answer already says that something is missing.
    if !starts_with_quotation(&answer) {
        return Some(answer);
    }
    let names = Some(names_in(question)).filter(|names| !names.is_empty() || !has_personal_pronoun(question));
    let answer = about_names(&names.unwrap_or_else(|| names_in(referred)), &answer);
    let quoted = quoted_texts(&answer);
    let Some(missing) = missing(question, &quoted) else { return Some(answer) };
    Some(match (language, missing) {
        (Language::English, Missing::Reason) => format!("No reason is given. What I found:\n{answer}"),
        (Language::English, Missing::Place) => format!("No place is given. What I found:\n{answer}"),
        (Language::English, Missing::Price) => format!("No price is given. What I found:\n{answer}"),
        (Language::Spanish, Missing::Reason) => format!("No se da ninguna razón. Lo que encontré:\n{answer}"),
        (Language::Spanish, Missing::Place) => format!("No se da ningún lugar. Lo que encontré:\n{answer}"),
        (Language::Spanish, Missing::Price) => format!("No se da ningún precio. Lo que encontré:\n{answer}"),
        (Language::English, Missing::Name) => format!("No name is given. What I found:\n{answer}"),
        (Language::English, Missing::Number) => format!("No number is given. What I found:\n{answer}"),
        (Language::Spanish, Missing::Name) => format!("No se da ningún nombre. Lo que encontré:\n{answer}"),
        (Language::Spanish, Missing::Number) => format!("No se da ningún número. Lo que encontré:\n{answer}"),
        (Language::English, Missing::Duration) => format!("No duration is given. What I found:\n{answer}"),
        (Language::Spanish, Missing::Duration) => format!("No se da ninguna duración. Lo que encontré:\n{answer}"),
        (Language::English, Missing::Mention(word)) => {
            format!("No: I found nothing about “{word}”. The closest thing:\n{answer}")
        }
        (Language::Spanish, Missing::Mention(word)) => {
            format!("No: no encontré nada sobre “{word}”. Lo más parecido:\n{answer}")
        }
    })
}

/// Whether a question is about the person of the question before: "and her desk?"
fn has_personal_pronoun(question: &str) -> bool {
    let utterance = Utterance::new(question);
    utterance.words().iter().any(|word| matches!(&*word.folded, "she" | "her" | "hers" | "he" | "him" | "his"))
}

/// Removes the quotations about others if the question names someone and another quotation is about them.
fn about_names(names: &[String], answer: &str) -> String {
    let lines: Vec<&str> = answer.lines().collect();
    let names_one = |text: &str| names.iter().any(|name| text.contains(name.as_str()));
    let is_kept = |line: &&str| {
        let quoted = quoted_texts(line);
        quoted.is_empty() || names_one(&quoted) || !is_about_another(&quoted)
    };
    if !lines.iter().any(|line| names_one(&quoted_texts(line))) {
        return answer.to_owned();
    }
    lines.into_iter().filter(is_kept).collect::<Vec<_>>().join("\n")
}

/// Whether a statement begins with the name of someone: "Ben is allergic to nuts."
fn is_about_another(text: &str) -> bool {
    const OTHERS: [&str; 30] = [
        "the", "my", "our", "your", "it", "its", "he", "she", "we", "they", "i", "im", "there", "this", "that", "no",
        "yes", "now", "here", "a", "an", "his", "her", "their", "el", "la", "mi", "su", "sorry", "actually",
    ];
    const VERBS: [&str; 20] = [
        "is", "has", "was", "will", "likes", "needs", "lives", "works", "wants", "can", "cant", "does", "doesnt",
        "eats", "drinks", "takes", "leads", "hates", "loves", "es",
    ];
    let utterance = Utterance::new(text);
    let is_name = text.starts_with(char::is_uppercase) && !OTHERS.contains(&utterance.word(0));
    let verb = utterance.word(1);
    let is_third_person = verb.len() > 3 && verb.ends_with('s') && !verb.ends_with("ss");
    is_name && (VERBS.contains(&verb) || is_third_person)
}

/// Returns the names in a question: capitalized words after the first one.
fn names_in(question: &str) -> Vec<String> {
    let utterance = Utterance::new(question);
    let words = utterance.words().iter().skip(1);
    let names = words.filter_map(|word| {
        let name = question[word.span.clone()].trim_end_matches("'s").trim_end_matches("’s");
        let is_name = name.starts_with(char::is_uppercase)
            && name.len() > 1
            && !name.starts_with("I'")
            && !name.starts_with("I’");
        is_name.then(|| name.to_owned())
    });
    names.collect()
}

fn starts_with_quotation(answer: &str) -> bool {
    !answer.starts_with("I found nothing") && !answer.starts_with("No encontré nada")
}

/// Returns a name of the question that an answer does not contain, if the answer says that it found nothing about it.
fn missing_name(question: &str, answer: &str) -> Option<String> {
    if starts_with_quotation(answer) {
        return None;
    }
    let head = answer.lines().next()?.to_lowercase();
    names_in(question).into_iter().find(|name| head.contains(&format!("“{}", name.to_lowercase())))
}

/// What an answer lacks.
#[derive(Debug, PartialEq)]
enum Missing {
    Reason,
    Place,
    Price,
    Name,
    Number,
    Duration,
    /// The word after "did I tell you".
    Mention(String),
}

fn missing(question: &str, quoted: &str) -> Option<Missing> {
    const REASONS: [&str; 17] = [
        "because", "since", "due", "reason", "so", "to", "for", "as", "cause", "cuz", "cos", "bc", "porque", "para",
        "por", "thanks", "after",
    ];
    const PLACES: [&str; 26] = [
        "in", "at", "on", "near", "under", "behind", "inside", "next", "to", "from", "by", "above", "below",
        "opposite", "through", "with", "where", "has", "en", "de", "junto", "detras", "debajo", "con", "tiene",
        "floor",
    ];
    const PRICES: [&str; 22] = [
        "euro", "euros", "eur", "usd", "dollar", "dollars", "pound", "pounds", "gbp", "peso", "pesos", "cost", "costs",
        "price", "pay", "paid", "pays", "free", "fee", "cuesta", "precio", "cents",
    ];
    let asked = Utterance::new(question);
    let said = Utterance::new(quoted);
    let words: Vec<&str> = asked.words().iter().map(|word| word.folded.as_str()).collect();
    let first = *words.iter().find(|word| !matches!(**word, "and" | "but" | "so" | "ok" | "y" | "then"))?;
    let says = |known: &[&str]| said.words().iter().any(|word| known.contains(&word.folded.as_str()));
    let is_spanish_why = words.windows(2).any(|pair| pair == ["por", "que"]);
    if first == "why" || words.windows(2).any(|pair| pair == ["how", "come"]) || is_spanish_why {
        return (!says(&REASONS)).then_some(Missing::Reason);
    }
    if matches!(first, "where" | "wheres" | "donde") {
        let names_place = said.words().windows(2).any(|pair| {
            let next = pair[1].folded.as_str();
            PLACES.contains(&pair[0].folded.as_str())
                && !next.starts_with(|c: char| c.is_ascii_digit())
                && !is_day(next)
        });
        return (!names_place).then_some(Missing::Place);
    }
    if words.windows(2).any(|pair| matches!(pair, ["how", "much"]))
        && words.iter().any(|word| matches!(*word, "cost" | "costs" | "price"))
    {
        let has_sign = quoted.contains(['€', '$', '£']);
        return (!says(&PRICES) && !has_sign).then_some(Missing::Price);
    }
    if words.iter().any(|word| matches!(*word, "phone" | "telephone" | "telefono")) {
        let digits = |chunk: &str| chunk.bytes().filter(u8::is_ascii_digit).count();
        let has_number = quoted.split(|c: char| c.is_alphabetic()).any(|chunk| digits(chunk) >= MIN_PHONE_DIGITS);
        return (!has_number).then_some(Missing::Number);
    }
    if asks_other_number(&words, &said) {
        return Some(Missing::Number);
    }
    if asks_name_of_another(&words) {
        return (!contains_name(quoted)).then_some(Missing::Name);
    }
    if words.windows(2).any(|pair| pair == ["how", "long"]) {
        return (!says(&DURATIONS)).then_some(Missing::Duration);
    }
    // "Did I tell you the airline?"
    let asks_mention = matches!(
        words[..],
        ["did" | "have", "i", "ever", ..]
            | ["did" | "have", "i", "tell" | "mention" | "told" | "mentioned" | "say" | "give", ..]
    );
    if asks_mention {
        let question = Question::new(question, "");
        let terms = Terms::new(quoted);
        let is_missing = |word: &&crate::evidence::question::QuestionWord| {
            !word.is_light
                && !matches!(&*word.word, "tell" | "told" | "mention" | "mentioned" | "ever" | "say" | "give")
                && !matches!(
                    terms.contains(word),
                    Some(crate::evidence::terms::Match::Exact | crate::evidence::terms::Match::Misspelt)
                )
        };
        return question.topic.iter().find(is_missing).map(|word| Missing::Mention(word.word.clone()));
    }
    None
}

/// Whether a question asks for the number of something, such as a locker, but the quotation states only a code of it.
fn asks_other_number(words: &[&str], said: &Utterance) -> bool {
    const CODES: [&str; 6] = ["code", "codes", "pin", "password", "combo", "combination"];
    let says = |known: &[&str]| said.words().iter().any(|word| known.contains(&word.folded.as_str()));
    let asks_code = words.iter().any(|word| CODES.contains(word));
    words.contains(&"number") && !asks_code && says(&CODES) && !says(&["number", "no", "nr"])
}

/// Whether a question asks for the name of someone or something: "what's my sister called?", "what is the dog's name?"
fn asks_name_of_another(words: &[&str]) -> bool {
    let asks = words.iter().any(|word| matches!(*word, "what" | "whats" | "como"));
    let is_own = words.windows(2).any(|pair| matches!(pair, ["my", "name"] | ["i", "called"] | ["me", "llamo"]));
    let ends = words.last().is_some_and(|last| matches!(*last, "called" | "name" | "named"))
        || words.windows(2).any(|pair| pair == ["se", "llama"]);
    asks && ends && !is_own
}

/// Whether a text may contain a name: a capitalized word, or "is" with a word that is no verb.
fn contains_name(text: &str) -> bool {
    const OTHERS: [&str; 24] = [
        "i", "im", "ive", "a", "an", "the", "my", "our", "in", "at", "on", "from", "with", "here", "not", "very", "so",
        "due", "he", "she", "it", "we", "they", "mi",
    ];
    let utterance = Utterance::new(text);
    let words = utterance.words();
    let is_plain = |word: &str| {
        OTHERS.contains(&word)
            || word.ends_with("ing")
            || word.ends_with("ed")
            || is_day(word)
            || word.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_capitalized = |at: usize| text[words[at].span.start..].starts_with(char::is_uppercase);
    (0..words.len()).any(|at| match utterance.word(at) {
        "called" | "named" | "name" | "llama" | "nombre" => true,
        "is" | "are" | "was" | "es" | "son" => words.get(at + 1).is_some_and(|next| !is_plain(&next.folded)),
        word => is_capitalized(at) && !is_plain(word),
    })
}

/// The minimum number of digits in a phone number.
const MIN_PHONE_DIGITS: usize = 4;

/// Words of durations, periods and lengths.
const DURATIONS: [&str; 44] = [
    "second",
    "seconds",
    "minute",
    "minutes",
    "min",
    "mins",
    "hour",
    "hours",
    "h",
    "hrs",
    "day",
    "days",
    "night",
    "nights",
    "week",
    "weeks",
    "month",
    "months",
    "year",
    "years",
    "until",
    "till",
    "from",
    "since",
    "between",
    "forever",
    "always",
    "overnight",
    "m",
    "cm",
    "km",
    "metres",
    "meters",
    "miles",
    "feet",
    "inches",
    "segundos",
    "minutos",
    "horas",
    "dias",
    "semanas",
    "meses",
    "desde",
    "hasta",
];

fn is_day(word: &str) -> bool {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    word.ends_with("day") && DAYS.iter().any(|day| word.starts_with(day))
        || matches!(word, "noon" | "midnight" | "night")
}

/// Answers a question from the statements of the same message: "Karim is laying the tiles. Who is laying them?"
pub(super) fn in_own_words(message: &str, question: &str, asked: &Question, language: Language) -> Option<String> {
    let own = statements(message);
    let all: Vec<&str> = sentences(message).collect();
    let follows = all.len() > 1 && is_question(question) && all.last().is_some_and(|last| is_question(last));
    let words = Utterance::new(question);
    let is_past = words
        .words()
        .iter()
        .any(|word| matches!(word.folded.as_str(), "did" | "was" | "were" | "last" | "before" | "else"));
    let candidate = Candidate { heading: "", text: &own };
    let terms = Terms::new(&own);
    let has_value = match asked.wanted {
        WantedValue::Time => terms.has_time(),
        WantedValue::Number => terms.has_number(),
        WantedValue::Any => true,
    };
    let starts = matches!(words.word(0), "who" | "whos" | "when" | "where" | "which" | "quien" | "cuando" | "donde");
    let starts = starts || words.word(0) == "what" && words.word(1) == "time";
    let names_topic = asked.topic.iter().any(|word| !word.is_light);
    (follows && !is_past && starts && names_topic && has_value && !own.is_empty() && contains_topic(asked, &candidate))
        .then(|| match language {
            Language::English => format!("You just said: “{own}”"),
            Language::Spanish => format!("Acabas de decir: “{own}”"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Option<String> {
        Some(format!("You said on 4 May 2026: “{text}” [1]"))
    }

    #[test]
    fn answers_say_what_they_lack() {
        for (question, text, expected) in [
            ("why is the party in Lyon?", "The party is on 3 June in Lyon.", "No reason"),
            ("why did we move the party?", "We moved the party because of the strike.", "You said"),
            ("and where is it?", "The dinner is at 19:30 on Friday.", "No place"),
            ("where is the dinner?", "The dinner is at Luigi's.", "You said"),
            ("how much does a ticket cost?", "Tickets are sold on 3 June.", "No price"),
            ("how much does a ticket cost?", "A ticket is 12 euros.", "You said"),
            ("did I mention the hotel?", "My train leaves at nine.", "No: I found nothing about “hotel”"),
            ("when is the dinner?", "The dinner is at 19:30.", "You said"),
            ("what is the plumber's phone number?", "The plumber comes on 4 May.", "No number"),
            ("what is the plumber's phone number?", "The plumber is on 555 0182.", "You said"),
            ("and which locker number is it, did i say?", "locker combo at the pool is 18-36", "No number"),
            ("what is the locker number?", "locker number is 18, combo 4410", "You said"),
            ("what's my sister called?", "my sister is coming on saturday", "No name"),
            ("what's my sister called?", "My sister Ines is coming on Saturday", "You said"),
            ("what's the dog's name?", "the dog is rex", "You said"),
            ("how long did the repair take?", "The repair was on 12 March.", "No duration"),
            ("how long did the repair take?", "The repair took three hours.", "You said"),
        ] {
            let checked = checked(question, "", answer(text), Language::English).unwrap();
            assert!(checked.starts_with(expected), "{question}: {checked}");
        }
    }

    #[test]
    fn quotations_about_others_are_removed() {
        let answer = "You said on 4 May: “Ada is fond of figs.” [1]\nYou said on 4 May: “Ben is fond of dates.” [2]\n\
                      You said on 4 May: “No, she is fond of plums.” [3]";
        let checked = |question: &str| checked(question, "", Some(answer.to_owned()), Language::English).unwrap();
        assert!(
            !checked("what is Ada fond of?").contains("dates") && checked("what is Ada fond of?").contains("plums")
        );
        assert_eq!(checked("who is fond of dates?"), answer);
        assert_eq!(checked("what is Leo fond of?"), answer);
    }

    #[test]
    fn a_pronoun_means_the_person_of_the_question_before() {
        let answer = "You said on 4 May: “Ada has desk 9.” [1]\nYou said on 4 May: “Ben has desk 14.” [2]";
        let checked = |question: &str, referred: &str| {
            checked(question, referred, Some(answer.to_owned()), Language::English).unwrap()
        };
        assert!(!checked("and her desk?", "What is Ada's extension?").contains("14"));
        assert_eq!(checked("and the desk?", "What is Ada's extension?"), answer);
    }

    #[test]
    fn facts_about_another_name_are_withheld() {
        let answer =
            "I found nothing about “omars”. The closest thing you told me:\nYou said on 4 May: “Ida's desk is 12.” [1]";
        let checked = |question: &str| checked(question, "", Some(answer.to_owned()), Language::English).unwrap();
        assert_eq!(checked("what is Omar's desk?"), "I found nothing about “Omar”.");
        assert_eq!(checked("what is omars desk?"), answer);
    }
}
