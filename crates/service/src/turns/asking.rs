//! Asking an assistant. Retries of a request do not start another turn.

use std::convert::Infallible;
use std::time::Duration;

use threadkeep::agent::{EventSink, RunningTurn, TurnState, find_running_turn, find_turn_state, turn_id_for_key};
use threadkeep::memory::turns::TurnWaiter;
use threadkeep::{
    Agent, AgentError, Conflict, Message, MessageRef, Role, Scope, StoreError, ThreadId, TurnEvent, TurnRequest,
    TurnStatus,
};
use tokio::sync::watch;

use super::{TurnResult, resume, stopping};
use crate::error::Result;
use crate::repeats::{RETRY_WINDOW_MS, RequestIdentity};
use crate::service::Service;

/// The number of messages at the end of a thread that are searched for the question of the first attempt.
const NEWEST_MESSAGES: usize = 200;
/// How long a retried request waits for the turn that the first attempt started.
const RETRY_WAIT: Duration = Duration::from_secs(600);

/// A question to an assistant in a thread.
#[derive(Clone, Debug)]
pub struct AskRequest {
    /// The service.
    pub service: Service,
    /// The assistant.
    pub agent: Agent,
    /// The scope of the caller.
    pub scope: Scope,
    /// The thread, which must exist.
    pub thread: ThreadId,
    /// The question. Its idempotency key is set from the request's identity.
    pub ask: TurnRequest,
    /// What the request has in common with its retries.
    pub identity: RequestIdentity,
    /// Whether the thread was created only for this question, so it is deleted after the answer.
    pub is_ephemeral: bool,
}

impl AskRequest {
    /// Runs the turn, or returns the turn of an earlier attempt.
    pub(super) async fn run(self, events: EventSink<'_>) -> Result<TurnResult> {
        // A thread is not deleted but expires if the request may be retried with its key, or if its turn waits for
        // approval.
        let deletes_thread = self.is_ephemeral && self.identity.key().is_none();
        let (memory, scope, thread) = (self.agent.memory().clone(), self.scope.clone(), self.thread);
        let result = Box::pin(self.run_or_find(events)).await;
        let is_waiting = matches!(&result, Ok(result) if result.turn.status == TurnStatus::WaitingForApproval);
        if deletes_thread
            && !is_waiting
            && let Err(error) = memory.delete_thread(&scope, thread).await
        {
            tracing::warn!(%error, "cannot delete a thread that was created for a single question; it will expire");
        }
        result
    }

    async fn run_or_find(mut self, events: EventSink<'_>) -> Result<TurnResult> {
        self.ask.is_ephemeral = self.is_ephemeral;
        if let Some(key) = self.identity.key() {
            self.ask.idempotency_key = Some(self.user_key(key));
            let result = Box::pin(self.ask(events)).await?;
            self.check_same_request(&result).await?;
            return Ok(result);
        }
        if self.identity.is_retry()
            && let Some(result) = self.find_first_attempt().await?
        {
            return Ok(result);
        }
        Box::pin(self.ask(events)).await
    }

    /// Returns the id that the turn will have. It is derived from the key of the request. If the request has no key,
    /// `default_key` is set as its idempotency key.
    pub fn determine_turn_id(&mut self, default_key: String) -> String {
        let key = match self.identity.key() {
            Some(key) => self.user_key(key),
            None => self.ask.idempotency_key.insert(default_key).clone(),
        };
        turn_id_for_key(self.thread, &key)
    }

    /// Makes a key specific to the user, because users who share a thread may choose the same key.
    fn user_key(&self, key: &str) -> String {
        format!("http\n{}\n{key}", self.user())
    }

    async fn ask(&self, events: EventSink<'_>) -> Result<TurnResult> {
        let (started, running) = watch::channel(None);
        let mut forward = |event: TurnEvent| {
            if let TurnEvent::Started { turn, .. } = &event {
                started.send_replace(Some(turn.clone()));
            }
            events(event);
        };
        let chat = self.agent.chat_with(&self.scope, self.thread, self.ask.clone(), &mut forward);
        let turn = tokio::select! {
            turn = chat => turn?,
            never = self.stop_on_request(running) => match never {},
        };
        let replayed = started.borrow().is_none();
        Ok(TurnResult { turn, replayed })
    }

    /// Waits until the id of the turn is known, then stops the turn when a client requests it. Never returns.
    async fn stop_on_request(&self, mut running: watch::Receiver<Option<String>>) -> Infallible {
        let turn = running.wait_for(Option::is_some).await.ok().and_then(|turn| turn.clone());
        match turn {
            Some(turn) => {
                stopping::stop_on_request(&self.service, &self.scope, self.thread, &turn, &self.ask.stop).await
            }
            None => std::future::pending().await,
        }
    }

    /// Checks that the request that started the turn asked the same assistant the same question.
    ///
    /// # Errors
    /// `Conflict::IdempotencyKey` if the key was used for another question or another assistant.
    async fn check_same_request(&self, result: &TurnResult) -> Result<()> {
        let TurnResult { turn, replayed: true } = result else { return Ok(()) };
        let question = turn.stored.first().map(|stored| MessageRef::Seq(stored.seq));
        let question = self.agent.memory().find_messages(&self.scope, self.thread, question.as_slice()).await?;
        let is_other_question = |message: &Message| message.content.role == Role::User && !self.is_question(message);
        if turn.agent != self.assistant_name() || question.iter().any(is_other_question) {
            return Err(StoreError::from(Conflict::IdempotencyKey).into());
        }
        Ok(())
    }

    /// Returns the turn of the first attempt of this request, if it is the last turn of the thread. Waits until the turn has ended.
    async fn find_first_attempt(&self) -> Result<Option<TurnResult>> {
        let (memory, scope, thread) = (self.agent.memory(), &self.scope, self.thread);
        let deadline = tokio::time::Instant::now() + RETRY_WAIT;
        let mut waiter: Option<TurnWaiter> = None;
        loop {
            // In this order: if the turn ends between the two reads, the messages include it.
            let running = find_running_turn(memory, scope, thread).await?;
            let newest = memory.newest(scope, thread, NEWEST_MESSAGES).await?;
            let is_user_message = |message: &&Message| {
                message.content.role == Role::User && !message.content.metadata.contains_key("approval")
            };
            let stored = newest.iter().rfind(is_user_message).filter(|message| self.is_question(message));
            let is_running = |running: &RunningTurn| match &running.pending_question {
                Some(pending) => self.is_asked(pending.author.as_deref(), &pending.text),
                None => stored.is_some(),
            };
            let running = match (running, stored) {
                (Some(running), _) if is_running(&running) => running,
                (None, Some(question)) => match self.find_turn(&newest, question.seq).await? {
                    Some(TurnState::Running(running)) => running,
                    Some(TurnState::NotRunning(turn)) => return Ok(Some(TurnResult { turn: *turn, replayed: true })),
                    _ => return Ok(None),
                },
                _ => return Ok(None),
            };
            if tokio::time::Instant::now() > deadline {
                return Err(AgentError::Busy.into());
            }
            // If the task that drove the turn has ended, the turn is resumed here.
            resume(&self.service, &self.agent, scope, thread, &running.turn).await?;
            match &mut waiter {
                // The first iteration only subscribes to changes; the next one reads the state again, so that none is missed.
                None => waiter = Some(TurnWaiter::begin(memory, scope, thread).await),
                Some(waiter) => waiter.wait(None).await,
            }
        }
    }

    /// Returns the turn that starts with the question at a position, if the last of the thread's newest messages belongs to that
    /// turn. Returns `None` if the last message is too old for this request to be a retry.
    async fn find_turn(&self, newest: &[Message], question: u64) -> Result<Option<TurnState>> {
        let memory = self.agent.memory();
        let Some(last) = newest.last().filter(|last| last.created_at.plus_ms(RETRY_WINDOW_MS) >= memory.now()) else {
            return Ok(None);
        };
        let Some(turn) = last.content.metadata.get("turn").and_then(|turn| turn.as_str()) else { return Ok(None) };
        let found = find_turn_state(memory, &self.scope, self.thread, turn).await?;
        let is_same = |found: &TurnState| match found {
            TurnState::NotRunning(turn) => {
                let seqs = (turn.stored.first().map(|stored| stored.seq), turn.stored.last().map(|stored| stored.seq));
                turn.agent == self.assistant_name() && seqs == (Some(question), Some(last.seq))
            }
            _ => true,
        };
        Ok(found.filter(is_same))
    }

    /// Whether a message is the question of this request.
    fn is_question(&self, message: &Message) -> bool {
        self.is_asked(message.content.author.as_deref(), &message.plain_text())
    }

    /// Whether the text by this author is the question of this request.
    fn is_asked(&self, author: Option<&str>, text: &str) -> bool {
        let is_same_author = author.is_none_or(|author| author == self.ask.author.as_deref().unwrap_or(self.user()));
        is_same_author && text == self.ask.text.as_str()
    }

    fn assistant_name(&self) -> &str {
        &self.agent.assistant().definition().name
    }

    /// Returns the user of the scope; empty for the scope of a tenant.
    fn user(&self) -> &str {
        match &self.scope {
            Scope::Tenant(_) => "",
            Scope::User(_, user) => user.as_str(),
        }
    }
}
