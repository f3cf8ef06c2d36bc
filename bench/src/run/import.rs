//! Importing a file of conversations.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use threadkeep_memory::ImportOptions;

use super::report::Row;
use super::{Bench, TEXT_BYTES};
use crate::engine::Engine;
use crate::measure::{Sample, Series};

const CONVERSATIONS: u64 = 5_000;
const MESSAGES: u64 = 20;
const PER_SECOND: f64 = 20_000.0;

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    bench.show_progress("import: writing the file");
    let folder = bench.folder("import")?;
    let file = folder.join("conversations.jsonl");
    write(bench, &file)?;
    let mut indexing = Vec::new();
    let series = Series::run(bench.trials, &bench.disk, async |trial| {
        bench.show_progress(format!("import: trial {}", trial + 1));
        let engine = Engine::sqlite(&folder.join(format!("{trial}.db")))?;
        let began = Instant::now();
        let items = threadkeep_formats::open(&file, None)?.filter_map(Result::ok);
        let report = engine.memory.import(&engine.scope, items, ImportOptions::default(), |_| {}).await?;
        let seconds = began.elapsed().as_secs_f64();
        ensure!(report.problems.is_empty(), "the import had problems: {:?}", report.problems);
        let count = CONVERSATIONS * MESSAGES;
        ensure!(report.messages_added == count, "only {} of {count} messages were added", report.messages_added);
        let began = Instant::now();
        engine.settle().await?;
        indexing.push(count as f64 / began.elapsed().as_secs_f64());
        Ok(Sample { raw: None, same_sql: None, engine: count as f64 / seconds })
    })
    .await?;
    let row = Row::new("import of 100,000 (OpenAI chat)", "messages/s", &series)?;
    let indexing = crate::measure::median(&indexing)?;
    bench.rows.push(row.note(format!("indexing runs at {} messages/s", super::report::figure(indexing))).at_least(
        "messages/s",
        Some(series.engine()?),
        PER_SECOND,
    ));
    Ok(())
}

fn write(bench: &Bench, file: &Path) -> Result<()> {
    let mut output = BufWriter::new(std::fs::File::create(file)?);
    for conversation in 0..CONVERSATIONS {
        let messages = (0..MESSAGES).map(|index| {
            let role = if index.is_multiple_of(2) { "user" } else { "assistant" };
            json!({ "role": role, "content": bench.language.text(conversation * MESSAGES + index, TEXT_BYTES) })
        });
        writeln!(output, "{}", json!({ "messages": messages.collect::<Vec<_>>() }))?;
    }
    output.flush()?;
    Ok(())
}
