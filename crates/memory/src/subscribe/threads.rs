use futures::StreamExt;
use threadkeep_core::{ChangedThreads, Scope, UserCursor};

use super::waker::Waker;
use super::{ThreadsUpdate, ThreadsUpdates};
use crate::retry::retry;
use crate::{Memory, Result};

/// Maximum number of threads per update.
const MAX_THREADS: usize = 100;

impl Memory {
    /// Returns a cursor that precedes all changes from now on.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn current_cursor(&self, scope: &Scope) -> Result<UserCursor> {
        let now = self.now();
        Ok(retry(self.runtime(), || self.store().list_changed_threads(scope, None, 1, now)).await?.cursor)
    }

    /// Subscribes to the list of a scope's threads. Reports every thread that changes or is deleted after the cursor, or from now
    /// on if there is none; a thread may be reported repeatedly. [`Memory::subscribe`] reports the changes in one thread.
    ///
    /// # Errors
    /// `Invalid` for an invalid cursor.
    pub async fn subscribe_threads(&self, scope: &Scope, cursor: Option<UserCursor>) -> Result<ThreadsUpdates> {
        let waker = Waker::listen(self, scope, None).await;
        let cursor = match cursor {
            Some(cursor) => cursor,
            None => self.current_cursor(scope).await?,
        };
        let subscription = Subscription { memory: self.clone(), scope: scope.clone(), waker, cursor, has_ended: false };
        let updates = futures::stream::unfold(subscription, |mut subscription| async move {
            subscription.next().await.map(|update| (update, subscription))
        });
        Ok(updates.boxed())
    }
}

struct Subscription {
    memory: Memory,
    scope: Scope,
    waker: Waker,
    cursor: UserCursor,
    has_ended: bool,
}

impl Subscription {
    async fn next(&mut self) -> Option<Result<ThreadsUpdate>> {
        while !self.has_ended {
            self.waker.drain();
            match self.read().await {
                Ok(ChangedThreads { threads, cursor, more, reset }) => {
                    self.cursor = cursor.clone();
                    if reset || !threads.is_empty() {
                        return Some(Ok(ThreadsUpdate { threads, cursor, reset }));
                    }
                    if !more {
                        self.waker.wait(&self.memory).await;
                    }
                }
                Err(error) if error.is_retryable() => self.waker.wait(&self.memory).await,
                Err(error) => {
                    self.has_ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    async fn read(&mut self) -> Result<ChangedThreads> {
        let (store, now) = (self.memory.store(), self.memory.now());
        let (scope, cursor) = (&self.scope, Some(&self.cursor));
        Ok(retry(self.memory.runtime(), || store.list_changed_threads(scope, cursor, MAX_THREADS, now)).await?)
    }
}
