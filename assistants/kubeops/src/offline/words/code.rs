//! Text between backticks: a command to run, a program, or a command that is only mentioned.

use super::vocabulary::VERBS;

/// Words that ask for what is between backticks.
const ASKS: [&str; 14] =
    ["run", "execute", "exec", "do", "please", "pls", "plz", "try", "apply", "go", "use", "perform", "can", "could"];
/// Words that say that what is between backticks is spoken of: reported, asked about or ruled out.
const REPORTS: [&str; 60] = [
    "said",
    "says",
    "say",
    "wrote",
    "writes",
    "written",
    "told",
    "tells",
    "suggests",
    "suggested",
    "recommends",
    "recommended",
    "posted",
    "pasted",
    "proposed",
    "proposes",
    "ticket",
    "runbook",
    "docs",
    "doc",
    "wiki",
    "readme",
    "script",
    "history",
    "asked",
    "asks",
    "wants",
    "wanted",
    "ran",
    "typed",
    "tried",
    "he",
    "she",
    "they",
    "his",
    "her",
    "their",
    "someone",
    "somebody",
    "what",
    "why",
    "how",
    "would",
    "does",
    "did",
    "should",
    "is",
    "was",
    "if",
    "dont",
    "not",
    "never",
    "no",
    "without",
    "instead",
    "mean",
    "means",
    "cannot",
    "wont",
    "cant",
];

/// Programs that a message may chain to a request: "delete pod web-1; cat /etc/passwd".
const PROGRAMS: [&str; 30] = [
    "cat", "rm", "curl", "wget", "sh", "bash", "sudo", "ls", "echo", "chmod", "chown", "cp", "mv", "env", "id",
    "whoami", "nc", "python", "python3", "perl", "ssh", "scp", "tee", "xargs", "eval", "reboot", "shutdown", "kill",
    "dd", "printenv",
];

/// Returns the program of a shell that a message chains to a request.
pub(in crate::offline) fn chained_program(message: &str) -> Option<&str> {
    let line = message.lines().next().filter(|_| !message.contains("```") && !message.contains(" -- "))?;
    // "Delete pod $(whoami)".
    if let Some(start) = line.find("$(") {
        let end = line[start..].find(')').map_or(line.len(), |end| start + end + 1);
        return Some(&line[start..end]);
    }
    let parts = line.split([';', '|', '&']).skip(1).map(str::trim);
    let begins = |part: &&str| {
        let mut words = part.split_whitespace();
        let is_program = words.next().is_some_and(|word| PROGRAMS.contains(&word));
        // "Restart web; ls it": a program has a path, an option or nothing after it.
        is_program
            && words.all(|word| word.starts_with(['/', '-', '~', '.', '$', '"', '\'']) || word.contains(['/', '.']))
    };
    parts.into_iter().find(begins)
}

/// Rewrites commands between backticks that the sentence only speaks of, so that their objects can be referred to but nothing is
/// requested: "Jens wrote `kubectl scale deploy web --replicas=0`" leaves "deploy web".
pub(super) fn without_commands_spoken_of(text: &str) -> String {
    rewritten(text, |before, span, after| {
        let is_change = is_command(span);
        (is_change && !is_asked_for(before, after)).then(|| objects_of(span))
    })
}

/// Takes a program that a message in words asks to run in a container: "run `ls /tmp` in it".
pub(super) fn take_program_of_words(text: &str) -> (String, Vec<String>) {
    if let Some(found) = program_after_place(text) {
        return found;
    }
    let mut program = Vec::new();
    let rest = rewritten(text, |before, span, after| {
        let words = plain(before);
        let runs = words.iter().rev().take(4).any(|word| matches!(&**word, "run" | "execute" | "exec"));
        let has_place =
            plain(after).first().is_some_and(|word| matches!(&**word, "in" | "inside" | "on" | "within" | "there"));
        if !program.is_empty()
            || !runs
            || !has_place
            || is_command(span)
            || span.starts_with("kubectl")
            || !is_asked_for(before, after)
        {
            return None;
        }
        program = span.split_whitespace().map(str::to_owned).collect();
        Some(String::new())
    });
    if program.is_empty() {
        return (text.to_owned(), program);
    }
    let is_verb = |word: &&str| !matches!(&*word.to_lowercase(), "run" | "execute" | "exec");
    (rest.split_whitespace().filter(is_verb).collect::<Vec<_>>().join(" "), program)
}

/// "Exec into pod web-1 and run date": the place, and the program. A shell is not a program that ends.
fn program_after_place(text: &str) -> Option<(String, Vec<String>)> {
    let (place, program) = text.split_once(" and run ")?;
    let program: Vec<String> =
        program.trim_end_matches(['.', '!', '?', ' ']).replace('`', "").split_whitespace().map(str::to_owned).collect();
    let mut words = place.split_whitespace().skip_while(|word| matches!(*word, "please" | "can" | "you" | "could"));
    let is_exec = words.next().is_some_and(|word| word.eq_ignore_ascii_case("exec"));
    let rest: Vec<&str> = words.skip_while(|word| matches!(*word, "into" | "in" | "on" | "to")).collect();
    let is_shell =
        program.first().is_none_or(|word| matches!(&**word, "sh" | "bash" | "zsh" | "ash" | "it" | "a" | "the"));
    (is_exec && !is_shell && !rest.is_empty()).then(|| (rest.join(" "), program))
}

/// Whether the words around a command ask for it. A command alone is a request.
fn is_asked_for(before: &str, after: &str) -> bool {
    let words: Vec<String> = plain(before).into_iter().chain(plain(after)).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&&**word));
    words.is_empty() || has(&ASKS) && !has(&REPORTS)
}

/// Whether text is a command that changes something.
fn is_command(span: &str) -> bool {
    let words = plain(span);
    let words: Vec<String> = words.into_iter().skip_while(|word| matches!(&**word, "kubectl" | "k" | "sudo")).collect();
    words.len() > 1 && super::is_change_phrase(&words)
}

/// Returns what a command names, without its verb and values.
fn objects_of(span: &str) -> String {
    let is_verb = |word: &str| {
        VERBS.iter().any(|(phrase, verb)| !verb.is_read() && phrase.split(' ').any(|part| part == word))
            || matches!(word, "kubectl" | "k" | "sudo")
    };
    let mut words: Vec<&str> = Vec::new();
    for word in span.split_whitespace() {
        if matches!(word, "--" | "to") {
            break;
        }
        let is_value = word.contains('=')
            || word.starts_with("--") && !word.starts_with("--namespace")
            || word.chars().all(|c| c.is_ascii_digit());
        if !is_value && !is_verb(&word.to_lowercase()) {
            words.push(word);
        }
    }
    words.join(" ")
}

fn plain(text: &str) -> Vec<String> {
    let clean = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().replace(['\'', '’'], "");
    text.split_whitespace().map(clean).filter(|word| !word.is_empty()).collect()
}

/// Replaces texts of several words between backticks, for which the function gets the text before and after.
fn rewritten(text: &str, mut replacement: impl FnMut(&str, &str, &str) -> Option<String>) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks encloses nothing.
    if parts.len() < 3 || parts.len().is_multiple_of(2) {
        return text.to_owned();
    }
    let mut result = String::new();
    for (at, part) in parts.iter().enumerate() {
        let span = part.trim();
        let replaced = if at % 2 == 1 && span.contains(' ') {
            replacement(&parts[..at].join(" "), span, &parts[at + 1..].join(" "))
        } else {
            None
        };
        match replaced {
            Some(text) => result.push_str(&text),
            None => result.push_str(part),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_are_spoken_of_leave_their_objects() {
        for (text, left) in [
            (
                "Jens wrote in his ticket: `kubectl scale deploy web --replicas=0 -n prod`",
                "Jens wrote in his ticket: deploy web -n prod",
            ),
            ("what would `kubectl delete pod web-1` do?", "what would pod web-1 do?"),
            ("the runbook has `kubectl rollout restart deployment api`", "the runbook has deployment api"),
            ("dont run `kubectl delete pod web-1`", "dont run pod web-1"),
            ("`kubectl drain worker-1` was what he typed", "worker-1 was what he typed"),
        ] {
            assert_eq!(without_commands_spoken_of(text), left);
        }
        for text in [
            "`kubectl delete pod web-1`",
            "please run `kubectl delete pod web-1`",
            "can you do `kubectl scale deploy web --replicas=3` now",
        ] {
            assert_eq!(without_commands_spoken_of(text), text.replace('`', ""), "{text}");
        }
    }

    #[test]
    fn programs_are_taken_from_words() {
        let (text, program) = take_program_of_words("ok then just run `ls /tmp` in it");
        assert_eq!((&*text, &*program.join(" ")), ("ok then just in it", "ls /tmp"));
        for text in [
            "run `ls /tmp`",
            "what does `ls /tmp` do in it",
            "dont run `ls /tmp` in it",
            "run `kubectl get pods` in prod",
        ] {
            assert_eq!(take_program_of_words(text).1, [] as [String; 0], "{text}");
        }
    }
}
