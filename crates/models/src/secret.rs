use std::fmt;

/// What stands where a key would.
const HIDDEN: &str = "[key]";

/// A key. It is never printed, and taken out of what a provider says.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key. `None` where it is empty or holds what no header can carry.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        let is_fit = !key.is_empty() && key.chars().all(|character| character.is_ascii_graphic());
        is_fit.then(|| Self(key.to_owned()))
    }

    /// The key itself, for the header that carries it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes the key out of a text.
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
    fn a_key_is_never_shown() {
        let key = Secret::new(" sk-1234 \n").unwrap();
        assert_eq!(key.reveal(), "sk-1234");
        assert_eq!(format!("{key:?}"), "[key]");
        assert_eq!(key.redact("bad key sk-1234."), "bad key [key].");
        assert!(Secret::new("  ").is_none());
        assert!(Secret::new("sk\n1").is_none());
    }
}
