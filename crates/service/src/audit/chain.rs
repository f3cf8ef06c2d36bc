//! The chain of the audit log: each record names the hash of the one before it, so that whoever kept a hash can tell
//! whether anything up to it was changed, removed or put in between.
//!
//! All instances append to one thread, each at the position behind the record that it read: of two that append at once one
//! is refused by the store and reads again. The hash of a record is the SHA-256 of its stored text, in which the hash of
//! the one before stands. Records of earlier versions lie in threads of their own and are not in the chain.

use std::time::Duration;

use serde::Serialize;
use sha2::{Digest, Sha256};
use threadkeep::{
    AppendOptions, Conflict, Content, Draft, Expected, MemoryError, Message, MessageQuery, OnCorrupt, Role, ThreadId,
    Timestamp,
};

use super::{AuditLog, AuditRecord, PAGE};
use crate::hex::hex;

/// The key of the thread that holds the chain.
const KEY: &str = "audit:chain";
/// What the first record names as the hash of the one before.
const NONE_BEFORE: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// How often an append is tried that others get in the way of.
const ATTEMPTS: usize = 64;
/// Findings that are told; a log that was replaced as a whole has as many as records.
const FINDINGS: usize = 100;

/// What holds of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditVerification {
    /// Records in the chain.
    pub records: u64,
    /// Records of earlier versions, which no chain covers.
    pub unchained: u64,
    /// The hash of the newest record; none for an empty chain.
    pub head: Option<String>,
    /// What does not hold together; nothing where the log is as it was written.
    pub findings: Vec<AuditFinding>,
}

/// Something in a log that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditFinding {
    /// The record, counted from 1, where one can be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// What is wrong.
    pub detail: String,
}

impl AuditVerification {
    fn find(&mut self, record: Option<u64>, detail: impl Into<String>) {
        if self.findings.len() < FINDINGS {
            self.findings.push(AuditFinding { record, detail: detail.into() });
        }
    }
}

impl AuditLog {
    /// The hash of the newest record: whoever keeps it can hold the log against it later. None for an empty chain.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn head(&self) -> Result<Option<String>, MemoryError> {
        let Some(thread) = self.find_chain().await? else { return Ok(None) };
        let newest = self.memory.newest(&self.scope, thread, 1).await?;
        Ok(newest.last().map(|message| hash(&message.plain_text())))
    }

    /// Reads the whole log and holds it together: every record against the one before, the chain against its positions,
    /// and, with `head`, against a hash that was told earlier.
    ///
    /// # Errors
    /// Those of the store. What is wrong with the log itself is a finding.
    pub async fn verify(&self, head: Option<&str>) -> Result<AuditVerification, MemoryError> {
        let mut walk = Walk { head, is_head_seen: false, position: 0, verification: AuditVerification::default() };
        let mut began_at = None;
        if let Some(thread) = self.find_chain().await? {
            loop {
                let query =
                    MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::following(walk.position, PAGE) };
                let page = self.memory.messages(&self.scope, thread, &query).await?;
                began_at = began_at.or_else(|| page.messages.first().map(|message| message.created_at));
                page.messages.iter().for_each(|message| walk.take(message));
                if !page.more {
                    walk.end(page.positions.seq);
                    break;
                }
            }
        }
        let Walk { is_head_seen, mut verification, .. } = walk;
        if head.is_some() && !is_head_seen {
            verification
                .find(None, "no record has the hash that was given: the log was cut, changed, or is another one");
        }
        let (unchained, late) = self.count_unchained(began_at).await?;
        verification.unchained = unchained;
        if late > 0 {
            verification.find(None, format!("{late} records were written beside the chain after it began"));
        }
        Ok(verification)
    }

    /// Appends a record to the chain.
    pub(crate) async fn write(&self, record: &AuditRecord) -> Result<(), MemoryError> {
        // One at a time in this process: they would only refuse each other.
        let _turn = self.writing.lock().await;
        let thread = self.memory.open_by_key(&self.scope, KEY).await?.thread.id;
        for attempt in 0..ATTEMPTS {
            let page = self.memory.messages(&self.scope, thread, &MessageQuery::newest(1)).await?;
            let newest = page.messages.last();
            let previous = newest.map_or_else(|| NONE_BEFORE.to_owned(), |message| hash(&message.plain_text()));
            let record = AuditRecord { previous: Some(previous), ..record.clone() };
            let text = serde_json::to_string(&record)
                .map_err(|_| MemoryError::Invalid { field: "audit", reason: "it has no JSON form" })?;
            let draft = Draft::new(Content::text(Role::System, text));
            let options =
                AppendOptions { expected: Some(Expected::Seq(page.positions.seq)), ..AppendOptions::default() };
            match self.memory.append_all(&self.scope, thread, vec![draft], &options).await {
                Err(error) if matches!(error.conflict(), Some(Conflict::Seq { .. })) => pause(attempt).await,
                appended => return appended.map(drop),
            }
        }
        Err(MemoryError::Contended { what: "the audit log", attempts: ATTEMPTS })
    }

    async fn find_chain(&self) -> Result<Option<ThreadId>, MemoryError> {
        Ok(self.memory.find_thread_by_key(&self.scope, KEY).await?.map(|thread| thread.id))
    }

    /// How many records lie beside the chain, and how many of them came after it began.
    async fn count_unchained(&self, began_at: Option<Timestamp>) -> Result<(u64, u64), MemoryError> {
        let (mut count, mut late) = (0, 0);
        for thread in self.threads().await? {
            if thread.key.as_ref().is_some_and(|key| key.as_str() == KEY) {
                continue;
            }
            let mut after = 0;
            loop {
                let page = self.memory.messages(&self.scope, thread.id, &MessageQuery::following(after, PAGE)).await?;
                count += page.messages.len() as u64;
                let is_late = |message: &&Message| began_at.is_some_and(|began_at| message.created_at > began_at);
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

/// Goes through the chain, record by record.
struct Walk<'a> {
    head: Option<&'a str>,
    is_head_seen: bool,
    /// Of the record that was taken last.
    position: u64,
    verification: AuditVerification,
}

impl Walk<'_> {
    fn take(&mut self, message: &Message) {
        self.miss(message.seq - 1);
        let (text, position) = (message.plain_text(), message.seq);
        let before = self.verification.head.take();
        let before = before.as_deref().unwrap_or(NONE_BEFORE);
        match serde_json::from_str::<AuditRecord>(&text) {
            Ok(record) if record.previous.as_deref() == Some(before) => {}
            Ok(_) => {
                let detail = "it does not follow the record before it: one of the two was changed";
                self.verification.find(Some(position), detail);
            }
            Err(_) => self.verification.find(Some(position), "it is no record of the audit log"),
        }
        let hash = hash(&text);
        self.is_head_seen |= self.head.is_some_and(|head| head.eq_ignore_ascii_case(&hash));
        self.verification.records += 1;
        self.verification.head = Some(hash);
        self.position = position;
    }

    /// Tells that records are missing up to a position, where they are.
    fn miss(&mut self, last: u64) {
        let first = self.position + 1;
        if first <= last {
            let detail =
                if first == last { "it is missing".to_owned() } else { format!("it is missing, as all up to {last}") };
            self.verification.find(Some(first), detail);
        }
    }

    fn end(&mut self, last: u64) {
        self.miss(last);
    }
}

/// Lets others have their turn, longer the more of them there seem to be.
async fn pause(attempt: usize) {
    let mut byte = [0];
    // Without randomness they only wait alike.
    getrandom::fill(&mut byte).unwrap_or_default();
    let steps = u64::from(byte[0]) * (1 + attempt.min(10) as u64);
    tokio::time::sleep(Duration::from_micros(40 * steps)).await;
}

fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
