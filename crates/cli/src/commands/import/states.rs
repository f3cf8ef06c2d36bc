//! Remembers which files were imported completely, so that the next import does not read them again.
//!
//! The states of files are records of the user in the store with their conversations: an import into another store, or after the user
//! was erased, reads all files. A path is stored as a digest. A file is read again if its size or modification time has changed, if the
//! import has other options, or after an update of Threadkeep, whose readers may find more in the file.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use threadkeep::core::{Fingerprint, RecordQuery};
use threadkeep::memory::RecordUpdate;
use threadkeep::{JsonText, Memory, Namespace, Record, RecordName, RecordOwner, Scope};

use super::files::{File, FileState};

/// The number of records that contain the states, so that a changed file does not cause all states to be written.
const RECORDS: usize = 64;
/// The maximum number of states in a record. Further files are read by every import.
const STATES_PER_RECORD: usize = 20_000;
/// The number of imported files after which states are written.
const WRITE_AFTER: usize = 500;

/// The size of a file, its modification time, and the digest of the options with which it was imported.
type Stored = (u64, u64, String);
/// The states of files, by the digests of their paths.
type States = BTreeMap<String, Stored>;

/// The files that were imported completely.
pub(super) struct FileStates<'a> {
    memory: &'a Memory,
    scope: &'a Scope,
    /// The digest of the options.
    options: String,
    known: Vec<States>,
    /// The states that have not been written to the store.
    unwritten: Vec<States>,
    unwritten_count: usize,
}

impl<'a> FileStates<'a> {
    /// Reads the states. `options` is everything that affects what an import takes from a file.
    pub(super) async fn load(memory: &'a Memory, scope: &'a Scope, options: &str) -> Result<Self> {
        let options = digest(&format!("{} {options}", env!("CARGO_PKG_VERSION")));
        let mut known = vec![States::new(); RECORDS];
        let query = RecordQuery { namespace: Some(namespace()), ..RecordQuery::of(owner(scope)) };
        for record in memory.list_records(scope, query).await.context("cannot read the store")? {
            let states = record.key.parse().ok().and_then(|number: usize| known.get_mut(number));
            states.into_iter().for_each(|states| *states = parse(&record));
        }
        let unwritten = vec![States::new(); RECORDS];
        Ok(Self { memory, scope, options, known, unwritten, unwritten_count: 0 })
    }

    /// Whether a file was imported completely and has not changed since.
    pub(super) fn contain(&self, file: &File) -> bool {
        let (Some((number, key)), Some(state)) = (place(file), file.state()) else { return false };
        self.known[number].get(&key) == Some(&self.stored(state))
    }

    /// Notes that a file was imported completely.
    pub(super) async fn add(&mut self, file: &File) -> Result<()> {
        let (Some((number, key)), Some(state)) = (place(file), file.state()) else { return Ok(()) };
        let stored = self.stored(state);
        self.known[number].insert(key.clone(), stored.clone());
        self.unwritten[number].insert(key, stored);
        self.unwritten_count += 1;
        if self.unwritten_count >= WRITE_AFTER { self.write().await } else { Ok(()) }
    }

    /// Writes the states that are not in the store yet.
    pub(super) async fn write(&mut self) -> Result<()> {
        self.unwritten_count = 0;
        for (number, states) in self.unwritten.iter_mut().enumerate().filter(|(_, states)| !states.is_empty()) {
            let name = RecordName { namespace: namespace(), key: number.to_string() };
            let update = |record: Option<&Record>| -> Result<RecordUpdate> {
                // Another process may have written other states meanwhile.
                let mut merged = record.map(parse).unwrap_or_default();
                for (key, state) in &*states {
                    if merged.len() < STATES_PER_RECORD || merged.contains_key(key) {
                        merged.insert(key.clone(), state.clone());
                    }
                }
                Ok(RecordUpdate::Write(JsonText::new(serde_json::to_string(&merged)?)?))
            };
            let written = self.memory.update_record(self.scope, &owner(self.scope), &name, update).await;
            written.context("cannot write to the store")?;
            states.clear();
        }
        Ok(())
    }

    fn stored(&self, state: FileState) -> Stored {
        (state.bytes, state.changed_at, self.options.clone())
    }
}

fn namespace() -> Namespace {
    Namespace::System("import".to_owned())
}

fn owner(scope: &Scope) -> RecordOwner {
    scope.default_owner().into()
}

/// Returns the states in a record; none if a later release wrote them in another form.
fn parse(record: &Record) -> States {
    serde_json::from_str(record.value.as_str()).unwrap_or_default()
}

/// Returns the number of the record and the key for the state of a file; `None` if it is not a file on disk.
fn place(file: &File) -> Option<(usize, String)> {
    let path = std::path::absolute(file.path()?).ok()?;
    let Fingerprint(bytes) = Fingerprint::of(path.as_os_str().as_encoded_bytes());
    Some((usize::from(bytes[0]) % RECORDS, hex(bytes)))
}

fn digest(text: &str) -> String {
    hex(Fingerprint::of(text.as_bytes()).0)
}

fn hex(bytes: [u8; 8]) -> String {
    format!("{:016x}", u64::from_be_bytes(bytes))
}
