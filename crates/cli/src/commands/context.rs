mod explanation;
mod turn;

use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use threadkeep::context::Report;
use threadkeep::{
    AssembledContext, ChatMessage, ContextOptions, ContextPolicy, Memory, RecallFrom, RecallOutcome, Rendering, Scope,
    Thread, ThreadId, TokenCount, TokenCounter,
};

use super::{App, Status};
use crate::failure::Failure;
use crate::json::Unreadable;
use crate::output::{Output, printable, printable_line};
use crate::store::Purpose;
use crate::table::{cut, number};
use crate::thread_name;
use crate::transcript::Transcript;
pub(super) use explanation::Explanation;

/// The number of columns after which a printed question or name is truncated.
const QUESTION_COLUMNS: usize = 60;

/// Show the context that a model receives for a thread, and why
///
/// A context contains the newest messages, a summary of older ones, and with --recall the older messages that are relevant to
/// the question, within a token budget.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep context notes                                   the context for answering its newest message
  threadkeep context notes 'Who has the keys?' --recall      with relevant older messages
  threadkeep context notes 'Who has the keys?' --explain     what happened to each message, and why
  threadkeep context notes --budget 2000 --counter gpt-4o    within 2,000 tokens of this model
  threadkeep context notes --transcript                      as one text
  threadkeep context notes --keep turn-7                     store the explanation for 30 days
  threadkeep context --turn turn-7                           show it again")]
pub(crate) struct Arguments {
    /// The thread: its id, a prefix of the id, or its key
    #[arg(required_unless_present = "turn")]
    thread: Option<String>,
    /// The question; without it, the context is for answering the newest message
    question: Option<String>,
    #[command(flatten)]
    policy: Policy,
    /// Show what happened to each message and how many tokens each part takes, instead of the context
    #[arg(long)]
    explain: bool,
    /// Store the explanation under this name for 30 days
    #[arg(long, value_name = "ID")]
    keep: Option<String>,
    /// Show the explanation stored under this name; without THREAD, all threads are searched for it
    #[arg(long, value_name = "ID", conflicts_with_all = ["question", "Policy", "keep"])]
    turn: Option<String>,
}

/// Options that decide what the context contains.
#[derive(Debug, clap::Args)]
pub(super) struct Policy {
    /// The maximum number of messages of the thread
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    window: u16,
    /// The maximum number of tokens of the whole context
    #[arg(long, value_name = "TOKENS", default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Add messages relevant to the question: from the thread, or with `user` from all threads of its user
    #[arg(long, value_name = "WHERE", num_args = 0..=1, default_missing_value = "thread", value_parser = recall_scope)]
    recall: Option<RecallScope>,
    /// Omit the summary of older messages
    #[arg(long)]
    no_summary: bool,
    /// Write the history as one text between markers, instead of separate messages
    #[arg(long)]
    transcript: bool,
    /// The token counter: a model's name, cl100k, o200k or approximate
    #[arg(long, value_name = "NAME", default_value = "approximate")]
    counter: String,
}

/// Where to search for relevant messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecallScope {
    Thread,
    User,
}

#[derive(Serialize)]
struct ContextJson<'a> {
    thread: ThreadId,
    messages: &'a [ChatMessage],
    report: &'a Report,
    recall_error: Option<&'a str>,
    incomplete: bool,
    unreadable: Vec<Unreadable>,
    kept: Option<&'a str>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    if arguments.question.as_ref().is_some_and(|question| question.trim().is_empty()) {
        let hint = "omit it to answer the newest message";
        return Err(Failure::usage("the question is empty").hint(hint).into());
    }
    for name in arguments.keep.iter().chain(&arguments.turn) {
        turn::check(name)?;
    }
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let thread = match &arguments.thread {
        Some(name) => Some(thread_name::get(&memory, &scope, name).await?),
        None => None,
    };
    match (&arguments.turn, thread) {
        (Some(turn), thread) => turn::show(app, &memory, &scope, turn, thread).await,
        (None, Some(thread)) => assemble(app, &memory, &scope, &thread, &arguments).await,
        (None, None) => Err(Failure::usage("no thread given").into()),
    }
}

/// Parses the value of `--recall`.
fn recall_scope(text: &str) -> Result<RecallScope, &'static str> {
    match text {
        "thread" => Ok(RecallScope::Thread),
        "user" => Ok(RecallScope::User),
        _ => Err("expected `thread` or `user`; put the question before --recall"),
    }
}

impl Policy {
    fn context_policy(&self) -> ContextPolicy {
        let mut policy = ContextPolicy {
            window: Some(self.window.into()),
            budget: Some(TokenCount(self.budget)),
            rendering: if self.transcript { Rendering::Transcript } else { Rendering::Chat },
            ..ContextPolicy::default()
        };
        policy.recall.from = match self.recall {
            None => RecallFrom::Nowhere,
            Some(RecallScope::Thread) => RecallFrom::Thread,
            Some(RecallScope::User) => RecallFrom::User,
        };
        policy.summary = policy.summary.filter(|_| !self.no_summary);
        policy
    }

    fn counter(&self) -> Arc<dyn TokenCounter> {
        let named = threadkeep::tokens::counter_by_name(&self.counter);
        named.unwrap_or_else(|| threadkeep::tokens::counter_for_model(&self.counter))
    }
}

async fn assemble(app: &App, memory: &Memory, scope: &Scope, thread: &Thread, arguments: &Arguments) -> Result<Status> {
    let question = arguments.question.as_deref();
    let options = ContextOptions {
        counter: arguments.policy.counter(),
        turn: arguments.keep.clone(),
        ..ContextOptions::default()
    };
    let policy = arguments.policy.context_policy();
    let assembled = memory.context_with(scope, thread.id, question, &policy, &options).await?;
    if app.output.is_json() {
        print_json(app, thread, &assembled, arguments.keep.as_deref())?;
    } else if arguments.explain {
        let explanation = Explanation::read(memory, scope, thread, &assembled.context.report).await?;
        explanation.print(&app.output, &question_label(question))?;
        print_notes(&app.output, &assembled, arguments);
    } else {
        print(&app.output, &assembled.context.messages, arguments.policy.transcript)?;
        print_notes(&app.output, &assembled, arguments);
        app.output.note(summary(&assembled));
    }
    let is_whole = assembled.unreadable.is_empty() && (arguments.keep.is_none() || assembled.is_report_stored);
    Ok(if is_whole { Status::Done } else { Status::Incomplete })
}

/// Describes the question, for the heading of an explanation.
pub(super) fn question_label(question: Option<&str>) -> String {
    question.map_or_else(
        || "answering its newest message".to_owned(),
        |question| format!("asked “{}”", cut(&printable_line(question), QUESTION_COLUMNS)),
    )
}

fn print(output: &Output, messages: &[ChatMessage], is_transcript: bool) -> Result<()> {
    let mut lines = output.lines();
    let transcript = Transcript::new(output);
    for (index, message) in messages.iter().enumerate() {
        if !is_transcript {
            transcript.chat_message(&mut lines, message)?;
            continue;
        }
        if index > 0 {
            lines.line("")?;
        }
        for text in message.parts.iter().filter_map(|part| part.text()) {
            lines.line(printable(text))?;
        }
    }
    lines.finish()
}

fn print_json(app: &App, thread: &Thread, assembled: &AssembledContext, keep: Option<&str>) -> Result<()> {
    let AssembledContext { context, unreadable, recall, is_report_stored, .. } = assembled;
    let recall_error = match recall {
        RecallOutcome::Failed { reason, .. } => Some(reason.as_str()),
        _ => None,
    };
    app.output.json(&ContextJson {
        thread: thread.id,
        messages: &context.messages,
        report: &context.report,
        recall_error,
        incomplete: is_incomplete(recall),
        unreadable: unreadable.iter().cloned().map(Unreadable::from).collect(),
        kept: keep.filter(|_| *is_report_stored),
    })
}

fn is_incomplete(recall: &RecallOutcome) -> bool {
    matches!(recall, RecallOutcome::Searched { unsearched, .. } if !unsearched.is_empty())
}

/// Prints a note for each difference between the context and the request.
fn print_notes(output: &Output, assembled: &AssembledContext, arguments: &Arguments) {
    for row in &assembled.unreadable {
        output.note(format_args!("cannot read message #{}: {}", row.seq, row.detail));
    }
    let report = &assembled.context.report;
    if report.question_was_cut {
        output.note("the question was truncated to fit the budget");
    }
    match &assembled.recall {
        RecallOutcome::Failed { reason, .. } => {
            output.note(format_args!("no messages recalled, because the search failed: {reason}"))
        }
        RecallOutcome::Searched { .. } if report.recalled.is_empty() => {
            output.note("no relevant messages found for the question")
        }
        RecallOutcome::NotRequested if arguments.policy.recall.is_some() => {
            output.note("no messages recalled, because there is no question")
        }
        recall if is_incomplete(recall) => {
            output.note("the newest messages are not indexed yet: try again in a moment")
        }
        _ => {}
    }
    match &arguments.keep {
        Some(turn) if assembled.is_report_stored => {
            output.note(format_args!("the explanation is stored as {}", printable_line(turn)));
        }
        Some(_) => output.note("the explanation could not be stored"),
        None => {}
    }
}

/// Describes the size of a context in one line.
fn summary(assembled: &AssembledContext) -> String {
    let AssembledContext { context, .. } = assembled;
    if context.messages.is_empty() {
        return "nothing to show: the thread has no messages, and there is no question".to_owned();
    }
    let tokens = number(context.report.tokens.total.0);
    let budget = context.report.budget.map_or_else(String::new, |budget| format!(" of {}", number(budget.0)));
    format!("{tokens}{budget} tokens; --explain shows what happened to each message")
}
