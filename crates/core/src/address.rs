//! Redacts secrets in addresses before they are displayed or logged.

/// Shown in place of each redacted part.
const HIDDEN: char = '…';
/// Precedes a password among named connection parameters.
const PASSWORD: &str = "password=";

/// Redacts the password and the query of an address, for output, logs and errors.
///
/// `postgres://ana:secret@host/db?sslpassword=x` becomes `postgres://ana:…@host/db?…`. For other schemes, the entire userinfo is
/// redacted, because it may be a key. Text that is not an address, such as a file name, is returned unchanged. If the extent
/// of a password is ambiguous, more is redacted rather than less.
#[must_use]
pub fn redact_address(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, address),
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (before, after) = rest.split_at(end);
    if splits_login(before, after) {
        return with_scheme(scheme, HIDDEN.to_string());
    }
    let mut redacted = match before.rsplit_once('@') {
        Some((login, host)) if scheme.is_some() || login.contains(':') => {
            format!("{}@{host}", redact_login(scheme, login))
        }
        _ => before.to_owned(),
    };
    if let Some(separator) = after.chars().next() {
        redacted.push(separator);
        redacted.push(HIDDEN);
    }
    with_scheme(scheme, redact_named_password(&redacted))
}

/// Redacts every address in the text, as [`redact_address`] does.
#[must_use]
pub fn redact_addresses(text: &str) -> String {
    let ends_word = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | '<' | '>' | '|');
    let mut redacted = String::with_capacity(text.len());
    for word in text.split_inclusive(ends_word) {
        let (inside, end) = word.split_at(word.trim_end_matches(ends_word).len());
        // Punctuation at the end of a sentence is not part of an address.
        let address = inside.trim_end_matches([',', '.', ';', ':', '!']);
        if address.contains("://") || address.to_ascii_lowercase().contains(PASSWORD) {
            redacted.push_str(&redact_address(address));
            redacted.push_str(&inside[address.len()..]);
        } else {
            redacted.push_str(inside);
        }
        redacted.push_str(end);
    }
    redacted
}

/// Whether an address was split inside its login, because the password contains a `?` or `#` that is not percent-encoded.
fn splits_login(before: &str, after: &str) -> bool {
    let authority = before.split('/').next().unwrap_or_default();
    after.contains('@') && !before.contains('@') && authority.contains(':')
}

fn redact_login(scheme: Option<&str>, login: &str) -> String {
    let is_database = scheme.is_some_and(|scheme| scheme.starts_with("postgres"));
    match login.split_once(':') {
        Some((user, _)) if is_database => format!("{user}:{HIDDEN}"),
        None if is_database && !login.contains('/') => login.to_owned(),
        _ => HIDDEN.to_string(),
    }
}

/// Redacts the password in a list of connection parameters: `host=db password=secret`.
fn redact_named_password(text: &str) -> String {
    match text.to_ascii_lowercase().find(PASSWORD) {
        Some(start) => format!("{}{HIDDEN}", &text[..start + PASSWORD.len()]),
        None => text.to_owned(),
    }
}

fn with_scheme(scheme: Option<&str>, rest: String) -> String {
    match scheme {
        Some(scheme) => format!("{scheme}://{rest}"),
        None => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_queries_are_redacted() {
        for (address, redacted) in [
            ("postgres://ana:s3cret@host:5432/db?x=1", "postgres://ana:…@host:5432/db?…"),
            ("postgres://ana@host/db", "postgres://ana@host/db"),
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://u:p/s3cret@host/db", "postgres://u:…@host/db"),
            ("postgres://u:p?s3cret@host/db", "postgres://…"),
            ("postgres://u:p#s3cret@host/db", "postgres://…"),
            ("postgres://u:p@s3cret@host/db", "postgres://u:…@host/db"),
            ("https://user:s3cret@host/v1?key=s3cret", "https://…@host/v1?…"),
            ("https://s3cret@host/v1", "https://…@host/v1"),
            ("https://s3cret:@host/v1", "https://…@host/v1"),
            ("http://host:11434/v1#s3cret", "http://host:11434/v1#…"),
            ("http://[::1]:7437/v1?a=b&c=s3cret", "http://[::1]:7437/v1?…"),
            ("user:s3cret@proxy:3128", "…@proxy:3128"),
            ("127.0.0.1:11434/?key=s3cret", "127.0.0.1:11434/?…"),
            ("host=db Password=s3cret", "host=db Password=…"),
            ("notes.db", "notes.db"),
            ("./ana@home.db", "./ana@home.db"),
            ("sqlite:/data/notes.db", "sqlite:/data/notes.db"),
            ("", ""),
            ("://", "://"),
            ("https://?@", "https://?…"),
        ] {
            assert_eq!(redact_address(address), redacted, "{address}");
            assert!(!redacted.contains("s3cret"));
        }
    }

    #[test]
    fn addresses_in_a_text_are_redacted() {
        for (text, redacted) in [
            ("cannot reach https://u:s3cret@host/v1?key=s3cret: refused", "cannot reach https://…@host/v1?…: refused"),
            ("`postgres://u:s3cret@host/db` is not a file.", "`postgres://u:…@host/db` is not a file."),
            ("listening on http://127.0.0.1:7437", "listening on http://127.0.0.1:7437"),
            ("(http://h/?s3cret)\n\"http://h/?s3cret\"", "(http://h/?…)\n\"http://h/?…\""),
            ("no store at host=db password=s3cret yet", "no store at host=db password=… yet"),
            ("nothing here", "nothing here"),
        ] {
            assert_eq!(redact_addresses(text), redacted);
        }
    }
}
