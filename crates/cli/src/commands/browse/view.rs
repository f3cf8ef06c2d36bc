//! Draws the state.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};
use threadkeep::Role;
use unicode_width::UnicodeWidthStr;

use super::areas::{Areas, READER_HEAD_ROWS};
use super::reader::{self, INDENT, Reader, Target};
use super::rows::{HitRow, ThreadInfo, ThreadRow};
use super::state::{Focus, HIT_ROWS, HITS, State};
use crate::table::{counted, cut, number};

const PROMPT: &str = " / ";
const EXPORT_PROMPT: &str = " Export to: ";
/// The width of a time such as `2026-05-04 18:12`.
const TIME_COLUMNS: usize = 16;
const SOURCE_COLUMNS: usize = 11;
const COUNT_COLUMNS: usize = 9;

const HELP: [(&str, &str); 16] = [
    ("/", "search; the list shows the hits while you type"),
    ("", "\"a phrase\" -without pref* since:2026-03 until:2026-04"),
    ("", "in:codex role:user project:NAME title:WORD"),
    ("Enter", "search for exactly what was typed; open"),
    ("Esc", "clear the query; back to the list"),
    ("↑ ↓ j k", "move, or scroll by a line"),
    ("PgUp PgDn", "scroll by a page"),
    ("Home End g G", "go to the first or the last one"),
    ("[ ]", "select the previous or the next message"),
    ("p n", "open the previous or the next one of the list"),
    ("c", "copy the message, or the id of the thread"),
    ("e", "export the thread: .md for Markdown, .jsonl, .jsonl.gz"),
    ("r", "read the store again"),
    ("q Ctrl-C", "quit"),
    ("", ""),
    ("", "Press any key to close this help."),
];

/// The styles of the screen, with or without colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub(super) has_colour: bool,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        if self.has_colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn matching(self) -> Style {
        self.colour(Color::Yellow).add_modifier(if self.has_colour {
            Modifier::BOLD
        } else {
            Modifier::UNDERLINED | Modifier::BOLD
        })
    }

    fn error(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn speaker(self, role: Option<Role>) -> Style {
        let colour = match role {
            Some(Role::User) => Color::Green,
            Some(Role::Assistant) => Color::Cyan,
            Some(Role::System) => Color::Yellow,
            Some(Role::Tool) => Color::Magenta,
            None => Color::Red,
        };
        self.colour(colour).add_modifier(Modifier::BOLD)
    }
}

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let areas = state.areas();
    // The screen may have shrunk since the last event about its size.
    let clip = |area: Rect| area.intersection(frame.area());
    let areas = Areas {
        query: clip(areas.query),
        status: clip(areas.status),
        rule: clip(areas.rule),
        list: clip(areas.list),
        divider: clip(areas.divider),
        reader: clip(areas.reader),
        help: clip(areas.help),
    };
    draw_query(frame, state, areas.query, theme);
    let buffer = frame.buffer_mut();
    Line::styled(cut(&format!(" {}", status(state)), areas.status.width.into()), theme.dim())
        .render(areas.status, buffer);
    Line::styled("─".repeat(areas.rule.width.into()), theme.dim()).render(areas.rule, buffer);
    draw_list(buffer, state, areas.list, theme);
    for row in areas.divider.rows() {
        Span::styled("│", theme.dim()).render(row, buffer);
    }
    if let Some(reader) = state.reader.as_ref().filter(|_| areas.reader.area() > 0) {
        draw_reader(buffer, state, reader, areas.reader, theme);
    }
    draw_bottom(frame, state, areas.help, theme);
    if state.is_help_open {
        draw_help(frame, theme);
    }
}

fn draw_query(frame: &mut Frame<'_>, state: &State, area: Rect, theme: Theme) {
    let room = usize::from(area.width).saturating_sub(PROMPT.len() + 1);
    let (text, cursor) = state.query.visible(room);
    let line = match text {
        "" if state.focus != Focus::Query => {
            Line::from_iter([Span::raw(PROMPT), Span::styled("press / to search", theme.dim())])
        }
        text => Line::from_iter([PROMPT, text]),
    };
    line.render(area, frame.buffer_mut());
    if state.focus == Focus::Query && state.export_prompt.is_none() {
        set_cursor(frame, area, PROMPT.len() + cursor);
    }
}

fn set_cursor(frame: &mut Frame<'_>, area: Rect, column: usize) {
    let column = u16::try_from(column).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
    frame.set_cursor_position(Position { x: area.x + column, y: area.y });
}

/// Describes the list.
fn status(state: &State) -> String {
    let searching = if state.is_searching { "searching… · " } else { "" };
    let Some(found) = &state.found else {
        return match &state.threads {
            None => "reading the store…".to_owned(),
            Some(threads) if threads.is_empty() => {
                format!("{searching}no conversations; `threadkeep import --all` imports some")
            }
            Some(threads) => format!("{searching}{}, newest first", counted(threads.len() as u64, "conversation")),
        };
    };
    let mut parts = vec![match found.hits.len() {
        0 => "nothing found".to_owned(),
        count if found.has_more() && count >= HITS => format!("the best {} messages", number(count as u64)),
        count => format!("{} found", counted(count as u64, "message")),
    }];
    let corrections = found.corrections.iter();
    parts.extend(corrections.map(|(word, instead)| format!("no message contains {word}: searched for {instead}")));
    if found.is_truncated {
        parts.push("there may be more: use more specific words".to_owned());
    }
    if found.is_incomplete {
        parts.push("the newest messages are not indexed yet".to_owned());
    }
    searching.to_owned() + &parts.join(" · ")
}

fn draw_list(buffer: &mut Buffer, state: &State, area: Rect, theme: Theme) {
    let position = state.position();
    let style = |at: usize| match (at == position.selected, state.focus) {
        (false, _) => Style::new(),
        (true, Focus::Reader) => Style::new().add_modifier(Modifier::BOLD),
        (true, _) => Style::new().add_modifier(Modifier::REVERSED),
    };
    let rows: Vec<Rect> = area.rows().collect();
    match &state.found {
        Some(found) => {
            let hits = found.hits.iter().enumerate().skip(position.top);
            for ((at, hit), rows) in hits.zip(rows.chunks_exact(HIT_ROWS)) {
                let lines = hit_lines(hit, area.width.into(), theme);
                for (row, line) in rows.iter().zip(lines) {
                    line.render(*row, buffer);
                    buffer.set_style(*row, style(at));
                }
            }
        }
        None => {
            let threads = state.threads.iter().flatten().enumerate().skip(position.top);
            for ((at, thread), row) in threads.zip(rows) {
                thread_line(thread, area.width.into(), theme).render(row, buffer);
                buffer.set_style(row, style(at));
            }
        }
    }
}

fn thread_line(row: &ThreadRow, columns: usize, theme: Theme) -> Line<'static> {
    let ThreadInfo { title, source, message_count, .. } = &row.thread;
    let others = TIME_COLUMNS + SOURCE_COLUMNS + COUNT_COLUMNS + 8;
    let title_columns = columns.saturating_sub(others).max(1);
    let source = padded(&cut(source, SOURCE_COLUMNS), SOURCE_COLUMNS);
    let title = padded(&cut(title, title_columns), title_columns);
    let count = number(*message_count);
    Line::from_iter([
        Span::styled(format!(" {:TIME_COLUMNS$}  {source}  ", row.at), theme.dim()),
        Span::raw(title),
        Span::styled(format!("  {count:>COUNT_COLUMNS$} "), theme.dim()),
    ])
}

fn hit_lines(hit: &HitRow, columns: usize, theme: Theme) -> [Line<'static>; HIT_ROWS] {
    let HitRow { speaker, at, seq, thread, .. } = hit;
    let separator = if thread.source.is_empty() { "" } else { " · " };
    let details = format!(" · {at} · #{seq}{separator}{} · ", thread.source);
    let room = columns.saturating_sub(speaker.width() + details.width() + 2);
    let heading = Line::from_iter([
        Span::styled(format!(" {speaker}"), theme.speaker(Some(hit.role))),
        Span::styled(format!("{details}{}", cut(&thread.title, room)), theme.dim()),
    ]);
    [heading, excerpt_line(hit, columns, theme)]
}

/// Returns the excerpt from shortly before its first match.
fn excerpt_line(hit: &HitRow, columns: usize, theme: Theme) -> Line<'static> {
    let style = |is_match: bool| if is_match { theme.matching() } else { Style::new() };
    let spans = |pieces: &[(String, bool)]| -> Vec<Span<'static>> {
        pieces.iter().map(|(text, is_match)| Span::styled(text.clone(), style(*is_match))).collect()
    };
    let room = columns.saturating_sub(5);
    let first = hit.excerpt.iter().position(|(_, is_match)| *is_match).unwrap_or(0);
    let before: String = hit.excerpt[..first].iter().map(|(text, _)| text.as_str()).collect();
    let rest_columns: usize = hit.excerpt[first..].iter().map(|(text, _)| text.width()).sum();
    let lead_columns = room.saturating_sub(rest_columns).max(room / 4);
    let mut line = vec![Span::raw("   ")];
    if before.width() > lead_columns {
        // From the first word that fits, or from within a longer one.
        let starts = || before.char_indices().map(|(at, _)| at).filter(|at| before[*at..].width() < lead_columns);
        let is_word_start = |at: &usize| before[..*at].ends_with(char::is_whitespace);
        let from = starts().find(is_word_start).or_else(|| starts().next()).unwrap_or(before.len());
        line.push(Span::raw(format!("…{}", &before[from..])));
        line.extend(spans(&hit.excerpt[first..]));
    } else {
        line.extend(spans(&hit.excerpt));
    }
    Line::from(line)
}

fn draw_reader(buffer: &mut Buffer, state: &State, reader: &Reader, area: Rect, theme: Theme) {
    let mut rows = area.rows();
    let columns = usize::from(area.width);
    let (has_before, has_after) = reader.has_outside();
    for line in reader_head(reader, columns, has_before, has_after, theme) {
        if let Some(row) = rows.next() {
            line.render(row, buffer);
        }
    }
    if reader.messages.is_empty() {
        let text = if reader.is_loading { " reading…" } else { " no messages" };
        if let Some(row) = rows.next() {
            Line::styled(text, theme.dim()).render(row, buffer);
        }
        return;
    }
    for (row, (at, message, line)) in rows.zip(reader.visible_lines()) {
        let is_selected = at == reader.selected && state.focus == Focus::Reader;
        let mark = Span::styled(if is_selected { "▌" } else { " " }, theme.colour(Color::Blue));
        let target = reader.target.as_ref().filter(|target| target.seq == message.row.seq);
        let line = match line {
            reader::Line::Heading => {
                let found = if target.is_some_and(|target| !target.reasons.is_empty()) { " · found" } else { "" };
                Line::from_iter([
                    mark,
                    Span::styled(message.row.speaker.clone(), theme.speaker(message.row.role)),
                    Span::styled(message.row.details.clone(), theme.dim()),
                    Span::styled(found, theme.matching()),
                ])
            }
            reader::Line::Body(line) => {
                let style = if line.is_dim { theme.dim() } else { Style::new() };
                let mut spans = vec![mark, Span::raw(&INDENT[1..])];
                spans.extend(highlighted(&line.text, target.filter(|_| !line.is_dim), style, theme));
                Line::from(spans)
            }
            reader::Line::Empty => Line::from(mark),
        };
        line.render(row, buffer);
    }
}

fn reader_head(
    reader: &Reader,
    columns: usize,
    has_before: bool,
    has_after: bool,
    theme: Theme,
) -> [Line<'static>; READER_HEAD_ROWS as usize] {
    let ThreadInfo { title, source, message_count, id } = &reader.thread;
    let separator = if source.is_empty() { "" } else { " · " };
    let details =
        format!("{separator}{source} · {} · {}", counted(*message_count, "message"), crate::thread_name::short(*id));
    let title = cut(title, columns.saturating_sub(details.width() + 2).max(columns / 3));
    let heading = Line::from_iter([
        Span::styled(format!(" {title}"), Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(details, theme.dim()),
    ]);
    let reasons = reader.target.as_ref().map(|target| target.reasons.as_str()).filter(|reasons| !reasons.is_empty());
    let reasons = reasons.map_or_else(String::new, |reasons| format!(" Found by {reasons}"));
    let more = match (has_before, has_after) {
        (true, true) => " ↑↓ ",
        (true, false) => " ↑ ",
        (false, true) => " ↓ ",
        (false, false) => "",
    };
    let rule = "─".repeat(columns.saturating_sub(more.width() + 1)) + more + if more.is_empty() { "" } else { "─" };
    [heading, Line::styled(cut(&reasons, columns), theme.colour(Color::Yellow)), Line::styled(rule, theme.dim())]
}

fn highlighted<'a>(text: &'a str, target: Option<&Target>, style: Style, theme: Theme) -> Vec<Span<'a>> {
    let mut spans = Vec::new();
    let mut at = 0;
    for found in target.map(|target| target.find_matches(text)).unwrap_or_default() {
        spans.push(Span::styled(&text[at..found.start], style));
        spans.push(Span::styled(&text[found.clone()], theme.matching()));
        at = found.end;
    }
    spans.push(Span::styled(&text[at..], style));
    spans
}

/// Draws the question for a file, the note about the last action, or the most important keys.
fn draw_bottom(frame: &mut Frame<'_>, state: &State, area: Rect, theme: Theme) {
    if let Some(prompt) = &state.export_prompt {
        let room = usize::from(area.width).saturating_sub(EXPORT_PROMPT.len());
        let (text, cursor) = prompt.file.visible(room);
        Line::from_iter([EXPORT_PROMPT, text]).render(area, frame.buffer_mut());
        set_cursor(frame, area, EXPORT_PROMPT.len() + cursor);
        return;
    }
    let line = match &state.note {
        Some(note) if note.is_error => Line::styled(format!(" {}", note.text), theme.error()),
        Some(note) => Line::raw(format!(" {}", note.text)),
        None => Line::styled(keys(state), theme.dim()),
    };
    line.render(area, frame.buffer_mut());
}

fn keys(state: &State) -> &'static str {
    match state.focus {
        Focus::Query => " type to search · ↑↓ move · Enter to the list · Esc clear · Ctrl-C quit",
        Focus::List if state.lists_hits() => {
            " ↑↓ move · Enter read · / search · Esc all · c copy · e export · ? help · q quit"
        }
        Focus::List => " ↑↓ move · Enter read · / search · c copy id · e export · ? help · q quit",
        Focus::Reader => " ↑↓ scroll · [ ] message · p n next · c copy · e export · Esc back · ? · q quit",
    }
}

fn draw_help(frame: &mut Frame<'_>, theme: Theme) {
    let screen = frame.area();
    let (columns, height) = (72, HELP.len() as u16 + 2);
    let area = Rect {
        x: screen.width.saturating_sub(columns) / 2,
        y: screen.height.saturating_sub(height) / 2,
        width: columns,
        height,
    };
    let area = area.intersection(screen);
    let buffer = frame.buffer_mut();
    Clear.render(area, buffer);
    let rule = "─".repeat(usize::from(area.width));
    let lines = HELP.iter().map(|(keys, text)| {
        Line::from_iter([
            Span::styled(format!("  {keys:13}"), Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(*text),
        ])
    });
    let lines = std::iter::once(Line::styled(rule.clone(), theme.dim())).chain(lines);
    for (row, line) in area.rows().zip(lines.chain([Line::styled(rule, theme.dim())])) {
        line.render(row, buffer);
    }
}

/// Adds spaces up to a width in columns.
fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests;
