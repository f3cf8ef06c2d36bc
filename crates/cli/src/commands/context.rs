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

/// Columns of a question that is repeated.
const QUESTION: usize = 60;

/// Show what a model sees of a thread, and why
///
/// The newest messages, a summary of those before, and with --recall the messages from far back that bear on the
/// question, within a budget of tokens.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep context notes                                   what its newest message is answered with
  threadkeep context notes 'Who has the keys?' --recall      with what was said about it long ago
  threadkeep context notes 'Who has the keys?' --explain     what became of each message, and why
  threadkeep context notes --budget 2000 --counter gpt-4o    within 2,000 tokens of that model
  threadkeep context notes --transcript                      as one text
  threadkeep context notes --keep turn-7                     keep the explanation for 30 days
  threadkeep context --turn turn-7                           show it again")]
pub(crate) struct Arguments {
    /// The thread: its id, the beginning of it, or its key
    #[arg(required_unless_present = "turn")]
    thread: Option<String>,
    /// What is asked now; without it the newest message is what is to be answered
    question: Option<String>,
    #[command(flatten)]
    policy: Policy,
    /// Show what became of each message and what took how many tokens, instead of the context
    #[arg(long)]
    explain: bool,
    /// Keep the explanation under a name of yours, for 30 days
    #[arg(long, value_name = "ID")]
    keep: Option<String>,
    /// Show the explanation that was kept under a name; without THREAD it is looked for in all threads
    #[arg(long, value_name = "ID", conflicts_with_all = ["question", "Policy", "keep"])]
    turn: Option<String>,
}

/// What the context may hold.
#[derive(Debug, clap::Args)]
pub(super) struct Policy {
    /// Messages of the thread at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    window: u16,
    /// Tokens at most, whatever the context holds
    #[arg(long, value_name = "TOKENS", default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Add what bears on the question: from the thread, or with `user` from all threads of its user
    #[arg(long, value_name = "WHERE", num_args = 0..=1, default_missing_value = "thread", value_parser = place)]
    recall: Option<Where>,
    /// Leave out the summary of what is not shown
    #[arg(long)]
    no_summary: bool,
    /// Write the history as one text between markers, instead of as messages
    #[arg(long)]
    transcript: bool,
    /// What counts the tokens: a model's name, cl100k, o200k or approximate
    #[arg(long, value_name = "NAME", default_value = "approximate")]
    counter: String,
}

/// Where messages that bear on the question are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
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
        let hint = "leave it out to have the newest message answered";
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
        (None, None) => Err(Failure::usage("no thread is named").into()),
    }
}

/// Reads where to look.
fn place(text: &str) -> Result<Where, &'static str> {
    match text {
        "thread" => Ok(Where::Thread),
        "user" => Ok(Where::User),
        _ => Err("it is `thread` or `user`, and a question stands before --recall"),
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
            Some(Where::Thread) => RecallFrom::Thread,
            Some(Where::User) => RecallFrom::User,
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
        explanation.print(&app.output, &asked(question))?;
        tell(&app.output, &assembled, arguments);
    } else {
        print(&app.output, &assembled.context.messages, arguments.policy.transcript)?;
        tell(&app.output, &assembled, arguments);
        app.output.note(summary(&assembled));
    }
    let is_whole = assembled.unreadable.is_empty() && (arguments.keep.is_none() || assembled.is_report_kept);
    Ok(if is_whole { Status::Done } else { Status::Incomplete })
}

/// What is asked, as it stands in an explanation.
pub(super) fn asked(question: Option<&str>) -> String {
    question.map_or_else(
        || "answering its newest message".to_owned(),
        |question| format!("asked “{}”", cut(&printable_line(question), QUESTION)),
    )
}

fn print(output: &Output, messages: &[ChatMessage], is_transcript: bool) -> Result<()> {
    let mut lines = output.lines();
    let transcript = Transcript::new(output);
    for (place, message) in messages.iter().enumerate() {
        if !is_transcript {
            transcript.chat_message(&mut lines, message)?;
            continue;
        }
        if place > 0 {
            lines.line("")?;
        }
        for text in message.parts.iter().filter_map(|part| part.text()) {
            lines.line(printable(text))?;
        }
    }
    lines.finish()
}

fn print_json(app: &App, thread: &Thread, assembled: &AssembledContext, keep: Option<&str>) -> Result<()> {
    let AssembledContext { context, unreadable, recall, is_report_kept, .. } = assembled;
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
        kept: keep.filter(|_| *is_report_kept),
    })
}

fn is_incomplete(recall: &RecallOutcome) -> bool {
    matches!(recall, RecallOutcome::Searched { unsearched, .. } if !unsearched.is_empty())
}

/// Tells what is not as it was asked for.
fn tell(output: &Output, assembled: &AssembledContext, arguments: &Arguments) {
    for row in &assembled.unreadable {
        output.note(format_args!("message #{} cannot be read: {}", row.seq, row.detail));
    }
    let report = &assembled.context.report;
    if report.question_was_cut {
        output.note("the question was cut to fit the budget");
    }
    match &assembled.recall {
        RecallOutcome::Failed { reason, .. } => {
            output.note(format_args!("nothing is recalled, as the search failed: {reason}"))
        }
        RecallOutcome::Searched { .. } if report.recalled.is_empty() => {
            output.note("nothing was found for the question")
        }
        RecallOutcome::NotAsked if arguments.policy.recall.is_some() => {
            output.note("nothing is asked, so nothing is recalled")
        }
        recall if is_incomplete(recall) => {
            output.note("the newest messages are not indexed yet: ask again in a moment")
        }
        _ => {}
    }
    match &arguments.keep {
        Some(turn) if assembled.is_report_kept => {
            output.note(format_args!("the explanation is kept as {}", printable_line(turn)));
        }
        Some(_) => output.note("the explanation could not be kept"),
        None => {}
    }
}

/// What a context holds, in a line.
fn summary(assembled: &AssembledContext) -> String {
    let AssembledContext { context, .. } = assembled;
    if context.messages.is_empty() {
        return "there is nothing to show: the thread has no messages yet, and nothing is asked".to_owned();
    }
    let tokens = number(context.report.tokens.total.0);
    let budget = context.report.budget.map_or_else(String::new, |budget| format!(" of {}", number(budget.0)));
    format!("{tokens}{budget} tokens; --explain says what became of each message")
}
