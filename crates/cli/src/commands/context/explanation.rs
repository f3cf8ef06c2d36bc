//! Why a model sees what it sees: the report of a context as a person reads it.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;
use textwrap::WordSeparator;
use threadkeep::context::{Fate, FateSpan, RecalledFate, Report, TokensByPart, Why};
use threadkeep::core::limits;
use threadkeep::{Memory, Message, MessageName, Scope, Thread, ThreadId, TokenCount};

use crate::bar::Scale;
use crate::output::{BOLD, DIM, Output, colour, printable_line};
use crate::table::{Cell, Side, Table, counted, cut, number, percent};
use crate::thread_name;
use crate::transcript::{one_line, speaker, wrapped};

/// The newest shown messages that have a line each; of the others, those that share a fate share a line.
const LINES: usize = 8;
/// Found messages that have a line each.
const FOUND: usize = 10;
/// Columns of the longest bar, and of the bar of a score.
const BAR: (usize, usize) = (60, 10);
/// Columns below which words are left out.
const SHORTEST_WORDS: usize = 16;

/// A report, and the messages that it speaks of.
#[derive(Debug)]
pub(crate) struct Explanation<'a> {
    thread: &'a Thread,
    report: &'a Report,
    rows: Vec<Row>,
    messages: BTreeMap<(ThreadId, u64), Message>,
}

/// A line about messages with one fate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    first_seq: u64,
    last_seq: u64,
    count: u64,
    fate: Fate,
    why: Option<Why>,
    tokens: TokenCount,
}

impl<'a> Explanation<'a> {
    /// Reads what the messages say of which the explanation speaks one by one.
    pub(crate) async fn read(memory: &Memory, scope: &Scope, thread: &'a Thread, report: &'a Report) -> Result<Self> {
        let rows = rows(&report.messages);
        let mut places: BTreeMap<ThreadId, BTreeSet<u64>> = BTreeMap::new();
        let single = rows.iter().filter(|row| row.count == 1).map(|row| (thread.id, row.first_seq));
        let found = report.recalled.iter().take(FOUND).map(|found| (found.thread.unwrap_or(thread.id), found.seq));
        for (thread, seq) in single.chain(found) {
            places.entry(thread).or_default().insert(seq);
        }
        let mut messages = BTreeMap::new();
        for (thread, seqs) in places {
            let names: Vec<_> = seqs.into_iter().take(limits::PAGE).map(MessageName::Seq).collect();
            // What was erased since, or cannot be read, is named by its position alone.
            let read = memory.find_messages(scope, thread, &names).await.unwrap_or_default();
            messages.extend(read.into_iter().map(|message| ((thread, message.seq), message)));
        }
        Ok(Self { thread, report, rows, messages })
    }

    /// Prints the explanation; `about` says whose it is.
    pub(crate) fn print(&self, output: &Output, about: &str) -> Result<()> {
        let mut lines = output.lines();
        lines.line(output.paint(BOLD, thread_name::title(self.thread)))?;
        let counter = printable_line(&self.report.counter);
        let described = format!("{} · {about} · counter: {counter}", messages(positions(self.report)));
        for line in wrapped(output, &described, "", WordSeparator::AsciiSpace) {
            lines.line(output.paint(DIM, line))?;
        }
        for table in [self.tokens(output), self.fates(output), self.found(output)].into_iter().flatten() {
            lines.line("")?;
            lines.line(table)?;
        }
        lines.finish()
    }

    /// Tokens by part, each bar beginning where the one before ends.
    fn tokens(&self, output: &Output) -> Option<String> {
        let Report { tokens, budget, .. } = self.report;
        let whole = budget.unwrap_or(tokens.total).0;
        let of = budget.map_or_else(|| "share".to_owned(), |budget| format!("of {}", number(budget.0)));
        // The other columns: names, figures and what is between them.
        let columns = output.explained_columns().saturating_sub(34).clamp(10, BAR.0);
        let scale = Scale { columns, whole: whole as f64 };
        let headers = [("part", Side::Left), ("tokens", Side::Right), (&of, Side::Right), ("", Side::Left)];
        let mut table = Table::new(headers);
        let mut end = 0_u64;
        for (name, style, taken) in parts(tokens).into_iter().filter(|(_, _, taken)| *taken != 0) {
            let start = end;
            end = end.saturating_add_signed(taken);
            let (before, blocks) = scale.stretch(start as f64, end as f64);
            let share = if taken < 0 { String::new() } else { percent(taken.unsigned_abs(), whole) };
            let figure = if taken < 0 { taken.to_string() } else { number(taken.unsigned_abs()) };
            let bar = Cell::from(" ".repeat(before)).then(output, style, &blocks);
            table.add_row([name.into(), figure.into(), share.into(), bar]);
        }
        let (_, blocks) = scale.stretch(0.0, tokens.total.0 as f64);
        let rest = "░".repeat(columns.saturating_sub(blocks.chars().count()));
        let bar = Cell::from(blocks).then(output, DIM, &rest);
        let bold = |text: &str| Cell::painted(output, BOLD, text);
        table.add_row([bold("total"), bold(&number(tokens.total.0)), bold(&percent(tokens.total.0, whole)), bar]);
        Some(table.text())
    }

    /// What became of the thread's messages.
    fn fates(&self, output: &Output) -> Option<String> {
        let names = ["messages", "fate", "tokens", "why", "says"];
        let mut rows = Vec::new();
        for row in &self.rows {
            let place = if row.first_seq == row.last_seq {
                format!("#{}", row.first_seq)
            } else {
                format!("#{}–#{}", row.first_seq, row.last_seq)
            };
            let why = row.why.map_or_else(String::new, |why| word(&why));
            let words = match row.count {
                1 => self.says(self.thread.id, row.first_seq),
                count => messages(count),
            };
            let fate = Cell::painted(output, style(row.fate), &mark(row.fate));
            rows.push((vec![place.into(), fate, figure(row.tokens), why.into()], words));
        }
        table(output, &names, rows)
    }

    /// What was found for the question, best first.
    fn found(&self, output: &Output) -> Option<String> {
        let best = self.report.recalled.iter().map(|found| found.score).fold(0.0, f64::max);
        let scale = Scale { columns: BAR.1, whole: best };
        let mut rows = Vec::new();
        for found in self.report.recalled.iter().take(FOUND) {
            let thread = found.thread.unwrap_or(self.thread.id);
            let other = found.thread.map_or_else(String::new, |thread| format!(" of {}", thread_name::short(thread)));
            let (_, blocks) = scale.stretch(0.0, found.score);
            let score = Cell::from(format!("{:>6.2} ", found.score)).then(output, colour(AnsiColor::Cyan), &blocks);
            let fate = Cell::painted(output, style(found.fate), &mark(found.fate));
            let place = format!("#{}{other}", found.seq).into();
            rows.push((vec![place, fate, figure(found.tokens), score], self.says(thread, found.seq)));
        }
        let more = rest(&self.report.recalled);
        let table = table(output, &["found", "fate", "tokens", "score", "says"], rows)?;
        Some(if more.is_empty() { table } else { format!("{table}\n{}", output.paint(DIM, more)) })
    }

    fn says(&self, thread: ThreadId, seq: u64) -> String {
        self.messages.get(&(thread, seq)).map_or_else(String::new, |message| {
            let name = speaker(message.content.author.as_deref(), message.content.role);
            format!("{name}: {}", one_line(message))
        })
    }
}

impl Output {
    /// The width of an explanation: where nobody says how wide it may be, that of a page.
    fn explained_columns(&self) -> usize {
        self.columns().unwrap_or(100)
    }
}

/// A table whose last column has the words that there is room for.
fn table(output: &Output, names: &[&str; 5], rows: Vec<(Vec<Cell>, String)>) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let sides = [Side::Left, Side::Left, Side::Right, Side::Left, Side::Left];
    let headers = || names.iter().copied().zip(sides);
    let mut narrow = Table::new(headers().take(4));
    rows.iter().for_each(|(cells, _)| narrow.add_row(cells.clone()));
    let room = output.explained_columns().saturating_sub(narrow.columns() + crate::table::GAP);
    if room < SHORTEST_WORDS {
        return Some(narrow.text());
    }
    let mut table = Table::new(headers());
    for (mut cells, words) in rows {
        cells.push(cut(&words, room).into());
        table.add_row(cells);
    }
    Some(table.text())
}

/// The newest messages that are shown one by one, before them one line for all that share a fate.
fn rows(spans: &[FateSpan]) -> Vec<Row> {
    let is_shown = |span: &FateSpan| matches!(span.fate, Fate::Kept | Fate::Truncated);
    let shown: Vec<u64> = spans.iter().filter(|span| is_shown(span)).map(|span| span.first_seq).collect();
    let single_from = shown.len().checked_sub(LINES).map_or(0, |older| shown[older]);
    let mut groups: BTreeMap<(Fate, Option<Why>), Row> = BTreeMap::new();
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

fn mark(fate: Fate) -> String {
    let mark = match fate {
        Fate::Kept => "●",
        Fate::Truncated => "◐",
        Fate::Recalled => "◆",
        Fate::Summarised => "≈",
        _ => "○",
    };
    format!("{mark} {}", word(&fate))
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

/// The word that JSON has for something, as people write it.
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

fn positions(report: &Report) -> u64 {
    report.messages.iter().map(FateSpan::count).sum()
}

/// What became of the found messages that have no line.
fn rest(found: &[RecalledFate]) -> String {
    let Some(rest) = found.get(FOUND..).filter(|rest| !rest.is_empty()) else { return String::new() };
    let mut counts: BTreeMap<Fate, u64> = BTreeMap::new();
    rest.iter().for_each(|found| *counts.entry(found.fate).or_default() += 1);
    let counts: Vec<_> = counts.iter().map(|(fate, count)| format!("{} {}", number(*count), word(fate))).collect();
    format!("and {} more: {}", number(rest.len() as u64), counts.join(", "))
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn span(first_seq: u64, last_seq: u64, fate: Fate, why: Option<Why>) -> FateSpan {
        FateSpan { first_seq, last_seq, fate, why, tokens: TokenCount(1) }
    }

    #[test]
    fn what_shares_a_fate_shares_a_line_but_the_newest() {
        let gone = |first, last| span(first, last, Fate::Summarised, Some(Why::OutsideWindow));
        let mut spans = vec![gone(1, 4), span(5, 5, Fate::Recalled, Some(Why::Found)), gone(6, 9)];
        spans.extend((10..=20).map(|seq| span(seq, seq, Fate::Kept, None)));
        let rows = rows(&spans);
        let told: Vec<_> = rows.iter().map(|row| (row.first_seq, row.last_seq, row.count, row.tokens.0)).collect();
        assert_eq!(told[..3], [(1, 9, 8, 2), (5, 5, 1, 1), (10, 12, 3, 3)]);
        assert_eq!(told[3..], (13..=20).map(|seq| (seq, seq, 1, 1)).collect::<Vec<_>>());
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 20, "every message is counted once");
    }

    #[test]
    fn words_are_cut_to_the_terminal_and_left_out_where_it_is_narrow() {
        let names = ["messages", "fate", "tokens", "why", "says"];
        let cells = || ["#1", "kept", "7", "found"].map(Cell::from).to_vec();
        let rows = |words: &str| vec![(cells(), words.to_owned()), (cells(), String::new())];
        for columns in [47, 60, 80, 200] {
            let text = table(&Output::of_columns(columns), &names, rows(&"東京 is long ".repeat(30))).unwrap();
            assert!(text.lines().all(|line| line.width() <= columns), "{columns}:\n{text}");
            assert_eq!((text.contains("…"), text.contains("says")), (true, true), "{text}");
        }
        let narrow = table(&Output::of_columns(40), &names, rows("never seen")).unwrap();
        assert_eq!(narrow.lines().next(), Some("messages  fate  tokens  why"));
        assert_eq!(table(&Output::of_columns(80), &names, Vec::new()), None);
    }

    #[test]
    fn the_words_are_those_of_the_json() {
        assert_eq!(
            (word(&Fate::Summarised), word(&Why::OutsideWindow)),
            ("summarised".to_owned(), "outside window".to_owned())
        );
    }

    #[test]
    fn found_messages_without_a_line_are_counted() {
        let found = |fate| RecalledFate { thread: None, seq: 1, score: 1.0, fate, tokens: TokenCount::ZERO };
        let mut all = vec![found(Fate::Recalled); FOUND];
        assert_eq!(rest(&all), "");
        all.extend([found(Fate::Dropped), found(Fate::Recalled), found(Fate::Dropped)]);
        assert_eq!(rest(&all), "and 3 more: 1 recalled, 2 dropped");
    }
}
