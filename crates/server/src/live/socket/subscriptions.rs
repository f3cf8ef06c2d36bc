//! The subscriptions of a WebSocket client. Each subscription has its own task; all of them send through one queue.

use std::sync::Arc;

use axum::extract::ws::Message;
use futures::StreamExt;
use threadkeep::core::UserCursor;
use threadkeep::memory::{ThreadsUpdate, ThreadsUpdates};
use threadkeep::{Role, Scope, Start, SubscribeOptions};
use threadkeep_api::message::RoleJson;
use tokio::sync::mpsc;

use super::Client;
use super::json::{ServerMessage, SubscribeJson, encode_message, error_message};
use crate::cursor;
use crate::error::{ApiError, Result};
use crate::live::encoding::EncodedUpdate;
use crate::live::followed_threads::FollowedThreads;
use crate::live::notices::Notices;
use crate::live::subscription::Subscription;
use crate::thread_names;

/// The maximum number of threads to which one socket can subscribe.
const MAX_SUBSCRIPTIONS: usize = 1_000;
/// The name of the list in cursors of `subscribe_threads`.
const LIST: &str = "live threads";

impl Client {
    pub(super) async fn subscribe(&mut self, request: SubscribeJson) -> Result<()> {
        let SubscribeJson { thread, after, last, roles, assistant, topics } = request;
        let thread = thread_names::resolve(&self.app, &self.caller.scope, &thread).await?;
        let start = match (after, last) {
            (Some(_), Some(_)) => return Err(ApiError::invalid("last", "`after` and `last` are mutually exclusive")),
            (Some(change), None) => Start::After(change),
            (None, Some(last)) => Start::Last(last),
            (None, None) => Start::Now,
        };
        self.threads.retain(|_, subscription| !subscription.is_finished());
        if self.threads.len() >= MAX_SUBSCRIPTIONS {
            let message = format!("a socket can subscribe to at most {MAX_SUBSCRIPTIONS} threads");
            return Err(ApiError::invalid("thread", message).code("limit_exceeded"));
        }
        let roles: Vec<Role> = roles.into_iter().map(Into::into).collect();
        let options = SubscribeOptions { start, roles };
        let notices = Notices::subscribe(&self.app, assistant.as_deref(), topics)?;
        let updates = self.app.memory().subscribe(&self.caller.scope, thread, options).await?;
        let subscription = Subscription {
            app: self.app.clone(),
            caller: Arc::clone(&self.caller),
            thread,
            outgoing: self.outgoing.clone(),
            write: |update: &EncodedUpdate, thread| Message::Text(update.text(thread)),
            // The socket has its own heartbeat.
            heartbeat: None,
            notices,
        };
        let task = tokio::spawn(async move {
            let subscribed = encode_message(&ServerMessage::Subscribed { r#type: "subscribed", thread });
            if subscription.outgoing.send(subscribed).await.is_ok() {
                subscription.run(updates).await;
            }
        });
        if let Some(earlier) = self.threads.insert(thread, task.abort_handle()) {
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
            return Err(ApiError::invalid("roles", "`roles` requires `follow`"));
        }
        let scope = self.caller.scope.clone();
        let cursor = cursor.map(|cursor| cursor::decode(&scope, LIST, "cursor", &cursor)).transpose()?.map(UserCursor);
        let is_new = cursor.is_none();
        let cursor = match cursor {
            Some(cursor) => cursor,
            None => self.app.memory().current_cursor(&scope).await?,
        };
        let roles = roles.into_iter().map(Into::into).collect();
        let followed = match follow {
            true => Some(FollowedThreads::start(&self.app, &scope, roles, is_new).await?),
            false => None,
        };
        let updates = self.app.memory().subscribe_threads(&scope, Some(cursor.clone())).await?;
        let (outgoing, app) = (self.outgoing.clone(), self.app.clone());
        let task = tokio::spawn(async move {
            let cursor = cursor::encode(&scope, LIST, &cursor.0);
            let subscribed = encode_message(&ServerMessage::SubscribedThreads { r#type: "subscribed_threads", cursor });
            if outgoing.send(subscribed).await.is_ok() {
                let mut stopped = std::pin::pin!(app.stopped());
                tokio::select! {
                    () = &mut stopped => {}
                    _ = send_changes(&scope, updates, followed, &outgoing) => {}
                }
            }
        });
        if let Some(earlier) = self.thread_list.replace(task.abort_handle()) {
            earlier.abort();
        }
        Ok(())
    }
}

/// Sends the list of changed threads whenever threads change. If the client follows the threads, their updates are sent before the
/// list, so that a client that has received a cursor has also received all updates before it.
async fn send_changes(
    scope: &Scope,
    mut updates: ThreadsUpdates,
    mut followed: Option<FollowedThreads>,
    outgoing: &mpsc::Sender<Message>,
) -> Result<(), mpsc::error::SendError<Message>> {
    while let Some(update) = updates.next().await {
        let ThreadsUpdate { threads, cursor, reset } = match update {
            Ok(update) => update,
            Err(error) => return outgoing.send(error_message(None, &error.into())).await,
        };
        for changed in &threads {
            let Some(followed) = &mut followed else { break };
            while let Some(updates) = Box::pin(followed.read(changed)).await {
                for update in &updates {
                    outgoing.send(Message::Text(update.text(changed.id))).await?;
                }
                // A thread that could not be read is read again after its next change.
                if updates.last().is_some_and(EncodedUpdate::is_end) {
                    break;
                }
            }
        }
        let cursor = cursor::encode(scope, LIST, &cursor.0);
        let threads = threads.into_iter().map(Into::into).collect();
        outgoing.send(encode_message(&ServerMessage::Threads { r#type: "threads", threads, cursor, reset })).await?;
    }
    Ok(())
}
