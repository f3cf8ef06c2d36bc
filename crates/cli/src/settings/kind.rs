//! What a setting's value can be.

use crate::instants;
use crate::listen::ListenAddress;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// A file or a folder.
    File,
    /// An address, which may hold a password.
    Url,
    /// A host of this machine and a port.
    Listen,
    /// A whole number, at least 1.
    Count,
    /// A whole number, or 0 for none.
    Size,
    Flag,
    /// An instant as RFC 3339 writes it.
    Instant,
    /// Text that nobody may see.
    Secret,
}

/// A value as a file holds it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Raw {
    Text(String),
    Number(String),
    Flag(bool),
    /// As TOML writes an instant, a day or a time, without quotes.
    Date(String),
    /// What no setting can be: a list, or nothing.
    Other(&'static str),
}

impl Kind {
    /// What is expected, for people.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Text | Self::Secret => "text",
            Self::File => "the name of a file or folder, as text",
            Self::Url => "an address, as text",
            Self::Listen => "a host and a port, such as \"127.0.0.1:7437\"",
            Self::Count => "a whole number, at least 1",
            Self::Size => "a whole number",
            Self::Flag => "true or false",
            Self::Instant => "an instant, such as 2026-05-04T18:12:00Z",
        }
    }

    pub(crate) const fn may_be_secret(self) -> bool {
        matches!(self, Self::Secret | Self::Url)
    }

    /// Whether a text is a value of this kind.
    pub(crate) fn takes(self, text: &str) -> bool {
        match self {
            Self::Text | Self::File | Self::Url | Self::Secret => true,
            Self::Listen => text.parse::<ListenAddress>().is_ok(),
            Self::Count => text.parse::<u32>().is_ok_and(|count| count > 0),
            Self::Size => text.parse::<u32>().is_ok(),
            Self::Flag => matches!(text, "true" | "false"),
            Self::Instant => instants::parse(text).is_ok(),
        }
    }

    /// Reads what a file holds; what it is instead where it is of another type.
    pub(crate) fn read(self, raw: Raw) -> Result<String, String> {
        let (text, is_right, found) = match raw {
            Raw::Text(text) => (text, !matches!(self, Self::Count | Self::Size | Self::Flag), "text"),
            Raw::Number(number) => (number, matches!(self, Self::Count | Self::Size), "a number"),
            Raw::Flag(flag) => (flag.to_string(), self == Self::Flag, "true or false"),
            Raw::Date(date) => (date, self == Self::Instant, "an instant"),
            Raw::Other(what) => (String::new(), false, what),
        };
        if is_right && self.takes(&text) {
            return Ok(text);
        }
        // What is of the right type is shown; a text of another may be a secret that stands in the wrong place.
        let found = if is_right { format!("`{text}`") } else { found.to_owned() };
        Err(format!("{found} is not {}", self.expected()))
    }
}

/// Whether an address holds a password.
pub(crate) fn has_password(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let in_login = authority.rsplit_once('@').is_some_and(|(login, _)| login.contains(':'));
    in_login || rest.split(['?', '&']).skip(1).any(|parameter| parameter.to_lowercase().starts_with("password="))
}
