//! The results, as a table for people and as JSON for programs.

use anyhow::{Context, Result};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::measure::Spread;
use crate::run::report::figure;

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    workload: String,
    unit: &'static str,
    server: Spread,
    floor: Option<Spread>,
    ratio: Option<Spread>,
    goal: String,
    is_met: bool,
    notes: Vec<String>,
}

impl Row {
    /// Creates a row with a floor. Each trial has the results of floor and server; the goal is that their ratio is at least
    /// `min_ratio`.
    pub(super) fn with_floor(workload: impl Into<String>, trials: &[(f64, f64)], min_ratio: f64) -> Result<Self> {
        let spread =
            |figure: fn(&(f64, f64)) -> f64| Spread::of(trials.iter().map(figure)).context("no trials were run");
        let ratio = spread(|trial| trial.1 / trial.0)?;
        Ok(Self {
            workload: workload.into(),
            unit: "per second",
            server: spread(|trial| trial.1)?,
            floor: Some(spread(|trial| trial.0)?),
            ratio: Some(ratio),
            goal: format!("ratio ≥ {min_ratio}"),
            is_met: ratio.median >= min_ratio,
            notes: Vec::new(),
        })
    }

    /// Creates a row without a floor; the goal is that the figure is at most `max`.
    pub(super) fn at_most(
        workload: impl Into<String>,
        unit: &'static str,
        figures: impl IntoIterator<Item = f64>,
        max: f64,
    ) -> Result<Self> {
        let server = Spread::of(figures).context("no figures were measured")?;
        let (goal, is_met) = (format!("≤ {max}"), server.median <= max);
        Ok(Self { workload: workload.into(), unit, server, floor: None, ratio: None, goal, is_met, notes: Vec::new() })
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

pub(super) fn print(rows: &[Row], as_json: bool) -> Result<()> {
    if as_json {
        println!("{}", serde_json::to_string_pretty(rows)?);
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["workload", "server (min–max)", "floor", "ratio (min–max)", "goal", "notes"]);
    for row in rows {
        let optional =
            |spread: Option<&Spread>, text: fn(&Spread) -> String| spread.map_or_else(|| "–".to_owned(), text);
        table.add_row([
            row.workload.clone(),
            format!("{} {}", with_spread(&row.server), row.unit),
            optional(row.floor.as_ref(), |floor| figure(floor.median)),
            optional(row.ratio.as_ref(), with_spread),
            format!("{} {}", if row.is_met { "✓" } else { "✗" }, row.goal),
            row.notes.join(", "),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn with_spread(spread: &Spread) -> String {
    if spread.min == spread.max {
        return figure(spread.median);
    }
    format!("{} ({}–{})", figure(spread.median), figure(spread.min), figure(spread.max))
}
