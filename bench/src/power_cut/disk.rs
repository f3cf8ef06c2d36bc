//! Files between two syncs: what is sure, and what may have come after.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::trace::Event;
use crate::random::Random;

/// The least that a disk writes whole.
const SECTOR: usize = 512;

/// What of the writes that no sync covers stands in an image.
#[derive(Debug)]
pub(super) enum Later<'a> {
    None,
    /// Each one whole, torn at a sector's border, or not at all.
    Some(&'a mut Random),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    files: BTreeMap<String, File>,
    /// Removals since the last sync: a journal of the file system makes them last with the next one.
    removed: Vec<(String, File)>,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// What is sure.
    bytes: Vec<u8>,
    pending: Vec<Pending>,
}

#[derive(Clone, Debug)]
struct Pending {
    change: Change,
    /// Whether it had returned when the sync that is under way began: that sync covers it.
    is_covered: bool,
    /// Which call it is, until it has returned.
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
                    file.make_sure();
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

    /// Writes the files as they could stand, into a folder that is emptied first.
    pub(super) fn write_image(&self, folder: &Path, mut later: Later<'_>) -> Result<()> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        let brought_back = self.removed.iter().filter(|(name, _)| !self.files.contains_key(name));
        for (name, file) in brought_back {
            // A removal that no sync covers has happened or not.
            let is_back = match &mut later {
                Later::Some(random) => random.below(2) == 0,
                Later::None => false,
            };
            if is_back {
                std::fs::write(folder.join(name), file.image(&mut later))?;
            }
        }
        for (name, file) in &self.files {
            std::fs::write(folder.join(name), file.image(&mut later))?;
        }
        Ok(())
    }
}

impl File {
    fn make_sure(&mut self) {
        let bytes = &mut self.bytes;
        self.pending.retain(|pending| {
            if pending.is_covered {
                pending.change.apply(bytes);
            }
            !pending.is_covered
        });
    }

    fn image(&self, later: &mut Later<'_>) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if let Later::Some(random) = later {
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

/// A part of a write: its first sectors, or its last ones. Truncation cannot be torn.
fn torn(change: &Change, random: &mut Random) -> Change {
    let Change::Write { offset, bytes } = change else { return change.clone() };
    // The first border inside the write may come before a whole sector of it.
    let before_border = (SECTOR - offset % SECTOR) % SECTOR;
    let borders = bytes.len().saturating_sub(before_border) / SECTOR + 1;
    let at = (before_border + random.index(borders) * SECTOR).min(bytes.len());
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

    fn sure(disk: &Disk) -> Vec<u8> {
        disk.files["a"].image(&mut Later::None)
    }

    #[test]
    fn only_what_returned_before_a_sync_began_is_sure() {
        let mut disk = Disk::default();
        let sync = |disk: &mut Disk| {
            disk.apply(&Event::SyncBegins { file: "a".to_owned() });
            disk.apply(&Event::SyncEnds { file: "a".to_owned() });
        };
        disk.apply(&write(0, b"one", 1));
        disk.apply(&Event::Returned { call: 1 });
        disk.apply(&write(3, b"two", 2));
        sync(&mut disk);
        assert_eq!(sure(&disk), b"one");
        disk.apply(&Event::SyncBegins { file: "a".to_owned() });
        disk.apply(&Event::Returned { call: 2 });
        disk.apply(&Event::SyncEnds { file: "a".to_owned() });
        assert_eq!(sure(&disk), b"one", "it returned too late for this sync");
        sync(&mut disk);
        assert_eq!(sure(&disk), b"onetwo");
    }

    #[test]
    fn later_writes_stand_whole_torn_or_not_at_all() {
        let mut disk = Disk::default();
        disk.apply(&write(0, &[1; 1024], 1));
        let mut random = Random::new(5);
        let lengths: std::collections::BTreeSet<usize> = (0..200)
            .map(|_| {
                let image = disk.files["a"].image(&mut Later::Some(&mut random));
                image.iter().filter(|byte| **byte == 1).count()
            })
            .collect();
        assert_eq!(lengths, [0, 512, 1024].into());
    }
}
