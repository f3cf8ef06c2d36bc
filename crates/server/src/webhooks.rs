//! Webhooks: callers register HTTP endpoints, to which the server sends the events of their threads. The events have the format
//! of live events. `threadkeep_service` stores and sends them.

mod cases;
mod create;
mod delete;
mod deliveries;
mod get;
mod list;
mod replay;
mod rotate;
mod update;

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use threadkeep::{Memory, Scope, ThreadId, ThreadUpdate, Timestamp};
use threadkeep_service::webhooks::{Delivery, DeliveryState, EventEncoder, Webhook, WebhookEvent, Webhooks};
use threadkeep_service::{Caller, Credential};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::door::{Door, Rule};
use crate::error::{ApiError, Result};
use crate::live::json::UpdateJson;
use crate::security::KeyRole;

const WRITE: Rule = Rule::role(KeyRole::Write);

/// Returns the door for webhooks. Its background task sends them.
pub(crate) fn door() -> Door {
    Door::new("webhooks")
        .route(WRITE.audited(), || routes!(create::create))
        .route(WRITE, || routes!(list::list))
        .route(WRITE, || routes!(get::get))
        .route(WRITE.audited(), || routes!(update::update))
        .route(WRITE.audited(), || routes!(delete::delete))
        .route(WRITE.audited(), || routes!(rotate::rotate))
        .route(WRITE, || routes!(deliveries::deliveries))
        .route(WRITE.audited(), || routes!(replay::replay))
        .background_task(|service| Webhooks::run(service, Arc::new(LiveEncoder)))
        .cases(cases::cases)
}

/// Encodes updates as live events do.
#[derive(Debug)]
struct LiveEncoder;

#[async_trait]
impl EventEncoder for LiveEncoder {
    async fn encode(
        &self,
        memory: &Memory,
        scope: &Scope,
        thread: ThreadId,
        update: &ThreadUpdate,
    ) -> Option<serde_json::Value> {
        let update = UpdateJson::of(memory, scope, thread, update).await?;
        serde_json::to_value(&update).ok()
    }
}

/// A webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookJson {
    id: String,
    url: String,
    /// The names of the events that are sent; empty for all.
    events: Vec<String>,
    description: String,
    /// Whether events are sent. Otherwise they are held for up to seven days.
    enabled: bool,
    /// Why the server disabled the webhook; null if it did not.
    disabled_reason: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// A webhook with its secret, which is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewWebhookJson {
    webhook: WebhookJson,
    /// The secret that receivers use to verify signatures.
    secret: String,
}

/// An event that a webhook sends.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryJson {
    /// The id of the event, which is sent as `webhook-id`.
    id: String,
    /// `commit`, `created`, `deleted` or `reset`.
    r#type: &'static str,
    #[schema(value_type = String, format = Uuid)]
    thread: ThreadId,
    /// When the event happened.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    state: DeliveryStateJson,
    /// The number of attempts.
    attempts: u32,
    /// When the next attempt is made.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_attempt_at: Option<Timestamp>,
    /// The status of the last response.
    last_status: Option<u16>,
    /// Why the last attempt failed.
    last_error: Option<String>,
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveryStateJson {
    /// Not sent yet, or to be sent again.
    Pending,
    /// The endpoint accepted it.
    Delivered,
    /// It will not be sent again.
    Failed,
}

impl From<Webhook> for WebhookJson {
    fn from(webhook: Webhook) -> Self {
        let Webhook { id, url, events, description, is_enabled, disabled_reason, created_at, .. } = webhook;
        Self { id, url, events, description, enabled: is_enabled, disabled_reason, created_at }
    }
}

impl From<Webhook> for NewWebhookJson {
    fn from(webhook: Webhook) -> Self {
        Self { secret: webhook.secret(), webhook: webhook.into() }
    }
}

impl DeliveryJson {
    fn of(delivery: Delivery) -> Result<Self> {
        let event: WebhookEvent = delivery.event.parse()?;
        Ok(Self {
            r#type: event.kind.name(),
            thread: event.thread,
            at: event.at,
            id: delivery.event,
            state: match delivery.state {
                DeliveryState::Pending => DeliveryStateJson::Pending,
                DeliveryState::Delivered => DeliveryStateJson::Delivered,
                _ => DeliveryStateJson::Failed,
            },
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at,
            last_attempt_at: delivery.last_attempt_at,
            last_status: delivery.last_status,
            last_error: delivery.last_error,
        })
    }
}

/// Returns the scope whose webhooks a caller manages. A user manages the user's own webhooks; managing those of the tenant
/// requires the role `admin`.
fn managed_scope(caller: &Caller) -> Result<&Scope> {
    if matches!(caller.credential, Credential::Browser { .. }) {
        return Err(ApiError::forbidden(
            "token_refused",
            "webhooks must be managed with a key, not with a browser token",
        ));
    }
    if matches!(caller.scope, Scope::Tenant(_)) {
        caller.require(KeyRole::Admin)?;
    }
    Ok(&caller.scope)
}
