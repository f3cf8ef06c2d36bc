//! Files between syncs: durable data, and writes that may or may not have reached the disk.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::trace::Event;
use crate::random::Random;

/// The unit that a disk writes atomically.
const SECTOR: usize = 512;

/// How an image treats writes that no sync covers.
#[derive(Debug)]
pub(super) enum UnsyncedWrites<'a> {
    Dropped,
    /// Each write is included, torn at a sector boundary, or dropped, at random.
    Random(&'a mut Random),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    files: BTreeMap<String, File>,
    /// Files removed since the last sync. A journaling file system makes removals durable with the next sync.
    removed: Vec<(String, File)>,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// Durable content.
    bytes: Vec<u8>,
    pending: Vec<Pending>,
}

#[derive(Clone, Debug)]
struct Pending {
    change: Change,
    /// Whether the call had returned when the current sync started, so the sync covers the change.
    is_covered: bool,
    /// The number of the call until it has returned; then `None`.
    call: Option<u64>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => write_at(file, *offset, bytes),
            Self::Truncate { length } => file.resize(*length, 0),
        }
    }
}

impl Disk {
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Created { file } => {
                self.files.entry(file.clone()).or_default();
            }
            Event::WriteBegins { file, offset, bytes, call } => {
                self.push(file, Change::Write { offset: *offset, bytes: bytes.clone() }, *call);
            }
            Event::Truncated { file, length, call } => self.push(file, Change::Truncate { length: *length }, *call),
            Event::Returned { call } => {
                let pending = self.files.values_mut().flat_map(|file| &mut file.pending);
                pending.filter(|pending| pending.call == Some(*call)).for_each(|pending| pending.call = None);
            }
            Event::SyncBegins { file } => {
                if let Some(file) = self.files.get_mut(file) {
                    file.pending.iter_mut().for_each(|pending| pending.is_covered |= pending.call.is_none());
                }
            }
            Event::SyncEnds { file } => {
                self.removed.clear();
                if let Some(file) = self.files.get_mut(file) {
                    file.make_durable();
                }
            }
            Event::Removed { file } => {
                if let Some(removed) = self.files.remove(file) {
                    self.removed.push((file.clone(), removed));
                }
            }
            Event::Acknowledged { .. } => {}
        }
    }

    fn push(&mut self, file: &str, change: Change, call: u64) {
        let file = self.files.entry(file.to_owned()).or_default();
        file.pending.push(Pending { change, is_covered: false, call: Some(call) });
    }

    /// Writes a possible state of the files into a folder, which is emptied first.
    pub(super) fn write_image(&self, folder: &Path, mut unsynced: UnsyncedWrites<'_>) -> Result<()> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        let removed = self.removed.iter().filter(|(name, _)| !self.files.contains_key(name));
        for (name, file) in removed {
            // A removal that no sync covers may or may not have reached the disk.
            let still_exists = match &mut unsynced {
                UnsyncedWrites::Random(random) => random.below(2) == 0,
                UnsyncedWrites::Dropped => false,
            };
            if still_exists {
                std::fs::write(folder.join(name), file.image(&mut unsynced))?;
            }
        }
        for (name, file) in &self.files {
            std::fs::write(folder.join(name), file.image(&mut unsynced))?;
        }
        Ok(())
    }
}

impl File {
    fn make_durable(&mut self) {
        let bytes = &mut self.bytes;
        self.pending.retain(|pending| {
            if pending.is_covered {
                pending.change.apply(bytes);
            }
            !pending.is_covered
        });
    }

    fn image(&self, unsynced: &mut UnsyncedWrites<'_>) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if let UnsyncedWrites::Random(random) = unsynced {
            for pending in &self.pending {
                match random.below(3) {
                    0 => {}
                    1 => pending.change.apply(&mut bytes),
                    _ => torn(&pending.change, random).apply(&mut bytes),
                }
            }
        }
        bytes
    }
}

/// Returns part of a write: its first or its last sectors. A truncation cannot be torn.
fn torn(change: &Change, random: &mut Random) -> Change {
    let Change::Write { offset, bytes } = change else { return change.clone() };
    // The write may start in the middle of a sector.
    let first_boundary = (SECTOR - offset % SECTOR) % SECTOR;
    let boundaries = bytes.len().saturating_sub(first_boundary) / SECTOR + 1;
    let at = (first_boundary + random.index(boundaries) * SECTOR).min(bytes.len());
    if random.below(2) == 0 {
        Change::Write { offset: *offset, bytes: bytes[..at].to_vec() }
    } else {
        Change::Write { offset: offset + at, bytes: bytes[at..].to_vec() }
    }
}

fn write_at(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: usize, bytes: &[u8], call: u64) -> Event {
        Event::WriteBegins { file: "a".to_owned(), offset, bytes: bytes.to_vec(), call }
    }

    fn durable(disk: &Disk) -> Vec<u8> {
        disk.files["a"].image(&mut UnsyncedWrites::Dropped)
    }

    #[test]
    fn a_sync_covers_only_writes_that_returned_before_it_started() {
        let mut disk = Disk::default();
        let sync = |disk: &mut Disk| {
            disk.apply(&Event::SyncBegins { file: "a".to_owned() });
            disk.apply(&Event::SyncEnds { file: "a".to_owned() });
        };
        disk.apply(&write(0, b"one", 1));
        disk.apply(&Event::Returned { call: 1 });
        disk.apply(&write(3, b"two", 2));
        sync(&mut disk);
        assert_eq!(durable(&disk), b"one");
        disk.apply(&Event::SyncBegins { file: "a".to_owned() });
        disk.apply(&Event::Returned { call: 2 });
        disk.apply(&Event::SyncEnds { file: "a".to_owned() });
        assert_eq!(durable(&disk), b"one", "the write returned too late for this sync");
        sync(&mut disk);
        assert_eq!(durable(&disk), b"onetwo");
    }

    #[test]
    fn unsynced_writes_are_included_torn_or_dropped() {
        let mut disk = Disk::default();
        disk.apply(&write(0, &[1; 1024], 1));
        let mut random = Random::new(5);
        let lengths: std::collections::BTreeSet<usize> = (0..200)
            .map(|_| {
                let image = disk.files["a"].image(&mut UnsyncedWrites::Random(&mut random));
                image.iter().filter(|byte| **byte == 1).count()
            })
            .collect();
        assert_eq!(lengths, [0, 512, 1024].into());
    }
}
