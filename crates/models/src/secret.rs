use std::fmt;

/// The text that replaces a key in output.
const HIDDEN: &str = "[key]";

/// An API key. It is never printed, and it is redacted from messages of providers.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret from a key. Returns `None` if the key is empty or contains characters that HTTP headers do not allow.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        let is_valid = !key.is_empty() && key.chars().all(|character| character.is_ascii_graphic());
        is_valid.then(|| Self(key.to_owned()))
    }

    /// Returns the key for use in a header.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Replaces the key in the text by [`HIDDEN`].
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(&self.0, HIDDEN)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed() {
        let key = Secret::new(" sk-1234 \n").unwrap();
        assert_eq!(key.reveal(), "sk-1234");
        assert_eq!(format!("{key:?}"), "[key]");
        assert_eq!(key.redact("bad key sk-1234."), "bad key [key].");
        assert!(Secret::new("  ").is_none());
        assert!(Secret::new("sk\n1").is_none());
    }
}
