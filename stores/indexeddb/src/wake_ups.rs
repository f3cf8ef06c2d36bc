//! Wake-ups between the tabs of a browser, by a `BroadcastChannel` of the database's name.

use futures::stream;
use serde::{Deserialize, Serialize};
use threadkeep_core::{Owner, RecordName, Result, StoreError, TenantId, ThreadId, WakeUp, WakeUps};
use tokio::sync::broadcast::{Receiver, WeakSender, error::RecvError};
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{BroadcastChannel, MessageEvent};

/// A channel to the other tabs. What it receives goes to the subscribers of this tab.
pub(crate) struct Channel {
    channel: BroadcastChannel,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
}

/// The message of a wake-up.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Notice {
    Thread { tenant: TenantId, owner: Owner, thread: ThreadId, change: Option<u64> },
    Record { tenant: TenantId, owner: Owner, name: RecordName },
    Unspecified,
}

impl Channel {
    pub(crate) fn open(database: &str, subscribers: WeakSender<WakeUp>) -> Result<Self> {
        let channel = BroadcastChannel::new(&format!("threadkeep:{database}"))
            .map_err(|_| StoreError::Unsupported("browsers without BroadcastChannel"))?;
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Some(subscribers) = subscribers.upgrade() {
                // Sending fails only if there are no subscribers.
                let _ = subscribers.send(parse(&event));
            }
        });
        channel.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        Ok(Self { channel, _on_message: on_message })
    }

    pub(crate) fn send(&self, wake_up: &WakeUp) {
        let notice = match wake_up.clone() {
            WakeUp::Thread { tenant, owner, thread, change } => Notice::Thread { tenant, owner, thread, change },
            WakeUp::Record { tenant, owner, name } => Notice::Record { tenant, owner, name },
            WakeUp::Unspecified => Notice::Unspecified,
        };
        if let Ok(text) = serde_json::to_string(&notice) {
            // A wake-up may be lost.
            let _ = self.channel.post_message(&text.into());
        }
    }
}

/// Anyone on the origin can post messages. One that cannot be read still may mean that something changed.
fn parse(event: &MessageEvent) -> WakeUp {
    let notice = event.data().as_string().and_then(|text| serde_json::from_str(&text).ok());
    match notice.unwrap_or(Notice::Unspecified) {
        Notice::Thread { tenant, owner, thread, change } => WakeUp::Thread { tenant, owner, thread, change },
        Notice::Record { tenant, owner, name } => WakeUp::Record { tenant, owner, name },
        Notice::Unspecified => WakeUp::Unspecified,
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.channel.set_onmessage(None);
        self.channel.close();
    }
}

/// Returns later wake-ups. A subscriber that lags receives [`WakeUp::Unspecified`].
pub(crate) fn subscribe(receiver: Receiver<WakeUp>) -> WakeUps {
    Box::pin(stream::unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Ok(wake_up) => Some((wake_up, receiver)),
            Err(RecvError::Lagged(_)) => Some((WakeUp::Unspecified, receiver)),
            Err(RecvError::Closed) => None,
        }
    }))
}
