//! `longmemeval`: questions about many sessions between a user and an assistant.
//!
//! The evidence of a question consists of the turns marked `has_answer`. If no turn is marked, it consists of the
//! sessions that the question names.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Deserialize;
use threadkeep_core::{Content, Role, Timestamp};
use threadkeep_memory::Draft;

use crate::recall::{EvalQuestion, Library, RecallArgs, files, instant, report};

#[derive(Debug, Deserialize)]
struct Record {
    question: String,
    question_type: String,
    #[serde(flatten)]
    history: History,
    answer_session_ids: Option<Vec<String>>,
    extra_questions: Option<Vec<ExtraQuestion>>,
}

#[derive(Debug, Deserialize)]
struct History {
    haystack_dates: Option<Vec<Option<String>>>,
    haystack_session_ids: Option<Vec<Option<String>>>,
    haystack_sessions: Vec<Vec<MessageRecord>>,
}

#[derive(Debug, Deserialize)]
struct MessageRecord {
    role: Role,
    content: String,
    #[serde(default)]
    has_answer: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct ExtraQuestion {
    question: String,
    #[serde(default)]
    answer_session_ids: Option<Vec<String>>,
}

pub(crate) async fn run(args: &RecallArgs) -> Result<()> {
    let library = Library::open()?;
    let mut questions = Vec::new();
    for path in files(args.path(), ".json")? {
        let records: Vec<Record> = serde_json::from_slice(&std::fs::read(path)?)?;
        for Record { question, question_type, history, answer_session_ids, extra_questions } in records {
            if question_type == "abstention" {
                continue;
            }
            let (drafts, turns) = history.into_drafts();
            let thread = library.add_thread(drafts).await?;
            let (evidence, kind) = if turns.is_empty() {
                (answer_session_ids.into_iter().flatten().collect(), "sessions")
            } else {
                (turns, "turns")
            };
            let extra = extra_questions
                .into_iter()
                .flatten()
                .map(|extra| (extra.question, extra.answer_session_ids.into_iter().flatten().collect(), "sessions"));
            let all = std::iter::once((question, evidence, kind)).chain(extra);
            questions.extend(
                all.filter(|(_, evidence, _): &(_, BTreeSet<String>, _)| !evidence.is_empty()).map(
                    |(question, evidence, kind)| EvalQuestion { thread, question, evidence, kind: kind.to_owned() },
                ),
            );
        }
    }
    report(&library, &questions, args).await
}

impl History {
    /// Returns the turns in the order of their dates, and the ids of the turns that contain the answer.
    fn into_drafts(self) -> (Vec<Draft>, BTreeSet<String>) {
        let Self { haystack_dates: dates, haystack_session_ids: ids, haystack_sessions } = self;
        let (dates, ids) = (dates.unwrap_or_default(), ids.unwrap_or_default());
        let mut sessions: Vec<(Option<Timestamp>, String, Vec<MessageRecord>)> = Vec::new();
        for (index, turns) in haystack_sessions.into_iter().enumerate() {
            let date = dates.get(index).and_then(Option::as_deref);
            let at = date.and_then(|date| instant("%Y/%m/%d (%a) %H:%M", date));
            let id = ids.get(index).cloned().flatten().unwrap_or_else(|| index.to_string());
            sessions.push((at, id, turns));
        }
        sessions.sort_by_key(|(at, ..)| *at);
        let (mut drafts, mut evidence) = (Vec::new(), BTreeSet::new());
        for (session, (at, id, turns)) in sessions.into_iter().enumerate() {
            for (turn, message) in turns.into_iter().enumerate() {
                // A history may contain the same session twice.
                let id = format!("{id}#{session}.{turn}");
                if message.has_answer == Some(true) {
                    evidence.insert(id.clone());
                }
                let draft = Draft::new(Content::text(message.role, message.content)).with_external_id(id);
                drafts.push(Draft { created_at: at, ..draft });
            }
        }
        (drafts, evidence)
    }
}
