use std::time::Duration;

use futures::{FutureExt, StreamExt};
use threadkeep_core::{Access, Scope, ThreadId, WakeUp, WakeUps};

use crate::Memory;

/// Waits until a wake-up concerns a subscription, for at most the poll interval.
pub(super) struct Waker {
    wake_ups: Option<WakeUps>,
    scope: Scope,
    thread: Option<ThreadId>,
    poll_interval: Duration,
}

impl Waker {
    /// Receives wake-ups from now on. If the store provides none, each wait lasts for the poll interval.
    pub(super) async fn listen(memory: &Memory, scope: &Scope, thread: Option<ThreadId>) -> Self {
        let wake_ups = memory.store().wake_ups().await.ok();
        Self { wake_ups, scope: scope.clone(), thread, poll_interval: memory.options().poll_interval }
    }

    /// Discards pending wake-ups. Call this before reading the changes.
    pub(super) fn drain(&mut self) {
        while let Some(wake_ups) = &mut self.wake_ups {
            match wake_ups.next().now_or_never() {
                Some(Some(_)) => {}
                Some(None) => self.wake_ups = None,
                None => return,
            }
        }
    }

    /// Waits for a relevant wake-up, for at most the poll interval.
    pub(super) async fn wait(&mut self, memory: &Memory) {
        let deadline = memory.runtime().now() + self.poll_interval;
        // If there is no wake-up by the deadline, the subscription polls the store.
        let _ = memory.runtime().timeout_at(deadline, self.relevant_wake_up()).await;
        if self.wake_ups.is_none() {
            self.wake_ups = memory.store().wake_ups().await.ok();
        }
    }

    async fn relevant_wake_up(&mut self) {
        while let Some(wake_ups) = &mut self.wake_ups {
            match wake_ups.next().await {
                Some(wake_up) if concerns(&wake_up, &self.scope, self.thread) => return,
                Some(_) => {}
                None => self.wake_ups = None,
            }
        }
        std::future::pending().await
    }
}

fn concerns(wake_up: &WakeUp, scope: &Scope, wanted: Option<ThreadId>) -> bool {
    match wake_up {
        WakeUp::Unspecified => true,
        WakeUp::Record { .. } => false,
        WakeUp::Thread { tenant, owner, thread, .. } => {
            tenant == scope.tenant_id()
                && wanted.is_none_or(|wanted| wanted == *thread)
                && scope.access(owner) != Access::None
        }
    }
}

#[cfg(test)]
mod tests {
    use threadkeep_core::{Owner, TenantId, UserId};

    use super::*;

    #[test]
    fn wake_ups_for_other_scopes_and_threads_are_irrelevant() {
        let thread = ThreadId::from_name(b"thread");
        let wake_up = |tenant: &str, owner: Owner| {
            let tenant = TenantId::new(tenant).unwrap();
            WakeUp::Thread { tenant, owner, thread, change: None }
        };
        let user = |name: &str| Owner::User(UserId::new(name).unwrap());
        let scope = Scope::user("t", "u").unwrap();
        assert!(concerns(&wake_up("t", user("u")), &scope, Some(thread)));
        assert!(concerns(&wake_up("t", Owner::Tenant), &scope, None));
        assert!(concerns(&WakeUp::Unspecified, &scope, Some(thread)));
        assert!(!concerns(&wake_up("t", user("v")), &scope, None));
        assert!(!concerns(&wake_up("other", user("u")), &scope, None));
        assert!(!concerns(&wake_up("t", user("u")), &scope, Some(ThreadId::from_name(b"another"))));
    }
}
