use std::collections::{HashMap, VecDeque};

use futures::StreamExt;
use threadkeep_core::{
    Change, ChangePage, CorruptRow, Effect, Message, MessageId, MessageName, MessageQuery, OnCorrupt, Role, Scope,
    ThreadId, limits,
};

use super::wake::Waker;
use super::{Start, SubscribeOptions, ThreadEvent, ThreadUpdate, ThreadUpdates, UpdatesPage};
use crate::messages::READ_PAGE;
use crate::retry::repeat_simply;
use crate::{Memory, Result};

/// Changes that are read at a time.
const CHANGES: usize = 100;

impl Memory {
    /// Subscribes to a thread: a stream of its commits in order, without a gap from where it begins.
    ///
    /// From the moment that this returns nothing is missed, whether or not the stream is looked at. While the store
    /// cannot be reached the stream waits. Hints may be lost: then a change is heard of after
    /// [`crate::MemoryOptions::backstop`] at the latest.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `LimitExceeded` for too long a history.
    pub async fn subscribe(&self, scope: &Scope, thread: ThreadId, options: SubscribeOptions) -> Result<ThreadUpdates> {
        // Listening comes first: what happens while the thread is looked at has its hint waiting.
        let waker = Waker::listen(self, scope, Some(thread)).await;
        let mut ready = VecDeque::new();
        let after = match options.start {
            Start::Now => self.get_thread(scope, thread).await?.positions.change,
            Start::After(change) => self.get_thread(scope, thread).await.map(|_| change)?,
            Start::Last(count) => {
                let history = self.history(scope, thread, count, &options.roles).await?;
                let change = history.1;
                ready.push_back(history.0);
                change
            }
        };
        let log = Log { memory: self.clone(), scope: scope.clone(), thread, roles: options.roles };
        let subscription = Subscription { log, waker, after, ready, has_ended: false };
        let updates = futures::stream::unfold(subscription, |mut subscription| async move {
            subscription.next().await.map(|update| (update, subscription))
        });
        Ok(updates.boxed())
    }

    /// Reads some of what happened in a thread after a position, as a subscriber to these roles hears it; nothing where
    /// nothing did. For those who follow many threads, each when it is known to have changed.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread.
    pub async fn updates_after(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: u64,
        roles: &[Role],
    ) -> Result<Option<UpdatesPage>> {
        Log { memory: self.clone(), scope: scope.clone(), thread, roles: roles.to_vec() }.page(after).await
    }

    async fn history(
        &self,
        scope: &Scope,
        thread: ThreadId,
        count: usize,
        roles: &[Role],
    ) -> Result<(ThreadUpdate, u64)> {
        let newest = MessageQuery::newest(count);
        let query = MessageQuery { roles: roles.to_vec(), on_corrupt: OnCorrupt::Report, ..newest };
        let page = self.messages(scope, thread, &query).await?;
        let (messages, corrupt, positions) = (page.messages, page.corrupt, page.positions);
        Ok((ThreadUpdate::History { messages, corrupt, positions }, positions.change))
    }
}

struct Subscription {
    log: Log,
    waker: Waker,
    /// The last change that was told, or skipped for saying nothing to this subscriber.
    after: u64,
    ready: VecDeque<ThreadUpdate>,
    has_ended: bool,
}

impl Subscription {
    async fn next(&mut self) -> Option<Result<ThreadUpdate>> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Some(Ok(update));
            }
            if self.has_ended {
                return None;
            }
            self.waker.drain();
            match self.read().await {
                Ok(true) => {}
                Ok(false) => self.waker.wait(&self.log.memory).await,
                Err(error) if error.is_retryable() => self.waker.wait(&self.log.memory).await,
                Err(error) if error.is_thread_not_found() => {
                    self.has_ended = true;
                    return Some(Ok(ThreadUpdate::Deleted));
                }
                Err(error) => {
                    self.has_ended = true;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Reads what comes next. Says whether there was anything.
    async fn read(&mut self) -> Result<bool> {
        let Some(UpdatesPage { updates, change }) = self.log.page(self.after).await? else { return Ok(false) };
        self.ready.extend(updates);
        self.after = change;
        Ok(true)
    }
}

/// A thread's log, as one subscriber reads it.
struct Log {
    memory: Memory,
    scope: Scope,
    thread: ThreadId,
    roles: Vec<Role>,
}

impl Log {
    async fn page(&self, after: u64) -> Result<Option<UpdatesPage>> {
        Ok(match self.changes(after).await? {
            ChangePage::Reset { positions } => {
                Some(UpdatesPage { updates: vec![ThreadUpdate::Reset { positions }], change: positions.change })
            }
            ChangePage::Changes { changes, .. } => {
                let Some(last) = changes.last() else { return Ok(None) };
                let change = last.change;
                let messages = self.messages_of(&changes).await?;
                let updates = changes.into_iter().filter_map(|change| self.update(change, &messages)).collect();
                Some(UpdatesPage { updates, change })
            }
        })
    }

    async fn changes(&self, after: u64) -> Result<ChangePage> {
        let (store, now) = (self.memory.store(), self.memory.now());
        Ok(repeat_simply(|| store.list_changes(&self.scope, self.thread, after, CHANGES, now)).await?)
    }

    fn update(&self, Change { change, at, effects }: Change, messages: &Mentioned) -> Option<ThreadUpdate> {
        let events: Vec<_> = effects.into_iter().filter_map(|effect| self.event(effect, messages)).collect();
        (!events.is_empty()).then_some(ThreadUpdate::Commit { change, at, events })
    }

    /// What the subscriber hears of an effect: nothing where only other roles spoke, or the message is gone by now.
    fn event(&self, effect: Effect, messages: &Mentioned) -> Option<ThreadEvent> {
        match effect {
            Effect::Appended { first_seq, count } => {
                let seqs = first_seq..first_seq + count;
                let appended = seqs.clone().filter_map(|seq| messages.by_seq.get(&seq));
                let appended: Vec<_> = appended.filter(|message| self.wants(message)).cloned().collect();
                let corrupt: Vec<_> = messages.corrupt.iter().filter(|row| seqs.contains(&row.seq)).cloned().collect();
                let is_silent = appended.is_empty() && corrupt.is_empty();
                (!is_silent).then_some(ThreadEvent::Appended { messages: appended, corrupt })
            }
            Effect::Replaced { id, .. } => {
                let message = messages.by_id.get(&id).filter(|message| self.wants(message))?;
                Some(ThreadEvent::Replaced { message: Box::new(message.clone()) })
            }
            Effect::Erased { seq, id } => Some(ThreadEvent::Erased { seq, id }),
            Effect::Trimmed { first_seq } => Some(ThreadEvent::Trimmed { first_seq }),
            Effect::DocumentPut { name, version } => Some(ThreadEvent::Document { name, version: Some(version) }),
            Effect::DocumentDeleted { name } => Some(ThreadEvent::Document { name, version: None }),
            Effect::Patched => Some(ThreadEvent::Patched),
        }
    }

    fn wants(&self, message: &Message) -> bool {
        self.roles.is_empty() || self.roles.contains(&message.content.role)
    }

    /// Reads the messages that some changes speak of, as they stand.
    async fn messages_of(&self, changes: &[Change]) -> Result<Mentioned> {
        let mut mentioned = Mentioned::default();
        let effects = || changes.iter().flat_map(|change| &change.effects);
        let appended = effects().filter_map(|effect| match effect {
            Effect::Appended { first_seq, count } => Some((*first_seq, *first_seq + *count)),
            _ => None,
        });
        // Positions are gapless, so what a run of changes appended is one range.
        if let Some((first, end)) = appended.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))) {
            self.read_range(first, end, &mut mentioned).await?;
        }
        let replaced: Vec<_> = effects()
            .filter_map(|effect| match effect {
                Effect::Replaced { id, .. } => Some(MessageName::Id(*id)),
                _ => None,
            })
            .collect();
        for names in replaced.chunks(limits::PAGE) {
            let found = self.memory.find_messages(&self.scope, self.thread, names).await?;
            mentioned.by_id.extend(found.into_iter().map(|message| (message.id, message)));
        }
        Ok(mentioned)
    }

    async fn read_range(&self, first: u64, end: u64, mentioned: &mut Mentioned) -> Result<()> {
        let mut after = Some(first - 1);
        while let Some(seq) = after.filter(|seq| seq + 1 < end) {
            let room = usize::try_from(end - seq - 1).unwrap_or(READ_PAGE).min(READ_PAGE);
            let following = self.memory.page_after(&self.scope, self.thread, seq, room).await?;
            let messages = following.page.messages.into_iter().filter(|message| message.seq < end);
            mentioned.by_seq.extend(messages.map(|message| (message.seq, message)));
            mentioned.corrupt.extend(following.page.corrupt.into_iter().filter(|row| row.seq < end));
            after = following.next;
        }
        Ok(())
    }
}

/// The messages that a page of changes speaks of.
#[derive(Default)]
struct Mentioned {
    by_seq: HashMap<u64, Message>,
    by_id: HashMap<MessageId, Message>,
    corrupt: Vec<CorruptRow>,
}
