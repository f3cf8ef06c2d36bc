//! Answers messages, and applies edits and deletions to the memory.

use std::time::Duration;

use threadkeep::agent::stop_waiting_turn;
use threadkeep::core::EPHEMERAL;
use threadkeep::{MemoryError, MessageRef, OpenThread, Role, ThreadId, TurnRequest};
use threadkeep_service::turns::{self, AskRequest, TurnTask};
use threadkeep_service::{RequestIdentity, Service};

use crate::answer::Answer;
use crate::events::{Job, message_key};
use crate::inbox::{Inbox, Request};
use crate::worker::{WorkError, Worker};

/// The maximum duration of a turn.
const TURN_LIMIT: Duration = Duration::from_secs(300);
/// The lifetime of a conversation that is not remembered. It must be long enough for a decision on an approval.
const EPHEMERAL_MS: i64 = 60 * 60 * 1_000;

impl Worker {
    /// Answers a message.
    pub(crate) async fn answer(
        &self,
        service: &Service,
        key: &str,
        job: &Job,
        is_recovered: bool,
    ) -> Result<Request, WorkError> {
        let Job::Answer { place, ts, user, text } = job else {
            return Ok(Request::new(job.clone()));
        };
        let inbox = self.inbox(service.memory(), &place.team).await?;
        let agent = self.agent(service)?;
        let thread = self.conversation(service, &inbox, &place.key(), key).await?;
        let ask = TurnRequest { author: Some(user.clone()), ..TurnRequest::new(text.clone()) };
        let stop = ask.stop.clone();
        let request = AskRequest {
            service: service.clone(),
            agent: agent.clone(),
            scope: inbox.scope().clone(),
            thread,
            ask,
            identity: RequestIdentity::new("slack", Some(key.to_owned()), text, 0),
            is_ephemeral: !self.options().remembers,
        };
        let bot = self.bot(&place.team).await?;
        let mut answer = Answer::new(&bot, place, key);
        let updates = turns::start(service.delay_shutdown(), TurnTask::Ask(request));
        let result = {
            let mut result = Box::pin(self.follow(updates, &mut answer));
            match tokio::time::timeout(TURN_LIMIT, &mut result).await {
                Ok(result) => result,
                Err(_) => {
                    stop.stop();
                    result.await
                }
            }
        };
        let turn = result?.turn;
        self.publish(service, &mut answer, user, &turn, is_recovered.then_some(ts)).await?;
        let seq = turn.stored.iter().find(|stored| stored.role == Role::User).map(|stored| stored.seq);
        Ok(Request { thread: Some(thread), seq, turn: Some(turn.turn), ..Request::new(job.clone()) })
    }

    /// Returns the thread of a conversation, or a new thread for each message if conversations are not remembered.
    async fn conversation(
        &self,
        service: &Service,
        inbox: &Inbox,
        key: &str,
        message: &str,
    ) -> Result<ThreadId, MemoryError> {
        let memory = service.memory();
        if self.options().remembers {
            return Ok(memory.open_by_key(inbox.scope(), key).await?.thread.id);
        }
        let key = format!("slack:{message}");
        if let Some(thread) = memory.find_thread_by_key(inbox.scope(), key.as_str()).await? {
            return Ok(thread.id);
        }
        let open = OpenThread {
            key: Some(threadkeep::ThreadKey::new(key)?),
            metadata: threadkeep::Map::from_iter([(EPHEMERAL.to_owned(), true.into())]),
            expires_at: Some(memory.now().plus_ms(EPHEMERAL_MS)),
            ..OpenThread::new(inbox.scope(), memory.generate_thread_id())
        };
        Ok(memory.open_thread(inbox.scope(), open).await?.thread.id)
    }

    /// Applies the edit or deletion of a message to the memory, and voids approvals that the message requested.
    pub(crate) async fn change(&self, service: &Service, job: &Job) -> Result<(), WorkError> {
        let (team, channel, ts, new_text) = match job {
            Job::Edited { team, channel, ts, text } => (team, channel, ts, Some(text)),
            Job::Deleted { team, channel, ts } => (team, channel, ts, None),
            _ => return Ok(()),
        };
        let (memory, inbox) = (service.memory(), self.inbox(service.memory(), team).await?);
        let found = inbox.find_done(&message_key(channel, ts)).await?;
        let Some(Request { thread: Some(thread), seq: Some(seq), turn: Some(turn), .. }) = found else { return Ok(()) };
        let stopped = stop_waiting_turn(memory, inbox.scope(), thread, &turn).await;
        if let Err(error) = stopped {
            // The conversation may have expired.
            return if error.is_not_found() { Ok(()) } else { Err(error.into()) };
        }
        let messages = memory.find_messages(inbox.scope(), thread, &[MessageRef::Seq(seq)]).await?;
        let Some(message) = messages.into_iter().next() else { return Ok(()) };
        match new_text {
            Some(text) => {
                let mut content = message.content.clone();
                content.parts = vec![threadkeep::Part::Text(text.clone())];
                memory.replace_message(inbox.scope(), thread, message.id, content, None).await?;
            }
            None => {
                memory.erase_messages(inbox.scope(), thread, &[message.id]).await?;
            }
        }
        Ok(())
    }
}
