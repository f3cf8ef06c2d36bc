//! The types of the settings' values.

use crate::instants;
use crate::listen::ListenAddress;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// A file or a folder.
    File,
    /// A URL, which may contain a password.
    Url,
    /// A host and a port to listen on.
    Listen,
    /// A whole number of at least 1.
    Count,
    /// A whole number; 0 disables the feature that the setting limits.
    Size,
    Flag,
    /// An RFC 3339 timestamp.
    Instant,
    /// Text that is never displayed.
    Secret,
}

/// A value as it appears in a configuration file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RawValue {
    Text(String),
    Number(String),
    Flag(bool),
    /// An unquoted TOML date or time.
    Date(String),
    /// A value of a type that no setting has: a list or null.
    Other(&'static str),
}

impl Kind {
    /// Describes valid values, for error messages.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Text | Self::Secret => "text",
            Self::File => "the path of a file or folder",
            Self::Url => "a URL",
            Self::Listen => "a host and a port such as \"127.0.0.1:7437\"",
            Self::Count => "a whole number of at least 1",
            Self::Size => "a whole number",
            Self::Flag => "true or false",
            Self::Instant => "a timestamp such as 2026-05-04T18:12:00Z",
        }
    }

    pub(crate) const fn may_be_secret(self) -> bool {
        matches!(self, Self::Secret | Self::Url)
    }

    /// Whether the text is a valid value of this type.
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Text | Self::File | Self::Url | Self::Secret => true,
            Self::Listen => text.parse::<ListenAddress>().is_ok(),
            Self::Count => text.parse::<u32>().is_ok_and(|count| count > 0),
            Self::Size => text.parse::<u32>().is_ok(),
            Self::Flag => matches!(text, "true" | "false"),
            Self::Instant => instants::parse(text).is_ok(),
        }
    }

    /// Converts a value of a configuration file to text.
    ///
    /// # Errors
    /// A message with the expected type and the type that was found.
    pub(crate) fn read(self, raw: RawValue) -> Result<String, String> {
        let (text, has_right_type, found) = match raw {
            RawValue::Text(text) => (text, !matches!(self, Self::Count | Self::Size | Self::Flag), "text"),
            RawValue::Number(number) => (number, matches!(self, Self::Count | Self::Size), "a number"),
            RawValue::Flag(flag) => (flag.to_string(), self == Self::Flag, "a boolean"),
            RawValue::Date(date) => (date, self == Self::Instant, "a date or time"),
            RawValue::Other(what) => (String::new(), false, what),
        };
        if has_right_type && self.accepts(&text) {
            return Ok(text);
        }
        // Only values of the correct type are quoted, because any other text may be a misplaced secret.
        let found = if has_right_type { format!("`{text}`") } else { found.to_owned() };
        Err(format!("expected {}, found {found}", self.expected()))
    }
}

/// Whether a URL contains a password.
pub(crate) fn has_password(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let is_in_userinfo = authority.rsplit_once('@').is_some_and(|(userinfo, _)| userinfo.contains(':'));
    is_in_userinfo || rest.split(['?', '&']).skip(1).any(|parameter| parameter.to_lowercase().starts_with("password="))
}
