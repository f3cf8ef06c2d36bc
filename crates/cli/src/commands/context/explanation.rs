//! Prints the report of a context: which messages the model receives, and why.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;
use textwrap::WordSeparator;
use threadkeep::context::{Fate, FateReason, FateSpan, RecalledFate, Report, TokensByPart};
use threadkeep::core::limits;
use threadkeep::{Memory, Message, MessageRef, Scope, Thread, ThreadId, TokenCount};

use crate::bar::Scale;
use crate::output::{BOLD, DIM, Output, colour, printable_line};
use crate::table::{Align, Cell, Table, counted, cut, number, percent};
use crate::thread_name;
use crate::transcript::{one_line, speaker, wrapped};

/// The number of newest history messages with a line each. Older messages are grouped by fate.
const HISTORY_LINES: usize = 8;
/// The number of recalled messages with a line each.
const FOUND_LINES: usize = 10;
/// The maximum length of a token bar, in columns.
const TOKEN_BAR_COLUMNS: usize = 60;
/// The maximum length of a score bar, in columns.
const SCORE_BAR_COLUMNS: usize = 10;
/// The minimum width of the text column. If less space is available, the column is omitted.
const MIN_TEXT_COLUMNS: usize = 16;

/// A report, with the messages that it lists individually.
#[derive(Debug)]
pub(crate) struct Explanation<'a> {
    thread: &'a Thread,
    report: &'a Report,
    rows: Vec<Row>,
    messages: BTreeMap<(ThreadId, u64), Message>,
}

/// A line about messages with the same fate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    first_seq: u64,
    last_seq: u64,
    count: u64,
    fate: Fate,
    why: Option<FateReason>,
    tokens: TokenCount,
}

impl<'a> Explanation<'a> {
    /// Reads the messages that have a line of their own.
    pub(crate) async fn read(memory: &Memory, scope: &Scope, thread: &'a Thread, report: &'a Report) -> Result<Self> {
        let rows = rows(&report.messages);
        let mut positions: BTreeMap<ThreadId, BTreeSet<u64>> = BTreeMap::new();
        let single = rows.iter().filter(|row| row.count == 1).map(|row| (thread.id, row.first_seq));
        let found =
            report.recalled.iter().take(FOUND_LINES).map(|found| (found.thread.unwrap_or(thread.id), found.seq));
        for (thread, seq) in single.chain(found) {
            positions.entry(thread).or_default().insert(seq);
        }
        let mut messages = BTreeMap::new();
        for (thread, seqs) in positions {
            let names: Vec<_> = seqs.into_iter().take(limits::PAGE).map(MessageRef::Seq).collect();
            // Messages that are unreadable, or were erased in the meantime, are printed without their text.
            let read = memory.find_messages(scope, thread, &names).await.unwrap_or_default();
            messages.extend(read.into_iter().map(|message| ((thread, message.seq), message)));
        }
        Ok(Self { thread, report, rows, messages })
    }

    /// Prints the explanation. `about` describes its question or turn in the heading.
    pub(crate) fn print(&self, output: &Output, about: &str) -> Result<()> {
        let mut lines = output.lines();
        lines.line(output.paint(BOLD, thread_name::title(self.thread)))?;
        let counter = printable_line(&self.report.counter);
        let described = format!("{} · {about} · token counter: {counter}", messages(positions(self.report)));
        for line in wrapped(output, &described, "", WordSeparator::AsciiSpace) {
            lines.line(output.paint(DIM, line))?;
        }
        for table in [self.token_table(output), self.fate_table(output), self.match_table(output)].into_iter().flatten()
        {
            lines.line("")?;
            lines.line(table)?;
        }
        lines.finish()
    }

    /// Returns the table of tokens by part. Each bar starts where the previous one ends.
    fn token_table(&self, output: &Output) -> Option<String> {
        let Report { tokens, budget, .. } = self.report;
        let total = budget.unwrap_or(tokens.total).0;
        let share_header = budget.map_or_else(|| "share".to_owned(), |budget| format!("of {}", number(budget.0)));
        // Names, numbers and gaps take 34 columns.
        let columns = output.explained_columns().saturating_sub(34).clamp(10, TOKEN_BAR_COLUMNS);
        let scale = Scale { columns, whole: total as f64 };
        let headers =
            [("part", Align::Left), ("tokens", Align::Right), (&share_header, Align::Right), ("", Align::Left)];
        let mut table = Table::new(headers);
        let mut end = 0_u64;
        for (name, style, taken) in parts(tokens).into_iter().filter(|(_, _, taken)| *taken != 0) {
            let start = end;
            end = end.saturating_add_signed(taken);
            let (before, blocks) = scale.range(start as f64, end as f64);
            let share = if taken < 0 { String::new() } else { percent(taken.unsigned_abs(), total) };
            let figure = if taken < 0 { taken.to_string() } else { number(taken.unsigned_abs()) };
            let bar = Cell::from(" ".repeat(before)).then(output, style, &blocks);
            table.add_row([name.into(), figure.into(), share.into(), bar]);
        }
        let (_, blocks) = scale.range(0.0, tokens.total.0 as f64);
        let unused = "░".repeat(columns.saturating_sub(blocks.chars().count()));
        let bar = Cell::from(blocks).then(output, DIM, &unused);
        let bold = |text: &str| Cell::styled(output, BOLD, text);
        table.add_row([bold("total"), bold(&number(tokens.total.0)), bold(&percent(tokens.total.0, total)), bar]);
        Some(table.text())
    }

    /// Returns the table of the thread's messages.
    fn fate_table(&self, output: &Output) -> Option<String> {
        let names = ["messages", "fate", "tokens", "why", "text"];
        let mut rows = Vec::new();
        for row in &self.rows {
            let positions = if row.first_seq == row.last_seq {
                format!("#{}", row.first_seq)
            } else {
                format!("#{}–#{}", row.first_seq, row.last_seq)
            };
            let why = row.why.map_or_else(String::new, |why| word(&why));
            let text = match row.count {
                1 => self.text(self.thread.id, row.first_seq),
                count => counted_positions(count, row.last_seq - row.first_seq + 1),
            };
            let fate = Cell::styled(output, style(row.fate), &format!("{} {}", mark(row.fate), word(&row.fate)));
            rows.push((vec![positions.into(), fate, figure(row.tokens), why.into()], text));
        }
        table(output, &names, rows)
    }

    /// Returns the table of messages found for the question, best first.
    fn match_table(&self, output: &Output) -> Option<String> {
        let best = self.report.recalled.iter().map(|found| found.score).fold(0.0, f64::max);
        let scale = Scale { columns: SCORE_BAR_COLUMNS, whole: best };
        let mut rows = Vec::new();
        for found in self.report.recalled.iter().take(FOUND_LINES) {
            let thread = found.thread.unwrap_or(self.thread.id);
            let other = found.thread.map_or_else(String::new, |thread| format!(" of {}", thread_name::short(thread)));
            let (_, blocks) = scale.range(0.0, found.score);
            let score = Cell::from(format!("{:>6.2} ", found.score)).then(output, colour(AnsiColor::Cyan), &blocks);
            let fate =
                Cell::styled(output, style(found.fate), &format!("{} {}", mark(found.fate), found_fate(found.fate)));
            let position = format!("#{}{other}", found.seq).into();
            rows.push((vec![position, fate, figure(found.tokens), score], self.text(thread, found.seq)));
        }
        let more = remaining_counts(&self.report.recalled);
        let table = table(output, &["match", "fate", "tokens", "score", "text"], rows)?;
        Some(if more.is_empty() { table } else { format!("{table}\n{}", output.paint(DIM, more)) })
    }

    /// Returns the author and text of a message, or an empty string if it could not be read.
    fn text(&self, thread: ThreadId, seq: u64) -> String {
        self.messages.get(&(thread, seq)).map_or_else(String::new, |message| {
            let name = speaker(message.content.author.as_deref(), message.content.role);
            format!("{name}: {}", one_line(message))
        })
    }
}

impl Output {
    /// Returns the width of an explanation: the width of the output, or 100 columns if that is unknown.
    fn explained_columns(&self) -> usize {
        self.columns().unwrap_or(100)
    }
}

/// Returns a table whose last column is truncated to the available width, or omitted if the width is too small. Returns
/// `None` without rows.
fn table(output: &Output, names: &[&str; 5], rows: Vec<(Vec<Cell>, String)>) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let alignments = [Align::Left, Align::Left, Align::Right, Align::Left, Align::Left];
    let headers = || names.iter().copied().zip(alignments);
    let mut narrow = Table::new(headers().take(4));
    rows.iter().for_each(|(cells, _)| narrow.add_row(cells.clone()));
    let room = output.explained_columns().saturating_sub(narrow.columns() + crate::table::GAP);
    if room < MIN_TEXT_COLUMNS {
        return Some(narrow.text());
    }
    let mut table = Table::new(headers());
    for (mut cells, text) in rows {
        cells.push(cut(&text, room).into());
        table.add_row(cells);
    }
    Some(table.text())
}

/// Returns a row for each of the newest history messages, and for older messages one row per fate and reason.
fn rows(spans: &[FateSpan]) -> Vec<Row> {
    let is_shown = |span: &FateSpan| matches!(span.fate, Fate::Kept | Fate::Truncated);
    let shown: Vec<u64> = spans.iter().filter(|span| is_shown(span)).map(|span| span.first_seq).collect();
    let single_from = shown.len().checked_sub(HISTORY_LINES).map_or(0, |older| shown[older]);
    let mut groups: BTreeMap<(Fate, Option<FateReason>), Row> = BTreeMap::new();
    let mut rows = Vec::new();
    for span in spans {
        let FateSpan { first_seq, last_seq, fate, why, tokens } = *span;
        let row = Row { first_seq, last_seq, count: span.count(), fate, why, tokens };
        if is_shown(span) && first_seq >= single_from {
            rows.push(row);
            continue;
        }
        let group = groups.entry((fate, why)).or_insert(Row { count: 0, tokens: TokenCount::ZERO, ..row });
        group.last_seq = last_seq;
        group.count += row.count;
        group.tokens += tokens;
    }
    rows.extend(groups.into_values());
    rows.sort_by_key(|row| (row.first_seq, row.last_seq));
    rows
}

fn parts(tokens: &TokensByPart) -> [(&'static str, Style, i64); 8] {
    let taken = |tokens: TokenCount| i64::try_from(tokens.0).unwrap_or(i64::MAX);
    [
        ("system prompt", colour(AnsiColor::Yellow), taken(tokens.system_prompt)),
        ("enrichment", colour(AnsiColor::Magenta), taken(tokens.enrichment)),
        ("preferences", colour(AnsiColor::Magenta), taken(tokens.preferences)),
        ("summary", style(Fate::Summarised), taken(tokens.summary)),
        ("history", style(Fate::Kept), taken(tokens.history)),
        ("recalled", style(Fate::Recalled), taken(tokens.recalled)),
        ("question", BOLD, taken(tokens.question)),
        ("framing", DIM, tokens.framing),
    ]
}

const fn mark(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "●",
        Fate::Truncated => "◐",
        Fate::Recalled => "◆",
        Fate::Summarised => "≈",
        _ => "○",
    }
}

/// Describes whether a found message was recalled. A message that was not may still be in the history or the summary.
fn found_fate(fate: Fate) -> String {
    if fate == Fate::Dropped { "not recalled".to_owned() } else { word(&fate) }
}

fn style(fate: Fate) -> Style {
    match fate {
        Fate::Kept => colour(AnsiColor::Green),
        Fate::Truncated => colour(AnsiColor::Yellow),
        Fate::Recalled => colour(AnsiColor::Cyan),
        Fate::Summarised => colour(AnsiColor::Blue),
        _ => DIM,
    }
}

/// Returns the JSON name of a value, with spaces instead of underscores.
fn word<T: Serialize>(name: &T) -> String {
    let json = serde_json::to_value(name).ok();
    json.as_ref().and_then(|json| json.as_str()).unwrap_or_default().replace('_', " ")
}

fn figure(tokens: TokenCount) -> Cell {
    if tokens == TokenCount::ZERO { Cell::default() } else { number(tokens.0).into() }
}

fn messages(count: u64) -> String {
    counted(count, "message")
}

/// Describes the messages of a row whose range of positions may include messages of other rows.
fn counted_positions(count: u64, positions: u64) -> String {
    if count == positions { messages(count) } else { format!("{} of {}", number(count), messages(positions)) }
}

fn positions(report: &Report) -> u64 {
    report.messages.iter().map(FateSpan::count).sum()
}

/// Summarises the recalled messages that have no line of their own.
fn remaining_counts(found: &[RecalledFate]) -> String {
    let Some(rest) = found.get(FOUND_LINES..).filter(|rest| !rest.is_empty()) else { return String::new() };
    let mut counts: BTreeMap<Fate, u64> = BTreeMap::new();
    rest.iter().for_each(|found| *counts.entry(found.fate).or_default() += 1);
    let counts: Vec<_> =
        counts.iter().map(|(fate, count)| format!("{} {}", number(*count), found_fate(*fate))).collect();
    format!("and {} more: {}", number(rest.len() as u64), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn span(first_seq: u64, last_seq: u64, fate: Fate, why: Option<FateReason>) -> FateSpan {
        FateSpan { first_seq, last_seq, fate, why, tokens: TokenCount(1) }
    }

    #[test]
    fn rows_group_older_messages_by_fate() {
        let summarised = |first, last| span(first, last, Fate::Summarised, Some(FateReason::OutsideWindow));
        let mut spans = vec![summarised(1, 4), span(5, 5, Fate::Recalled, Some(FateReason::Found)), summarised(6, 9)];
        spans.extend((10..=20).map(|seq| span(seq, seq, Fate::Kept, None)));
        let rows = rows(&spans);
        let found: Vec<_> = rows.iter().map(|row| (row.first_seq, row.last_seq, row.count, row.tokens.0)).collect();
        assert_eq!(found[..3], [(1, 9, 8, 2), (5, 5, 1, 1), (10, 12, 3, 3)]);
        assert_eq!(found[3..], (13..=20).map(|seq| (seq, seq, 1, 1)).collect::<Vec<_>>());
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 20, "every message is counted once");
    }

    #[test]
    fn text_column_is_truncated_to_the_terminal_or_omitted() {
        let names = ["messages", "fate", "tokens", "why", "text"];
        let cells = || ["#1", "kept", "7", "found"].map(Cell::from).to_vec();
        let rows = |text: &str| vec![(cells(), text.to_owned()), (cells(), String::new())];
        for columns in [47, 60, 80, 200] {
            let text = table(&Output::of_columns(columns), &names, rows(&"東京 is long ".repeat(30))).unwrap();
            assert!(text.lines().all(|line| line.width() <= columns), "{columns}:\n{text}");
            assert_eq!((text.contains("…"), text.contains("  text")), (true, true), "{text}");
        }
        let narrow = table(&Output::of_columns(40), &names, rows("never seen")).unwrap();
        assert_eq!(narrow.lines().next(), Some("messages  fate  tokens  why"));
        assert_eq!(table(&Output::of_columns(80), &names, Vec::new()), None);
    }

    #[test]
    fn fates_and_reasons_are_named_as_in_json() {
        assert_eq!(
            (word(&Fate::Summarised), word(&FateReason::OutsideWindow)),
            ("summarised".to_owned(), "outside window".to_owned())
        );
    }

    #[test]
    fn messages_without_their_own_line_are_counted_by_fate() {
        let found = |fate| RecalledFate { thread: None, seq: 1, score: 1.0, fate, tokens: TokenCount::ZERO };
        let mut all = vec![found(Fate::Recalled); FOUND_LINES];
        assert_eq!(remaining_counts(&all), "");
        all.extend([found(Fate::Dropped), found(Fate::Recalled), found(Fate::Dropped)]);
        assert_eq!(remaining_counts(&all), "and 3 more: 1 recalled, 2 not recalled");
    }
}
