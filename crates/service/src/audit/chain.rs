//! The hash chain of the audit log. Each record contains the hash of the previous record, so that anyone who has stored the hash
//! of a record can detect whether that record or an earlier one was changed, removed or inserted.
//!
//! All instances append to one thread, each at the position after the last record that the instance read. Of two concurrent
//! appends, the store rejects one; that instance then reads the last record again and retries. The hash of a record is the
//! SHA-256 of its stored text, which contains the hash of the previous record. Records of earlier versions are in separate
//! threads, outside the chain.

use std::time::Duration;

use serde::Serialize;
use sha2::{Digest, Sha256};
use threadkeep::{
    AppendOptions, Conflict, Content, Draft, Expected, MemoryError, Message, MessageQuery, OnCorrupt, Role, ThreadId,
    Timestamp,
};

use super::{AuditLog, AuditRecord, PAGE};
use crate::hex::hex;

/// The key of the thread with the chain.
const KEY: &str = "audit:chain";
/// The previous hash in the first record.
const NO_PREVIOUS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// The maximum number of attempts at an append that conflicts with others.
const ATTEMPTS: usize = 64;
/// The maximum number of reported findings. A log that was replaced completely would have a finding for each record.
const FINDINGS: usize = 100;

/// The result of verifying a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditVerification {
    /// The number of records in the chain.
    pub records: u64,
    /// The number of records of earlier versions, which are not in the chain.
    pub unchained: u64,
    /// The hash of the newest record; `None` for an empty chain.
    pub head: Option<String>,
    /// The inconsistencies, at most 100; empty for an intact log.
    pub findings: Vec<AuditFinding>,
}

/// An inconsistency in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditFinding {
    /// The number of the record, counted from 1, if the finding is about a single record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// A description.
    pub detail: String,
}

impl AuditVerification {
    fn add_finding(&mut self, record: Option<u64>, detail: impl Into<String>) {
        if self.findings.len() < FINDINGS {
            self.findings.push(AuditFinding { record, detail: detail.into() });
        }
    }
}

impl AuditLog {
    /// Returns the hash of the newest record, which can be passed to [`AuditLog::verify`] later; `None` for an empty chain.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn head(&self) -> Result<Option<String>, MemoryError> {
        let Some(thread) = self.find_chain().await? else { return Ok(None) };
        let newest = self.memory.newest(&self.scope, thread, 1).await?;
        Ok(newest.last().map(|message| hash_record(&message.plain_text())))
    }

    /// Verifies the whole log: that each record contains the hash of the previous record, that no position is missing, and, if
    /// `head` is given, that a record has this hash. `head` is a hash that [`AuditLog::head`] returned earlier.
    ///
    /// # Errors
    /// Errors from the store. Inconsistencies in the log are findings, not errors.
    pub async fn verify(&self, head: Option<&str>) -> Result<AuditVerification, MemoryError> {
        let mut verifier =
            ChainVerifier { head, is_head_seen: false, position: 0, verification: AuditVerification::default() };
        let mut started_at = None;
        if let Some(thread) = self.find_chain().await? {
            loop {
                let query =
                    MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::following(verifier.position, PAGE) };
                let page = self.memory.messages(&self.scope, thread, &query).await?;
                started_at = started_at.or_else(|| page.messages.first().map(|message| message.created_at));
                page.messages.iter().for_each(|message| verifier.verify(message));
                if !page.more {
                    verifier.add_missing(page.positions.seq);
                    break;
                }
            }
        }
        let ChainVerifier { is_head_seen, mut verification, .. } = verifier;
        if head.is_some() && !is_head_seen {
            verification.add_finding(
                None,
                "no record has the given hash: the log was truncated or changed, or is a different log",
            );
        }
        let (unchained, late) = self.count_unchained(started_at).await?;
        verification.unchained = unchained;
        if late > 0 {
            verification.add_finding(None, format!("{late} records were written outside the chain after its start"));
        }
        Ok(verification)
    }

    /// Appends a record to the chain.
    pub(crate) async fn write(&self, record: &AuditRecord) -> Result<(), MemoryError> {
        // Without this lock, concurrent appends in this process would conflict with each other.
        let _lock = self.write_lock.lock().await;
        let thread = self.memory.open_by_key(&self.scope, KEY).await?.thread.id;
        for attempt in 0..ATTEMPTS {
            let page = self.memory.messages(&self.scope, thread, &MessageQuery::newest(1)).await?;
            let newest = page.messages.last();
            let previous = newest.map_or_else(|| NO_PREVIOUS.to_owned(), |message| hash_record(&message.plain_text()));
            let record = AuditRecord { previous: Some(previous), ..record.clone() };
            let text = serde_json::to_string(&record)
                .map_err(|_| MemoryError::Invalid { field: "audit", reason: "it cannot be represented in JSON" })?;
            let draft = Draft::new(Content::text(Role::System, text));
            let options =
                AppendOptions { expected: Some(Expected::Seq(page.positions.seq)), ..AppendOptions::default() };
            match self.memory.append_all(&self.scope, thread, vec![draft], &options).await {
                Err(error) if matches!(error.conflict(), Some(Conflict::Seq { .. })) => {
                    wait_before_retry(attempt).await
                }
                appended => return appended.map(drop),
            }
        }
        Err(MemoryError::Contended { what: "the audit log", attempts: ATTEMPTS })
    }

    async fn find_chain(&self) -> Result<Option<ThreadId>, MemoryError> {
        Ok(self.memory.find_thread_by_key(&self.scope, KEY).await?.map(|thread| thread.id))
    }

    /// Counts the records outside the chain. Returns their number, and how many of them were written after the start of the chain.
    async fn count_unchained(&self, started_at: Option<Timestamp>) -> Result<(u64, u64), MemoryError> {
        let (mut count, mut late) = (0, 0);
        for thread in self.threads().await? {
            if thread.key.as_ref().is_some_and(|key| key.as_str() == KEY) {
                continue;
            }
            let mut after = 0;
            loop {
                let page = self.memory.messages(&self.scope, thread.id, &MessageQuery::following(after, PAGE)).await?;
                count += page.messages.len() as u64;
                let is_late = |message: &&Message| started_at.is_some_and(|started_at| message.created_at > started_at);
                late += page.messages.iter().filter(is_late).count() as u64;
                after = page.messages.last().map_or(after, |message| message.seq);
                if !page.more {
                    break;
                }
            }
        }
        Ok((count, late))
    }
}

/// Verifies the chain, record by record.
struct ChainVerifier<'a> {
    head: Option<&'a str>,
    is_head_seen: bool,
    /// The position of the last verified record.
    position: u64,
    verification: AuditVerification,
}

impl ChainVerifier<'_> {
    fn verify(&mut self, message: &Message) {
        self.add_missing(message.seq - 1);
        let (text, position) = (message.plain_text(), message.seq);
        let previous = self.verification.head.take();
        let previous = previous.as_deref().unwrap_or(NO_PREVIOUS);
        match serde_json::from_str::<AuditRecord>(&text) {
            Ok(record) if record.previous.as_deref() == Some(previous) => {}
            Ok(_) => {
                let detail =
                    "the hash of the previous record does not match: this record or the previous one was changed";
                self.verification.add_finding(Some(position), detail);
            }
            Err(_) => self.verification.add_finding(Some(position), "not a record of the audit log"),
        }
        let hash = hash_record(&text);
        self.is_head_seen |= self.head.is_some_and(|head| head.eq_ignore_ascii_case(&hash));
        self.verification.records += 1;
        self.verification.head = Some(hash);
        self.position = position;
    }

    /// Adds a finding if records between the last verified one and `last` (inclusive) are missing.
    fn add_missing(&mut self, last: u64) {
        let first = self.position + 1;
        if first <= last {
            let detail = if first == last {
                "missing".to_owned()
            } else {
                format!("this record and all records up to {last} are missing")
            };
            self.verification.add_finding(Some(first), detail);
        }
    }
}

/// Waits for a random duration that increases with the number of attempts.
async fn wait_before_retry(attempt: usize) {
    let mut byte = [0];
    // If there are no random bytes, all concurrent writers wait for the same time.
    getrandom::fill(&mut byte).unwrap_or_default();
    let steps = u64::from(byte[0]) * (1 + attempt.min(10) as u64);
    tokio::time::sleep(Duration::from_micros(40 * steps)).await;
}

fn hash_record(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
