//! `cargo xtask words`: checks that no tracked text uses a word that plain English avoids.
//!
//! Reads all tracked files with an extension in `EXTENSIONS`, code and prose alike. Words match regardless of case, on their own
//! and as parts of identifiers (`was_told`, `WasTold`). The words of a phrase may be separated by a line break and a comment
//! marker. String literals are not treated specially: files that quote what users write are listed in `EXCEPTIONS`, and an
//! exception that no text needs is an error as well.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::cargo::Workspace;

const EXTENSIONS: [&str; 9] = ["rs", "md", "sql", "toml", "html", "js", "ts", "tsx", "mjs"];

/// A word or phrase to avoid, and what to write instead.
#[derive(Debug)]
struct Rule {
    words: &'static str,
    instead: &'static str,
}

const fn rule(words: &'static str, instead: &'static str) -> Rule {
    Rule { words, instead }
}

const RULES: [Rule; 22] = [
    rule("tell", "report, return, list, say or inform"),
    rule("tells", "reports, returns, lists, says or informs"),
    rule("told", "reported, returned, listed, said or informed"),
    rule("telling", "reporting, returning, listing or distinguishing"),
    rule("anew", "again"),
    rule("whoever", "a caller, a client that …, or anyone who …"),
    rule("whosoever", "a caller, a client that …, or anyone who …"),
    rule("nobody", "no one, no client or no caller"),
    rule("somebody", "someone, a client or a caller"),
    rule("anybody", "anyone, any client or any caller"),
    rule("goes on with", "continues or resumes"),
    rule("gone on with", "continued or resumed"),
    rule("is said", "is reported, or name who says it"),
    rule("what was its", "name what belonged to it, such as its data"),
    rule("is begun", "is started"),
    rule("of one's own accord", "unprompted or periodically"),
    rule("in vain", "without success"),
    rule("until then", "name the event: until …"),
    rule("thereby", "name the cause: by …ing, or so that …"),
    rule("hence", "so or therefore"),
    rule("whence", "from which"),
    rule("upon", "on or when"),
];

/// Files and folders in which some words are allowed.
#[derive(Debug)]
struct Exception {
    /// A file, or a folder with a slash at the end.
    path: &'static str,
    /// The allowed words; all if empty.
    words: &'static [&'static str],
    reason: &'static str,
}

const fn allow(path: &'static str, words: &'static [&'static str], reason: &'static str) -> Exception {
    Exception { path, words, reason }
}

const EXCEPTIONS: &[Exception] = &[
    allow("xtask/src/words.rs", &[], "defines the words"),
    // Words of dialogue, where a person speaks.
    allow("assistants/general/src/offline.rs", &["tell", "told"], "replies address the user: what you told me"),
    allow("assistants/general/src/offline/commands.rs", &["tell"], "requests that users write: tell me a joke"),
    allow("assistants/general/src/offline/erasure.rs", &["told"], "replies address the user: what you told me"),
    allow("assistants/general/src/evidence/spelling.rs", &["tell"], "words of users' messages"),
    allow("assistants/general/src/offline/facts.rs", &["tell"], "words of users' messages"),
    allow("assistants/general/src/offline/finding.rs", &["told"], "words of users' messages"),
    allow("assistants/general/src/offline/quoting.rs", &["told"], "replies address the user: what you told me"),
    allow("assistants/general/src/offline/preferences.rs", &["told"], "replies address the user: what you told me"),
    allow("assistants/general/tests/dialogues/", &["told"], "quotes replies to the user"),
    allow("crates/cli/tests/commands/chat.rs", &["anybody"], "user input"),
    allow("README.md", &["told"], "quotes replies to the user"),
    // Phrases that assistants recognise in what people write.
    allow("crates/dialogue/tests/offline.rs", &["tell"], "example messages: tell me about a pier"),
    allow("assistants/general/src/offline/honesty.rs", &["tell", "told"], "words of users' messages"),
    allow("assistants/general/src/offline/order.rs", &["tell", "told"], "words of users' messages"),
    allow("assistants/general/src/offline/rewording.rs", &["tell", "told"], "words of users' messages"),
    allow("assistants/general/src/offline/rewording/forgetting.rs", &["told"], "words of users' messages"),
    allow("assistants/general/src/evidence/question.rs", &["tell"], "words of users' questions"),
    allow("assistants/general/src/evidence/question/", &["tell", "told", "telling"], "words of users' questions"),
    allow("assistants/general/src/offline/brevity.rs", &["tell", "told"], "words of users' questions"),
    allow("assistants/general/src/offline/lists.rs", &["tell"], "words of users' messages"),
    allow("crates/dialogue/src/quote.rs", &["tell", "told", "somebody", "nobody"], "words of users' messages"),
    allow(
        "assistants/kubeops/src/offline/",
        &["tell", "tells", "told", "nobody", "somebody", "anybody", "anew"],
        "words of users' messages",
    ),
    allow("assistants/transit/src/offline/trip_again.rs", &["tell"], "words of users' messages"),
    allow("assistants/underground/src/offline/conditions.rs", &["tell"], "words of users' messages"),
    allow("assistants/transit/src/offline/asked.rs", &["tell", "told"], "words of users' messages"),
    allow("assistants/transit/src/offline/personal.rs", &["told"], "words of users' messages"),
    allow("assistants/kubeops/tests/conversations.rs", &["told"], "users' messages"),
    allow("crates/dialogue/src/resolver/questions.rs", &["tell"], "words of users' messages"),
    allow("crates/core/src/text/irregular.rs", &["tell", "told"], "irregular verb forms, as data"),
    allow("crates/formats/tests/", &["tell"], "files from other programs, which contain users' text"),
    // Names that cannot change.
    allow("docs/cli.md", &["told"], "a field of the command line's JSON"),
    allow("crates/memory/src/migrate.rs", &["told"], "a field of the command line's JSON"),
    allow("crates/memory/src/migrate/damage.rs", &["told"], "a field of the command line's JSON"),
    allow("stores/postgres/src/schema/", &[], "migrations are immutable: databases store a checksum of their text"),
    allow("stores/postgres/tests/servers/former/", &[], "functions of earlier versions, as they were released"),
    allow("stores/sqlite/src/schema/", &[], "released migrations are immutable"),
    allow("stores/postgres/src/notify.rs", &["tell"], "the SQL function threadkeep.tell"),
    allow("stores/postgres/tests/servers/supabase.rs", &["tell"], "the SQL function threadkeep.tell"),
    allow("stores/redis-server/src/programs.rs", &["nobody"], "the Unix account nobody"),
    allow("stores/postgres-server/src/programs.rs", &["nobody"], "the Unix account nobody"),
];

/// A use of a rule's words in text.
#[derive(Debug)]
struct Use {
    /// The 1-based line.
    line: usize,
    rule: &'static Rule,
}

/// Runs the check on the workspace that contains the current folder.
pub(crate) fn run() -> Result<ExitCode> {
    check(&Workspace::load()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails with a list of all uses that no exception allows, and of all exceptions that no use needs.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let files = tracked_files(workspace)?;
    let mut texts = Vec::new();
    for file in files {
        let path = workspace.root.join(&file);
        // Git also lists files whose deletion has not been committed.
        if path.is_file() {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {file}"))?;
            texts.push((file, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    let violations = violations(&texts, EXCEPTIONS);
    ensure!(
        violations.is_empty(),
        "{} uses of words that plain English avoids (the list is in xtask/src/words.rs)\n  {}",
        violations.len(),
        violations.join("\n  ")
    );
    println!("words: {} files avoid all {} words and phrases", texts.len(), RULES.len());
    Ok(())
}

fn tracked_files(workspace: &Workspace) -> Result<Vec<String>> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--"]).args(EXTENSIONS.map(|extension| format!("*.{extension}")));
    let output = command.current_dir(&workspace.root).output().context("failed to start git")?;
    ensure!(output.status.success(), "git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Checks texts, given with their paths. Returns a message for each violation.
fn violations(texts: &[(String, String)], exceptions: &[Exception]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut needed: BTreeSet<&str> = BTreeSet::new();
    for (file, text) in texts {
        for Use { line, rule } in uses_in(text) {
            match exceptions.iter().find(|exception| exception.allows(file, rule)) {
                Some(exception) => drop(needed.insert(exception.path)),
                None => violations.push(format!("{file}:{line}: \"{}\"; instead: {}", rule.words, rule.instead)),
            }
        }
    }
    let unneeded = exceptions.iter().filter(|exception| !needed.contains(exception.path));
    violations.extend(unneeded.map(|Exception { path, reason, .. }| {
        format!("xtask/src/words.rs: no text needs the exception for {path} ({reason}); remove it")
    }));
    violations
}

impl Exception {
    fn allows(&self, file: &str, rule: &Rule) -> bool {
        let applies = file == self.path || self.path.ends_with('/') && file.starts_with(self.path);
        applies && (self.words.is_empty() || self.words.contains(&rule.words))
    }
}

fn uses_in(text: &str) -> Vec<Use> {
    let words = words_of(text);
    let rules: Vec<_> = RULES.iter().map(|rule| (rule, words_of(rule.words))).collect();
    let mut uses = Vec::new();
    let mut line = 1;
    let mut counted_to = 0;
    for (index, (start, _)) in words.iter().enumerate() {
        line += text[counted_to..*start].matches('\n').count();
        counted_to = *start;
        let found = rules.iter().filter(|(_, expected)| starts_with(text, &words[index..], expected));
        uses.extend(found.map(|(rule, _)| Use { line, rule }));
    }
    uses
}

/// Whether the remaining words of the text start with the words of a rule.
fn starts_with(text: &str, words: &[(usize, &str)], expected: &[(usize, &str)]) -> bool {
    let Some(candidates) = words.get(..expected.len()) else { return false };
    let are_equal =
        candidates.iter().zip(expected).all(|((_, word), (_, expected))| word.eq_ignore_ascii_case(expected));
    are_equal && candidates.windows(2).all(|pair| joins_words(&text[pair[0].0 + pair[0].1.len()..pair[1].0]))
}

/// Whether the characters between two words can be part of a phrase: white space, apostrophes, and the markers of identifiers,
/// comments, quotations and line continuations, but no punctuation.
fn joins_words(between: &str) -> bool {
    between.chars().all(|character| character.is_whitespace() || "_-'’/!*#>\\".contains(character))
}

/// Splits text into words with their byte offsets: sequences of letters, split before an upper-case letter that follows a
/// lower-case one. The letter of an escape sequence such as `\n` is not part of a word.
fn words_of(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    let mut previous = ' ';
    for (at, character) in text.char_indices() {
        let is_letter = character.is_alphabetic() && previous != '\\';
        let splits = !is_letter || previous.is_lowercase() && character.is_uppercase();
        if splits && let Some(start) = start.take() {
            words.push((start, &text[start..at]));
        }
        if is_letter && start.is_none() {
            start = Some(at);
        }
        previous = character;
    }
    words.extend(start.map(|start| (start, &text[start..])));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        uses_in(text).into_iter().map(|found| (found.line, found.rule.words)).collect()
    }

    fn violations_in(file: &str, text: &str, exceptions: &[Exception]) -> Vec<String> {
        violations(&[(file.to_owned(), text.to_owned())], exceptions)
    }

    #[test]
    fn words_match_regardless_of_case() {
        assert_eq!(found("Nobody, NOBODY or nobody's"), [(1, "nobody"); 3]);
    }

    #[test]
    fn parts_of_identifiers_match() {
        assert_eq!(found("fn is_told_twice() -> WasTold"), [(1, "told"), (1, "told")]);
        assert_eq!(found("until_then(UntilThen)"), [(1, "until then"), (1, "until then")]);
    }

    #[test]
    fn longer_words_do_not_match() {
        assert_eq!(found("the teller foretells coupons, tolds"), []);
    }

    #[test]
    fn phrases_match_across_line_breaks_and_comment_markers() {
        assert_eq!(
            found("/// It goes on\n    /// with it.\n// of one’s own\n// accord"),
            [(1, "goes on with"), (3, "of one's own accord")]
        );
    }

    #[test]
    fn phrases_do_not_match_across_punctuation() {
        assert_eq!(found("what it is. Said differently, it goes on: with"), []);
    }

    #[test]
    fn escape_sequences_end_words() {
        assert_eq!(found(r#""\nanew\ttold""#), [(1, "anew"), (1, "told")]);
    }

    #[test]
    fn uses_are_reported_with_file_line_and_advice() {
        assert_eq!(violations_in("docs/a.md", "One.\nTwo anew.\n", &[]), ["docs/a.md:2: \"anew\"; instead: again"]);
    }

    #[test]
    fn exceptions_allow_the_words_in_a_file_or_folder() {
        let exceptions = [allow("tests/", &["told"], "user input"), allow("a.rs", &[], "quotes")];
        let texts = [("tests/b.rs", "told anew"), ("a.rs", "told anew"), ("a.rs.md", "told")];
        let texts = texts.map(|(file, text)| (file.to_owned(), text.to_owned()));
        assert_eq!(
            violations(&texts, &exceptions),
            [
                "tests/b.rs:1: \"anew\"; instead: again",
                "a.rs.md:1: \"told\"; instead: reported, returned, listed, said or informed",
            ]
        );
    }

    #[test]
    fn exceptions_that_no_text_needs_are_reported() {
        let exceptions = [allow("a.rs", &["told"], "user input")];
        assert_eq!(
            violations_in("a.rs", "anew", &exceptions),
            [
                "a.rs:1: \"anew\"; instead: again",
                "xtask/src/words.rs: no text needs the exception for a.rs (user input); remove it",
            ]
        );
    }

    #[test]
    fn exceptions_name_words_of_rules() {
        let mut words = EXCEPTIONS.iter().flat_map(|exception| exception.words);
        assert!(words.all(|word| RULES.iter().any(|rule| rule.words == *word)));
    }
}
