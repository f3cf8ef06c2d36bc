//! What a client of the WebSocket listens to: each in a task of its own, all through one queue.

use std::sync::Arc;

use axum::extract::ws::Message;
use futures::StreamExt;
use threadkeep::core::{Tagged, UserCursor};
use threadkeep::memory::{ThreadsUpdate, ThreadsUpdates};
use threadkeep::{Role, Scope, Start, SubscribeOptions, ThreadId};
use tokio::sync::mpsc;

use super::Client;
use super::json::{Told, problem, text};
use crate::cursor;
use crate::error::{ApiError, Result};
use crate::live::following::Following;
use crate::live::listening::Listener;
use crate::live::telling::Telling;
use crate::rest::json::message::RoleJson;

/// Threads that one socket listens to at most.
const SUBSCRIPTIONS: usize = 1_000;
/// The name of the list that cursors of `subscribe_threads` belong to.
const LIST: &str = "live threads";

impl Client {
    pub(super) async fn subscribe(
        &mut self,
        thread: &str,
        after: Option<Tagged>,
        last: Option<usize>,
        roles: Vec<RoleJson>,
    ) -> Result<()> {
        let thread: ThreadId = thread.parse().map_err(|_| ApiError::not_found("thread"))?;
        let start = match (after, last) {
            (Some(_), Some(_)) => return Err(ApiError::invalid("last", "give `after` or `last`, not both")),
            (Some(change), None) => Start::After(change),
            (None, Some(last)) => Start::Last(last),
            (None, None) => Start::Now,
        };
        self.threads.retain(|_, subscription| !subscription.is_finished());
        if self.threads.len() >= SUBSCRIPTIONS {
            let message = format!("one socket listens to at most {SUBSCRIPTIONS} threads");
            return Err(ApiError::invalid("thread", message).code("limit_exceeded"));
        }
        let roles: Vec<Role> = roles.into_iter().map(Into::into).collect();
        let options = SubscribeOptions { start, roles };
        let updates = self.app.memory().subscribe(&self.caller.scope, thread, options).await?;
        let listener = Listener {
            app: self.app.clone(),
            caller: Arc::clone(&self.caller),
            thread,
            outgoing: self.outgoing.clone(),
            write: |told: &Telling, thread| Message::Text(told.text(thread)),
            // The socket has one of its own.
            heartbeat: None,
        };
        let subscription = tokio::spawn(async move {
            let subscribed = text(&Told::Subscribed { r#type: "subscribed", thread });
            if listener.outgoing.send(subscribed).await.is_ok() {
                listener.run(updates).await;
            }
        });
        if let Some(earlier) = self.threads.insert(thread, subscription.abort_handle()) {
            earlier.abort();
        }
        Ok(())
    }

    pub(super) async fn subscribe_threads(
        &mut self,
        cursor: Option<String>,
        follow: bool,
        roles: Vec<RoleJson>,
    ) -> Result<()> {
        if !follow && !roles.is_empty() {
            return Err(ApiError::invalid(
                "roles",
                "roles choose what is heard of threads that one follows: add `follow`",
            ));
        }
        let scope = self.caller.scope.clone();
        let given = cursor.map(|cursor| cursor::take(&scope, LIST, "cursor", &cursor)).transpose()?.map(UserCursor);
        let is_new = given.is_none();
        let cursor = match given {
            Some(cursor) => cursor,
            None => self.app.memory().present_cursor(&scope).await?,
        };
        let roles = roles.into_iter().map(Into::into).collect();
        let following = match follow {
            true => Some(Following::begin(&self.app, &scope, roles, is_new).await?),
            false => None,
        };
        let updates = self.app.memory().subscribe_threads(&scope, Some(cursor.clone())).await?;
        let (outgoing, app) = (self.outgoing.clone(), self.app.clone());
        let subscription = tokio::spawn(async move {
            let cursor = cursor::give(&scope, LIST, &cursor.0);
            let subscribed = text(&Told::SubscribedThreads { r#type: "subscribed_threads", cursor });
            if outgoing.send(subscribed).await.is_ok() {
                let mut stopped = std::pin::pin!(app.stopped());
                tokio::select! {
                    () = &mut stopped => {}
                    _ = tell_threads(&scope, updates, following, &outgoing) => {}
                }
            }
        });
        if let Some(earlier) = self.all.replace(subscription.abort_handle()) {
            earlier.abort();
        }
        Ok(())
    }
}

/// Tells which threads change, after what happened in those that are followed: whoever has a cursor has heard all before it.
async fn tell_threads(
    scope: &Scope,
    mut updates: ThreadsUpdates,
    mut following: Option<Following>,
    outgoing: &mpsc::Sender<Message>,
) -> Result<(), mpsc::error::SendError<Message>> {
    while let Some(update) = updates.next().await {
        let ThreadsUpdate { threads, cursor, reset } = match update {
            Ok(update) => update,
            Err(error) => return outgoing.send(problem(None, &error.into())).await,
        };
        for changed in &threads {
            let Some(following) = &mut following else { break };
            while let Some(tellings) = Box::pin(following.read(changed)).await {
                for telling in &tellings {
                    outgoing.send(Message::Text(telling.text(changed.id))).await?;
                }
                // What cannot be read now is tried again with the thread's next change.
                if tellings.last().is_some_and(Telling::is_end) {
                    break;
                }
            }
        }
        let cursor = cursor::give(scope, LIST, &cursor.0);
        let threads = threads.into_iter().map(Into::into).collect();
        outgoing.send(text(&Told::Threads { r#type: "threads", threads, cursor, reset })).await?;
    }
    Ok(())
}
