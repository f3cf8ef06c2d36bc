//! Webhooks: the server sends the events of a scope to HTTP endpoints of applications, signed as the Standard Webhooks specification
//! defines.
//!
//! The change logs of the threads are the queue: a webhook stores how far it has read them (`changes.rs`), and a delivery for each event
//! that it has read (`deliveries.rs`). So no commit writes anything for a webhook, and no event is lost if the server is killed. An
//! event may be delivered repeatedly, always with the same id. One instance at a time sends webhooks (`dispatcher.rs`), with a task for
//! each webhook (`worker.rs`), so that a failing endpoint delays no other endpoint and no request.

mod address;
mod changes;
mod deliveries;
mod dispatcher;
mod payload;
mod records;
mod secret;
mod sender;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use threadkeep::core::limits;
use threadkeep::{Memory, Scope, TenantId, Timestamp, UserId};
use tokio::sync::watch;

use crate::error::{Error, ErrorKind, Result};
use crate::hex::hex;
use address::parse_url;
pub use deliveries::{Delivery, DeliveryPage, DeliveryQuery, DeliveryState, EventKind, WebhookEvent};
pub use payload::EventEncoder;
use records::{Kind, Records, Stored};
use secret::Secrets;

/// The events that a webhook can select. A webhook always receives `reset`.
pub const EVENT_NAMES: [&str; 10] =
    ["created", "appended", "replaced", "erased", "trimmed", "document", "approval", "turn", "patched", "deleted"];
/// The maximum number of webhooks of a user, and of a tenant itself.
const MAX_WEBHOOKS: usize = 20;
const MAX_DESCRIPTION_BYTES: usize = 500;
const ID_BYTES: usize = 8;
const PREFIX: &str = "wh_";

/// Options of webhooks.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// Private networks to which webhooks may be delivered. Default: none.
    pub networks: Vec<IpNet>,
    /// The time limit of an attempt. Default: 15 s.
    pub timeout: Duration,
    /// The delays before each further attempt. Default: from 5 s to 10 h, so that the last attempt is made after about 28 h.
    pub retry_delays: Vec<Duration>,
    /// How often changes that other instances made to webhooks are read. Default: 5 s.
    pub poll_interval: Duration,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        let delays = [5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 10 * 3600];
        Self {
            networks: Vec::new(),
            timeout: Duration::from_secs(15),
            retry_delays: delays.map(Duration::from_secs).to_vec(),
            poll_interval: Duration::from_secs(5),
        }
    }
}

/// A webhook.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Webhook {
    /// The id.
    pub id: String,
    /// The endpoint.
    pub url: String,
    /// The names of the events; empty for all.
    pub events: Vec<String>,
    /// A description for people.
    pub description: String,
    /// Whether the webhook sends events. Otherwise its events are held.
    pub is_enabled: bool,
    /// Why the server disabled the webhook; `None` unless it did.
    pub disabled_reason: Option<String>,
    /// When it was created. It receives the events since then.
    pub created_at: Timestamp,
    secrets: Secrets,
}

impl Webhook {
    /// Returns the text of the secret, which receivers use to verify signatures.
    #[must_use]
    pub fn secret(&self) -> String {
        self.secrets.current.as_text()
    }

    fn wants(&self, event: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|wanted| wanted == event)
    }
}

/// The fields of a webhook to set. Omitted fields keep their values.
#[derive(Clone, Debug, Default)]
pub struct WebhookPatch {
    /// The endpoint.
    pub url: Option<String>,
    /// The names of the events; empty for all.
    pub events: Option<Vec<String>>,
    /// A description for people.
    pub description: Option<String>,
    /// Whether the webhook sends events.
    pub is_enabled: Option<bool>,
}

/// The scope of a webhook, in the list of all webhooks.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RegistryEntry {
    tenant: TenantId,
    user: Option<UserId>,
}

impl RegistryEntry {
    fn of(scope: &Scope) -> Self {
        match scope {
            Scope::Tenant(tenant) => Self { tenant: tenant.clone(), user: None },
            Scope::User(tenant, user) => Self { tenant: tenant.clone(), user: Some(user.clone()) },
        }
    }

    fn scope(self) -> Scope {
        match self.user {
            Some(user) => Scope::User(self.tenant, user),
            None => Scope::Tenant(self.tenant),
        }
    }
}

/// The webhooks of all scopes.
#[derive(Clone, Debug)]
pub struct Webhooks {
    memory: Memory,
    options: Arc<WebhookOptions>,
    networks: Arc<[IpNet]>,
    /// Notified when this instance changes a webhook.
    changed: watch::Sender<()>,
}

impl Webhooks {
    pub(crate) fn new(memory: &Memory, options: WebhookOptions) -> Self {
        let networks = options.networks.iter().copied().collect();
        Self { memory: memory.clone(), options: Arc::new(options), networks, changed: watch::Sender::new(()) }
    }

    /// Creates a webhook of a scope. It receives the events of all threads that the scope lists.
    ///
    /// # Errors
    /// `Invalid` for an invalid field, or too many webhooks; errors from the store.
    pub async fn create(&self, scope: &Scope, patch: WebhookPatch) -> Result<Webhook> {
        let Some(url) = patch.url.clone() else { return Err(Error::invalid("url", "`url` is required")) };
        if self.list(scope).await?.len() >= MAX_WEBHOOKS {
            let message = format!("there are already {MAX_WEBHOOKS} webhooks; delete one first");
            return Err(Error::new(ErrorKind::Invalid, "limit_exceeded", message));
        }
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).map_err(|error| Error::internal(error.to_string()))?;
        let mut webhook = Webhook {
            id: format!("{PREFIX}{}", hex(&random)),
            url,
            events: Vec::new(),
            description: String::new(),
            is_enabled: true,
            disabled_reason: None,
            created_at: self.memory.now(),
            secrets: Secrets::generate()?,
        };
        self.apply(&mut webhook, patch)?;
        let records = Records::of(&self.memory, scope);
        let cursor = self.memory.current_cursor(scope).await?.0;
        records.write(Kind::Cursor, &webhook.id, Some(0), &cursor, None).await?;
        records.write(Kind::Webhook, &webhook.id, Some(0), &webhook, None).await?;
        let registry = Records::internal(&self.memory);
        registry.write(Kind::Registry, &webhook.id, Some(0), &RegistryEntry::of(scope), None).await?;
        self.notify();
        Ok(webhook)
    }

    /// Lists the webhooks of a scope, oldest first. The webhooks of a tenant do not include those of its users.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<Webhook>> {
        let found = Records::of(&self.memory, scope).list::<Webhook>(Kind::Webhook, "", None, limits::PAGE).await?;
        let mut webhooks: Vec<Webhook> = found.into_iter().map(|record| record.value).collect();
        webhooks.sort_by_key(|webhook| webhook.created_at);
        Ok(webhooks)
    }

    /// Gets a webhook of a scope.
    ///
    /// # Errors
    /// `NotFound` if the scope has no such webhook; errors from the store.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<Webhook> {
        Ok(self.read(scope, id).await?.value)
    }

    /// Changes a webhook.
    ///
    /// # Errors
    /// `NotFound` if the scope has no such webhook, `Invalid` for an invalid field; errors from the store.
    pub async fn update(&self, scope: &Scope, id: &str, patch: WebhookPatch) -> Result<Webhook> {
        self.change(scope, id, |webhook| self.apply(webhook, patch.clone())).await
    }

    /// Replaces the secret of a webhook. For a day, deliveries are signed with the previous secret as well.
    ///
    /// # Errors
    /// `NotFound` if the scope has no such webhook; errors from the store.
    pub async fn rotate(&self, scope: &Scope, id: &str) -> Result<Webhook> {
        self.change(scope, id, |webhook| webhook.secrets.rotate(self.memory.now())).await
    }

    /// Deletes a webhook with its deliveries.
    ///
    /// # Errors
    /// `NotFound` if the scope has no such webhook; errors from the store.
    pub async fn delete(&self, scope: &Scope, id: &str) -> Result<()> {
        self.read(scope, id).await?;
        self.remove(scope, id).await?;
        self.notify();
        Ok(())
    }

    /// Lists the deliveries of a webhook.
    ///
    /// # Errors
    /// `NotFound` if the scope has no such webhook; errors from the store.
    pub async fn deliveries(&self, scope: &Scope, id: &str, query: &DeliveryQuery) -> Result<DeliveryPage> {
        self.read(scope, id).await?;
        deliveries::list(&Records::of(&self.memory, scope), id, query).await
    }

    /// Sends an event again. The content is read again, so it can differ from the first delivery.
    ///
    /// # Errors
    /// `NotFound` if the scope has no such webhook, or the webhook has no delivery of the event; errors from the store.
    pub async fn replay(&self, scope: &Scope, id: &str, event: &str) -> Result<Delivery> {
        let webhook = self.read(scope, id).await?;
        let (records, event) = (Records::of(&self.memory, scope), event.parse::<WebhookEvent>()?);
        let key = event.key(id);
        let is_known = records.find::<Delivery>(Kind::Queue, &key).await?.is_some()
            || records.find::<Delivery>(Kind::History, &key).await?.is_some();
        if !is_known {
            return Err(Error::not_found("event"));
        }
        let now = self.memory.now();
        let delivery = Delivery::new(&event, now);
        records.write(Kind::Queue, &key, None, &delivery, Some(now.plus_ms(2 * deliveries::RETENTION_MS))).await?;
        records.delete(Kind::History, &key).await?;
        // The instance that sends webhooks reads the queue again when the version of the webhook's record has changed.
        records.write(Kind::Webhook, id, Some(webhook.version), &webhook.value, None).await?;
        self.notify();
        Ok(delivery)
    }

    /// Sends webhooks until the service is asked to stop.
    pub async fn run(service: crate::Service, encoder: Arc<dyn EventEncoder>) {
        dispatcher::run(service, encoder).await;
    }

    async fn read(&self, scope: &Scope, id: &str) -> Result<Stored<Webhook>> {
        let is_id = id.strip_prefix(PREFIX).is_some_and(|id| id.len() == ID_BYTES * 2);
        let found = if is_id { Records::of(&self.memory, scope).find(Kind::Webhook, id).await? } else { None };
        found.ok_or_else(|| Error::not_found("webhook"))
    }

    async fn change(&self, scope: &Scope, id: &str, change: impl Fn(&mut Webhook) -> Result<()>) -> Result<Webhook> {
        let records = Records::of(&self.memory, scope);
        for _ in 0..8 {
            let Stored { value: mut webhook, version, .. } = self.read(scope, id).await?;
            change(&mut webhook)?;
            if records.write(Kind::Webhook, id, Some(version), &webhook, None).await?.is_some() {
                self.notify();
                return Ok(webhook);
            }
        }
        Err(Error::new(ErrorKind::Conflict, "conflict", "other requests are changing the webhook; retry"))
    }

    fn apply(&self, webhook: &mut Webhook, patch: WebhookPatch) -> Result<()> {
        if let Some(url) = patch.url {
            parse_url(&url, &self.networks)?;
            webhook.url = url;
        }
        if let Some(events) = patch.events {
            if let Some(unknown) = events.iter().find(|event| !EVENT_NAMES.contains(&event.as_str())) {
                let unknown: String = unknown.chars().filter(|c| !c.is_control()).take(40).collect();
                let message = format!("`{unknown}` is not an event; events are {}", EVENT_NAMES.join(", "));
                return Err(Error::invalid("events", message));
            }
            webhook.events = EVENT_NAMES
                .into_iter()
                .filter(|name| events.iter().any(|event| event == name))
                .map(str::to_owned)
                .collect();
        }
        if let Some(description) = patch.description {
            if description.len() > MAX_DESCRIPTION_BYTES || description.contains('\0') {
                let message = format!("`description` must have at most {MAX_DESCRIPTION_BYTES} bytes without NUL");
                return Err(Error::invalid("description", message));
            }
            webhook.description = description;
        }
        if let Some(is_enabled) = patch.is_enabled {
            webhook.is_enabled = is_enabled;
            webhook.disabled_reason = None;
        }
        Ok(())
    }

    /// Removes all records of a webhook.
    async fn remove(&self, scope: &Scope, id: &str) -> Result<()> {
        let (records, registry) = (Records::of(&self.memory, scope), Records::internal(&self.memory));
        records.delete(Kind::Webhook, id).await?;
        records.delete(Kind::Cursor, id).await?;
        for kind in [Kind::Queue, Kind::History, Kind::Position] {
            records.delete_all(kind, &format!("{id}.")).await?;
        }
        // Last, so that an interrupted removal is completed by the dispatcher.
        registry.delete(Kind::Registry, id).await
    }

    fn notify(&self) {
        self.changed.send_replace(());
    }
}
