//! Messages without what does not change what they ask for: abbreviations, remarks before and after a calculation, and its purpose.

use threadkeep::dialogue::{Utterance, is_question};

/// The maximum number of words in a remark or a purpose.
const MAX_WORDS: usize = 7;

/// Returns a message with abbreviations of the chat written out: "w/ 30% off", "when n where", "q me devuelven".
pub(super) fn written_out(message: &str) -> String {
    let slash = message.replace(" w/o ", " without ").replace(" w/ ", " with ").replace(" w/", " with ");
    let pieces: Vec<&str> = slash.split(' ').collect();
    let is_word = |at: usize| {
        let piece = pieces.get(at).map(|piece| piece.trim_matches(|c: char| !c.is_alphanumeric()));
        piece.is_some_and(|piece| piece.starts_with(char::is_alphabetic))
    };
    if let Some(reordered) = with_operation_first(&slash) {
        return reordered;
    }
    let written = pieces.iter().enumerate().map(|(at, piece)| match *piece {
        "n" if at > 0 && is_word(at - 1) && is_word(at + 1) => "and",
        "q" if is_word(at + 1) => "que",
        piece => piece,
    });
    written.collect::<Vec<_>>().join(" ")
}

/// Returns "el doble del primer resultado" for "del primer resultado dime el doble".
fn with_operation_first(message: &str) -> Option<String> {
    const OPERATIONS: [&str; 6] = ["el doble", "la mitad", "el triple", "el 10%", "el 20%", "un tercio"];
    let message = message.trim().trim_end_matches(['?', '.', '!']);
    let start = message.strip_prefix("de").filter(|rest| rest.starts_with(['l', ' ']))?;
    let operation = OPERATIONS.iter().find(|operation| start.ends_with(*operation))?;
    let subject = message[..message.len() - operation.len()].trim_end();
    let subject =
        ["dime", "dame", "calcula", "quiero"].iter().find_map(|verb| subject.strip_suffix(verb)).unwrap_or(subject);
    Some(format!("{operation} {}", subject.trim_end()))
}

/// Returns shorter forms of a message that may be a calculation, likeliest first: "oops forgot one, plus 8.5" is "plus 8.5", and "take 15%
/// off that for savings" is "take 15% off that".
pub(super) fn shorter(message: &str) -> Vec<String> {
    let mut forms = Vec::new();
    let trimmed = message.trim();
    let without_before = without_remark_before(trimmed);
    let without_after = without_remark_after(without_before.unwrap_or(trimmed));
    forms.extend(without_before.filter(|_| without_after.is_some()).map(str::to_owned));
    let left = without_after.or(without_before).unwrap_or(trimmed);
    if left != trimmed {
        forms.push(left.to_owned());
    }
    forms.extend(without_purpose(left).map(str::to_owned));
    forms
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// Whether a part of a message only comments on it: it has no number, points at none, and asks for nothing.
fn is_remark(part: &str) -> bool {
    const OTHERS: [&str; 34] = [
        "that",
        "it",
        "this",
        "each",
        "total",
        "half",
        "double",
        "twice",
        "third",
        "quarter",
        "result",
        "if",
        "without",
        "not",
        "except",
        "unless",
        "both",
        "them",
        "those",
        "per",
        "altogether",
        "together",
        "average",
        "eso",
        "cada",
        "mitad",
        "doble",
        "si",
        "sin",
        "tip",
        "vat",
        "tax",
        "iva",
        "propina",
    ];
    let utterance = Utterance::new(part);
    let words = utterance.words();
    (1..=MAX_WORDS).contains(&words.len())
        && !has_digit(part)
        && !part.contains('%')
        && !is_question(part)
        && !words.iter().any(|word| OTHERS.contains(&&*word.folded))
}

/// Returns what follows the remarks before a calculation: "a ver: 1450 menos 312,50", "oops forgot one, plus 8.5".
fn without_remark_before(message: &str) -> Option<&str> {
    let mut rest = message;
    while let Some(at) = boundary(rest) {
        if !is_remark(&rest[..at]) {
            break;
        }
        rest =
            rest[at..].trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '(' | '-' | '+' | '¿' | '€'));
    }
    (rest != message && has_digit(rest)).then_some(rest)
}

/// Returns what precedes the remarks after a calculation: "only 3 of us are paying, Rob forgot his wallet".
fn without_remark_after(message: &str) -> Option<&str> {
    let mut rest = message;
    while let Some(at) = rest.rfind([',', '.', '!', ';']) {
        let is_decimal = rest[at + 1..].starts_with(|c: char| c.is_ascii_digit());
        if is_decimal || !rest[at + 1..].trim().is_empty() && !is_remark(&rest[at + 1..]) {
            break;
        }
        rest = rest[..at].trim_end_matches([',', '.', '!', ';', ' ']);
    }
    (rest != message && has_digit(rest)).then_some(rest)
}

/// Returns where the first part of a message ends: at a comma, a colon or a full stop that no digit follows.
fn boundary(message: &str) -> Option<usize> {
    message.char_indices().find_map(|(at, c)| {
        let next = message[at + c.len_utf8()..].chars().next()?;
        (matches!(c, ',' | ':' | '.' | '!' | ';' | '…') && !next.is_ascii_digit()).then_some(at)
    })
}

/// Returns a calculation without its purpose: "take 15% off that for savings", "plus 4.95 for shipping".
fn without_purpose(message: &str) -> Option<&str> {
    const COUNTED: [&str; 26] = [
        "each", "person", "people", "us", "all", "both", "them", "one", "year", "years", "month", "months", "week",
        "weeks", "day", "days", "hour", "hours", "total", "night", "nights", "everyone", "cada", "uno", "todos", "two",
    ];
    let at =
        [" for ", " para ", " because ", " porque ", " since "].iter().filter_map(|word| message.rfind(word)).max()?;
    let (before, purpose) = message.split_at(at);
    let purpose = Utterance::new(purpose);
    let words = purpose.words();
    let is_plain = !has_digit(purpose.text())
        && words.len() <= MAX_WORDS
        && !purpose.text().contains('?')
        && !words.iter().any(|word| COUNTED.contains(&&*word.folded));
    (is_plain && has_digit(before)).then(|| before.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_written_out() {
        for (message, expected) in [
            ("jacket is 149 w/ 30% off", "jacket is 149 with 30% off"),
            ("what was it w/o vat", "what was it without vat"),
            ("standup, when n where?", "standup, when and where?"),
            ("si pago con 100 q me devuelven", "si pago con 100 que me devuelven"),
            ("n half of that", "n half of that"),
            ("del primer resultado dime el doble", "el doble del primer resultado"),
        ] {
            assert_eq!(written_out(message), expected);
        }
    }

    #[test]
    fn remarks_and_purposes_are_left_out() {
        for (message, expected) in [
            ("oops forgot one, plus 8.5", Some("plus 8.5")),
            ("a ver: 1450 menos 312,50 menos 89", Some("1450 menos 312,50 menos 89")),
            ("take 15% off that for savings", Some("take 15% off that")),
            ("only 3 of us are paying, Rob forgot his wallet (again)", Some("only 3 of us are paying")),
            ("split that for 4 people", None),
            ("if we are 6, then 90 / 6", None),
            ("90 / 6, without the tip", None),
        ] {
            assert_eq!(shorter(message).last().map(String::as_str), expected, "{message}");
        }
    }
}
