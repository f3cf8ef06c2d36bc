//! The server-sent events of a run: `start`, `token`, `sources`, `metadata`, `done`.

use std::collections::VecDeque;

use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use threadkeep::agent::OpenRun;
use threadkeep::{Agent, TurnEvent};

use super::{RunResultJson, api_error};
use crate::app::App;
use crate::error::Result;
use crate::turns::stream::{HEARTBEAT, Step, UpdateStream, encode_error, encode_event, encode_shutdown, respond_with};
use crate::turns::{TurnUpdate, TurnUpdates};

/// Returns a response that streams a run. Returns an error instead if the turn cannot start.
pub(super) async fn respond(app: &App, agent: Agent, opened_run: OpenRun, updates: TurnUpdates) -> Result<Response> {
    let updates = match UpdateStream::begin(app, updates).await {
        Ok(updates) => updates,
        Err(error) => {
            opened_run.remove_new_thread(&agent).await;
            return Err(error);
        }
    };
    let start = json!({ "conversation_id": opened_run.conversation_id(), "query": opened_run.request.user_query });
    let queued = VecDeque::from([encode_event("start", &start)]);
    let stream = RunStream { agent, opened_run: Some(opened_run), updates, queued, streamed: String::new() };
    Ok(respond_with(futures::stream::unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((event, stream))
    })))
}

struct RunStream {
    agent: Agent,
    /// `None` when the run has ended.
    opened_run: Option<OpenRun>,
    updates: UpdateStream,
    /// Events that were not sent yet.
    queued: VecDeque<Bytes>,
    /// The text of the tokens since the last restart.
    streamed: String,
}

impl RunStream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.queued.pop_front() {
                return Some(event);
            }
            self.opened_run.as_ref()?;
            match self.updates.next().await? {
                Step::Heartbeat => return Some(HEARTBEAT),
                Step::Shutdown => {
                    self.opened_run = None;
                    return Some(encode_shutdown());
                }
                Step::Update(TurnUpdate::Event(TurnEvent::Token { text })) => self.push_token(&text),
                Step::Update(TurnUpdate::Event(TurnEvent::Restarted)) => self.restart(),
                Step::Update(TurnUpdate::Event(_)) => {}
                Step::Update(TurnUpdate::End(end)) => {
                    let opened_run = self.opened_run.take()?;
                    match end {
                        Ok(result) => match opened_run.finish(&self.agent, &result.turn).await {
                            Ok(result) => self.finish(result.into()),
                            Err(error) => return Some(encode_error(api_error(error))),
                        },
                        Err(error) => {
                            opened_run.remove_new_thread(&self.agent).await;
                            return Some(encode_error(error.into()));
                        }
                    }
                }
            }
        }
    }

    fn push_token(&mut self, text: &str) {
        self.streamed.push_str(text);
        self.queued.push_back(encode_event("token", &json!({ "text": text })));
    }

    fn restart(&mut self) {
        self.streamed.clear();
        self.queued.push_back(encode_event("restart", &json!({})));
    }

    /// Queues the last events. An answer that was not streamed, or was changed afterwards, is sent as a whole, line by line.
    fn finish(&mut self, result: RunResultJson) {
        if self.streamed != result.final_response {
            if !self.streamed.is_empty() {
                self.restart();
            }
            result.final_response.split_inclusive('\n').for_each(|line| self.push_token(line));
        }
        self.queued.push_back(encode_event("sources", &json!({ "sources": result.results })));
        let mut fields = serde_json::to_value(&result).unwrap_or_default();
        if let Some(fields) = fields.as_object_mut() {
            let metadata = fields.remove("metadata");
            fields.retain(|name, _| !["query", "results", "final_response"].contains(&name.as_str()));
            fields.extend(metadata.as_ref().and_then(Value::as_object).cloned().unwrap_or_default());
        }
        self.queued.push_back(encode_event("metadata", &fields));
        self.queued.push_back(encode_event("done", &result));
    }
}
