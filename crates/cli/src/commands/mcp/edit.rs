//! Changes one field of a section of a JSON document. All other bytes of the document stay as they are.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The reason why a document is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    #[error("it is not valid JSON: {0}")]
    Invalid(String),
    #[error("it is not a JSON object")]
    NotAnObject,
    #[error("`{0}` is not an object")]
    Section(String),
    #[error("`{0}` occurs twice")]
    Repeated(String),
}

/// A change of a document: the text that is removed, and the text that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

impl Edit {
    /// Returns the changed document.
    pub(super) fn apply(&self, document: &str) -> String {
        format!("{}{}{}", &document[..self.range.start], self.text, &document[self.range.end..])
    }
}

/// Returns the edit that sets a field of a section; `None` if the field has this value. The section is created if it is missing.
pub(super) fn set(document: &str, section: &str, name: &str, value: &Value) -> Result<Option<Edit>, EditError> {
    if document.trim().is_empty() {
        let text = pretty(&serde_json::json!({ section: { name: value } }), "") + "\n";
        return Ok(Some(Edit { range: 0..document.len(), text }));
    }
    let root = Object::root(document)?;
    let Some(found) = root.find(section)? else {
        return Ok(Some(root.insert(document, section, &serde_json::json!({ name: value }))));
    };
    let object = Object::at(document, found.value.clone()).ok_or_else(|| EditError::Section(section.to_owned()))?;
    let Some(member) = object.find(name)? else { return Ok(Some(object.insert(document, name, value))) };
    let present: Option<Value> = serde_json::from_str(&document[member.value.clone()]).ok();
    if present.as_ref() == Some(value) {
        return Ok(None);
    }
    let text = object.format(document, value);
    Ok(Some(Edit { range: member.value.clone(), text }))
}

/// Returns the edit that removes a field of a section, and the section if it has no other field; `None` if there is no such field.
pub(super) fn remove(document: &str, section: &str, name: &str) -> Result<Option<Edit>, EditError> {
    if document.trim().is_empty() {
        return Ok(None);
    }
    let root = Object::root(document)?;
    let Some(found) = root.find(section)? else { return Ok(None) };
    let object = Object::at(document, found.value.clone()).ok_or_else(|| EditError::Section(section.to_owned()))?;
    if object.find(name)?.is_none() {
        return Ok(None);
    }
    Ok(Some(if object.members.len() == 1 { root.cut(section) } else { object.cut(name) }))
}

/// An object in a document, by the positions of its parts.
struct Object {
    /// The position after the opening brace.
    start: usize,
    /// The position of the closing brace.
    end: usize,
    members: Vec<Member>,
}

struct Member {
    name: String,
    key_start: usize,
    value: Range<usize>,
}

impl Object {
    fn root(document: &str) -> Result<Self, EditError> {
        // The whole document is parsed first, so that error messages contain its line numbers.
        serde_json::from_str::<serde::de::IgnoredAny>(document)
            .map_err(|error| EditError::Invalid(error.to_string()))?;
        let start = document.len() - document.trim_start().len();
        Self::at(document, start..document.trim_end().len()).ok_or(EditError::NotAnObject)
    }

    /// Finds the parts of the object in a range that contains one valid JSON value; `None` if the value is not an object.
    fn at(document: &str, range: Range<usize>) -> Option<Self> {
        let text = &document[range.clone()];
        let values = serde_json::Deserializer::from_str(text).deserialize_map(Members).ok()?;
        let mut members = Vec::with_capacity(values.len());
        let mut previous_end = range.start + 1;
        for (name, value) in values {
            let start = value.get().as_ptr().addr() - document.as_ptr().addr();
            // Only whitespace and a comma are between a value and the next key.
            let key_start = previous_end + document[previous_end..].find('"')?;
            previous_end = start + value.get().len();
            members.push(Member { name, key_start, value: start..previous_end });
        }
        Some(Self { start: range.start + 1, end: range.end - 1, members })
    }

    fn find(&self, name: &str) -> Result<Option<&Member>, EditError> {
        let mut found = self.members.iter().filter(|member| member.name == name);
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(EditError::Repeated(name.to_owned())),
            (member, None) => Ok(member),
        }
    }

    /// Returns the whitespace before the first field, or before the closing brace. If it contains a line break, each field is on its
    /// own line.
    fn space<'d>(&self, document: &'d str) -> &'d str {
        &document[self.start..self.members.first().map_or(self.end, |member| member.key_start)]
    }

    /// Returns the indentation of the fields; `None` if they are not on lines of their own.
    fn indentation(&self, document: &str) -> Option<String> {
        let (_, indentation) = self.space(document).rsplit_once('\n')?;
        if !self.members.is_empty() {
            return Some(indentation.to_owned());
        }
        Some(format!("{}  ", line_indentation(document, self.start)))
    }

    /// Formats a value as a field of the object.
    fn format(&self, document: &str, value: &Value) -> String {
        match self.indentation(document) {
            Some(indentation) => pretty(value, &indentation),
            None if self.members.is_empty() && document.contains('\n') => {
                pretty(value, &format!("{}  ", line_indentation(document, self.start)))
            }
            None => value.to_string(),
        }
    }

    /// Returns the edit that adds a field after the last one.
    fn insert(&self, document: &str, name: &str, value: &Value) -> Edit {
        let member = format!("{}: {}", Value::from(name), self.format(document, value));
        let Some(last) = self.members.last() else {
            // The first field of an object is put on a new line, unless the document has only one line.
            let has_lines = document.trim_end().contains('\n') || self.start == 1;
            let outer = line_indentation(document, self.start);
            let member = format!("{}: {}", Value::from(name), pretty(value, &format!("{outer}  ")));
            let compact = format!("{}: {value}", Value::from(name));
            let text = if has_lines { format!("\n{outer}  {member}\n{outer}") } else { compact };
            return Edit { range: self.start..self.end, text };
        };
        let text = match self.indentation(document) {
            Some(indentation) => format!(",{}{indentation}{member}", line_break(document)),
            None => format!(", {member}"),
        };
        Edit { range: last.value.end..last.value.end, text }
    }

    /// Returns the edit that removes a field with one of the commas next to it.
    fn cut(&self, name: &str) -> Edit {
        let index = self.members.iter().position(|member| member.name == name).unwrap_or_default();
        let range = match (index.checked_sub(1).and_then(|index| self.members.get(index)), self.members.get(index + 1))
        {
            (Some(previous), _) => previous.value.end..self.members[index].value.end,
            (None, Some(next)) => self.members[index].key_start..next.key_start,
            (None, None) => self.start..self.end,
        };
        Edit { range, text: String::new() }
    }
}

/// Returns the whitespace at the beginning of the line that contains a position.
fn line_indentation(document: &str, position: usize) -> &str {
    let line = document[..position].rsplit('\n').next().unwrap_or_default();
    &line[..line.len() - line.trim_start().len()]
}

fn line_break(document: &str) -> &'static str {
    if document.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Formats a value on several lines, of which all but the first begin with the indentation.
fn pretty(value: &Value, indentation: &str) -> String {
    format!("{value:#}").replace('\n', &format!("\n{indentation}"))
}

/// Reads the names and values of an object.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set_in(document: &str) -> String {
        set(document, "servers", "mine", &json!({ "args": ["a"] })).unwrap().unwrap().apply(document)
    }

    fn removed(document: &str) -> String {
        remove(document, "servers", "mine").unwrap().unwrap().apply(document)
    }

    const DOCUMENTS: [&str; 9] = [
        r#"{ "a" : 1.50 }"#,
        r#"{"a":[1,{"servers":{"mine":1}}],"b":"\u00e9 \"{"}"#,
        "{\n\t\"a\": 1,\n\n\t\"b\": {}\n}\n",
        "{\r\n    \"a\": 1\r\n}\r\n",
        r#"{"servers":{"other":{"command":"x"}}}"#,
        "{\n  \"servers\": {\n    \"other\": { \"command\": \"x\" }\n  },\n  \"z\": 1e400\n}",
        "\n {\"servers\": {\"a\": 1,\n \"b\":2} , \"z\": 0}\n",
        "{\n  \"\\u0073ervers\": {\n    \"other\": null\n  }\n}\n",
        "{\"z\":{},\n\"servers\":\n{\n\"x\":0}}",
    ];

    #[test]
    fn all_other_bytes_stay_and_removing_restores_the_document() {
        for document in DOCUMENTS {
            let changed = set_in(document);
            let parsed: serde_json::Map<String, Value> = match serde_json::from_str(&changed.replace("1e400", "1")) {
                Ok(parsed) => parsed,
                Err(error) => panic!("{error}: {changed}"),
            };
            assert_eq!(parsed["servers"]["mine"], json!({ "args": ["a"] }), "{changed}");
            assert_eq!(removed(&changed), document);
            assert_eq!(set(&changed, "servers", "mine", &json!({ "args": ["a"] })), Ok(None), "{changed}");
        }
    }

    #[test]
    fn lines_and_indentation_follow_the_document() {
        assert_eq!(
            set_in(""),
            "{\n  \"servers\": {\n    \"mine\": {\n      \"args\": [\n        \"a\"\n      ]\n    }\n  }\n}\n"
        );
        assert_eq!(set_in("{}"), set_in("").trim_end());
        assert_eq!(removed(&set_in("")), "{}\n");
        assert_eq!(set_in(r#"{"a":1}"#), r#"{"a":1, "servers": {"mine":{"args":["a"]}}}"#);
        let tabs = set_in("{\n\t\"servers\": {\n\t\t\"x\": 0\n\t}\n}");
        assert!(tabs.starts_with("{\n\t\"servers\": {\n\t\t\"x\": 0,\n\t\t\"mine\": {\n"), "{tabs}");
        let empty = set_in("{\n  \"servers\": {}\n}");
        assert!(empty.starts_with("{\n  \"servers\": {\n    \"mine\": {\n      \"args\""), "{empty}");
        assert!(empty.ends_with("    }\n  }\n}"), "{empty}");
    }

    #[test]
    fn an_entry_is_replaced_in_its_place() {
        let document = r#"{"servers":{"mine":{"args":["old"]},"z":0}}"#;
        assert_eq!(set_in(document), r#"{"servers":{"mine":{"args":["a"]},"z":0}}"#);
        assert_eq!(removed(document), r#"{"servers":{"z":0}}"#);
        assert_eq!(remove(r#"{"servers":{"z":0}}"#, "servers", "mine"), Ok(None));
        assert_eq!(remove("{}", "servers", "mine"), Ok(None));
    }

    #[test]
    fn documents_that_are_not_understood_are_not_changed() {
        let error = |document: &str| set(document, "servers", "mine", &json!(1)).unwrap_err().to_string();
        assert_eq!(error("[]"), "it is not a JSON object");
        assert_eq!(error(r#"{"servers":[]}"#), "`servers` is not an object");
        assert_eq!(error(r#"{"servers":{},"servers":{}}"#), "`servers` occurs twice");
        assert_eq!(error(r#"{"servers":{"mine":1,"mine":2}}"#), "`mine` occurs twice");
        for document in ["{", "// comment\n{}", "{\"a\":1,}", "{} {}", "nul"] {
            assert!(error(document).starts_with("it is not valid JSON: "), "{document}");
        }
        assert!(error(&"[".repeat(100_000)).starts_with("it is not valid JSON: "));
    }
}
