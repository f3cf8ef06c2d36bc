//! Reading the ledger, and asking it about names.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use threadkeep::core::{DocumentOwner, Namespace};
use threadkeep::memory::{ErasedUser, ErasureBound, KnownErasures};
use threadkeep::{MessageId, TenantId, ThreadId, UserId};

use super::key::Key;
use super::line::{Entry, Item, Line, Unusable};

/// The longest line that is read.
const LINE_BYTES: u64 = 64 * 1024;

/// The hashes that stand for names.
pub(super) mod names {
    use super::{DocumentOwner, Key, MessageId, Namespace, TenantId, ThreadId, UserId};

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

    pub(in super::super) fn document(
        key: &Key,
        tenant: &TenantId,
        owner: &DocumentOwner,
        namespace: &Namespace,
        document: &str,
    ) -> String {
        let (kind, owner) = match owner {
            DocumentOwner::Thread(thread) => ("thread", thread.to_string()),
            DocumentOwner::User(user) => ("user", user.to_string()),
            DocumentOwner::Tenant => ("tenant", String::new()),
        };
        key.hash(&["document", tenant.as_str(), kind, &owner, &namespace.to_string(), document])
    }
}

/// What a ledger holds.
#[derive(Debug)]
pub(crate) struct Known {
    key: Key,
    /// Whether entries count for every store: somebody said that this is its ledger.
    for_all_stores: bool,
    /// Stores that what is restored comes from, as far as is known.
    stores: BTreeSet<String>,
    users: HashMap<String, Vec<Of<ErasedUser>>>,
    threads: HashMap<String, Vec<Of<ErasureBound>>>,
    messages: HashMap<String, Vec<Of<ErasureBound>>>,
    documents: HashMap<String, Vec<Of<ErasureBound>>>,
    /// Threads of which messages or documents were erased, and the stores.
    in_threads: HashMap<String, BTreeSet<String>>,
    highest_version: u64,
    pub(crate) torn: Vec<u64>,
    pub(crate) damaged: Vec<u64>,
}

/// An entry's bounds, and the store that it was made for.
#[derive(Clone, Debug)]
struct Of<T> {
    store: String,
    bound: T,
}

/// Why a ledger cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    #[error("its key is missing")]
    NoKey,
    #[error("its key is another one's, or all of it is damaged")]
    OtherKey,
    #[error("a later version of threadkeep wrote it")]
    LaterVersion,
}

impl Known {
    /// Reads a ledger; `None` where there is none.
    pub(crate) fn read(file: &Path, store: &str, for_all_stores: bool) -> Result<Option<Self>, Unreadable> {
        let opened = match File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Whoever is writing a line finishes it first.
        opened.lock_shared()?;
        let key = match Key::find(file)? {
            Some(key) => key,
            None if opened.metadata()?.len() == 0 => return Ok(None),
            None => return Err(Unreadable::NoKey),
        };
        let mut lines = Lines::default();
        lines.read(BufReader::new(opened), &key)?;
        let stores = BTreeSet::from([names::store(&key, store)]);
        let mut known = Self {
            key,
            for_all_stores,
            stores,
            users: HashMap::new(),
            threads: HashMap::new(),
            messages: HashMap::new(),
            documents: HashMap::new(),
            in_threads: HashMap::new(),
            highest_version: 0,
            torn: lines.torn,
            damaged: lines.damaged,
        };
        for entry in lines.entries.into_iter().filter(|entry| !lines.void.contains(&entry.id)) {
            known.add(entry);
        }
        Ok(Some(known))
    }

    fn add(&mut self, Entry { at, store, item, .. }: Entry) {
        let of = |number| Of { store: store.clone(), bound: ErasureBound { at, number } };
        match item {
            Item::User { name, shared_messages, document_version } => {
                self.highest_version = self.highest_version.max(document_version);
                let bound = ErasureBound { at, number: document_version };
                let bound = ErasedUser { bound, shared_messages_at: shared_messages.then_some(at) };
                self.users.entry(name).or_default().push(Of { store, bound });
            }
            Item::Thread { name } => self.threads.entry(name).or_default().push(of(0)),
            Item::Message { thread, name, change } => {
                self.messages.entry(name).or_default().push(of(change));
                self.in_threads.entry(thread).or_default().insert(store);
            }
            Item::Document { thread, name, version } => {
                self.documents.entry(name).or_default().push(of(version));
                match thread {
                    Some(thread) => drop(self.in_threads.entry(thread).or_default().insert(store)),
                    None => self.highest_version = self.highest_version.max(version),
                }
            }
        }
    }

    /// How many entries were passed over: they name a user or a document, which another store may have by the same name.
    pub(crate) fn passed_over(&self) -> u64 {
        let users = self.users.values().flatten().map(|of| &of.store);
        let documents = self.documents.values().flatten().map(|of| &of.store);
        users.chain(documents).filter(|store| !self.counts_for(store)).count() as u64
    }

    fn counts_for(&self, store: &str) -> bool {
        self.for_all_stores || self.stores.contains(store)
    }

    fn latest(&self, found: Option<&Vec<Of<ErasureBound>>>, of_any_store: bool) -> Option<ErasureBound> {
        let found = found?.iter().filter(|of| of_any_store || self.counts_for(&of.store));
        found.map(|of| of.bound).reduce(later)
    }
}

fn later(one: ErasureBound, other: ErasureBound) -> ErasureBound {
    ErasureBound { at: one.at.max(other.at), number: one.number.max(other.number) }
}

impl KnownErasures for Known {
    /// Ids of threads are never given twice: a store that holds a thread which another store erased came from it.
    fn note_thread(&mut self, tenant: &TenantId, thread: ThreadId) {
        let name = names::thread(&self.key, tenant, thread);
        let erased = self.threads.get(&name).into_iter().flatten().map(|of| &of.store);
        let inside = self.in_threads.get(&name).into_iter().flatten();
        self.stores.extend(erased.chain(inside).cloned());
    }

    fn user(&self, tenant: &TenantId, user: &UserId) -> Option<ErasedUser> {
        let found = self.users.get(&names::user(&self.key, tenant, user))?;
        let found = found.iter().filter(|of| self.counts_for(&of.store)).map(|of| of.bound);
        found.reduce(|one, other| ErasedUser {
            bound: later(one.bound, other.bound),
            shared_messages_at: one.shared_messages_at.max(other.shared_messages_at),
        })
    }

    fn thread(&self, tenant: &TenantId, thread: ThreadId) -> Option<ErasureBound> {
        self.latest(self.threads.get(&names::thread(&self.key, tenant, thread)), true)
    }

    fn is_in_thread(&self, tenant: &TenantId, thread: ThreadId) -> bool {
        self.in_threads.contains_key(&names::thread(&self.key, tenant, thread))
    }

    fn message(&self, tenant: &TenantId, thread: ThreadId, message: MessageId) -> Option<ErasureBound> {
        self.latest(self.messages.get(&names::message(&self.key, tenant, thread, message)), true)
    }

    fn document(
        &self,
        tenant: &TenantId,
        owner: &DocumentOwner,
        namespace: &Namespace,
        key: &str,
    ) -> Option<ErasureBound> {
        let of_any_store = matches!(owner, DocumentOwner::Thread(_));
        self.latest(self.documents.get(&names::document(&self.key, tenant, owner, namespace, key)), of_any_store)
    }

    fn has_shared_messages(&self) -> bool {
        self.users.values().flatten().any(|of| of.bound.shared_messages_at.is_some() && self.counts_for(&of.store))
    }

    fn highest_version(&self) -> u64 {
        self.highest_version
    }
}

#[derive(Default)]
struct Lines {
    entries: Vec<Entry>,
    void: HashSet<String>,
    torn: Vec<u64>,
    damaged: Vec<u64>,
}

impl Lines {
    fn read(&mut self, mut file: impl BufRead, key: &Key) -> Result<(), Unreadable> {
        let (mut number, mut usable) = (0, 0);
        loop {
            let mut line = Vec::new();
            if file.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            number += 1;
            let is_whole = line.pop_if(|last| *last == b'\n').is_some();
            let text = std::str::from_utf8(&line).map_err(|_| Unusable::Damaged);
            match text.and_then(|text| Line::read(text, key)) {
                Ok(line) => {
                    usable += 1;
                    self.take(line);
                }
                Err(Unusable::LaterVersion) => return Err(Unreadable::LaterVersion),
                // Cut by a crash, so it was never answered for.
                Err(Unusable::Damaged) if !is_whole => self.torn.push(number),
                Err(Unusable::Damaged) => self.damaged.push(number),
            }
        }
        // A ledger with nothing usable in it belongs to another key; one that was cut in its first line holds nothing.
        if usable == 0 && !self.damaged.is_empty() { Err(Unreadable::OtherKey) } else { Ok(()) }
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Erased(entry) => self.entries.push(entry),
            Line::Void { id } => drop(self.void.insert(id)),
            Line::Torn {} => self.torn.extend(self.damaged.pop()),
            Line::ThreadkeepErasures { .. } => {}
        }
    }
}
