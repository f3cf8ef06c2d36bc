//! Formats an export as Markdown, for reading. It cannot be imported.

use threadkeep::core::exchange::{ExportLine, ExportedMessage, ExportedThread};
use threadkeep::{Part, ThreadKey};

use crate::instants;
use crate::output::{printable, printable_line};
use crate::transcript::{part_text, speaker};

/// Formats a line of an export. `None` for lines without content for readers.
pub(super) fn text(line: &ExportLine) -> Option<String> {
    match line {
        ExportLine::Thread(thread) => Some(thread_text(thread)),
        ExportLine::Message(message) => Some(message_text(message)),
        ExportLine::Threadkeep { .. } | ExportLine::Record { .. } => None,
    }
}

fn thread_text(thread: &ExportedThread) -> String {
    let key = thread.key.as_ref().map(ThreadKey::as_str);
    let title = printable_line(thread.title.as_deref().or(key).unwrap_or("(no title)"));
    let key = key.map_or_else(String::new, |key| format!(" · `{}`", printable_line(key).replace('`', "'")));
    format!("# {title}\n\n`{}`{key} · {}\n", thread.id, instants::minute_with_offset(thread.created_at))
}

fn message_text(message: &ExportedMessage) -> String {
    let name = speaker(message.author.as_deref(), message.role);
    let role_note = message.author.as_ref().map_or_else(String::new, |_| format!(" ({})", message.role));
    let at = instants::minute_with_offset(message.created_at);
    let mut text = format!("## {name}{role_note} · {at} · #{}\n", message.seq);
    for part in &message.parts {
        let content = printable(&part_text(part));
        text.push('\n');
        match part {
            Part::Text(_) => text.push_str(content.trim_end()),
            Part::Reasoning(_) | Part::Image(_) => {
                let lines: Vec<String> = content.trim_end().lines().map(|line| format!("> {line}")).collect();
                text.push_str(&lines.join("\n"));
            }
            _ => {
                let fence = fence(&content);
                text.push_str(&format!("{fence}\n{}\n{fence}", content.trim_end()));
            }
        }
        text.push('\n');
    }
    text
}

/// Returns a fence that does not occur in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_those_of_the_text() {
        for (text, expected) in [("", "```"), ("a `b` c", "```"), ("```\ncode\n```", "````"), ("`````", "``````")] {
            assert_eq!(fence(text), expected, "{text}");
        }
    }
}
