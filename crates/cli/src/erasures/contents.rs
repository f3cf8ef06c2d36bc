//! Reads the ledger, and looks up users, threads, messages and records in it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use threadkeep::core::{Namespace, RecordOwner};
use threadkeep::memory::{ErasedUser, ErasureBound, ErasureEntries};
use threadkeep::{MessageId, TenantId, ThreadId, UserId};

use super::key::Key;
use super::line::{Entry, Item, Line, Unusable};

/// The maximum length of a line.
const LINE_BYTES: u64 = 64 * 1024;

/// Computes the hashes that replace names.
pub(super) mod hashes {
    use super::{Key, MessageId, Namespace, RecordOwner, TenantId, ThreadId, UserId};

    pub(in super::super) fn store(key: &Key, store: &str) -> String {
        key.hash(&["store", store])[..16].to_owned()
    }

    pub(in super::super) fn user(key: &Key, tenant: &TenantId, user: &UserId) -> String {
        key.hash(&["user", tenant.as_str(), user.as_str()])
    }

    pub(in super::super) fn thread(key: &Key, tenant: &TenantId, thread: ThreadId) -> String {
        key.hash(&["thread", tenant.as_str(), &thread.to_string()])
    }

    pub(in super::super) fn message(key: &Key, tenant: &TenantId, thread: ThreadId, message: MessageId) -> String {
        key.hash(&["message", tenant.as_str(), &thread.to_string(), &message.to_string()])
    }

    pub(in super::super) fn record(
        key: &Key,
        tenant: &TenantId,
        owner: &RecordOwner,
        namespace: &Namespace,
        record: &str,
    ) -> String {
        let (kind, owner) = match owner {
            RecordOwner::Thread(thread) => ("thread", thread.to_string()),
            RecordOwner::User(user) => ("user", user.to_string()),
            RecordOwner::Tenant => ("tenant", String::new()),
        };
        key.hash(&["document", tenant.as_str(), kind, &owner, &namespace.to_string(), record])
    }
}

/// The contents of a ledger.
#[derive(Debug)]
pub(crate) struct LedgerContents {
    key: Key,
    /// Whether the entries of every store apply, not only those of this store. True if the ledger's path was given explicitly.
    for_all_stores: bool,
    /// The hashes of the stores from which the restored data is known to come.
    stores: BTreeSet<String>,
    users: HashMap<String, Vec<StoreEntry<ErasedUser>>>,
    threads: HashMap<String, Vec<StoreEntry<ErasureBound>>>,
    messages: HashMap<String, Vec<StoreEntry<ErasureBound>>>,
    records: HashMap<String, Vec<StoreEntry<ErasureBound>>>,
    /// The threads in which messages or records were erased, each with the stores of these erasures.
    threads_with_erasures: HashMap<String, BTreeSet<String>>,
    highest_version: u64,
    pub(crate) truncated: Vec<u64>,
    pub(crate) damaged: Vec<u64>,
}

/// What was erased, and the store in which this happened.
#[derive(Clone, Debug)]
struct StoreEntry<T> {
    store: String,
    erased: T,
}

/// The reason why a ledger as a whole is unusable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerError {
    #[error("read error")]
    Io(#[from] io::Error),
    #[error("the key is missing")]
    MissingKey,
    #[error("the key belongs to another ledger, or the whole ledger is damaged")]
    WrongKey,
    #[error("the erasure ledger was written by a later version of threadkeep")]
    LaterVersion,
}

impl LedgerContents {
    /// Reads a ledger. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// The ledger as a whole is unusable. Single damaged lines are not errors.
    pub(crate) fn read(file: &Path, store: &str, for_all_stores: bool) -> Result<Option<Self>, LedgerError> {
        let opened = match File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Waits until no other process is writing a line.
        opened.lock_shared()?;
        let key = match Key::find(file)? {
            Some(key) => key,
            None if opened.metadata()?.len() == 0 => return Ok(None),
            None => return Err(LedgerError::MissingKey),
        };
        let mut lines = Lines::default();
        lines.read(BufReader::new(opened), &key)?;
        let stores = BTreeSet::from([hashes::store(&key, store)]);
        let mut contents = Self {
            key,
            for_all_stores,
            stores,
            users: HashMap::new(),
            threads: HashMap::new(),
            messages: HashMap::new(),
            records: HashMap::new(),
            threads_with_erasures: HashMap::new(),
            highest_version: 0,
            truncated: lines.truncated,
            damaged: lines.damaged,
        };
        for entry in lines.entries.into_iter().filter(|entry| !lines.voided_ids.contains(&entry.id)) {
            contents.add(entry);
        }
        Ok(Some(contents))
    }

    fn add(&mut self, Entry { at, store, item, .. }: Entry) {
        let entry_up_to = |up_to| StoreEntry { store: store.clone(), erased: ErasureBound { at, up_to } };
        match item {
            Item::User { hash, shared_messages, record_version } => {
                self.highest_version = self.highest_version.max(record_version);
                let bound = ErasureBound { at, up_to: record_version };
                let erased = ErasedUser { bound, shared_messages_at: shared_messages.then_some(at) };
                self.users.entry(hash).or_default().push(StoreEntry { store, erased });
            }
            Item::Thread { hash } => self.threads.entry(hash).or_default().push(entry_up_to(0)),
            Item::Message { thread, hash, change } => {
                self.messages.entry(hash).or_default().push(entry_up_to(change));
                self.threads_with_erasures.entry(thread).or_default().insert(store);
            }
            Item::Record { thread, hash, version } => {
                self.records.entry(hash).or_default().push(entry_up_to(version));
                match thread {
                    Some(thread) => drop(self.threads_with_erasures.entry(thread).or_default().insert(store)),
                    None => self.highest_version = self.highest_version.max(version),
                }
            }
        }
    }

    /// Returns the number of skipped entries: those of users and records in other stores. They are skipped because another store may
    /// use the same names for other users and records.
    pub(crate) fn skipped(&self) -> u64 {
        let users = self.users.values().flatten().map(|entry| &entry.store);
        let records = self.records.values().flatten().map(|entry| &entry.store);
        users.chain(records).filter(|store| !self.applies(store)).count() as u64
    }

    fn applies(&self, store: &str) -> bool {
        self.for_all_stores || self.stores.contains(store)
    }

    fn latest(&self, found: Option<&Vec<StoreEntry<ErasureBound>>>, includes_all_stores: bool) -> Option<ErasureBound> {
        let found = found?.iter().filter(|entry| includes_all_stores || self.applies(&entry.store));
        found.map(|entry| entry.erased).reduce(combine)
    }
}

/// Returns a bound that includes both bounds.
fn combine(one: ErasureBound, other: ErasureBound) -> ErasureBound {
    ErasureBound { at: one.at.max(other.at), up_to: one.up_to.max(other.up_to) }
}

impl ErasureEntries for LedgerContents {
    /// Thread ids are unique, so a store that contains a thread which another store erased is a copy of that store.
    fn note_thread(&mut self, tenant: &TenantId, thread: ThreadId) {
        let hash = hashes::thread(&self.key, tenant, thread);
        let erased = self.threads.get(&hash).into_iter().flatten().map(|entry| &entry.store);
        let inside = self.threads_with_erasures.get(&hash).into_iter().flatten();
        self.stores.extend(erased.chain(inside).cloned());
    }

    fn user(&self, tenant: &TenantId, user: &UserId) -> Option<ErasedUser> {
        let found = self.users.get(&hashes::user(&self.key, tenant, user))?;
        let found = found.iter().filter(|entry| self.applies(&entry.store)).map(|entry| entry.erased);
        found.reduce(|one, other| ErasedUser {
            bound: combine(one.bound, other.bound),
            shared_messages_at: one.shared_messages_at.max(other.shared_messages_at),
        })
    }

    fn thread(&self, tenant: &TenantId, thread: ThreadId) -> Option<ErasureBound> {
        self.latest(self.threads.get(&hashes::thread(&self.key, tenant, thread)), true)
    }

    fn has_entries_in_thread(&self, tenant: &TenantId, thread: ThreadId) -> bool {
        self.threads_with_erasures.contains_key(&hashes::thread(&self.key, tenant, thread))
    }

    fn message(&self, tenant: &TenantId, thread: ThreadId, message: MessageId) -> Option<ErasureBound> {
        self.latest(self.messages.get(&hashes::message(&self.key, tenant, thread, message)), true)
    }

    fn record(&self, tenant: &TenantId, owner: &RecordOwner, namespace: &Namespace, key: &str) -> Option<ErasureBound> {
        let includes_all_stores = matches!(owner, RecordOwner::Thread(_));
        self.latest(self.records.get(&hashes::record(&self.key, tenant, owner, namespace, key)), includes_all_stores)
    }

    fn has_erased_shared_messages(&self) -> bool {
        self.users
            .values()
            .flatten()
            .any(|entry| entry.erased.shared_messages_at.is_some() && self.applies(&entry.store))
    }

    fn highest_version(&self) -> u64 {
        self.highest_version
    }
}

/// The lines of a ledger, by kind.
#[derive(Default)]
struct Lines {
    entries: Vec<Entry>,
    /// The ids of withdrawn entries.
    voided_ids: HashSet<String>,
    truncated: Vec<u64>,
    damaged: Vec<u64>,
}

impl Lines {
    fn read(&mut self, mut file: impl BufRead, key: &Key) -> Result<(), LedgerError> {
        let (mut number, mut usable) = (0, 0);
        loop {
            let mut line = Vec::new();
            if file.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            number += 1;
            let is_whole = line.pop_if(|last| *last == b'\n').is_some();
            let text = std::str::from_utf8(&line).map_err(|_| Unusable::Damaged);
            match text.and_then(|text| Line::decode(text, key)) {
                Ok(line) => {
                    usable += 1;
                    self.take(line);
                }
                Err(Unusable::LaterVersion) => return Err(LedgerError::LaterVersion),
                // A crash truncated the line, so the erasure that it announces was not carried out.
                Err(Unusable::Damaged) if !is_whole => self.truncated.push(number),
                Err(Unusable::Damaged) => self.damaged.push(number),
            }
        }
        // If no line is usable, the key is wrong. A ledger that was truncated in its first line counts as empty.
        if usable == 0 && !self.damaged.is_empty() { Err(LedgerError::WrongKey) } else { Ok(()) }
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Erased(entry) => self.entries.push(entry),
            Line::Void { id } => drop(self.voided_ids.insert(id)),
            Line::Truncated {} => self.truncated.extend(self.damaged.pop()),
            Line::Header { .. } => {}
        }
    }
}
