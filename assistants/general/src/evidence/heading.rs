//! The headings of excerpts from conversations: `said by the user on 2026-05-09, after “The dentist is on 12 May.”`, or
//! `said by the user on 2026-05-09, about the day 2026-05-10, meaning “61320”`.
//!
//! They are plain text that is parsed back, rather than separate fields, because only the heading shows a model where
//! an excerpt is from.

const SAID_BY: &str = "said by ";
const ON: &str = " on ";
const ABOUT: &str = ", about the day ";
const MEANING: &str = ", meaning “";
/// Precedes the part of a statement that holds, in its meaning.
pub(crate) const HOLDS: &str = "now: ";
const AFTER: &str = ", after “";
const CHANGED_ON: &str = ", before the change on ";
const USER: &str = "the user";
const ASSISTANT: &str = "the assistant";
/// The length of a date such as `2026-05-09`.
pub(crate) const DATE_LENGTH: usize = 10;

/// The parts of the heading of an excerpt from a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heading<'a> {
    /// The author.
    pub(crate) speaker: &'a str,
    /// The day of the message, such as `2026-05-09`.
    pub(crate) day: &'a str,
    /// The day that the question asks about and the excerpt is about, such as `2026-05-10`.
    pub(crate) about: Option<&'a str>,
    /// What the excerpt's words mean, such as the result that "that number" means.
    pub(crate) meaning: Option<&'a str>,
    /// The message that the excerpt refers to or changes.
    pub(crate) after: Option<&'a str>,
    /// The day on which a later message changed the excerpt's statement.
    pub(crate) changed_on: Option<&'a str>,
}

impl<'a> Heading<'a> {
    /// Parses a heading; `None` if the excerpt is not from a conversation.
    pub(crate) fn parse(heading: &'a str) -> Option<Self> {
        let rest = heading.strip_prefix(SAID_BY)?;
        let starts = rest.match_indices(ON).map(|(at, _)| at);
        let (speaker, rest) = starts
            .map(|at| (&rest[..at], &rest[at + ON.len()..]))
            .find(|(_, rest)| rest.get(..DATE_LENGTH).is_some_and(is_date))?;
        let (day, rest) = rest.split_at(DATE_LENGTH);
        let (rest, changed_on) = match rest.rsplit_once(CHANGED_ON) {
            Some((rest, day)) => (rest, Some(day)),
            None => (rest, None),
        };
        let (about, rest) = match rest.strip_prefix(ABOUT).and_then(|rest| rest.split_at_checked(DATE_LENGTH)) {
            Some((about, rest)) => (Some(about), rest),
            None => (None, rest),
        };
        let (meaning, rest) = match rest.strip_prefix(MEANING).and_then(|rest| rest.split_once('”')) {
            Some((meaning, rest)) => (Some(meaning), rest),
            None => (None, rest),
        };
        let after = rest.strip_prefix(AFTER).and_then(|rest| rest.strip_suffix('”'));
        Some(Self { speaker, day, about, meaning, after, changed_on })
    }

    pub(crate) fn is_by_user(&self) -> bool {
        self.speaker == USER
    }

    pub(crate) fn is_by_assistant(&self) -> bool {
        self.speaker == ASSISTANT
    }
}

/// Adds to a heading a quotation of the message that the excerpt refers to.
pub(crate) fn with_reference(heading: &str, text: &str) -> String {
    format!("{heading}{AFTER}{}”", normalized(text))
}

/// Adds to a heading the day that the question asks about and the excerpt is about.
pub(crate) fn with_day(heading: &str, day: &str) -> String {
    inserted(heading, &format!("{ABOUT}{day}"))
}

/// Adds to a heading what the excerpt's words mean.
pub(crate) fn with_meaning(heading: &str, meaning: &str) -> String {
    inserted(heading, &format!("{MEANING}{}”", normalized(meaning)))
}

/// Inserts a part into a heading after the day of the message and the day that the excerpt is about.
fn inserted(heading: &str, part: &str) -> String {
    let Some(parsed) = Heading::parse(heading) else { return heading.to_owned() };
    let mut at = SAID_BY.len() + parsed.speaker.len() + ON.len() + DATE_LENGTH;
    at += parsed.about.map_or(0, |_| ABOUT.len() + DATE_LENGTH);
    format!("{}{part}{}", &heading[..at], &heading[at..])
}

/// Normalizes the text as [`with_reference`] does.
pub(crate) fn normalized(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('”', "\"")
}

/// Replaces the quoted message in a heading; `None` if a later message changed the excerpt, or if the heading already
/// quotes this message.
pub(crate) fn with_replaced_reference(heading: &str, text: &str) -> Option<String> {
    let parsed = Heading::parse(heading).filter(|parsed| parsed.changed_on.is_none())?;
    let end = heading.find(AFTER).unwrap_or(heading.len());
    let changed = with_reference(&heading[..end], text);
    (parsed.after.is_none_or(|known| !changed.ends_with(&format!("{AFTER}{known}”")))).then_some(changed)
}

/// Adds to a heading the day on which a later message changed the excerpt's statement.
pub(crate) fn with_change(heading: &str, day: &str) -> String {
    format!("{heading}{CHANGED_ON}{day}")
}

fn is_date(text: &str) -> bool {
    let is_expected = |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    text.bytes().enumerate().all(is_expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_parsed() {
        let plain = Heading::parse("said by Ana on call on 2026-05-09").unwrap();
        assert_eq!(
            (plain.speaker, plain.day, plain.after, plain.changed_on),
            ("Ana on call", "2026-05-09", None, None)
        );
        let meant = with_reference("said by the user on 2026-05-09", "The sum is 5.");
        let meant = with_meaning(&with_day(&meant, "2026-05-10"), "five");
        let parsed = Heading::parse(&meant).unwrap();
        assert_eq!((parsed.about, parsed.meaning), (Some("2026-05-10"), Some("five")));
        assert_eq!((parsed.day, parsed.after), ("2026-05-09", Some("The sum is 5.")));
        let heading = with_change(
            &with_reference("said by the user on 2026-05-09", "It is on\n “12” May, on 2026-01-01."),
            "2026-06-01",
        );
        let parsed = Heading::parse(&heading).unwrap();
        assert!(parsed.is_by_user() && !parsed.is_by_assistant());
        assert_eq!((parsed.day, parsed.changed_on), ("2026-05-09", Some("2026-06-01")));
        assert_eq!(parsed.after, Some("It is on “12\" May, on 2026-01-01."));
        for other in ["guide.md", "said by", "said by Ana on Monday", ""] {
            assert_eq!(Heading::parse(other), None, "{other}");
        }
    }
}
