//! Parses positions in threads and references to messages.

use threadkeep::{Bound, MessageId, MessageRef};

use crate::instants;

/// Parses a position or an instant.
pub(crate) fn bound(text: &str) -> Result<Bound, String> {
    if let Ok(seq) = text.parse() {
        return Ok(Bound::Seq(seq));
    }
    let expected = "expected a position (17), a day (2026-05-04) or a timestamp (2026-05-04T18:12:00Z)";
    instants::parse(text).map(Bound::Time).map_err(|_| expected.to_owned())
}

/// Parses a message's position or id.
pub(crate) fn message(text: &str) -> Option<MessageRef> {
    let seq = text.trim_start_matches('#').parse().ok().map(MessageRef::Seq);
    seq.or_else(|| text.parse::<MessageId>().ok().map(MessageRef::Id))
}
