//! The names of external tools, as models call them.

use ring::digest::{SHA256, digest};

/// The maximum length of the name of a tool that model providers accept.
const MAX_LENGTH: usize = 64;
/// The number of hexadecimal digits that distinguish names which had to be changed.
const DIGITS: usize = 6;

/// Returns the name of a server's tool for models: `SERVER__TOOL`. If that is too long or has characters that providers do not accept,
/// the name is changed and ends with a part of its digest, so that different tools have different names.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let full = format!("{server}__{tool}");
    let is_accepted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if full.len() <= MAX_LENGTH && full.chars().all(is_accepted) {
        return full;
    }
    let hash = digest(&SHA256, tool.as_bytes());
    let digits: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let accepted: String = full.chars().map(|c| if is_accepted(c) { c } else { '_' }).collect();
    let kept = accepted.len().min(MAX_LENGTH - DIGITS - 1);
    format!("{}_{}", &accepted[..kept], &digits[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_by_providers_and_distinct() {
        assert_eq!(tool_name("files", "read_file"), "files__read_file");
        let odd = ["read/file", "read file", "read.file", "lese_datei_ü", "🦀", &"x".repeat(300), &"x".repeat(301)];
        let names: Vec<String> = odd.iter().map(|tool| tool_name("files", tool)).collect();
        for name in &names {
            assert!(name.len() <= MAX_LENGTH && name.starts_with("files__"), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)), "{name}");
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
        assert_eq!(tool_name("files", "read/file"), tool_name("files", "read/file"));
    }
}
