//! Runs a worker for each webhook, on one instance at a time.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use threadkeep::core::limits;
use threadkeep::memory::turns::{Driver, LEASE_RENEWAL_INTERVAL, is_alive, lease_until};
use threadkeep::{Memory, Timestamp};
use tokio::task::JoinHandle;

use super::RegistryEntry;
use super::payload::EventEncoder;
use super::records::{Kind, Records, Stored};
use super::sender::Sender;
use super::worker::Worker;
use crate::error::Result;
use crate::service::Service;

/// The key of the record that contains the lease.
const KEY: &str = "dispatcher";

/// The lease for sending webhooks, and the process that holds it.
#[derive(Debug, Serialize, Deserialize)]
struct Lease {
    /// The name of the process.
    driver: String,
    until: Timestamp,
}

/// Sends webhooks whenever no other instance does, until the service is asked to stop.
pub(super) async fn run(service: Service, encoder: Arc<dyn EventEncoder>) {
    let mut changed = service.webhooks().changed.subscribe();
    let sender = match Sender::new(&service.webhooks().networks, service.webhooks().options.timeout) {
        Ok(sender) => sender,
        Err(error) => {
            tracing::error!(error = error.internal.as_deref(), "webhooks cannot be sent: no HTTP client");
            return service.stopped().await;
        }
    };
    while !service.is_stopping() {
        if let Err(error) = Dispatcher::new(&service, &encoder, &sender).run().await {
            tracing::warn!(%error, "cannot read the webhooks; will retry");
        }
        tokio::select! {
            () = service.stopped() => {}
            _ = changed.changed() => {}
            () = tokio::time::sleep(service.webhooks().options.poll_interval) => {}
        }
    }
}

/// A worker's task, which is aborted when this value is dropped.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Dispatcher<'a> {
    service: &'a Service,
    encoder: &'a Arc<dyn EventEncoder>,
    sender: &'a Sender,
    records: Records,
    /// This process, as a holder of the lease.
    driver: Driver,
    tasks: HashMap<String, Task>,
}

impl<'a> Dispatcher<'a> {
    fn new(service: &'a Service, encoder: &'a Arc<dyn EventEncoder>, sender: &'a Sender) -> Self {
        let records = Records::internal(service.memory());
        let driver = Driver::begin(service.memory());
        Self { service, encoder, sender, records, driver, tasks: HashMap::new() }
    }

    /// Sends webhooks while this instance holds the lease and there are webhooks.
    async fn run(mut self) -> Result<()> {
        if self.list_webhooks().await?.is_empty() {
            return Ok(());
        }
        let Some(mut version) = self.acquire().await? else { return Ok(()) };
        let memory = self.service.memory().clone();
        let mut lease_end = lease_until(&memory);
        let mut renewal = tokio::time::interval(LEASE_RENEWAL_INTERVAL);
        let mut changed = self.service.webhooks().changed.subscribe();
        while !self.service.is_stopping() {
            let listed = self.list_webhooks().await;
            match listed {
                Ok(webhooks) if webhooks.is_empty() => break,
                Ok(webhooks) => self.start_workers(webhooks),
                Err(error) => tracing::warn!(%error, "cannot list the webhooks; will retry"),
            }
            tokio::select! {
                () = self.service.stopped() => {}
                _ = changed.changed() => {}
                () = tokio::time::sleep(self.service.webhooks().options.poll_interval) => {}
                _ = renewal.tick() => match self.renew(&memory, version).await {
                    Ok(Some(renewed)) => (version, lease_end) = (renewed, lease_until(&memory)),
                    // Another instance has taken over.
                    Ok(None) => return Ok(()),
                    Err(error) if memory.now() >= lease_end => return Err(error),
                    Err(error) => tracing::warn!(%error, "cannot renew the lease for sending webhooks; will retry"),
                },
            }
        }
        for task in self.tasks.values_mut() {
            // When the service stops, workers end on their own. Otherwise, their webhooks no longer exist, and they are aborted.
            if self.service.is_stopping() {
                drop((&mut task.0).await);
            }
        }
        self.records.delete(Kind::Dispatcher, KEY).await
    }

    async fn list_webhooks(&self) -> Result<Vec<Stored<RegistryEntry>>> {
        let mut webhooks: Vec<Stored<RegistryEntry>> = Vec::new();
        loop {
            let after = webhooks.last().map(|last| last.key.clone());
            let page = self.records.list(Kind::Registry, "", after, limits::PAGE).await?;
            let is_last = page.len() < limits::PAGE;
            webhooks.extend(page);
            if is_last {
                return Ok(webhooks);
            }
        }
    }

    /// Acquires the lease if no live instance holds it. Returns the version of the lease's record.
    async fn acquire(&self) -> Result<Option<u64>> {
        let memory = self.service.memory();
        let found = self.records.find::<Lease>(Kind::Dispatcher, KEY).await?;
        let version = found.as_ref().map_or(0, |stored| stored.version);
        if found.is_some_and(|stored| is_alive(memory, &stored.value.driver, stored.value.until)) {
            return Ok(None);
        }
        self.renew(memory, version).await
    }

    async fn renew(&self, memory: &Memory, version: u64) -> Result<Option<u64>> {
        let lease = Lease { driver: self.driver.name().to_owned(), until: lease_until(memory) };
        self.records.write(Kind::Dispatcher, KEY, Some(version), &lease, None).await
    }

    /// Starts the missing workers, and stops those whose webhooks were deleted.
    fn start_workers(&mut self, webhooks: Vec<Stored<RegistryEntry>>) {
        self.tasks.retain(|id, task| !task.0.is_finished() && webhooks.iter().any(|webhook| webhook.key == *id));
        for Stored { key: id, value, .. } in webhooks {
            self.tasks.entry(id.clone()).or_insert_with(|| {
                let worker =
                    Worker::new(self.service, value.scope(), id, Arc::clone(self.encoder), self.sender.clone());
                Task(tokio::spawn(worker.run()))
            });
        }
    }
}
