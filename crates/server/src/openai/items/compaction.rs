//! Compaction items, which contain notes that replace older items. A client stores these items and sends them back without reading
//! them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use threadkeep::{MessageId, Part, Role};

use super::write::Item;

/// The prefix of notes that this server wrote. The content of compaction items from other servers is opaque.
const MARK: &str = "threadkeep:";
const HEADING: &str = "Notes on the earlier conversation:\n";

/// Returns an item that contains notes.
pub(crate) fn compaction_item(id: MessageId, notes: &str) -> Item {
    let id = format!("cmp_{}", id.0.simple());
    let content = BASE64_STANDARD.encode(format!("{MARK}{notes}"));
    let item = json!({ "id": id, "type": "compaction", "encrypted_content": content });
    Item { id, json: item.to_string() }
}

/// Converts the content of an item into a message part for a model. Returns `None` if another server wrote the content.
pub(super) fn read_notes(content: &str) -> Option<(Role, Part)> {
    let text = String::from_utf8(BASE64_STANDARD.decode(content).ok()?).ok()?;
    let notes = text.strip_prefix(MARK)?;
    Some((Role::System, Part::Text(format!("{HEADING}{notes}"))))
}
