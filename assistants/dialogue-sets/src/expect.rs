//! Compares a turn with its expectations.

use serde_json::{Map, Value};

use crate::text::NormalizedText;

/// A tool call of a turn.
#[derive(Clone, Debug)]
pub struct ObservedCall {
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
}

/// A turn that was executed.
#[derive(Clone, Debug)]
pub struct ObservedTurn {
    /// The reply.
    pub reply: String,
    /// The tool calls, in order.
    pub calls: Vec<ObservedCall>,
    /// Whether the reply refuses as off topic.
    pub is_refusal: bool,
}

/// Returns the differences from the expectation; empty if the turn meets it. `are_equal` receives an argument's name,
/// its expected value and its actual value, and decides whether the values are equal. Two names of the same station,
/// for example, are equal.
///
/// # Panics
/// If the expectation has an unknown key, so that no check is silently skipped.
#[must_use]
pub fn mismatches(
    expect: &Map<String, Value>,
    turn: &ObservedTurn,
    are_equal: &dyn Fn(&str, &Value, &Value) -> bool,
) -> Vec<String> {
    let reply = NormalizedText::new(&turn.reply);
    let mut found = Vec::new();
    for (key, value) in expect {
        let mismatch = match key.as_str() {
            "facts" => list(value).iter().filter_map(|fact| missing_fact(fact, &reply, turn)).collect::<Vec<_>>(),
            "absent" => {
                let phrases = texts(value).into_iter();
                phrases
                    .filter(|phrase| has_phrase(&reply, turn, phrase))
                    .map(|phrase| format!("says {phrase:?}"))
                    .collect()
            }
            "absent_re" => {
                let patterns = texts(value).into_iter();
                patterns
                    .filter(|pattern| matches_regex(pattern, turn))
                    .map(|pattern| format!("matches {pattern}"))
                    .collect()
            }
            "max_chars" => {
                let max = value.as_u64().unwrap_or(u64::MAX);
                let length = turn.reply.chars().count() as u64;
                if length > max { vec![format!("{length} characters; the maximum is {max}")] } else { Vec::new() }
            }
            "order" => order_mismatches(value, &reply),
            "asks" => match (value.as_bool(), asks(turn)) {
                (Some(expected), actual) if expected != actual => vec![format!("asks: {actual}")],
                _ => Vec::new(),
            },
            "declines" => match value.as_bool() {
                Some(expected) if expected != turn.is_refusal => vec![format!("declines: {}", turn.is_refusal)],
                _ => Vec::new(),
            },
            "calls" => list(value).iter().filter_map(|call| missing_call(call, turn, are_equal)).collect(),
            "calls_any" => {
                let alternatives = list(value).iter();
                let mut misses = alternatives
                    .map(|calls| list(calls).iter().filter_map(|call| missing_call(call, turn, are_equal)).count());
                if misses.any(|missing| missing == 0) {
                    Vec::new()
                } else {
                    vec![format!("no alternative of {value} called")]
                }
            }
            "calls_max" => {
                let max = value.as_u64().unwrap_or(u64::MAX);
                let count = turn.calls.len() as u64;
                if count > max { vec![format!("{count} calls; the maximum is {max}")] } else { Vec::new() }
            }
            "answer_given" if reply.is_empty() => vec!["no answer".to_owned()],
            // Checked by the environment, or notes for readers.
            "note" | "ambiguous" | "prefer" | "calls_optional" | "answer_given" | "executed" | "fetches" | "covers"
            | "max_seconds" => Vec::new(),
            other => panic!("unknown expectation {other}"),
        };
        found.extend(mismatch);
    }
    found
}

/// Returns the text, or the texts of a list.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(texts) => texts.iter().map(|text| text.as_str().expect("a list of texts")).collect(),
        other => panic!("expected a text or a list of texts, found {other}"),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn missing_fact(fact: &Value, reply: &NormalizedText, turn: &ObservedTurn) -> Option<String> {
    let alternatives = match fact {
        Value::String(_) => std::slice::from_ref(fact),
        other => list(&other["any"]),
    };
    let mut phrases = alternatives.iter().filter_map(Value::as_str);
    if phrases.any(|phrase| has_phrase(reply, turn, phrase)) {
        return None;
    }
    Some(format!("lacks {}", Value::from(alternatives.to_vec())))
}

fn has_phrase(reply: &NormalizedText, turn: &ObservedTurn, phrase: &str) -> bool {
    match phrase.strip_prefix("re:") {
        Some(pattern) => matches_regex(pattern, turn),
        None => reply.contains(phrase),
    }
}

fn matches_regex(pattern: &str, turn: &ObservedTurn) -> bool {
    // Authors use look-around, which `regex` does not support.
    let regex = fancy_regex::Regex::new(&format!("(?i){pattern}")).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let is_match = |text: &str| regex.is_match(text).unwrap_or(false);
    is_match(&turn.reply) || is_match(NormalizedText::new(&turn.reply).as_str())
}

fn order_mismatches(value: &Value, reply: &NormalizedText) -> Vec<String> {
    let phrases: Vec<&str> = list(value).iter().filter_map(Value::as_str).collect();
    let out_of_order = |pair: &&[&str]| match (reply.position(pair[0]), reply.position(pair[1])) {
        (Some(first), Some(second)) => first >= second,
        (None, _) => true,
        // The older statement may follow the newer one, but may also be absent.
        (Some(_), None) => false,
    };
    phrases.windows(2).filter(out_of_order).map(|pair| format!("{:?} is not before {:?}", pair[0], pair[1])).collect()
}

/// Whether the reply asks the user something: a line ends with a question mark, or the last paragraph contains one.
fn asks(turn: &ObservedTurn) -> bool {
    let last_paragraph = turn.reply.trim_end().rsplit("\n\n").next().unwrap_or_default();
    turn.reply.lines().any(|line| line.trim_end().ends_with('?')) || last_paragraph.contains('?')
}

fn missing_call(
    expected: &Value,
    turn: &ObservedTurn,
    are_equal: &dyn Fn(&str, &Value, &Value) -> bool,
) -> Option<String> {
    if expected["optional"] == Value::Bool(true) {
        return None;
    }
    let name = expected["name"].as_str().or_else(|| expected["tool"].as_str()).unwrap_or_default();
    let empty = Map::new();
    let arguments = expected["args"].as_object().unwrap_or(&empty);
    let is_expected = |call: &ObservedCall| {
        call.name == name && arguments.iter().all(|(key, value)| are_equal(key, value, &call.arguments[key]))
    };
    if turn.calls.iter().any(is_expected) { None } else { Some(format!("does not call {expected}")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(expect: Value) -> Vec<String> {
        let turn = ObservedTurn {
            reply: "The next 6 leaves in 3 minutes.\n\nWhich one do you mean?".to_owned(),
            calls: vec![ObservedCall { name: "next".to_owned(), arguments: json!({"line": "6"}) }],
            is_refusal: false,
        };
        mismatches(expect.as_object().unwrap(), &turn, &|_, expected, actual| expected == actual)
    }

    #[test]
    fn unmet_expectations_are_reported() {
        for met in [
            json!({"facts": [{"any": ["4 min", "3 min"]}], "absent": ["7"], "asks": true, "declines": false}),
            json!({"calls": [{"name": "next", "args": {"line": "6"}}], "calls_max": 1, "order": ["6", "3 min"]}),
            json!({"calls_any": [[{"name": "other"}], [{"name": "next"}]], "max_chars": 100}),
        ] {
            assert_eq!(check(met.clone()), [""; 0], "{met}");
        }
        for unmet in [
            json!({"facts": [{"any": ["4 min"]}]}),
            json!({"absent": ["3 min"]}),
            json!({"asks": false}),
            json!({"declines": true}),
            json!({"calls": [{"name": "next", "args": {"line": "7"}}]}),
            json!({"calls_max": 0}),
            json!({"order": ["3 min", "The next"]}),
            json!({"max_chars": 5}),
        ] {
            assert_eq!(check(unmet.clone()).len(), 1, "{unmet}");
        }
    }
}
