//! The syntax of search queries, the same for the command line, REST and MCP.
//!
//! - `word`: at least one of the words must occur, in any inflected form. Messages with more, or rarer, words rank higher.
//! - `"two words"`: these words in this order. All phrases must occur.
//! - `-word`, `-"two words"`: must not occur.
//! - `pref*`: any word with this prefix, which has at least 3 letters.
//! - `title:word`, `title:"two words"`: only conversations with these words in the title.
//! - `since:2026-03`, `until:2026-03-14`: only messages from this period. The end is inclusive.
//! - `role:user`, `in:claude-code`, `project:folder`: only messages with this role, imported from this format, or from this project
//!   folder.
//!
//! Every text is a valid query. Anything outside this syntax is searched for as words, including unknown names before a colon and
//! conditions with invalid values. An unclosed quotation extends to the end of the query.

use crate::text::{self, TermMatcher};
use crate::{Map, Role, Timestamp};

/// The minimum number of letters in a prefix.
pub const PREFIX_LETTERS: usize = 3;
/// The maximum number of conditions of each kind. Further conditions are ignored.
const MAX_CONDITIONS: usize = 32;
/// The fields of a thread's metadata that may contain the path of its project folder.
const PROJECT_MEMBERS: [&str; 3] = ["cwd", "project", "projectHash"];
/// The prefix of the keys of imported threads.
const IMPORT_KEY: &str = "import:";

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextQuery {
    /// Words, any of which may match.
    pub words: Vec<String>,
    /// Phrases, which must all occur.
    pub phrases: Vec<String>,
    /// Beginnings of words, any of which may match, in lower case without accents.
    pub prefixes: Vec<String>,
    /// Words and phrases that must not occur.
    pub exclusions: Vec<Exclusion>,
    /// Words and phrases in the title of the thread, which must all occur.
    pub titles: Vec<String>,
    /// The roles of the messages; empty for all roles.
    pub roles: Vec<Role>,
    /// Only messages created at or after this time.
    pub since: Option<Timestamp>,
    /// Only messages created before this time.
    pub until: Option<Timestamp>,
    /// The formats of the imported threads; empty for all threads.
    pub formats: Vec<String>,
    /// Parts of project folder paths, at least one of which must match; empty for all threads.
    pub projects: Vec<String>,
}

/// What must not occur in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// A word in any inflected form.
    Word(String),
    /// Words in this order.
    Phrase(String),
}

impl TextQuery {
    /// Parses a query.
    ///
    /// ```
    /// use threadkeep_core::query::TextQuery;
    /// let query = TextQuery::parse(r#"ledger "SQLite file" -postgres migrat* title:storage"#);
    /// assert_eq!((query.words, query.phrases), (vec!["ledger".to_owned()], vec!["SQLite file".to_owned()]));
    /// assert_eq!((query.prefixes, query.titles), (vec!["migrat".to_owned()], vec!["storage".to_owned()]));
    /// ```
    #[must_use]
    pub fn parse(query: &str) -> Self {
        let mut parsed = Self::default();
        let mut rest = query.trim_start();
        while !rest.is_empty() {
            let (token, after) = Token::split(rest);
            parsed.add(&token);
            rest = after.trim_start();
        }
        parsed
    }

    /// Whether the query has neither words nor phrases nor prefixes, so only its conditions select messages.
    #[must_use]
    pub fn has_no_words(&self) -> bool {
        self.words.is_empty() && self.phrases.is_empty() && self.prefixes.is_empty()
    }

    /// Whether the query has neither words nor conditions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the query has any condition besides words.
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        let has_message_condition = !(self.roles.is_empty() && self.phrases.is_empty() && self.exclusions.is_empty());
        has_message_condition || self.since.is_some() || self.until.is_some() || self.filters_threads()
    }

    /// Whether the query has conditions on the thread of a message.
    #[must_use]
    pub fn filters_threads(&self) -> bool {
        !(self.titles.is_empty() && self.formats.is_empty() && self.projects.is_empty())
    }

    /// Whether a thread passes the conditions on its title, format and project.
    #[must_use]
    pub fn matches_thread(&self, title: Option<&str>, key: Option<&str>, metadata: &Map) -> bool {
        let format = || key?.strip_prefix(IMPORT_KEY)?.split_once(':').map(|(format, _)| format);
        let folders = PROJECT_MEMBERS.iter().filter_map(|name| metadata.get(*name)?.as_str());
        let folders: Vec<String> = folders.map(str::to_lowercase).collect();
        (self.formats.is_empty() || format().is_some_and(|format| self.formats.iter().any(|other| other == format)))
            && (self.projects.is_empty()
                || self.projects.iter().any(|project| folders.iter().any(|folder| folder.contains(project.as_str()))))
            && self.titles.iter().all(|words| title.is_some_and(|title| contains_all(title, words)))
    }

    /// Whether a message passes the conditions on its role and time.
    #[must_use]
    pub fn matches_time_and_role(&self, role: Role, created_at: Timestamp) -> bool {
        (self.roles.is_empty() || self.roles.contains(&role))
            && self.since.is_none_or(|since| created_at >= since)
            && self.until.is_none_or(|until| created_at < until)
    }

    /// Whether the text contains all phrases and none of the excluded words and phrases.
    #[must_use]
    pub fn matches_text(&self, text: &str) -> bool {
        self.phrases.iter().all(|phrase| contains_phrase(text, phrase))
            && !self.exclusions.iter().any(|exclusion| match exclusion {
                Exclusion::Word(word) => contains_all(text, word),
                Exclusion::Phrase(phrase) => contains_phrase(text, phrase),
            })
    }

    fn add(&mut self, token: &Token<'_>) {
        let value = token.value.trim();
        let push = |list: &mut Vec<String>, value: String| {
            if list.len() < MAX_CONDITIONS {
                list.push(value);
            }
        };
        // A condition with an empty or invalid value is treated as a word.
        let is_condition = match token.name.map(str::to_lowercase).as_deref() {
            _ if token.is_negative => false,
            Some("title") if !text::words(value).is_empty() => {
                push(&mut self.titles, value.to_owned());
                true
            }
            Some("role") => value.to_lowercase().parse().is_ok_and(|role| {
                self.roles.push(role);
                true
            }),
            Some("in") if !value.is_empty() => {
                push(&mut self.formats, value.to_lowercase());
                true
            }
            Some("project") if !value.is_empty() => {
                push(&mut self.projects, value.to_lowercase());
                true
            }
            Some("since") => date_range(value).is_some_and(|(start, _)| {
                self.since = self.since.max(Some(start));
                true
            }),
            Some("until") => date_range(value).is_some_and(|(_, end)| {
                self.until = Some(self.until.map_or(end, |until| until.min(end)));
                true
            }),
            _ => false,
        };
        if is_condition {
            return;
        }
        let whole = token.whole();
        let words = text::words(whole);
        if token.is_negative {
            let exclusion = match token.is_quoted || words.len() > 1 {
                true => Exclusion::Phrase(whole.to_owned()),
                false => Exclusion::Word(whole.to_owned()),
            };
            if !words.is_empty() && self.exclusions.len() < MAX_CONDITIONS {
                self.exclusions.push(exclusion);
            }
        } else if token.is_quoted && token.name.is_none() {
            if !words.is_empty() {
                push(&mut self.phrases, whole.to_owned());
            }
        } else if let Some(prefix) = prefix(whole) {
            push(&mut self.prefixes, prefix);
        } else if !words.is_empty() {
            push(&mut self.words, whole.to_owned());
        }
    }
}

/// A part of a query, delimited by white space.
struct Token<'t> {
    is_negative: bool,
    /// The name before a colon.
    name: Option<&'t str>,
    value: &'t str,
    is_quoted: bool,
    /// The text to search for if this is not a condition: the token as written, or only the value if it is quoted.
    whole: &'t str,
}

impl<'t> Token<'t> {
    /// Splits the first token off text that begins with one.
    fn split(text: &'t str) -> (Self, &'t str) {
        let is_negative = text.starts_with('-') && text[1..].starts_with(|c: char| !c.is_whitespace());
        let body = if is_negative { &text[1..] } else { text };
        let unquoted_end = body.find(char::is_whitespace).unwrap_or(body.len());
        let name = body[..unquoted_end].split_once(':').map(|(name, _)| name);
        let name = name.filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic()));
        let start = name.map_or(0, |name| name.len() + 1);
        let value = &body[start..];
        match value.chars().next().filter(|first| is_quote(*first)) {
            Some(quote) => {
                let inner = &value[quote.len_utf8()..];
                let length = inner.find(is_quote).unwrap_or(inner.len());
                let rest = inner[length..].chars().next().map_or("", |end| &inner[length + end.len_utf8()..]);
                let value = &inner[..length];
                (Self { is_negative, name, value, is_quoted: true, whole: value }, rest)
            }
            None => {
                let value = &body[start..unquoted_end.max(start)];
                let whole = &body[..unquoted_end];
                (Self { is_negative, name, value, is_quoted: false, whole }, &body[unquoted_end..])
            }
        }
    }

    /// Returns the text to search for if this is not a condition.
    fn whole(&self) -> &'t str {
        self.whole
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}')
}

/// Returns a prefix, folded, if a token is a word followed by `*`.
fn prefix(token: &str) -> Option<String> {
    let words = text::words(token.strip_suffix('*')?);
    let [word] = &words[..] else { return None };
    (word.chars().count() >= PREFIX_LETTERS).then(|| word.clone())
}

/// Whether all words occur in the text, in any inflected form.
fn contains_all(text: &str, words: &str) -> bool {
    let stems: Vec<Vec<String>> = text::query_terms(words).into_iter().map(|(_, stems)| stems).collect();
    TermMatcher::new(&stems).count(text).counts.iter().all(|count| *count > 0)
}

/// Whether the words of a phrase occur in the text, adjacent and in order, whatever their case and accents.
fn contains_phrase(text: &str, phrase: &str) -> bool {
    let (words, phrase) = (text::words(text), text::words(phrase));
    phrase.is_empty() || words.windows(phrase.len()).any(|window| window == phrase)
}

/// Returns the first instant of a date, and the first instant after it. The date is a day, month or year in UTC, or an RFC 3339
/// timestamp.
#[must_use]
pub fn date_range(text: &str) -> Option<(Timestamp, Timestamp)> {
    if text.contains(':') {
        let at = text.parse::<Timestamp>().ok()?;
        return Some((at, Timestamp::from_micros(at.as_micros() + 1).ok()?));
    }
    let at = |year: i32, month: i32, day: i32| format!("{year:04}-{month:02}-{day:02}T00:00:00Z").parse().ok();
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let numbers: Option<Vec<i32>> = text.split('-').map(|part| part.parse().ok()).collect();
    match (lengths.as_slice(), numbers?.as_slice()) {
        ([4], [year]) => Some((at(*year, 1, 1)?, at(year + 1, 1, 1)?)),
        ([4, 2], [year, 12]) => Some((at(*year, 12, 1)?, at(year + 1, 1, 1)?)),
        ([4, 2], [year, month]) => Some((at(*year, *month, 1)?, at(*year, month + 1, 1)?)),
        ([4, 2, 2], [year, month, day]) => {
            let start: Timestamp = at(*year, *month, *day)?;
            Some((start, start.plus_ms(24 * 60 * 60 * 1000)))
        }
        _ => None,
    }
}

/// Whether two words differ by one inserted, deleted or replaced letter, or by one swap of adjacent letters.
///
/// ```
/// use threadkeep_core::query::is_typo;
/// assert!(is_typo("leger", "ledger") && is_typo("ledgre", "ledger") && is_typo("lodger", "ledger"));
/// assert!(!is_typo("ledger", "ledger") && !is_typo("leg", "ledger"));
/// ```
#[must_use]
pub fn is_typo(word: &str, other: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (word.chars().collect(), other.chars().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    match (a, b) {
        ([], []) => false,
        ([_, rest @ ..], other) if rest == other => true,
        (word, [_, rest @ ..]) if word == rest => true,
        ([_, word @ ..], [_, other @ ..]) if word == other => true,
        ([a1, a2, word @ ..], [b1, b2, other @ ..]) => a1 == b2 && a2 == b1 && word == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> TextQuery {
        TextQuery::parse(query)
    }

    #[test]
    fn each_form_is_parsed() {
        let query = parse(
            "ledger  \"SQLite  file\" -postgres -\"one writer\" migrat* title:storage title:\"of the\" role:USER in:claude-code project:Pier since:2026-03 until:2026-04-02",
        );
        assert_eq!(query.words, ["ledger"]);
        assert_eq!(query.phrases, ["SQLite  file"]);
        let exclusions = [Exclusion::Word("postgres".to_owned()), Exclusion::Phrase("one writer".to_owned())];
        assert_eq!(query.exclusions, exclusions);
        assert_eq!(
            (query.prefixes, query.titles),
            (vec!["migrat".to_owned()], vec!["storage".to_owned(), "of the".to_owned()])
        );
        assert_eq!((query.roles, query.formats), (vec![Role::User], vec!["claude-code".to_owned()]));
        assert_eq!(query.projects, ["pier"]);
        assert_eq!(query.since.unwrap().to_string(), "2026-03-01T00:00:00Z");
        assert_eq!(query.until.unwrap().to_string(), "2026-04-03T00:00:00Z");
    }

    #[test]
    fn text_outside_the_syntax_is_parsed_as_words() {
        for (query, words) in [
            ("since:yesterday", vec!["since:yesterday"]),
            ("role:king", vec!["role:king"]),
            ("title: x", vec!["title:", "x"]),
            ("https://example.com/a?b=c", vec!["https://example.com/a?b=c"]),
            ("std::fs ab*", vec!["std::fs", "ab*"]),
            ("e-mail a-b", vec!["e-mail", "a-b"]),
            ("- -- -? : \"\" -\"\" *", vec![]),
            ("a OR b AND NOT (c)", vec!["a", "OR", "b", "AND", "NOT", "(c)"]),
        ] {
            let parsed = parse(query);
            assert_eq!(parsed.words, words, "{query}");
            assert!(parsed.phrases.is_empty() && parsed.exclusions.is_empty(), "{query}");
        }
        assert_eq!(parse("a \"b c").phrases, ["b c"]);
        assert_eq!(parse("“smart quotes” «y más»").phrases, ["smart quotes", "y más"]);
        assert_eq!(parse("-since:2026").exclusions, [Exclusion::Phrase("since:2026".to_owned())]);
        assert!(parse("\u{0} \u{202e}").is_empty());
    }

    #[test]
    fn phrases_match_adjacent_words_and_exclusions_match_inflected_forms() {
        let query = parse("\"sqlite FILE\"");
        assert!(query.matches_text("The ledger is a SQLite file.") && query.matches_text("(sqlite-file)"));
        assert!(!query.matches_text("the file of SQLite") && !query.matches_text("sqlite files"));
        let query = parse("-trains -\"one writer\"");
        assert!(
            query.matches_text("a writer") && !query.matches_text("the train") && !query.matches_text("One writer!")
        );
    }

    #[test]
    fn threads_are_filtered_by_title_format_and_project() {
        let metadata = Map::from_iter([("cwd".to_owned(), "/home/ana/Pier".into())]);
        let matches = |query: &str| {
            parse(query).matches_thread(Some("Storage of the ledgers"), Some("import:codex:1"), &metadata)
        };
        for query in [
            "title:ledger",
            "title:\"storage ledger\"",
            "in:codex",
            "in:claude in:codex",
            "project:pier",
            "project:/home/ana",
        ] {
            assert!(matches(query), "{query}");
        }
        for query in ["title:boat", "in:claude", "project:quay", "title:storage in:claude"] {
            assert!(!matches(query), "{query}");
        }
        assert!(!parse("title:x").matches_thread(None, None, &Map::new()));
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_a_valid_query(text in "\\PC{0,60}|[a-c:\"* -]{0,40}") {
            let query = parse(&text);
            let _ = query.matches_text(&text);
            let _ = query.matches_thread(Some(&text), Some(&text), &Map::new());
        }

        #[test]
        fn one_inserted_letter_is_a_typo(word in "[a-c]{1,6}", at in 0_usize..7, letter in "[a-c]") {
            let at = at.min(word.len());
            let longer = format!("{}{letter}{}", &word[..at], &word[at..]);
            proptest::prop_assert!(is_typo(&word, &longer) && is_typo(&longer, &word));
            proptest::prop_assert!(!is_typo(&word, &word));
        }
    }
}
