//! Running activities.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use threadkeep_core::JsonText;
use threadkeep_graph::{Failure, Outcome, RequestId};

use super::EffectExecutor;
use crate::record::RecordedEvent;
use crate::{Activity, ActivityContext};

impl EffectExecutor<'_> {
    pub(crate) async fn run_activity(
        &self,
        request: RequestId,
        activity: Arc<dyn Activity>,
        input: JsonText,
    ) -> RecordedEvent {
        let began = self.now();
        let context = ActivityContext {
            scope: self.access.scope.clone(),
            thread: self.access.thread,
            turn: self.turn.clone(),
            key: format!("{}/{request}", self.turn),
            now: began,
        };
        let outcome = match AssertUnwindSafe(activity.run(&context, &input)).catch_unwind().await {
            Ok(Ok(output)) => Outcome::Activity(output),
            Ok(Err(failure)) => Outcome::Failed(failure),
            Err(_) => {
                Outcome::Failed(Failure::new("activity_failed", format!("activity {} panicked", activity.name())))
            }
        };
        RecordedEvent::new(request, outcome, self.ms_since(began))
    }
}
