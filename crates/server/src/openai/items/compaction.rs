//! What stands in for items that were compacted: notes, which a client keeps and hands back without reading them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use threadkeep::{MessageId, Part, Role};

use super::write::Item;

/// Tells notes of this server from those of others, which only their makers can read.
const MARK: &str = "threadkeep:";
const HEADING: &str = "Notes on the conversation before:\n";

/// An item that holds notes.
pub(crate) fn compacted(id: MessageId, notes: &str) -> Item {
    let id = format!("cmp_{}", id.0.simple());
    let content = BASE64_STANDARD.encode(format!("{MARK}{notes}"));
    let item = json!({ "id": id, "type": "compaction", "encrypted_content": content });
    Item { id, json: item.to_string() }
}

/// What a model is shown of an item's content; `None` where somebody else wrote it.
pub(super) fn shown(content: &str) -> Option<(Role, Part)> {
    let text = String::from_utf8(BASE64_STANDARD.decode(content).ok()?).ok()?;
    let notes = text.strip_prefix(MARK)?;
    Some((Role::System, Part::Text(format!("{HEADING}{notes}"))))
}
