use std::time::Duration;

use futures::{FutureExt, StreamExt};
use threadkeep_core::{Access, Scope, ThreadId, WakeUp, WakeUps};

use crate::Memory;

/// Waits for a hint that concerns one subscription, but never for longer than the backstop.
pub(super) struct Waker {
    wake_ups: Option<WakeUps>,
    scope: Scope,
    thread: Option<ThreadId>,
    backstop: Duration,
}

impl Waker {
    /// Listens from this moment on. Where the store gives no hints the backstop alone has to do.
    pub(super) async fn listen(memory: &Memory, scope: &Scope, thread: Option<ThreadId>) -> Self {
        let wake_ups = memory.store().wake_ups().await.ok();
        Self { wake_ups, scope: scope.clone(), thread, backstop: memory.options().backstop }
    }

    /// Forgets the hints that are there, as the log is about to be read.
    pub(super) fn drain(&mut self) {
        while let Some(wake_ups) = &mut self.wake_ups {
            match wake_ups.next().now_or_never() {
                Some(Some(_)) => {}
                Some(None) => self.wake_ups = None,
                None => return,
            }
        }
    }

    /// Waits for a hint or the backstop.
    pub(super) async fn wait(&mut self, memory: &Memory) {
        let deadline = memory.runtime().now() + self.backstop;
        // An early return by the deadline only means that the log is looked at.
        let _ = memory.runtime().timeout_at(deadline, self.relevant_hint()).await;
        if self.wake_ups.is_none() {
            self.wake_ups = memory.store().wake_ups().await.ok();
        }
    }

    async fn relevant_hint(&mut self) {
        while let Some(wake_ups) = &mut self.wake_ups {
            match wake_ups.next().await {
                Some(hint) if concerns(&hint, &self.scope, self.thread) => return,
                Some(_) => {}
                None => self.wake_ups = None,
            }
        }
        std::future::pending().await
    }
}

fn concerns(hint: &WakeUp, scope: &Scope, wanted: Option<ThreadId>) -> bool {
    match hint {
        WakeUp::Anything => true,
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
    fn hints_about_others_concern_nobody() {
        let thread = ThreadId::from_name(b"thread");
        let hint = |tenant: &str, owner: Owner| {
            let tenant = TenantId::new(tenant).unwrap();
            WakeUp::Thread { tenant, owner, thread, change: None }
        };
        let user = |name: &str| Owner::User(UserId::new(name).unwrap());
        let scope = Scope::user("t", "u").unwrap();
        assert!(concerns(&hint("t", user("u")), &scope, Some(thread)));
        assert!(concerns(&hint("t", Owner::Tenant), &scope, None));
        assert!(concerns(&WakeUp::Anything, &scope, Some(thread)));
        assert!(!concerns(&hint("t", user("v")), &scope, None));
        assert!(!concerns(&hint("other", user("u")), &scope, None));
        assert!(!concerns(&hint("t", user("u")), &scope, Some(ThreadId::from_name(b"another"))));
    }
}
