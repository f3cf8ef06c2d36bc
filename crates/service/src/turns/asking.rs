//! Asking an assistant, once for each request that is meant once.

use std::convert::Infallible;
use std::time::Duration;

use threadkeep::agent::{EventSink, TurnState, find_running_turn, find_turn_state, turn_of_key};
use threadkeep::memory::turns::TurnWaiter;
use threadkeep::{
    Agent, AgentError, Conflict, Message, MessageName, Role, Scope, StoreError, ThreadId, TurnEvent, TurnRequest,
    TurnStatus,
};
use tokio::sync::watch;

use super::{Answered, resume, stopping};
use crate::error::Result;
use crate::repeats::{Attempt, WINDOW_MS};
use crate::service::Service;

/// Messages from the end of a thread among which a turn that may be repeated begins.
const LOOK: usize = 200;
/// How long a repeated request waits for the turn that its first try began.
const PATIENCE: Duration = Duration::from_secs(600);

/// A question to an assistant in a thread.
#[derive(Clone, Debug)]
pub struct AskRequest {
    /// Where it is asked.
    pub service: Service,
    /// Who is asked.
    pub agent: Agent,
    /// On whose behalf.
    pub scope: Scope,
    /// The thread, which is there.
    pub thread: ThreadId,
    /// What is asked. Its idempotency key is set from the attempt.
    pub ask: TurnRequest,
    /// What tells whether it was asked before.
    pub attempt: Attempt,
    /// Whether the thread was made for this question alone, and goes with the answer.
    pub is_passing: bool,
}

impl AskRequest {
    /// Has it answered, or gives the turn that this request had before.
    pub(super) async fn answer(self, events: EventSink<'_>) -> Result<Answered> {
        // A request that has a key may come again, and a turn that waits goes on in its thread: it goes when it expires.
        let is_over = self.is_passing && self.attempt.key().is_none();
        let (memory, scope, thread) = (self.agent.memory().clone(), self.scope.clone(), self.thread);
        let answered = Box::pin(self.answer_once(events)).await;
        let is_waiting = matches!(&answered, Ok(answered) if answered.turn.status == TurnStatus::WaitingForApproval);
        if is_over
            && !is_waiting
            && let Err(error) = memory.delete_thread(&scope, thread).await
        {
            tracing::warn!(%error, "a thread that is over stays until it expires");
        }
        answered
    }

    async fn answer_once(mut self, events: EventSink<'_>) -> Result<Answered> {
        self.ask.is_ephemeral = self.is_passing;
        if let Some(key) = self.attempt.key() {
            self.ask.idempotency_key = Some(self.own(key));
            let answered = Box::pin(self.ask(events)).await?;
            self.check_same(&answered).await?;
            return Ok(answered);
        }
        if self.attempt.is_retry()
            && let Some(answered) = self.first_try().await?
        {
            return Ok(answered);
        }
        Box::pin(self.ask(events)).await
    }

    /// The id of the turn that this will be, by the request's own key or else by the one that is given.
    pub fn name_turn(&mut self, or: String) -> String {
        let key = match self.attempt.key() {
            Some(key) => self.own(key),
            None => self.ask.idempotency_key.insert(or).clone(),
        };
        turn_of_key(self.thread, &key)
    }

    /// A key as this user's: those who share a thread may choose the same.
    fn own(&self, key: &str) -> String {
        format!("http\n{}\n{key}", self.user())
    }

    async fn ask(&self, events: EventSink<'_>) -> Result<Answered> {
        let (begun, running) = watch::channel(None);
        let mut hear = |event: TurnEvent| {
            if let TurnEvent::Started { turn, .. } = &event {
                begun.send_replace(Some(turn.clone()));
            }
            events(event);
        };
        let answering = self.agent.chat_with(&self.scope, self.thread, self.ask.clone(), &mut hear);
        let turn = tokio::select! {
            turn = answering => turn?,
            never = self.heed(running) => match never {},
        };
        let replayed = begun.borrow().is_none();
        Ok(Answered { turn, replayed })
    }

    /// Stops the turn once somebody asked for it, from when it is known by its name.
    async fn heed(&self, mut running: watch::Receiver<Option<String>>) -> Infallible {
        let begun = running.wait_for(Option::is_some).await.ok().and_then(|turn| turn.clone());
        match begun {
            Some(turn) => stopping::heed(&self.service, &self.scope, self.thread, &turn, &self.ask.stop).await,
            None => std::future::pending().await,
        }
    }

    /// Refuses a key that was used for another question, or for another assistant.
    async fn check_same(&self, answered: &Answered) -> Result<()> {
        let Answered { turn, replayed: true } = answered else { return Ok(()) };
        let asked = turn.stored.first().map(|stored| MessageName::Seq(stored.seq));
        let asked = self.agent.memory().find_messages(&self.scope, self.thread, asked.as_slice()).await?;
        let is_other = |message: &Message| message.content.role == Role::User && !self.is_asked_by(message);
        if turn.agent != self.name() || asked.iter().any(is_other) {
            return Err(StoreError::from(Conflict::IdempotencyKey).into());
        }
        Ok(())
    }

    /// The turn that the first try of this request began, where the thread ends with it.
    async fn first_try(&self) -> Result<Option<Answered>> {
        let (memory, scope, thread) = (self.agent.memory(), &self.scope, self.thread);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut waiting: Option<TurnWaiter> = None;
        loop {
            let newest = memory.newest(scope, thread, LOOK).await?;
            let is_question = |message: &&Message| {
                message.content.role == Role::User && !message.content.metadata.contains_key("approval")
            };
            let Some(asked) = newest.iter().rfind(is_question).filter(|message| self.is_asked_by(message)) else {
                return Ok(None);
            };
            let running = match find_running_turn(memory, scope, thread).await? {
                Some(running) => running,
                None => match self.turn_at(&newest, asked.seq).await? {
                    Some(TurnState::Running(running)) => running,
                    Some(TurnState::Settled(turn)) => return Ok(Some(Answered { turn: *turn, replayed: true })),
                    _ => return Ok(None),
                },
            };
            if tokio::time::Instant::now() > deadline {
                return Err(AgentError::Busy.into());
            }
            // Where its driver is gone, it goes on here.
            resume(&self.service, &self.agent, scope, thread, &running.turn).await?;
            match &mut waiting {
                // What happened before this moment is seen by another look.
                None => waiting = Some(TurnWaiter::begin(memory, scope, thread).await),
                Some(waiting) => waiting.wait(None).await,
            }
        }
    }

    /// The turn of the question at a position, where these newest messages of the thread end with it.
    async fn turn_at(&self, newest: &[Message], asked: u64) -> Result<Option<TurnState>> {
        let memory = self.agent.memory();
        let Some(tail) = newest.last().filter(|tail| tail.created_at.plus_ms(WINDOW_MS) >= memory.now()) else {
            return Ok(None);
        };
        let Some(turn) = tail.content.metadata.get("turn").and_then(|turn| turn.as_str()) else { return Ok(None) };
        let found = find_turn_state(memory, &self.scope, self.thread, turn).await?;
        let is_it = |found: &TurnState| match found {
            TurnState::Settled(turn) => {
                let seqs = (turn.stored.first().map(|stored| stored.seq), turn.stored.last().map(|stored| stored.seq));
                turn.agent == self.name() && seqs == (Some(asked), Some(tail.seq))
            }
            _ => true,
        };
        Ok(found.filter(is_it))
    }

    /// Whether a message is this question.
    fn is_asked_by(&self, message: &Message) -> bool {
        let author = message.content.author.as_deref();
        let is_own = author.is_none_or(|author| author == self.ask.author.as_deref().unwrap_or(self.user()));
        is_own && message.plain_text() == self.ask.text.as_str()
    }

    fn name(&self) -> &str {
        &self.agent.assistant().definition().name
    }

    fn user(&self) -> &str {
        match &self.scope {
            Scope::Tenant(_) => "",
            Scope::User(_, user) => user.as_str(),
        }
    }
}
