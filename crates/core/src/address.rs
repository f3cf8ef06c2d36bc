//! Addresses as they may be shown: without what may be secret in them.

/// What stands for what is left out.
const HIDDEN: char = '…';
/// How a password begins among named parameters.
const PASSWORD: &str = "password=";

/// An address without its password and its query, for people, logs and errors.
///
/// `postgres://ana:secret@host/db?sslpassword=x` becomes `postgres://ana:…@host/db?…`. Of other schemes the whole login is
/// left out, as keys stand there too. What is no address, such as the name of a file, stays as it is. Where one cannot tell what
/// belongs to a password, more is left out rather than less.
#[must_use]
pub fn redact_address(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, address),
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (before, after) = rest.split_at(end);
    if is_cut_in_a_login(before, after) {
        return with_scheme(scheme, HIDDEN.to_string());
    }
    let mut shown = match before.rsplit_once('@') {
        Some((login, place)) if scheme.is_some() || login.contains(':') => {
            format!("{}@{place}", shown_login(scheme, login))
        }
        _ => before.to_owned(),
    };
    if let Some(mark) = after.chars().next() {
        shown.push(mark);
        shown.push(HIDDEN);
    }
    with_scheme(scheme, without_named_password(&shown))
}

/// A text in which every address is as [`redact_address`] shows it.
#[must_use]
pub fn redact_addresses(text: &str) -> String {
    let ends_word = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | '<' | '>' | '|');
    let mut shown = String::with_capacity(text.len());
    for word in text.split_inclusive(ends_word) {
        let (inside, end) = word.split_at(word.trim_end_matches(ends_word).len());
        // What ends a sentence is not part of an address.
        let address = inside.trim_end_matches([',', '.', ';', ':', '!']);
        if address.contains("://") || address.to_ascii_lowercase().contains(PASSWORD) {
            shown.push_str(&redact_address(address));
            shown.push_str(&inside[address.len()..]);
        } else {
            shown.push_str(inside);
        }
        shown.push_str(end);
    }
    shown
}

/// A password may hold a `?` or `#` that nobody encoded: then the login is on both sides of it.
fn is_cut_in_a_login(before: &str, after: &str) -> bool {
    let authority = before.split('/').next().unwrap_or_default();
    after.contains('@') && !before.contains('@') && authority.contains(':')
}

fn shown_login(scheme: Option<&str>, login: &str) -> String {
    let is_database = scheme.is_some_and(|scheme| scheme.starts_with("postgres"));
    match login.split_once(':') {
        Some((user, _)) if is_database => format!("{user}:{HIDDEN}"),
        None if is_database && !login.contains('/') => login.to_owned(),
        _ => HIDDEN.to_string(),
    }
}

/// As in a list of a connection's parameters: `host=db password=secret`.
fn without_named_password(text: &str) -> String {
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
    fn no_password_and_no_query_is_shown() {
        for (address, shown) in [
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
            assert_eq!(redact_address(address), shown, "{address}");
            assert!(!shown.contains("s3cret"));
        }
    }

    #[test]
    fn addresses_in_a_text_are_found() {
        for (text, shown) in [
            ("cannot reach https://u:s3cret@host/v1?key=s3cret: refused", "cannot reach https://…@host/v1?…: refused"),
            ("`postgres://u:s3cret@host/db` is no file.", "`postgres://u:…@host/db` is no file."),
            ("listening on http://127.0.0.1:7437", "listening on http://127.0.0.1:7437"),
            ("(http://h/?s3cret)\n\"http://h/?s3cret\"", "(http://h/?…)\n\"http://h/?…\""),
            ("no store at host=db password=s3cret yet", "no store at host=db password=… yet"),
            ("nothing here", "nothing here"),
        ] {
            assert_eq!(redact_addresses(text), shown);
        }
    }
}
