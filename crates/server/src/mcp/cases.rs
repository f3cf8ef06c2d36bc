use serde_json::{Value, json};

use crate::door::{OwnedIds, Probe, TenantCase};

/// Returns the cases of the door: calls of tools that name a thread or a message.
pub(super) fn cases(ids: &OwnedIds) -> Vec<TenantCase> {
    let unknown = OwnedIds::nonexistent();
    let calls = |ids: &OwnedIds| {
        let message = format!("{}#1", ids.thread);
        [
            call("read_thread", &json!({ "thread": ids.thread })),
            call("read_thread", &json!({ "thread": message })),
            call("search_memory", &json!({ "query": "stove", "thread": ids.thread })),
            call("recall", &json!({ "question": "What does the stove burn?", "thread": ids.thread })),
            call("get_context", &json!({ "thread": ids.thread })),
            call("get_memory", &json!({ "id": message })),
            call("update_memory", &json!({ "id": message, "text": "changed" })),
            call("delete_memory", &json!({ "id": message })),
        ]
    };
    vec![TenantCase::new("POST", "/mcp", calls(ids).into_iter().zip(calls(&unknown)).collect())]
}

fn call(tool: &str, arguments: &Value) -> Probe {
    let params = json!({ "name": tool, "arguments": arguments });
    Probe::with("/mcp?tools=all", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
}
