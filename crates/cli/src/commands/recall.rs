use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;
use threadkeep::context::recall::ScoreParts;
use threadkeep::exchange::ExportedMessage;
use threadkeep::{Memory, RecallOptions, RecalledMessage, Scope, ThreadId};
use unicode_width::UnicodeWidthStr;

use super::search::{heading, titles};
use super::{App, Status};
use crate::arguments::MetadataArguments;
use crate::bar::{SHADES, Scale};
use crate::failure::Failure;
use crate::output::{DIM, Output, colour};
use crate::store::Purpose;
use crate::table::cut;
use crate::thread_name;
use crate::transcript::one_line;

/// The number of columns after which a message is truncated.
const TEXT_COLUMNS: usize = 400;
/// The maximum length of a bar, in columns.
const BAR_COLUMNS: usize = 20;

/// Find the turns that answer a question
///
/// A turn is found by its words, the messages around it, its speaker and its time. It need not contain a word of the question.
/// Each result shows how its score is composed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep recall 'Who has the keys?'
  threadkeep recall 'What did Sam buy in May?' --thread notes
  threadkeep recall 'Who has the keys?' --json | jq '.turns[] | {score, parts}'")]
pub(crate) struct Arguments {
    /// The question
    #[arg(required = true)]
    question: Vec<String>,
    /// Only turns of this thread: its id, a prefix of the id, or its key
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    #[command(flatten)]
    metadata: MetadataArguments,
    /// The maximum number of turns
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

#[derive(Serialize)]
struct RecallJson {
    turns: Vec<TurnJson>,
    incomplete: bool,
}

#[derive(Serialize)]
struct TurnJson {
    thread: ThreadId,
    score: f64,
    parts: PartsJson,
    message: ExportedMessage,
}

#[derive(Serialize)]
struct PartsJson {
    words: f64,
    passage: f64,
    neighbours: f64,
    speaker: f64,
    time: f64,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let question = arguments.question.join(" ");
    if threadkeep::core::text::terms(&question).is_empty() {
        let hint = "use at least one word that contains letters or digits";
        return Err(Failure::user_error("the question contains no word to search for").hint(hint).into());
    }
    let thread = match &arguments.thread {
        Some(name) => Some(thread_name::get(&memory, &scope, name).await?.id),
        None => None,
    };
    let (metadata, limit) = (arguments.metadata.filter(), arguments.limit.into());
    let options = RecallOptions { thread, metadata, limit, ..RecallOptions::default() };
    let found = memory.recall(&scope, &question, &options).await?;
    let incomplete = !found.unsearched.is_empty();
    if app.output.is_json() {
        let turns = found.messages.into_iter().map(TurnJson::from).collect();
        app.output.json(&RecallJson { turns, incomplete })?;
        return Ok(Status::Done);
    }
    print(app, &memory, &scope, &found.messages).await?;
    if found.messages.is_empty() {
        app.output.note(
            "nothing found\nhint: use words, names or days from the conversations; `threadkeep threads` lists them",
        );
    }
    if incomplete {
        app.output.note("the newest messages are not indexed yet: try again in a moment");
    }
    Ok(Status::Done)
}

impl From<RecalledMessage> for TurnJson {
    fn from(turn: RecalledMessage) -> Self {
        let RecalledMessage { thread, message, score, parts, .. } = turn;
        let ScoreParts { words, passage, neighbours, speaker, time } = parts;
        let parts = PartsJson { words, passage, neighbours, speaker, time };
        Self { thread, score, parts, message: message.into() }
    }
}

async fn print(app: &App, memory: &Memory, scope: &Scope, turns: &[RecalledMessage]) -> Result<()> {
    let output = &app.output;
    let titles = titles(memory, scope, turns.iter().map(|turn| turn.thread)).await?;
    let best = turns.iter().map(|turn| turn.score).fold(0.0, f64::max);
    let mut lines = output.lines();
    for turn in turns {
        lines.line(heading(output, titles.get(&turn.thread), turn.thread, &turn.message))?;
        for line in wrapped(output, &cut(&one_line(&turn.message), TEXT_COLUMNS)) {
            lines.line(line)?;
        }
        for line in why(output, turn, best) {
            lines.line(line)?;
        }
        lines.line("")?;
    }
    lines.finish()
}

fn wrapped(output: &Output, text: &str) -> Vec<String> {
    let Some(columns) = output.text_columns() else { return vec![format!("  {text}")] };
    let options = textwrap::Options::new(columns.max(20)).initial_indent("  ").subsequent_indent("  ");
    textwrap::wrap(text, options).into_iter().map(Cow::into_owned).collect()
}

/// Returns the score as a bar of its parts. The values of the parts follow on the same line, or on a second line if the
/// first would be too long.
fn why(output: &Output, turn: &RecalledMessage, best: f64) -> Vec<String> {
    let parts = parts(&turn.parts);
    let blocks = Scale { columns: BAR_COLUMNS, whole: best }.shades(parts.map(|(_, value, _)| value));
    let blocks = blocks.iter().zip(&parts).map(|(blocks, (_, _, style))| output.paint(*style, blocks).to_string());
    let bar = format!("  {:>6.2}  {}", turn.score, blocks.collect::<String>());
    let labels = parts.iter().zip(SHADES).filter(|((_, value, _), _)| *value >= 0.005);
    let labels: Vec<_> = labels
        .map(|((name, value, style), shade)| (format!("{name} {value:.2}"), output.paint(*style, shade)))
        .collect();
    let width = labels.iter().map(|(text, _)| text.width() + 4).sum::<usize>() + BAR_COLUMNS + 10;
    let labels: Vec<_> = labels.iter().map(|(text, shade)| format!("{shade} {}", output.paint(DIM, text))).collect();
    let labels = labels.join("  ");
    if output.columns().is_some_and(|columns| columns < width) {
        vec![bar, format!("          {labels}")]
    } else {
        vec![format!("{bar}  {labels}")]
    }
}

fn parts(parts: &ScoreParts) -> [(&'static str, f64, Style); SHADES.len()] {
    [
        ("words", parts.words, colour(AnsiColor::Green)),
        ("passage", parts.passage, colour(AnsiColor::Cyan)),
        ("neighbours", parts.neighbours, colour(AnsiColor::Blue)),
        ("speaker", parts.speaker, colour(AnsiColor::Magenta)),
        ("time", parts.time, colour(AnsiColor::Yellow)),
    ]
}
