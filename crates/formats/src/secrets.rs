//! Masks what looks like a secret: keys of well-known services, tokens, private keys, passwords in URLs and assignments.
//!
//! A secret is replaced by a note that names its kind, such as `[masked: GitHub token]`. This is a heuristic: it finds forms that
//! their issuers document, and values that are assigned to names such as `password`. It cannot find a secret without such a form.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};
use threadkeep_core::exchange::{ImportItem, ImportedThread};
use threadkeep_core::{Content, JsonText, Map, Part, Value};

/// Kinds of secrets and their forms, as regular expressions. If an expression has a group, only the group is the
/// secret.
const FORMS: [(&str, &str); 18] = [
    (
        "private key",
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("AWS key", r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?-u:\b)"),
    ("GitHub token", r"(?-u:\b)(?:gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{22,})(?-u:\b)"),
    ("GitLab token", r"(?-u:\b)gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[0-9A-Za-z_-]{20,}"),
    ("Slack token", r"(?-u:\b)x(?:ox[abeoprs]|app)-[0-9A-Za-z-]{10,}"),
    ("Slack webhook", r"(?-u:\b)hooks\.slack\.com/(?:services|workflows)/([0-9A-Za-z/_-]{20,})"),
    ("API key", r"(?-u:\b)(?:sk|rk|pk)-[0-9A-Za-z][0-9A-Za-z_-]{19,}"),
    ("Stripe key", r"(?-u:\b)(?:(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z+/=]{24,})"),
    ("Google key", r"(?-u:\b)(?:AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,})"),
    ("npm token", r"(?-u:\b)npm_[0-9A-Za-z]{36}(?-u:\b)"),
    ("PyPI token", r"(?-u:\b)pypi-[0-9A-Za-z_-]{50,}"),
    ("Hugging Face token", r"(?-u:\b)hf_[0-9A-Za-z]{30,}(?-u:\b)"),
    ("Groq key", r"(?-u:\b)gsk_[0-9A-Za-z]{40,}(?-u:\b)"),
    ("Threadkeep key", r"(?-u:\b)tk_[0-9A-Za-z_-]{20,}"),
    ("JSON web token", r"(?-u:\b)eyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}"),
    ("credential", r"(?i)(?-u:\b)(?:bearer|basic)\s+([0-9a-z._~+/-]{20,}=*)"),
    ("password", r"(?-u:\b)[a-z][a-z0-9+.-]+://[^\s/:@]*:([^\s/@:]{3,})@[^\s/]"),
    (
        "secret",
        r#"(?i)(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)[0-9a-z_]*["']?\s*(?:=>|=|:)\s*(?:"([^"\s\\]{8,})"|'([^'\s\\]{8,})'|([^\s"'`,;(){}\[\]<>$\\]{12,}))"#,
    ),
];
/// Names of fields of JSON objects whose values are secrets.
static SECRET_NAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)(?:^|[_.-])(?:password|passwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|client[_-]?secret|auth[_-]?token|access[_-]?token|refresh[_-]?token)$|^(?:apiKey|accessToken|refreshToken|clientSecret|secretKey|accessKey|privateKey|authToken)$",
    )
});
static FORM_REGEXES: LazyLock<Vec<(&'static str, Regex)>> =
    LazyLock::new(|| FORMS.iter().map(|(kind, form)| (*kind, regex(form))).collect());
/// All forms as one set, which finds the forms in one pass over the text. Most text contains none.
static FORM_SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(FORMS.iter().map(|(_, form)| form)).expect("the forms are constants, which the tests compile")
});

fn regex(form: &str) -> Regex {
    Regex::new(form).expect("the forms are constants, which the tests compile")
}

/// Masks secrets, and counts them.
#[derive(Debug, Default)]
pub struct SecretMask {
    masked: u64,
}

impl SecretMask {
    /// Returns the number of secrets that were masked.
    #[must_use]
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// Masks the secrets in the texts of an item: titles, parts, data and metadata. The ids of messages do not change, so a
    /// message is recognised whether or not it was masked. Records are not changed.
    pub fn mask(&mut self, item: &mut ImportItem) {
        match item {
            ImportItem::Thread(thread) => self.mask_thread(thread),
            ImportItem::Message(message) => self.mask_content(&mut message.content),
            ImportItem::Tree(tree) => {
                self.mask_thread(&mut tree.thread);
                tree.nodes.iter_mut().for_each(|node| self.mask_content(&mut node.message.content));
            }
            ImportItem::Record { .. } => {}
        }
    }

    fn mask_thread(&mut self, thread: &mut ImportedThread) {
        if let Some(title) = &mut thread.title {
            self.mask_string(title);
        }
        self.mask_map(&mut thread.metadata);
    }

    fn mask_content(&mut self, content: &mut Content) {
        for part in &mut content.parts {
            match part {
                Part::Text(text) | Part::Reasoning(text) => self.mask_string(text),
                Part::ToolCall(call) => self.mask_json(&mut call.arguments),
                Part::ToolResult(result) => self.mask_string(&mut result.output),
                Part::Raw { json, .. } => self.mask_json(json),
                Part::Image(image) => {
                    if !image.url.starts_with("data:") {
                        self.mask_string(&mut image.url);
                    }
                    image.description.iter_mut().for_each(|text| self.mask_string(text));
                }
            }
        }
        if let Some(data) = &mut content.data {
            self.mask_json(data);
        }
        self.mask_map(&mut content.metadata);
    }

    fn mask_map(&mut self, map: &mut Map) {
        for (name, value) in map.iter_mut() {
            self.mask_value(name, value);
        }
    }

    fn mask_value(&mut self, name: &str, value: &mut Value) {
        match value {
            Value::String(text) => match self.masked_member(name, text) {
                Cow::Borrowed(_) => {}
                Cow::Owned(masked) => *text = masked,
            },
            Value::Array(values) => values.iter_mut().for_each(|value| self.mask_value(name, value)),
            Value::Object(map) => self.mask_map(map),
            _ => {}
        }
    }

    /// Masks the secrets in a text.
    pub fn mask_string(&mut self, text: &mut String) {
        if let Cow::Owned(masked) = self.masked_text(text) {
            *text = masked;
        }
    }

    /// Masks the strings of a JSON text. All other bytes stay as they are.
    fn mask_json(&mut self, json: &mut JsonText) {
        let text = json.as_str();
        // A secret can be in JSON that is itself a string, with escapes.
        if !text.contains('\\') && !FORM_SET.is_match(text) {
            return;
        }
        let (mut masked, mut copied, mut name) = (String::new(), 0, String::new());
        for (start, end) in strings(text) {
            let Ok(string) = serde_json::from_str::<String>(&text[start..end]) else { return };
            if text[end..].trim_start().starts_with(':') {
                name = string;
                continue;
            }
            if let Cow::Owned(changed) = self.masked_member(&name, &string) {
                masked.push_str(&text[copied..start]);
                masked.push_str(&Value::from(changed).to_string());
                copied = end;
            }
        }
        if copied > 0 {
            masked.push_str(&text[copied..]);
            if let Ok(changed) = JsonText::new(&masked) {
                *json = changed;
            }
        }
    }

    /// Masks a field of an object. If its name is that of a secret, the whole value is masked.
    fn masked_member<'t>(&mut self, name: &str, text: &'t str) -> Cow<'t, str> {
        if text.len() >= 8 && !text.contains(char::is_whitespace) && SECRET_NAME.is_match(name) && is_secret(text) {
            self.masked += 1;
            return Cow::Owned(note("secret"));
        }
        self.masked_text(text)
    }

    fn masked_text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        let found = FORM_SET.matches(text);
        for (kind, form) in found.iter().map(|index| &FORM_REGEXES[index]) {
            let mut count = 0;
            let replace = |captures: &Captures<'_>| {
                let whole = captures.get(0).map_or("", |whole| whole.as_str());
                let secret = (1..captures.len()).find_map(|group| captures.get(group)).or(captures.get(0));
                let Some(secret) = secret.filter(|secret| *kind != "secret" || is_secret(secret.as_str())) else {
                    return whole.to_owned();
                };
                count += 1;
                let start = secret.start() - captures.get(0).map_or(0, |whole| whole.start());
                format!("{}{}{}", &whole[..start], note(kind), &whole[start + secret.as_str().len()..])
            };
            if let Cow::Owned(changed) = form.replace_all(&masked, replace)
                && changed != masked
            {
                masked = Cow::Owned(changed);
            }
            self.masked += count;
        }
        masked
    }
}

fn note(kind: &str) -> String {
    format!("[masked: {kind}]")
}

/// Whether an assigned value can be a secret: it has digits and letters, and is not a path, a name or a placeholder.
fn is_secret(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_placeholder =
        ["example", "your", "xxxx", "****", "placeholder", "changeme", "masked:", "process.env", "os.environ"]
            .iter()
            .any(|word| lower.contains(word));
    let is_code = value.starts_with(['$', '/', '.', '~', '&', '@']) || value.contains("::") || value.contains("->");
    value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !is_placeholder
        && !is_code
}

/// Returns the ranges of the strings in a valid JSON text, with their quotes.
fn strings(json: &str) -> Vec<(usize, usize)> {
    let (mut ranges, mut start, mut is_escaped) = (Vec::new(), None, false);
    for (at, byte) in json.bytes().enumerate() {
        match (start, byte) {
            (None, b'"') => start = Some(at),
            (None, _) => {}
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(from), b'"') => {
                ranges.push((from, at + 1));
                start = None;
            }
            (Some(_), _) => {}
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use threadkeep_core::{Role, ToolCall};

    use super::*;

    fn masked(text: &str) -> String {
        SecretMask::default().masked_text(text).into_owned()
    }

    /// Returns letters and digits that no service issued as a secret.
    fn letters(count: usize) -> String {
        "a1B2c3D4e5F6g7H8".chars().cycle().take(count).collect()
    }

    #[test]
    fn secrets_of_known_forms_are_masked() {
        let cases = [
            (format!("AKIA{}", "ABCDEFGH12345678"), "AWS key"),
            (format!("ghp_{}", letters(36)), "GitHub token"),
            (format!("github_pat_{}", letters(40)), "GitHub token"),
            (format!("glpat-{}", letters(20)), "GitLab token"),
            (format!("xoxb-{}", letters(24)), "Slack token"),
            (format!("sk-ant-{}", letters(40)), "API key"),
            (format!("sk-{}", letters(48)), "API key"),
            (format!("sk_live_{}", letters(24)), "Stripe key"),
            (format!("AIza{}", letters(35)), "Google key"),
            (format!("npm_{}", letters(36)), "npm token"),
            (format!("hf_{}", letters(34)), "Hugging Face token"),
            (format!("tk_{}", letters(32)), "Threadkeep key"),
            (format!("eyJ{0}.eyJ{0}.{0}", letters(20)), "JSON web token"),
        ];
        for (secret, kind) in cases {
            assert_eq!(masked(&format!("use {secret}, please")), format!("use [masked: {kind}], please"));
        }
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA\n-----END OPENSSH PRIVATE KEY-----";
        assert_eq!(masked(&format!("a\n{key}\nb")), "a\n[masked: private key]\nb");
        assert_eq!(masked("-----BEGIN PRIVATE KEY-----\nb3Blb"), "[masked: private key]");
    }

    #[test]
    fn only_the_secret_of_an_assignment_is_masked() {
        for (text, expected) in [
            ("DB_PASSWORD=hunter2hunter2", "DB_PASSWORD=[masked: secret]"),
            ("password: \"hunter22\"", "password: \"[masked: secret]\""),
            ("{'api_key': 'abcd1234efgh'}", "{'api_key': '[masked: secret]'}"),
            ("postgres://ana:hunter2@db.example/x", "postgres://ana:[masked: password]@db.example/x"),
            ("Authorization: Bearer abcdefghij1234567890", "Authorization: Bearer [masked: credential]"),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn ordinary_texts_are_not_changed() {
        for text in [
            "The password must have 12 characters.",
            "let token = next_token(&mut input);",
            "password: string, token: Option<String>",
            "export API_KEY=$OPENAI_API_KEY",
            "api_key = os.environ[\"OPENAI_API_KEY\"]",
            "API_KEY=your-key-1234567",
            "max_tokens=4096000000000",
            "https://example.com:8080/a@b",
            "Should the ledger be in Postgres or in SQLite?",
            "sk-1 is a bus line, task-force-one-two-three-four-five is a name",
            "commit 4f2a9c1d8e7b6a5f4e3d2c1b0a9f8e7d6c5b4a39",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn strings_inside_json_are_masked_and_the_rest_stays() {
        let secret = format!("ghp_{}", letters(36));
        let arguments =
            format!(r#"{{"n": 1.50, "cmd":"curl -H \"{secret}\"" , "password":"abcd1234", "note":"password"}}"#);
        let expected = r#"{"n": 1.50, "cmd":"curl -H \"[masked: GitHub token]\"" , "password":"[masked: secret]", "note":"password"}"#;
        let call = ToolCall { id: "c".to_owned(), name: "n".to_owned(), arguments: JsonText::new(&arguments).unwrap() };
        let mut content = Content { parts: vec![Part::ToolCall(call)], ..Content::empty(Role::Assistant) };
        content.metadata.insert("env".to_owned(), serde_json::json!({ "apiKey": "abcd1234", "n": [secret] }));
        let mut mask = SecretMask::default();
        mask.mask_content(&mut content);
        let Part::ToolCall(call) = &content.parts[0] else { panic!() };
        assert_eq!(call.arguments.as_str(), expected);
        let env = serde_json::json!({ "apiKey": "[masked: secret]", "n": ["[masked: GitHub token]"] });
        assert_eq!((&content.metadata["env"], mask.masked()), (&env, 4));
    }

    #[test]
    fn masking_again_changes_nothing() {
        let text = format!("DB_PASSWORD=hunter2hunter2 token='{0}' ghp_{0}", letters(36));
        let once = masked(&text);
        assert_eq!(masked(&once), once);
    }
}
