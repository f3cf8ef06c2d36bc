//! Conversion from and to Slack's markup.

/// Converts a message from Slack's markup to plain text: replaces links with their labels, or with their addresses if they have none,
/// and unescapes characters. Keeps mentions. Removes control characters, which stores reject.
pub(crate) fn to_plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let Some(end) = rest[start..].find('>') else { break };
        plain.push_str(&rest[..start]);
        let inner = &rest[start + 1..start + end];
        let (target, label) = inner.split_once('|').map_or((inner, None), |(target, label)| (target, Some(label)));
        match target.chars().next() {
            Some('@') => plain.push_str(&format!("<{target}>")),
            Some('#') => plain.push_str(&format!("#{}", label.unwrap_or(&target[1..]))),
            Some('!') => plain.push_str(&format!("@{}", label.unwrap_or(&target[1..]))),
            // Slack turns words such as nginx.com into links; the label is what the user typed.
            _ => plain.push_str(label.unwrap_or(target)),
        }
        rest = &rest[start + end + 1..];
    }
    plain.push_str(rest);
    plain.retain(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Converts an answer to Slack's markup.
pub(crate) fn to_slack(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut in_code = false;
    let lines = escaped.lines().map(|line| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            return line.to_owned();
        }
        match line.trim_start_matches('#') {
            heading if heading.len() < line.len() && heading.starts_with(' ') => format!("*{}*", heading.trim()),
            _ => line.replace("**", "*"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Splits text at line endings into messages of a maximum length in characters. A code block that is split is closed and reopened.
pub(crate) fn split(text: &str, characters: usize) -> Vec<String> {
    const FENCE: &str = "```";
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut in_code = false;
    for line in text.lines().flat_map(|line| pieces(line, characters / 2)) {
        let length = part.chars().count() + line.chars().count() + 2 * FENCE.len() + 2;
        if !part.is_empty() && length > characters {
            if in_code {
                part.push_str(FENCE);
            }
            parts.push(std::mem::take(&mut part));
            if in_code {
                part.push_str("```\n");
            }
        }
        if line.trim_start().starts_with(FENCE) {
            in_code = !in_code;
        }
        part.push_str(line);
        part.push('\n');
    }
    if !part.trim().is_empty() {
        parts.push(part);
    }
    parts.into_iter().map(|part| part.trim_end().to_owned()).collect()
}

/// Closes a code block that the text leaves open.
pub(crate) fn close_code(text: &str) -> String {
    match text.matches("```").count() % 2 {
        0 => text.to_owned(),
        _ => format!("{text}\n```"),
    }
}

/// Splits a long line.
fn pieces(line: &str, characters: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some((end, _)) = rest.char_indices().nth(characters.max(1)) {
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_converted_in_both_directions() {
        assert_eq!(to_plain("<@U1> see <http://a.b|a.b> &amp; <#C1|ops> &lt;x&gt;"), "<@U1> see a.b & #ops <x>");
        assert_eq!(to_plain("1 < 2"), "1 < 2");
        assert_eq!(to_slack("## Pods\n**web** <1>\n```\n**x**\n```"), "*Pods*\n*web* &lt;1&gt;\n```\n**x**\n```");
    }

    #[test]
    fn code_blocks_are_closed_and_reopened_when_a_text_is_split() {
        let text = format!("log:\n```\n{}```", "line of a log\n".repeat(50));
        let parts = split(&text, 200);
        assert!(parts.len() > 3 && parts.iter().all(|part| part.chars().count() <= 200), "{parts:?}");
        assert!(parts.iter().all(|part| part.matches("```").count() % 2 == 0), "{parts:?}");
        let lines: usize = parts.iter().map(|part| part.matches("line of a log").count()).sum();
        assert_eq!(lines, 50);
        assert_eq!(
            split(&"é".repeat(1_000), 100).iter().map(|part| part.chars().filter(|c| *c == 'é').count()).sum::<usize>(),
            1_000
        );
    }
}
