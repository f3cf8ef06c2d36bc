//! The results, as a table for people and as JSON for programs.

use anyhow::Result;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::measure::{Series, Spread};

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) workload: String,
    pub(crate) unit: &'static str,
    pub(crate) engine: Spread,
    /// The figure of the minimal implementation, [`crate::floors::raw`].
    pub(crate) raw: Option<Spread>,
    /// The figure of the engine's SQL statements without the engine, [`crate::floors::same`].
    pub(crate) same_sql: Option<Spread>,
    /// The engine's figure divided by `raw`, computed for each trial.
    pub(crate) ratio_to_raw: Option<Spread>,
    /// The engine's figure divided by `same_sql`, computed for each trial.
    pub(crate) ratio_to_same_sql: Option<Spread>,
    pub(crate) trials: usize,
    pub(crate) discarded: usize,
    pub(crate) notes: Vec<String>,
    pub(crate) goals: Vec<Goal>,
}

/// A goal for a figure, and whether it is met.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Goal {
    pub(crate) goal: String,
    pub(crate) is_met: bool,
}

impl Row {
    pub(crate) fn new(workload: impl Into<String>, unit: &'static str, series: &Series) -> Result<Self> {
        Ok(Self {
            workload: workload.into(),
            unit,
            engine: series.engine()?,
            raw: series.raw(),
            same_sql: series.same_sql(),
            ratio_to_raw: series.ratio_to_raw(),
            ratio_to_same_sql: series.ratio_to_same_sql(),
            trials: series.samples.len(),
            discarded: series.discarded,
            notes: Vec::new(),
            goals: Vec::new(),
        })
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    pub(crate) fn at_least(self, name: &str, figure: Option<Spread>, bound: f64) -> Self {
        self.goal(format!("{name} ≥ {bound}"), figure.is_some_and(|figure| figure.median >= bound))
    }

    pub(crate) fn at_most(self, name: &str, figure: Option<Spread>, bound: f64) -> Self {
        self.goal(format!("{name} ≤ {bound}"), figure.is_some_and(|figure| figure.median <= bound))
    }

    pub(crate) fn goal(mut self, goal: String, is_met: bool) -> Self {
        self.goals.push(Goal { goal, is_met });
        self
    }
}

pub(crate) fn print(rows: &[Row], as_json: bool) -> Result<()> {
    if as_json {
        println!("{}", serde_json::to_string_pretty(rows)?);
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "workload",
        "engine (min–max)",
        "raw",
        "same SQL",
        "ratio to raw (min–max)",
        "ratio to same SQL (min–max)",
        "goal",
        "notes",
    ]);
    for row in rows {
        let goals = row.goals.iter().map(|goal| format!("{} {}", if goal.is_met { "✓" } else { "✗" }, goal.goal));
        let mut notes = row.notes.clone();
        if row.discarded > 0 {
            notes.push(format!("{} trials discarded", row.discarded));
        }
        table.add_row([
            Cell::new(&row.workload),
            Cell::new(format!("{} {}", format_spread(&row.engine), row.unit)).set_alignment(CellAlignment::Right),
            Cell::new(format_optional(row.raw.as_ref(), |spread| figure(spread.median)))
                .set_alignment(CellAlignment::Right),
            Cell::new(format_optional(row.same_sql.as_ref(), |spread| figure(spread.median)))
                .set_alignment(CellAlignment::Right),
            Cell::new(format_optional(row.ratio_to_raw.as_ref(), format_spread)).set_alignment(CellAlignment::Right),
            Cell::new(format_optional(row.ratio_to_same_sql.as_ref(), format_spread))
                .set_alignment(CellAlignment::Right),
            Cell::new(goals.collect::<Vec<_>>().join(", ")),
            Cell::new(notes.join(", ")),
        ]);
    }
    println!("{table}");
    let trials = rows.iter().map(|row| row.trials).max().unwrap_or(0);
    println!("\nMedians of {trials} trials; sizes and memory are measured once. Ratios are computed for each trial.");
    Ok(())
}

fn format_optional(spread: Option<&Spread>, text: impl Fn(&Spread) -> String) -> String {
    spread.map_or_else(|| "–".to_owned(), text)
}

fn format_spread(spread: &Spread) -> String {
    if spread.min == spread.max {
        return figure(spread.median);
    }
    format!("{} ({}–{})", figure(spread.median), figure(spread.min), figure(spread.max))
}

/// Formats a figure with about three significant digits and a comma between groups of thousands.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 999.5 => with_thousands(&format!("{value:.0}")),
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn with_thousands(whole: &str) -> String {
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    format!("{sign}{}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits_and_groups_of_thousands() {
        let figures = [1_234_567.0, 12_345.4, 999.6, 55.55, 16.0, 0.123];
        assert_eq!(figures.map(figure), ["1,234,567", "12,345", "1,000", "55.5", "16", "0.12"]);
    }
}
