use serde::Deserialize;
use serde_json::{Value, json};
use threadkeep::{Map, ThreadOrder, ThreadQuery};

use super::{NOTICE, insert, limit, metadata_filter};
use crate::{ToolFailure, Toolbox};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    metadata: Option<Map>,
    limit: Option<u64>,
    cursor: Option<String>,
}

pub(crate) async fn run(toolbox: &Toolbox, arguments: Arguments) -> Result<Value, ToolFailure> {
    let limit = limit(arguments.limit, 20, 100)?;
    let metadata = metadata_filter(arguments.metadata.as_ref())?;
    let query = ThreadQuery { after: arguments.cursor, metadata, ..ThreadQuery::new(ThreadOrder::Recent, limit) };
    let page = toolbox.memory.list_threads(&toolbox.scope, &query).await?;
    let threads = page.threads.iter().map(|thread| {
        let mut entry = json!({
            "id": thread.id, "updated_at": thread.updated_at, "messages": thread.positions.seq,
        });
        insert(&mut entry, "title", thread.title.clone());
        insert(&mut entry, "key", thread.key.as_ref().map(|key| key.as_str().to_owned()));
        entry
    });
    let mut result = json!({ "notice": NOTICE, "threads": threads.collect::<Vec<_>>() });
    insert(&mut result, "next_cursor", page.next);
    Ok(result)
}
