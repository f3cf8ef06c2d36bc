use serde::{Deserialize, Serialize};

use crate::{MessageId, Role, Timestamp};

/// A checksum of a message: the CRC-32 (IEEE) of its role, id, `created_at`, external id and stored content.
///
/// It is computed once, when a message is written or replaced. Dumps contain it, and restoring a dump stores it unchanged, so
/// later changes to the bytes are detected. It detects accidents, not tampering. Position and revision are not covered, because a
/// dump may change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checksum(u32);

impl Checksum {
    /// Computes the checksum of a message. `body` is its content as stored ([`crate::codec::encode_content`]); `role` is `None`
    /// only if the stored role is missing or unknown.
    #[must_use]
    pub fn of(id: MessageId, role: Option<Role>, created_at: Timestamp, external_id: Option<&str>, body: &str) -> Self {
        // Fixed-size fields come first, and a length precedes each text but the last, so different messages give different bytes.
        let mut head = [0; 33];
        head[0] = role.map_or(0, |role| role.as_str().as_bytes()[0]);
        head[1..17].copy_from_slice(id.0.as_bytes());
        head[17..25].copy_from_slice(&created_at.as_micros().to_be_bytes());
        let length = external_id.map_or(u64::MAX, |name| name.len() as u64);
        head[25..].copy_from_slice(&length.to_be_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&head);
        hasher.update(external_id.unwrap_or_default().as_bytes());
        hasher.update(body.as_bytes());
        Self(hasher.finalize())
    }

    /// Returns the checksum as an integer, to be stored in a four-byte column.
    #[must_use]
    pub const fn to_stored(self) -> i32 {
        self.0.cast_signed()
    }

    /// Restores a checksum from the integer that [`Checksum::to_stored`] returned.
    #[must_use]
    pub const fn from_stored(stored: i32) -> Self {
        Self(stored.cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields<'a> = (u128, Option<Role>, i64, Option<&'a str>, &'a str);

    fn checksum_of((id, role, micros, external_id, body): Fields<'_>) -> Checksum {
        let created_at = Timestamp::from_micros(micros).unwrap();
        Checksum::of(MessageId(uuid::Uuid::from_u128(id)), role, created_at, external_id, body)
    }

    #[test]
    fn checksum_covers_every_field_separately() {
        let fields: [Fields<'_>; 9] = [
            (1, Some(Role::User), 5, None, "1u\"msg<4321>\""),
            (1, Some(Role::User), 5, None, "1u\"msg<9999>\""),
            (2, Some(Role::User), 5, None, "1u\"msg<4321>\""),
            (1, Some(Role::System), 5, None, "1u\"msg<4321>\""),
            (1, None, 5, None, "1u\"msg<4321>\""),
            (1, Some(Role::User), 6, None, "1u\"msg<4321>\""),
            (1, Some(Role::User), 5, Some(""), "1u\"msg<4321>\""),
            (1, Some(Role::User), 5, Some("1u"), "\"msg<4321>\""),
            (1, Some(Role::User), 5, Some("1"), "u\"msg<4321>\""),
        ];
        for (index, a) in fields.iter().enumerate() {
            for b in &fields[..index] {
                assert_ne!(checksum_of(*a), checksum_of(*b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_body_is_detected() {
        let body = "1u\"Wo ist der Bahnhof, und was kostet msg<4321>?\"";
        let written = checksum_of((7, Some(Role::User), 1, Some("D1:2"), body));
        for index in 0..body.len() {
            for bit in 0..7 {
                let mut bytes = body.as_bytes().to_vec();
                bytes[index] ^= 1 << bit;
                let flipped = String::from_utf8(bytes).unwrap();
                assert_ne!(checksum_of((7, Some(Role::User), 1, Some("D1:2"), &flipped)), written, "{index} {bit}");
            }
        }
    }

    /// Checksums are stored: if the algorithm changed, every stored message would be reported as damaged.
    #[test]
    fn checksum_algorithm_is_stable() {
        let checksum = checksum_of((7, Some(Role::User), 1_000_000, Some("D1:2"), "1u\"hello\""));
        assert_eq!(serde_json::to_string(&checksum).unwrap(), "385141229");
        assert_eq!(Checksum::from_stored(checksum.to_stored()), checksum);
    }
}
