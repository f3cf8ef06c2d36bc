//! Reports invalid command lines as text or JSON.

use std::process::exit;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};

use crate::failure::{FailureJson, USAGE};

/// Prints help, the version or an error, and exits.
pub(crate) fn exit_with(error: Error, command: &mut Command) -> ! {
    let error = redact_addresses(with_plain_usage(error, command));
    if error.use_stderr() && is_json_requested(std::env::args()) {
        use std::io::Write;
        // Errors are ignored: if standard error is closed, the exit code still reports the failure.
        drop(writeln!(std::io::stderr().lock(), "{}", as_json(&error)));
        exit(USAGE.into());
    }
    error.exit()
}

/// Replaces the usage line that clap derives from the arguments, because clap marks all given options as required, even
/// those from the environment.
fn with_plain_usage(mut error: Error, command: &mut Command) -> Error {
    let Some(ContextValue::StyledStr(derived)) = error.get(ContextKind::Usage) else { return error };
    let derived = derived.to_string();
    command.build();
    let mut current = command;
    for word in derived.split_whitespace().skip_while(|word| *word != "threadkeep").skip(1) {
        if current.find_subcommand(word).is_none() {
            break;
        }
        current = current.find_subcommand_mut(word).expect("the subcommand was found above");
    }
    error.insert(ContextKind::Usage, ContextValue::StyledStr(current.render_usage()));
    error
}

/// Redacts passwords and queries of URLs in the quoted parts of the command line.
fn redact_addresses(mut error: Error) -> Error {
    let redacted = |text: &String| threadkeep::core::redact_addresses(text);
    let quoted: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => Some((kind, ContextValue::String(redacted(text)))),
            ContextValue::Strings(texts) => Some((kind, ContextValue::Strings(texts.iter().map(redacted).collect()))),
            ContextValue::StyledStrs(texts) => {
                let texts = texts.iter().map(|text| redacted(&text.ansi().to_string()).into());
                Some((kind, ContextValue::StyledStrs(texts.collect())))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in quoted {
        error.insert(kind, value);
    }
    error
}

/// Searches the raw arguments for `--json`, because the arguments could not be parsed.
fn is_json_requested(words: impl Iterator<Item = String>) -> bool {
    words.take_while(|word| word != "--").any(|word| word == "--json")
}

fn as_json(error: &Error) -> String {
    let text = error.render().to_string();
    let text = text.trim().strip_prefix("error: ").unwrap_or(&text);
    let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let hints: Vec<String> = rest.split("\n\n").map(|hint| one_line(hint.trim().trim_start_matches("tip: "))).collect();
    let hint = hints.iter().filter(|hint| !hint.is_empty()).cloned().collect::<Vec<_>>().join("; ");
    let json = FailureJson { error: &one_line(message), hint: Some(&hint), exit_code: USAGE };
    serde_json::to_string(&json).expect("text and a number have a JSON form")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Arguments;

    fn parse_error(words: &[&str]) -> Error {
        let mut command = Arguments::command();
        let error = command.try_get_matches_from_mut([&["threadkeep"], words].concat()).unwrap_err();
        with_plain_usage(error, &mut command)
    }

    #[test]
    fn given_options_are_not_listed_as_required() {
        for (words, usage) in [
            (&["--store", "x.db", "--as-tenant", "show"][..], "Usage: threadkeep show [OPTIONS] <THREAD>"),
            (
                &["migrate", "--user", "ana", "--from", "x"],
                "Usage: threadkeep migrate [OPTIONS] --from <URL> --to <URL>",
            ),
            (&["--json", "keys", "create"], "Usage: threadkeep keys create [OPTIONS] <NAME>"),
            (&["--now", "2026-01-01T00:00:00Z", "nonsense"], "Usage: threadkeep [OPTIONS] <COMMAND>"),
        ] {
            let text = parse_error(words).render().to_string();
            assert!(text.contains(&format!("{usage}\n")), "{text}");
        }
    }

    #[test]
    fn errors_redact_passwords_of_urls() {
        let address = "postgres://ana:hunter2@db/x?key=hunter2";
        let option = format!("--stroe={address}");
        for words in [
            &["threads", address][..],
            &[address],
            &["threads", &option],
            &["--now", address, "threads"],
            &["show", "--limit", address, "x"],
            &["help", address],
        ] {
            let error = redact_addresses(parse_error(words));
            let text = format!("{}{}", error.render().ansi(), as_json(&error));
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn json_has_error_hint_and_exit_code() {
        let json: serde_json::Value = serde_json::from_str(&as_json(&parse_error(&["serch", "x"]))).unwrap();
        assert_eq!(json["error"], "unrecognized subcommand 'serch'");
        assert!(json["hint"].as_str().unwrap().contains("'search'"), "{json}");
        assert_eq!(json["exit_code"], 2);
        let json: serde_json::Value = serde_json::from_str(&as_json(&parse_error(&["show"]))).unwrap();
        assert_eq!(json["error"], "the following required arguments were not provided: <THREAD>");
        assert!(is_json_requested(["show", "--json"].map(str::to_owned).into_iter()));
        assert!(!is_json_requested(["append", "--", "--json"].map(str::to_owned).into_iter()));
    }
}
