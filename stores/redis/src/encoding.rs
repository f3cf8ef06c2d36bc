//! The stored form of messages and of entries of the change log.
//!
//! Both are binary, because they are most of a store. The JSON of the first form is still read.

use serde::{Deserialize, Serialize};
use threadkeep_core::{
    Checksum, DumpEntry, DumpedCommit, Fingerprint, IdempotencyKey, Message, MessageId, Result, StoreError, Timestamp,
    codec,
};
use uuid::Uuid;

/// The first byte of a message, of one in the first form, of a tombstone, and of an entry of the change log.
const MESSAGE: u8 = b'N';
const MESSAGE_IN_JSON: u8 = b'M';
/// `library.lua` leaves out tombstones by this byte.
const TOMBSTONE: u8 = b'T';
const COMMIT: u8 = b'C';

/// Flags of the parts of a message that may be missing.
const HAS_CHECKSUM: u8 = 1;
const HAS_REVISION: u8 = 2;
const HAS_EXTERNAL_ID: u8 = 4;

/// Appends a number, seven bits in each byte, the lowest first.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(128 | (number & 127) as u8);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends bytes after their length.
fn put_bytes(bytes: &mut Vec<u8>, part: &[u8]) {
    put_number(bytes, part.len() as u64);
    bytes.extend_from_slice(part);
}

/// Reads what `put_number` and `put_bytes` have written.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(part)
    }

    fn text(&mut self) -> Option<String> {
        Some(std::str::from_utf8(self.bytes()?).ok()?.to_owned())
    }

    fn time(&mut self) -> Option<Timestamp> {
        Timestamp::from_micros(i64::from_be_bytes(self.array()?)).ok()
    }
}

#[derive(Deserialize)]
struct JsonHead {
    #[serde(rename = "i")]
    id: MessageId,
    #[serde(rename = "x", default)]
    external_id: Option<String>,
    #[serde(rename = "r", default)]
    revision: u32,
    #[serde(rename = "c")]
    created_at: i64,
    #[serde(rename = "s", default)]
    checksum: Option<i32>,
}

#[derive(Serialize, Deserialize)]
struct TombstoneHead {
    #[serde(rename = "i")]
    id: MessageId,
    #[serde(rename = "e")]
    erased_at: i64,
}

/// Encodes a message or a tombstone. The content of a message follows its other parts.
pub(crate) fn encode_entry(entry: &DumpEntry) -> Vec<u8> {
    match entry {
        DumpEntry::Message { id, external_id, revision, created_at, body, checksum, .. } => {
            let mut bytes = Vec::with_capacity(40 + body.len());
            let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
            let flags = flag(checksum.is_some(), HAS_CHECKSUM)
                | flag(*revision > 0, HAS_REVISION)
                | flag(external_id.is_some(), HAS_EXTERNAL_ID);
            bytes.extend([MESSAGE, flags]);
            bytes.extend(id.0.as_bytes());
            bytes.extend(created_at.as_micros().to_be_bytes());
            bytes.extend(checksum.map(|checksum| checksum.to_stored().to_be_bytes()).into_iter().flatten());
            if *revision > 0 {
                put_number(&mut bytes, u64::from(*revision));
            }
            if let Some(external_id) = external_id {
                put_bytes(&mut bytes, external_id.as_bytes());
            }
            bytes.extend(body.as_bytes());
            bytes
        }
        DumpEntry::Tombstone { id, erased_at, .. } => {
            let head = TombstoneHead { id: *id, erased_at: erased_at.as_micros() };
            let json = serde_json::to_vec(&head).unwrap_or_default();
            [&[TOMBSTONE], json.as_slice()].concat()
        }
        DumpEntry::Lost { .. } => Vec::new(),
    }
}

/// Whether a row is that of a tombstone.
pub(crate) fn is_tombstone(row: &[u8]) -> bool {
    row.first() == Some(&TOMBSTONE)
}

/// Decodes the row of a position.
pub(crate) fn decode_entry(seq: u64, bytes: &[u8]) -> Result<DumpEntry> {
    let corrupt = |detail: String| StoreError::corrupt("message", format!("position {seq}: {detail}"));
    let time = |micros| Timestamp::from_micros(micros).map_err(|error| corrupt(error.to_string()));
    match bytes.split_first() {
        Some((&MESSAGE, rest)) => {
            decode_message(seq, &mut Reader(rest)).ok_or_else(|| corrupt("not a message".to_owned()))
        }
        Some((&MESSAGE_IN_JSON, rest)) => {
            let text = std::str::from_utf8(rest).map_err(|error| corrupt(error.to_string()))?;
            let (head, body) = text.split_once('\n').ok_or_else(|| corrupt("no content".to_owned()))?;
            let head: JsonHead = serde_json::from_str(head).map_err(|error| corrupt(error.to_string()))?;
            Ok(DumpEntry::Message {
                seq,
                id: head.id,
                external_id: head.external_id,
                revision: head.revision,
                created_at: time(head.created_at)?,
                body: body.to_owned(),
                checksum: head.checksum.map(Checksum::from_stored),
            })
        }
        Some((&TOMBSTONE, json)) => {
            let head: TombstoneHead = serde_json::from_slice(json).map_err(|error| corrupt(error.to_string()))?;
            Ok(DumpEntry::Tombstone { seq, id: head.id, erased_at: time(head.erased_at)? })
        }
        _ => Err(corrupt("neither a message nor a tombstone".to_owned())),
    }
}

fn decode_message(seq: u64, reader: &mut Reader<'_>) -> Option<DumpEntry> {
    let [flags] = reader.array()?;
    let has = |flag: u8| flags & flag != 0;
    let id = MessageId(Uuid::from_bytes(reader.array()?));
    let created_at = reader.time()?;
    let checksum = if has(HAS_CHECKSUM) { Some(i32::from_be_bytes(reader.array()?)) } else { None };
    let revision = if has(HAS_REVISION) { u32::try_from(reader.number()?).ok()? } else { 0 };
    let external_id = if has(HAS_EXTERNAL_ID) { Some(reader.text()?) } else { None };
    let body = std::str::from_utf8(reader.0).ok()?.to_owned();
    let checksum = checksum.map(Checksum::from_stored);
    Some(DumpEntry::Message { seq, id, external_id, revision, created_at, body, checksum })
}

/// Encodes an entry of the change log.
pub(crate) fn encode_commit(commit: &DumpedCommit) -> Vec<u8> {
    let mut bytes = vec![COMMIT];
    put_number(&mut bytes, commit.change);
    bytes.extend(commit.at.as_micros().to_be_bytes());
    put_bytes(&mut bytes, &commit.key.to_bytes());
    bytes.extend(commit.fingerprint.0);
    put_number(&mut bytes, commit.first_seq);
    put_number(&mut bytes, commit.count);
    if !commit.effects.is_empty() {
        bytes.extend(serde_json::to_vec(&commit.effects).unwrap_or_default());
    }
    bytes
}

/// Decodes an entry of the change log.
pub(crate) fn decode_commit(bytes: &[u8]) -> Result<DumpedCommit> {
    let corrupt = |detail: String| StoreError::corrupt("change", detail);
    let Some((&COMMIT, rest)) = bytes.split_first() else {
        return serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()));
    };
    let mut reader = Reader(rest);
    let mut commit = decode_head(&mut reader).ok_or_else(|| corrupt("not an entry of the change log".to_owned()))?;
    if !reader.0.is_empty() {
        commit.effects = serde_json::from_slice(reader.0).map_err(|error| corrupt(error.to_string()))?;
    }
    Ok(commit)
}

/// Decodes an entry without its effects.
fn decode_head(reader: &mut Reader<'_>) -> Option<DumpedCommit> {
    Some(DumpedCommit {
        change: reader.number()?,
        at: reader.time()?,
        key: IdempotencyKey::from_bytes(reader.bytes()?).ok()?,
        fingerprint: Fingerprint(reader.array()?),
        first_seq: reader.number()?,
        count: reader.number()?,
        effects: Vec::new(),
    })
}

/// Decodes the message in an entry; `None` for a tombstone.
pub(crate) fn to_message(entry: &DumpEntry) -> Option<Result<Message>> {
    let DumpEntry::Message { seq, id, external_id, revision, created_at, body, .. } = entry else { return None };
    Some(codec::decode_content(body).map(|content| Message {
        seq: *seq,
        id: *id,
        external_id: external_id.clone(),
        revision: *revision,
        created_at: *created_at,
        content,
    }))
}

#[cfg(test)]
mod tests {
    use threadkeep_core::Effect;

    use super::*;

    const JSON_MESSAGE: &[u8] = b"M{\"i\":\"01a21f62-013a-7a1a-8957-05ae2ca8c50e\",\"x\":\"m1\",\"r\":300,\"c\":1795822846266647,\"s\":-7}\n1uhi";
    const JSON_COMMIT: &[u8] = b"{\"change\":200,\"at\":\"2026-11-27T23:40:46.266647Z\",\
        \"key\":{\"minted\":\"01a21f62-013a-78df-be2a-54c39fdc5316\"},\"fingerprint\":[1,2,3,4,5,6,7,8],\
        \"first_seq\":399,\"count\":2,\"effects\":[\"patched\"]}";

    #[test]
    fn messages_of_both_forms_are_read() {
        let message = decode_entry(5, JSON_MESSAGE).unwrap();
        let bytes = encode_entry(&message);
        assert_eq!(decode_entry(5, &bytes).unwrap(), message);
        assert!(bytes.len() < JSON_MESSAGE.len() - 50 && bytes.ends_with(b"1uhi"));
        for length in 0..bytes.len() - 4 {
            assert!(decode_entry(5, &bytes[..length]).is_err(), "{length} bytes");
        }
        let DumpEntry::Message { seq, id, created_at, body, .. } = message else { panic!("not a message") };
        let plain = DumpEntry::Message { seq, id, external_id: None, revision: 0, created_at, body, checksum: None };
        assert_eq!(decode_entry(5, &encode_entry(&plain)).unwrap(), plain);
    }

    #[test]
    fn changes_of_both_forms_are_read() {
        let mut commit = decode_commit(JSON_COMMIT).unwrap();
        assert_eq!(commit.effects, [Effect::Patched]);
        assert_eq!(decode_commit(&encode_commit(&commit)).unwrap(), commit);
        commit.effects.clear();
        let bytes = encode_commit(&commit);
        assert_eq!(decode_commit(&bytes).unwrap(), commit);
        // Redis stores small hashes whose values have at most 64 bytes without an overhead for each value.
        assert!(bytes.len() <= 64 - 16);
        for length in 0..bytes.len() {
            assert!(decode_commit(&bytes[..length]).is_err(), "{length} bytes");
        }
    }
}
