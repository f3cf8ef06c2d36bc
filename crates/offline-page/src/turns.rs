//! Turns of the assistant. None of its tools requires approval.

use std::convert::Infallible;
use std::pin::pin;

use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::{Either, join, pending, select};
use js_sys::Function;
use serde_json::Value;
use threadkeep::agent::{RunningTurn, Stop, TurnState, find_turn_state, turn_id_for_key};
use threadkeep::memory::turns::{TurnWaiter, request_stop, wait_for_stop_request};
use threadkeep::{Memory, Scope, ThreadId, TurnEvent, TurnRequest, TurnStatus};
use threadkeep_api::turn::{TurnEventJson, TurnJson};
use threadkeep_browser::convert::to_js;
use threadkeep_browser::error::{ToJs, invalid};
use wasm_bindgen::prelude::*;

use crate::{OfflineEngine, agent_error, not_found, thread_id};

#[wasm_bindgen]
impl OfflineEngine {
    /// Asks an assistant. `listener` is called with the name and the data of each event, as in the server's stream. A question that is
    /// asked again with the same key is not asked twice.
    ///
    /// # Errors
    /// `not_found` for an unknown thread or assistant, `busy` while another turn is running in the thread.
    pub async fn ask(
        &self,
        agent: &str,
        thread: &str,
        text: String,
        key: String,
        listener: Function,
    ) -> Result<(), JsValue> {
        let (agent, thread) = (self.find_agent(agent)?, thread_id(thread)?);
        if text.trim().is_empty() {
            return Err(invalid("text", "the question is empty"));
        }
        let (stop, turn) = (Stop::new(), turn_id_for_key(thread, &key));
        let request = TurnRequest { idempotency_key: Some(key), stop: stop.clone(), ..TurnRequest::new(text) };
        let (sender, mut events) = mpsc::unbounded();
        let chat = async {
            let mut sink = move |event| {
                if !matches!(event, TurnEvent::Completed(_) | TurnEvent::Failed(_)) {
                    // The receiver is dropped only with the page.
                    let _ = sender.unbounded_send(event);
                }
            };
            agent.chat_with(&self.scope, thread, request, &mut sink).await
        };
        let call = |name: &str, data: &JsValue| {
            // An exception of the listener concerns only the listener.
            let _ = listener.call2(&JsValue::NULL, &name.into(), data);
        };
        let forward = async {
            while let Some(event) = events.next().await {
                let name = event.name();
                if let Some(json) = TurnEventJson::of(event) {
                    call(name, &to_js(&json)?);
                }
            }
            Ok::<_, JsValue>(())
        };
        let stopping = stop_on_request(&self.memory, &self.scope, thread, &turn, &stop);
        let (turn, forwarded) = match select(pin!(join(chat, forward)), pin!(stopping)).await {
            Either::Left((ended, _)) => ended,
            Either::Right((never, _)) => match never {},
        };
        forwarded?;
        let turn = turn.map_err(agent_error)?;
        let name = if turn.status == TurnStatus::Failed { "turn.failed" } else { "turn.completed" };
        call(name, &to_js(&TurnJson::from(turn))?);
        Ok(())
    }

    /// Returns a turn, or null while it is running. A turn whose tab was closed is resumed.
    ///
    /// # Errors
    /// `not_found` for an unknown turn.
    pub async fn turn(&self, thread: &str, turn: &str) -> Result<JsValue, JsValue> {
        let thread = thread_id(thread)?;
        match find_turn_state(&self.memory, &self.scope, thread, turn).await.to_js()? {
            Some(TurnState::Running(running)) => {
                self.resume(thread, &running);
                to_js(&Value::Null)
            }
            Some(TurnState::NotRunning(turn)) => to_js(&TurnJson::from(*turn)),
            _ => Err(not_found("turn")),
        }
    }

    /// Stops a turn that is running in this tab or another.
    ///
    /// # Errors
    /// `not_found` for an unknown turn.
    #[wasm_bindgen(js_name = stopTurn)]
    pub async fn stop_turn(&self, thread: &str, turn: &str) -> Result<JsValue, JsValue> {
        let (memory, scope, thread) = (&self.memory, &self.scope, thread_id(thread)?);
        let mut waiter = TurnWaiter::begin(memory, scope, thread).await;
        let mut is_requested = false;
        loop {
            match find_turn_state(memory, scope, thread, turn).await.to_js()? {
                Some(TurnState::Running(running)) if !is_requested => {
                    request_stop(memory, scope, thread, turn).await.to_js()?;
                    is_requested = true;
                    self.resume(thread, &running);
                }
                Some(TurnState::Running(_)) => {}
                Some(TurnState::NotRunning(found)) => return to_js(&TurnJson::from(*found)),
                _ => return Err(not_found("turn")),
            }
            waiter.wait(None).await;
        }
    }

    /// Resumes the turn of a thread in the background, if its tab was closed.
    fn resume(&self, thread: ThreadId, running: &RunningTurn) {
        let Ok(agent) = self.find_agent(&running.assistant).cloned() else { return };
        let (memory, scope, turn) = (self.memory.clone(), self.scope.clone(), running.turn.clone());
        wasm_bindgen_futures::spawn_local(async move {
            let (stop, mut ignore_events) = (Stop::new(), |_| {});
            let resumed = agent.resume_with(&scope, thread, &stop, &mut ignore_events);
            // The page reads the turn again, and sees how it ended.
            select(pin!(resumed), pin!(stop_on_request(&memory, &scope, thread, &turn, &stop))).await;
        });
    }
}

/// Waits for a stop request from any tab, then stops the turn. Does not return.
async fn stop_on_request(memory: &Memory, scope: &Scope, thread: ThreadId, turn: &str, stop: &Stop) -> Infallible {
    wait_for_stop_request(memory, scope, thread, turn).await;
    stop.stop();
    pending().await
}
