//! Flushes the log of a list: adds its oldest messages to the postings of their terms. `index.lua` describes lists.
//!
//! This runs in the client, because the server is blocked while Lua runs. The server replaces the changed buckets at once, if neither the
//! oldest segments nor the buckets have changed meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use threadkeep_core::{Result, StoreError};

use crate::keys::MessageTerm;

/// Sizes of the parts of a list.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// The mean size of a bucket in bytes.
    pub(super) bucket: u64,
    /// The size from which on the postings of a term are moved out of its bucket.
    pub(super) postings: usize,
    /// The number of buckets after the first flush.
    pub(super) first_buckets: u64,
    /// The maximum number of buckets that one flush splits.
    pub(super) splits: u64,
}

pub(super) const SIZES: Sizes = Sizes { bucket: 1_000, postings: 500, first_buckets: 8, splits: 24 };

/// The oldest segments of a log, and the state of its list.
pub(super) struct Oldest {
    /// The number of the first segment.
    pub(super) first: u64,
    /// The number of corrections of the list.
    pub(super) corrections: u64,
    /// The number of buckets, and the sum of their bytes.
    pub(super) buckets: u64,
    pub(super) bytes: u64,
    pub(super) segments: Vec<Vec<u8>>,
}

/// The changes of a list.
pub(super) struct Flush {
    pub(super) buckets: u64,
    pub(super) bytes: u64,
    /// The fields to write, without the name of the list, and their contents; an empty one is removed.
    pub(super) fields: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Oldest {
    /// Returns the messages of each term in the segments, the lowest number first.
    fn messages(&self) -> Result<BTreeMap<MessageTerm, Vec<u64>>> {
        let corrupt = || StoreError::corrupt("index", "not a log");
        let mut messages: BTreeMap<MessageTerm, Vec<u64>> = BTreeMap::new();
        for segment in &self.segments {
            let mut rest = segment.as_slice();
            while !rest.is_empty() {
                let mark = rest.iter().position(|byte| *byte == 255).ok_or_else(corrupt)?;
                let (terms, tail) = rest.split_at(mark);
                let (number, tail) = tail[1..].split_first_chunk::<5>().ok_or_else(corrupt)?;
                let (terms, _) = terms.as_chunks::<5>();
                for term in terms {
                    messages.entry(*term).or_default().push(read_five(number));
                }
                rest = tail;
            }
        }
        Ok(messages)
    }

    /// Returns the buckets that a flush changes.
    pub(super) fn buckets_to_read(&self, sizes: Sizes) -> Result<BTreeSet<u64>> {
        let count = self.buckets.max(sizes.first_buckets);
        let mut buckets: BTreeSet<u64> = self.messages()?.keys().map(|term| bucket_of(*term, count)).collect();
        buckets.extend((count..count + sizes.splits).map(split_by));
        buckets.retain(|bucket| *bucket < self.buckets);
        Ok(buckets)
    }

    /// Adds the messages in the segments to buckets. `buckets` are those of [`Self::buckets_to_read`].
    pub(super) fn flush(&self, mut buckets: BTreeMap<u64, Vec<u8>>, sizes: Sizes) -> Result<Flush> {
        let read: BTreeMap<u64, usize> = buckets.iter().map(|(number, bucket)| (*number, bucket.len())).collect();
        let mut count = self.buckets.max(sizes.first_buckets);
        let mut added: BTreeMap<u64, Vec<(MessageTerm, Vec<u64>)>> = BTreeMap::new();
        for (term, messages) in self.messages()? {
            added.entry(bucket_of(term, count)).or_default().push((term, messages));
        }
        let (mut fields, mut changed) = (Vec::new(), BTreeSet::new());
        for (number, terms) in added {
            let bucket = buckets.entry(number).or_default();
            *bucket = add_to_bucket(bucket, terms, sizes.postings, &mut fields)?;
            changed.insert(number);
        }
        let total = |buckets: &BTreeMap<u64, Vec<u8>>| {
            let sizes = buckets.iter().map(|(number, bucket)| (bucket.len(), read.get(number).copied().unwrap_or(0)));
            sizes.fold(self.bytes, |sum, (after, before)| (sum + after as u64).saturating_sub(before as u64))
        };
        // Splitting does not change the sum.
        let bytes = total(&buckets);
        for _ in 0..sizes.splits {
            if bytes <= count * sizes.bucket {
                break;
            }
            let (old, new) = (split_by(count), count);
            count += 1;
            let (mut kept, mut moved) = (Vec::new(), Vec::new());
            for (term, entry) in entries(buckets.get(&old).map(Vec::as_slice).unwrap_or_default())? {
                let target = if bucket_of(term, count) == new { &mut moved } else { &mut kept };
                target.extend(term);
                target.extend(entry);
            }
            buckets.insert(old, kept);
            buckets.insert(new, moved);
            changed.extend([old, new]);
        }
        fields.extend(
            changed.into_iter().map(|number| (bucket_field(number), buckets.remove(&number).unwrap_or_default())),
        );
        Ok(Flush { buckets: count, bytes, fields })
    }
}

/// Adds messages to the postings of terms. Full postings are moved to `fields`.
fn add_to_bucket(
    bucket: &[u8],
    added: Vec<(MessageTerm, Vec<u64>)>,
    max_postings: usize,
    fields: &mut Vec<(Vec<u8>, Vec<u8>)>,
) -> Result<Vec<u8>> {
    let mut added: BTreeMap<MessageTerm, Vec<u64>> = added.into_iter().collect();
    let mut result = Vec::with_capacity(bucket.len() + 8 * added.len());
    for (term, entry) in entries(bucket)? {
        result.extend(term);
        let Some(messages) = added.remove(&term) else {
            result.extend(entry);
            continue;
        };
        let mut rest = entry;
        let corrupt = || StoreError::corrupt("index", "not postings");
        let count = read_varint(&mut rest).ok_or_else(corrupt)?;
        let mut full = read_varint(&mut rest).ok_or_else(corrupt)?;
        let mut postings = rest;
        if postings.len() >= max_postings {
            full += 1;
            let newest = read_varint(&mut rest).ok_or_else(corrupt)?;
            fields.push((postings_field(term, full), [five(newest).as_slice(), postings].concat()));
            postings = &[];
        }
        put_varint(&mut result, count + messages.len() as u64);
        put_varint(&mut result, full);
        put_postings(&mut result, &messages, postings)?;
    }
    for (term, messages) in added {
        result.extend(term);
        put_varint(&mut result, messages.len() as u64);
        put_varint(&mut result, 0);
        put_postings(&mut result, &messages, &[])?;
    }
    Ok(result)
}

/// Appends messages, and postings that contain lower numbers only.
fn put_postings(result: &mut Vec<u8>, messages: &[u64], mut postings: &[u8]) -> Result<()> {
    let mut last: Option<u64> = None;
    let older = if postings.is_empty() { None } else { read_varint(&mut postings) };
    for number in messages.iter().rev().copied().chain(older) {
        let relative = last.map_or(Some(number), |last| last.checked_sub(number).filter(|relative| *relative > 0));
        put_varint(result, relative.ok_or_else(|| StoreError::corrupt("index", "messages are out of order"))?);
        last = Some(number);
    }
    result.extend(postings);
    Ok(())
}

/// Returns the terms in a bucket and what follows each of them.
fn entries(bucket: &[u8]) -> Result<Vec<(MessageTerm, &[u8])>> {
    let (mut entries, mut rest) = (Vec::new(), bucket);
    while let Some((term, tail)) = rest.split_first_chunk::<5>() {
        let end = tail.iter().position(|byte| *byte >= 128).unwrap_or(tail.len());
        entries.push((*term, &tail[..end]));
        rest = &tail[end..];
    }
    if rest.is_empty() { Ok(entries) } else { Err(StoreError::corrupt("index", "not a bucket")) }
}

/// Returns the bucket that is split when there are `count` buckets.
fn split_by(count: u64) -> u64 {
    count - (1 << count.ilog2())
}

/// Returns the bucket of a term, by linear hashing: a new bucket takes half of the terms of one other bucket.
fn bucket_of(term: MessageTerm, count: u64) -> u64 {
    let hash = term[1..].iter().rev().fold(0_u64, |hash, byte| hash * 128 + u64::from(*byte));
    let size = 1 << count.ilog2();
    let bucket = hash % (size * 2);
    if bucket < count { bucket } else { hash % size }
}

/// The field of a bucket, after the name of its list.
pub(super) fn bucket_field(number: u64) -> Vec<u8> {
    [b"b".as_slice(), &five(number)].concat()
}

fn postings_field(term: MessageTerm, number: u64) -> Vec<u8> {
    [b"p".as_slice(), &term, &five(number)].concat()
}

/// Encodes a number below 2^35 in five bytes below 128, in the same order.
pub(crate) fn five(number: u64) -> [u8; 5] {
    std::array::from_fn(|at| (number >> (7 * (4 - at)) & 127) as u8)
}

pub(crate) fn read_five(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 7 | u64::from(*byte))
}

/// Appends a number in bytes below 128, six bits in each: the lowest ones first, and 64 added to all bytes but the last.
fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 64 {
        bytes.push(64 | (number & 63) as u8);
        number >>= 6;
    }
    bytes.push(number as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 63) << shift;
        if *byte < 64 {
            return Some(number);
        }
        shift = (shift + 6).min(42);
    }
}

/// Decodes postings: the highest number first.
pub(crate) fn read_postings(mut bytes: &[u8]) -> Vec<u64> {
    let mut numbers: Vec<u64> = Vec::new();
    while let Some(number) = read_varint(&mut bytes) {
        numbers.push(numbers.last().map_or(number, |last| last.saturating_sub(number)));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, 63, 64, 127, 128, 300_000, (1 << 35) - 1] {
            assert_eq!(read_five(&five(number)), number);
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            assert_eq!(read_varint(&mut bytes.as_slice()), Some(number));
            assert!(bytes.iter().chain(&five(number)).all(|byte| *byte < 128));
        }
        assert!(five(4_000) < five(70_000));
    }

    #[test]
    fn postings_are_differences() {
        // 4,165 = 5 + 1 × 64 + 1 × 4,096.
        assert_eq!(read_postings(&[64 + 5, 64 + 1, 1, 1, 64 + 2, 1]), [4_165, 4_164, 4_098]);
        let mut bytes = Vec::new();
        put_postings(&mut bytes, &[4_098, 4_164], &[]).unwrap();
        let mut all = Vec::new();
        put_postings(&mut all, &[4_165], &bytes).unwrap();
        assert_eq!(read_postings(&all), [4_165, 4_164, 4_098]);
        assert!(put_postings(&mut all, &[4_165], &bytes[..]).is_ok());
        assert!(put_postings(&mut Vec::new(), &[4_164], &bytes).is_err(), "twice the same message");
    }

    #[test]
    fn a_split_moves_only_terms_of_one_bucket() {
        let terms: Vec<MessageTerm> = (0..2_000).map(|word| crate::keys::message_term(&format!("{word}"))).collect();
        for count in 1..70 {
            for term in &terms {
                let (before, after) = (bucket_of(*term, count), bucket_of(*term, count + 1));
                assert!(before < count && (before == after || (before, after) == (split_by(count), count)));
            }
        }
    }
}
