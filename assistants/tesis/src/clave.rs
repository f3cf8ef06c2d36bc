//! References to a tesis: its registro digital (a number) and its clave (`1a./J. 104/2025 (11a.)`), in all spellings.

use threadkeep::core::text::fold;

use crate::epoca;

/// The maximum number of words in a clave.
const CLAVE_WORDS: usize = 9;
/// The prefix of the key of a clave that lacks its court.
const ANY_COURT: char = '*';
/// The maximum number of references that are read from a message.
const MAX_REFERENCES: usize = 20;

/// A clave, normalized so that all spellings are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaveKey {
    /// The letters and digits of the clave without the época, such as `1j104/2025`.
    pub key: String,
    /// The época, if the clave states it.
    pub epoca: Option<u8>,
}

/// The references in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Numbers that can be a registro digital.
    pub registros: Vec<i64>,
    /// Texts that look like a clave.
    pub claves: Vec<ClaveKey>,
}

impl References {
    /// Finds the references in a message.
    #[must_use]
    pub fn of(message: &str) -> Self {
        let mut found = Self { registros: registros(message), claves: Vec::new() };
        let words: Vec<&str> = message.split_whitespace().collect();
        let mut first = 0;
        while first < words.len() && found.claves.len() < MAX_REFERENCES {
            let windows = (1..=CLAVE_WORDS.min(words.len() - first)).rev();
            let clave = windows.filter_map(|length| Some((length, clave_of(&words[first..first + length].join(" "))?)));
            match clave.into_iter().next() {
                Some((length, clave)) => {
                    found.claves.push(clave);
                    first += length;
                }
                None => first += 1,
            }
        }
        if found.is_empty() {
            found.claves.extend(part_of_clave(message));
        }
        found
    }

    /// Whether there are no references.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registros.is_empty() && self.claves.is_empty()
    }
}

impl ClaveKey {
    /// Whether this clave refers to the tesis with the other clave. A clave without its court, such as `921/2023`, refers to the tesis of
    /// every court.
    #[must_use]
    pub fn refers_to(&self, other: &Self) -> bool {
        let is_same_key = match self.key.strip_prefix(ANY_COURT) {
            Some(rest) => any_court(rest).any(|key| key == other.key),
            None => self.key == other.key,
        };
        is_same_key && (self.epoca.is_none() || other.epoca.is_none() || self.epoca == other.epoca)
    }

    /// Returns the keys under which tesis with this clave are stored.
    pub(crate) fn stored_keys(&self) -> Vec<String> {
        match self.key.strip_prefix(ANY_COURT) {
            Some(rest) => any_court(rest).collect(),
            None => vec![self.key.clone()],
        }
    }

    /// Parses a clave. If the text is not a clave, the key is meaningless.
    #[must_use]
    pub fn of(clave: &str) -> Self {
        let (main, epoca) = split_epoca(clave.trim_matches(|c: char| !c.is_alphanumeric() && c != ')'));
        let mut key = String::new();
        let mut separator = None;
        for run in runs(main) {
            match run {
                Run::Word(word) => {
                    let is_year = word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
                    let is_separated = matches!(separator.take(), Some('/' | '-')) || is_numbered(&key);
                    if is_separated && is_year && !key.is_empty() {
                        key.push('/');
                    }
                    key.push_str(&without_ordinal(&word));
                }
                Run::Separator(c) => separator = Some(c),
            }
        }
        Self { key, epoca }
    }
}

/// Returns the keys for a number and year in every court.
fn any_court(rest: &str) -> impl Iterator<Item = String> {
    ["1j", "2j", "pj", "3j", "4j", "1", "2", "p"].into_iter().map(move |court| format!("{court}{rest}"))
}

/// Whether a key is that of a Supreme Court jurisprudencia, up to the year: `2j903`.
fn is_numbered(key: &str) -> bool {
    let number = key.strip_prefix(['1', '2', '3', '4', 'p']).and_then(|rest| rest.strip_prefix('j'));
    number.is_some_and(|number| (1..=4).contains(&number.len()) && number.chars().all(|c| c.is_ascii_digit()))
}

enum Run {
    Word(String),
    Separator(char),
}

/// Splits a clave into folded words and the separators between them.
fn runs(text: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, 'ª' | 'º') {
            word.push_str(&fold(&c.to_string()));
            continue;
        }
        if !word.is_empty() {
            runs.push(Run::Word(std::mem::take(&mut word)));
        }
        // A space next to a slash does not replace it.
        if !c.is_whitespace() {
            runs.push(Run::Separator(if matches!(c, '–' | '—' | '‐') { '-' } else { c }));
        }
    }
    if !word.is_empty() {
        runs.push(Run::Word(word));
    }
    runs
}

/// Returns a word without the letter of an ordinal, so that `1a` and `1` are equal.
fn without_ordinal(word: &str) -> String {
    let chars: Vec<char> = word.chars().collect();
    match chars.as_slice() {
        [digits @ .., 'a' | 'o'] if !digits.is_empty() && digits.iter().all(char::is_ascii_digit) => {
            digits.iter().collect()
        }
        [digit, 'a' | 'o', 'j', rest @ ..] if digit.is_ascii_digit() && rest.iter().all(|c| c.is_ascii_digit()) => {
            std::iter::once(digit).chain(&['j']).chain(rest).collect()
        }
        _ => word.to_owned(),
    }
}

/// Splits a clave and its época, which is in parentheses or at the end.
fn split_epoca(clave: &str) -> (&str, Option<u8>) {
    if let Some((main, inside)) = clave.split_once('(') {
        let inside = inside.split(')').next().unwrap_or_default();
        return (main, epoca::parse(inside));
    }
    let words: Vec<&str> = clave.split_whitespace().collect();
    for count in [2, 1] {
        if words.len() > count {
            let tail = &words[words.len() - count..];
            let is_marked = count == 2 && fold_letters(tail[1]) == "epoca"
                || count == 1
                    && fold_letters(tail[0]).ends_with('a')
                    && tail[0].starts_with(|c: char| c.is_ascii_digit());
            if let Some(epoca) = Some(tail.join(" ")).filter(|_| is_marked).and_then(|tail| epoca::parse(&tail)) {
                let end = tail[0].as_ptr() as usize - clave.as_ptr() as usize;
                return (&clave[..end], Some(epoca));
            }
        }
    }
    (clave, None)
}

fn fold_letters(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric() || matches!(c, 'ª' | 'º')).map(|c| fold(&c.to_string())).collect()
}

/// Parses a clave without its court, as in `la 921/2023`. A file number has the same form, but other words precede it.
fn part_of_clave(message: &str) -> Option<ClaveKey> {
    let folded = fold_text(message);
    let words: Vec<&str> = folded.split_whitespace().collect();
    let at = words.iter().position(|word| {
        let Some((number, year)) = word.split_once('/') else { return false };
        let are_digits = [number, year].iter().all(|part| part.chars().all(|c| c.is_ascii_digit()));
        let is_year = year.len() == 4 && (year.starts_with("19") || year.starts_with("20"));
        are_digits && is_year && (1..=4).contains(&number.len())
    })?;
    let before = at.checked_sub(1).map_or("la", |before| words[before]);
    let is_named = ["la", "tesis", "jurisprudencia", "clave", "j"].contains(&before);
    is_named.then(|| ClaveKey { key: format!("{ANY_COURT}{}", words[at]), epoca: None })
}

fn clave_of(text: &str) -> Option<ClaveKey> {
    let starts_clave = |c: char| c.is_ascii_digit() || "pPiIvVxXlL".contains(c);
    let text = text.trim_matches(|c: char| !c.is_alphanumeric() && c != ')' && c != '.');
    if !text.starts_with(starts_clave) || !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // The court is one digit: `1309/2023` is a file number.
    let is_number = text.chars().take(2).filter(char::is_ascii_digit).count() == 2;
    let has_more = text.split_once(')').is_some_and(|(_, rest)| rest.contains(char::is_alphanumeric));
    if is_number || has_more {
        return None;
    }
    let clave = ClaveKey::of(text);
    let mut words = text.split_whitespace();
    let has_circuit = words.next().is_some_and(|word| word.chars().all(|c| "ivxlIVXL".contains(c)))
        && words
            .next()
            .is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(['o', 'O', 'º']));
    let is_marked = text.contains('.') || clave.epoca.is_some() || (has_circuit && !text.contains(','));
    (is_court_clave(&clave.key) || is_marked && is_circuit_clave(&clave.key)).then_some(clave)
}

/// Whether a key is that of a Supreme Court clave: `1j104/2025`, `pix/2016`.
fn is_court_clave(key: &str) -> bool {
    let Some((number, year)) = key.split_once('/') else { return false };
    let number = number.strip_prefix(['1', '2', '3', '4', 'p']).unwrap_or_default();
    let number = number.strip_prefix('j').unwrap_or(number);
    let is_arabic = (1..=4).contains(&number.len()) && number.chars().all(|c| c.is_ascii_digit());
    let is_roman = (1..=10).contains(&number.len()) && number.chars().all(|c| "ivxlcdm".contains(c));
    year.len() == 4 && year.chars().all(|c| c.is_ascii_digit()) && (is_arabic || is_roman)
}

/// Whether a key is that of a circuit court's clave: `vii1c6c`, `prptcsj1l`.
fn is_circuit_clave(key: &str) -> bool {
    let materia = key.len() - key.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
    let number = &key[..key.len() - materia];
    let court = number.trim_end_matches(|c: char| c.is_ascii_digit());
    let has_number = (1..=4).contains(&(number.len() - court.len()));
    let is_regional = court.starts_with("pr") || court.starts_with("pc");
    let circuit = court.trim_start_matches(['i', 'v', 'x', 'l']);
    let is_collegiate = circuit.len() < court.len() && circuit.starts_with(|c: char| c.is_ascii_digit());
    (1..=3).contains(&materia) && has_number && court.len() <= 16 && (is_regional || is_collegiate)
}

/// Finds the numbers that can be a registro digital: seven digits, or six if the message mentions a registro or a tesis.
fn registros(message: &str) -> Vec<i64> {
    let folded = fold_text(message);
    let names_registro = ["registro", "reg ", "tesis", "ius", "digital"].iter().any(|word| folded.contains(word))
        || is_only_a_number(&folded);
    let mut found = Vec::new();
    for word in &with_joined_groups(message, names_registro) {
        let number = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '$');
        let digits: String = number.chars().filter(|c| !matches!(c, ',' | '.')).collect();
        let length = digits.len();
        let has_groups = number.len() == length || number.split([',', '.']).skip(1).all(|group| group.len() == 3);
        let is_registro = has_groups
            && digits.chars().all(|c| c.is_ascii_digit())
            && !digits.starts_with('0')
            && (length == 7 || length == 6 && names_registro);
        if let Some(number) = digits.parse().ok().filter(|number| is_registro && !found.contains(number)) {
            found.push(number);
        }
    }
    found.truncate(MAX_REFERENCES);
    found
}

/// Whether a message consists of a number and filler words: `es el 9 000 042`.
fn is_only_a_number(folded: &str) -> bool {
    let other = ["es", "el", "la", "no", "y", "ah", "perdon", "digo", "numero", "num", "ok", "era", "quise", "decir"];
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit());
    let (numbers, words): (Vec<&str>, Vec<&str>) = folded.split_whitespace().partition(|word| is_number(word));
    let digits: usize = numbers.iter().map(|number| number.len()).sum();
    (6..=7).contains(&digits) && words.iter().all(|word| other.contains(word))
}

/// Returns the words of a message. If the message mentions a registro, `9 000 062` is one word.
fn with_joined_groups(message: &str, names_registro: bool) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in message.split_whitespace() {
        let is_digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        let group = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let joins = names_registro && group.len() == 3 && is_digits(group);
        match words.last_mut().filter(|last| joins && matches!(last.len(), 1 | 4) && is_digits(last)) {
            Some(last) => last.push_str(group),
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// Returns the text in lower case without accents; other characters become spaces.
pub(crate) fn fold_text(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'a'..='z' | '0'..='9' | '/' => folded.push(c),
            _ if c.is_alphanumeric() => folded.push_str(&fold(&c.to_string())),
            _ => folded.push(' '),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    // S3.54
    #[test]
    fn all_spellings_of_a_clave_have_one_key() {
        for (spellings, key, epoca) in [
            (
                &[
                    "1a./J. 104/2025 (11a.)",
                    "1a./J.104/2025 (11a.)",
                    "1A./J. 104/2025 (11A.)",
                    "1ª./J. 104/2025 (11ª.)",
                    "1a. / J. 104 / 2025 (11a. Época)",
                    "1a/J 104/2025 (11a)",
                    "1aJ 104/2025 (11a)",
                    "1a./J. 104-2025 (Undécima Época)",
                    "1a./J. 104/2025 11a. Época",
                    "1a./J. 104/2025 11a.",
                ][..],
                "1j104/2025",
                Some(11),
            ),
            (&["P./J.84/2007", "P./J. 84/2007", "p/j 84/2007", "PJ 84/2007", "P. / J. 84 / 2007"], "pj84/2007", None),
            (
                &[
                    "VII.1o.C.6 C (12a.)",
                    "VII.1º.C.6 C (12ª)",
                    "vii.1o.c.6 c (12a.)",
                    "vii 1o c 6 c 12a",
                    "VII. 1o. C. 6 C (12a.)",
                ],
                "vii1c6c",
                Some(12),
            ),
            (&["PR.P.T.CS. J/1 L (11a.)", "PR.P.T.CS.J/1 L (11a.)", "pr.p.t.cs. j/1 l (11a)"], "prptcsj1l", Some(11)),
            (&["2a./J. 903/2016", "2a J 903 2016", "2aJ 903/2016"], "2j903/2016", None),
            (&["IX.9o.P.914 P", "ix 9o p 914 p"], "ix9p914p", None),
            (&["1a. CXX/2015 (10a.)", "1a.CXX/2015 (10a.)", "1ª CXX/2015 (10ª)"], "1cxx/2015", Some(10)),
            (&["P. IX/2016 (10a.)"], "pix/2016", Some(10)),
        ] {
            for spelling in spellings {
                let expected = ClaveKey { key: key.to_owned(), epoca };
                assert_eq!(ClaveKey::of(spelling), expected, "{spelling}");
                let message = format!("¿Qué dice la tesis {spelling}, por favor?");
                assert_eq!(References::of(&message).claves, [expected], "{message}");
            }
        }
    }

    #[test]
    fn other_text_is_not_a_clave() {
        for message in [
            "El 3 de mayo de 2024 firmé 2 contratos",
            "artículo 107, fracción I",
            "expediente 1309/2023",
            "¿Qué pasó en 2023/2024?",
            "amparo directo en revisión 2277/2025",
            "tengo 3 hijos y 2 casas",
        ] {
            assert_eq!(References::of(message).claves, [], "{message}");
        }
    }

    // S3.54
    #[test]
    fn a_clave_without_its_court_matches_every_court() {
        let clave = &References::of("ah no, la 921/2023").claves[0];
        assert!(
            clave.refers_to(&ClaveKey::of("2a./J. 921/2023 (11a.)")) && clave.refers_to(&ClaveKey::of("1a. 921/2023"))
        );
        assert!(!clave.refers_to(&ClaveKey::of("2a./J. 92/2023 (11a.)")));
    }

    // S3.54
    #[test]
    fn registros_are_found_in_messages() {
        for (message, expected) in [
            ("localiza el registro 2031567", vec![2_031_567]),
            ("reg. 2 031 567", vec![2_031_567]),
            ("tengo 2 031 567 pesos", vec![]),
            ("registro digital: 180345.", vec![180_345]),
            ("la 9000072 y la 2,015,678", vec![9_000_072, 2_015_678]),
            ("me deben 150,000 pesos", vec![]),
            ("me deben $1500000", vec![]),
            ("en 2023", vec![]),
            ("180345", vec![180_345]),
            ("es el 2 031 567", vec![2_031_567]),
        ] {
            assert_eq!(References::of(message).registros, expected, "{message}");
        }
    }
}
