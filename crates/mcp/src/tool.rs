//! The tools: names, descriptions, annotations and schemas.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is documented by its description")]
pub enum Tool {
    SearchMemory,
    Recall,
    ReadThread,
    AddMemory,
    UpdateMemory,
    DeleteMemory,
    ListThreads,
    GetMemory,
    ListMemories,
    GetContext,
    ListPreferences,
    SearchDocuments,
}

/// The effect of a tool on stored data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    None,
    Adds,
    /// Changes or erases data. Calling the tool again with the same arguments changes nothing more.
    Overwrites,
}

impl Tool {
    /// All tools; the ones that are selected by default come first.
    pub const ALL: [Self; 12] = [
        Self::SearchMemory,
        Self::Recall,
        Self::ReadThread,
        Self::AddMemory,
        Self::UpdateMemory,
        Self::DeleteMemory,
        Self::ListThreads,
        Self::GetMemory,
        Self::ListMemories,
        Self::GetContext,
        Self::ListPreferences,
        Self::SearchDocuments,
    ];
    /// The number of tools that are selected by default.
    const DEFAULT_COUNT: usize = 6;

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SearchMemory => "search_memory",
            Self::Recall => "recall",
            Self::ReadThread => "read_thread",
            Self::AddMemory => "add_memory",
            Self::UpdateMemory => "update_memory",
            Self::DeleteMemory => "delete_memory",
            Self::ListThreads => "list_threads",
            Self::GetMemory => "get_memory",
            Self::ListMemories => "list_memories",
            Self::GetContext => "get_context",
            Self::ListPreferences => "list_preferences",
            Self::SearchDocuments => "search_documents",
        }
    }

    /// Finds the tool with the given name. `search_memories` is an alias of `search_memory`.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let name = if name == "search_memories" { Self::SearchMemory.name() } else { name };
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) const fn effect(self) -> ToolEffect {
        match self {
            Self::AddMemory => ToolEffect::Adds,
            Self::UpdateMemory | Self::DeleteMemory => ToolEffect::Overwrites,
            _ => ToolEffect::None,
        }
    }

    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::SearchMemory => {
                "Find messages of past conversations and memories with any of the words, best first. Syntax: \"phrase\", -word, prefix*, title:word, in:claude-code, project:folder."
            }
            Self::Recall => "Find messages that answer a question, even if they share no word with it.",
            Self::ReadThread => "Read a conversation in order, or the messages around a hit.",
            Self::AddMemory => "Store a fact or decision for later sessions: one self-contained statement.",
            Self::UpdateMemory => "Replace the text of a memory stored by add_memory.",
            Self::DeleteMemory => "Erase a memory stored by add_memory. Cannot be undone.",
            Self::ListThreads => "List conversations, most recently changed first.",
            Self::GetMemory => "Read the full text of one memory or search hit.",
            Self::ListMemories => "List the memories stored by add_memory, newest first.",
            Self::GetContext => {
                "Show which messages of a conversation a model would see for a question, and why each message is kept or omitted."
            }
            Self::ListPreferences => "List the user's stored preferences.",
            Self::SearchDocuments => "Find passages of the user's documents that answer a question.",
        }
    }

    /// Returns the schema of the arguments.
    pub(crate) fn input_schema(self) -> Value {
        let id = json!({ "type": "string", "description": "id of a hit or memory" });
        let limit = |max: u64| json!({ "type": "integer", "minimum": 1, "maximum": max });
        let text = json!({ "type": "string", "maxLength": crate::tools::TEXT_CHARS });
        let cursor = json!({ "type": "string", "description": "next_cursor of the previous page" });
        let metadata = json!({ "type": "object", "description": "metadata values that threads must have" });
        let (properties, required) = match self {
            Self::SearchMemory => (
                json!({
                    "query": query_schema(),
                    "since": { "type": "string", "description": "date: 2026, 2026-03 or 2026-03-14" },
                    "until": { "type": "string", "description": "date, inclusive" },
                    "role": { "enum": ["user", "assistant", "tool", "system"] },
                    "thread": { "type": "string" },
                    "metadata": metadata,
                    "limit": limit(50),
                    "cursor": cursor,
                }),
                json!(["query"]),
            ),
            Self::Recall => (
                json!({
                    "question": query_schema(),
                    "thread": { "type": "string" },
                    "metadata": metadata,
                    "limit": limit(20),
                }),
                json!(["question"]),
            ),
            Self::ReadThread => (
                json!({
                    "thread": { "type": "string", "description": "thread id or key, or id of a hit" },
                    "limit": limit(100),
                    "cursor": { "type": "string", "description": "next_cursor or previous_cursor" },
                }),
                json!(["thread"]),
            ),
            Self::AddMemory => (json!({ "text": text }), json!(["text"])),
            Self::UpdateMemory => (json!({ "id": id, "text": text }), json!(["id", "text"])),
            Self::DeleteMemory | Self::GetMemory => (json!({ "id": id }), json!(["id"])),
            Self::ListThreads => (json!({ "metadata": metadata, "limit": limit(100), "cursor": cursor }), json!([])),
            Self::ListMemories => (json!({ "limit": limit(100), "cursor": cursor }), json!([])),
            Self::GetContext => (
                json!({
                    "thread": { "type": "string", "description": "thread id or key" },
                    "question": query_schema(),
                    "budget": { "type": "integer", "minimum": 100, "maximum": 32_000, "description": "tokens" },
                }),
                json!(["thread"]),
            ),
            Self::ListPreferences => (json!({}), json!([])),
            Self::SearchDocuments => (json!({ "question": query_schema(), "limit": limit(20) }), json!(["question"])),
        };
        object_schema(properties, required)
    }

    /// Returns the schema of the result.
    pub(crate) fn output_schema(self) -> Value {
        let string = json!({ "type": "string" });
        let list = json!({ "type": "array", "items": { "type": "object" } });
        let messages = json!({
            "type": "array",
            "items": {
                "type": "object",
                "properties": { "id": string, "title": string, "role": string, "author": string, "at": string, "text": string },
                "required": ["id", "role", "at", "text"],
            },
        });
        let (properties, required) = match self {
            Self::SearchMemory => {
                (json!({ "notice": string, "hits": messages, "next_cursor": string }), json!(["hits"]))
            }
            Self::Recall => (json!({ "notice": string, "messages": messages }), json!(["messages"])),
            Self::ReadThread => (
                json!({ "notice": string, "title": string, "messages": messages, "next_cursor": string, "previous_cursor": string }),
                json!(["messages"]),
            ),
            Self::AddMemory | Self::UpdateMemory => (json!({ "id": string }), json!(["id"])),
            Self::DeleteMemory => (json!({ "deleted": string }), json!(["deleted"])),
            Self::ListThreads => {
                (json!({ "notice": string, "threads": list, "next_cursor": string }), json!(["threads"]))
            }
            Self::GetMemory => (
                json!({ "notice": string, "id": string, "role": string, "at": string, "text": string }),
                json!(["id", "text"]),
            ),
            Self::ListMemories => {
                (json!({ "notice": string, "memories": messages, "next_cursor": string }), json!(["memories"]))
            }
            Self::GetContext => (
                json!({ "notice": string, "messages": list, "report": { "type": "object" } }),
                json!(["messages", "report"]),
            ),
            Self::ListPreferences => {
                (json!({ "notice": string, "preferences": { "type": "object" } }), json!(["preferences"]))
            }
            Self::SearchDocuments => (json!({ "notice": string, "passages": list }), json!(["passages"])),
        };
        // Later versions may add members to results, so the schema allows additional ones.
        json!({ "type": "object", "properties": properties, "required": required })
    }
}

fn query_schema() -> Value {
    json!({ "type": "string", "maxLength": crate::tools::QUERY_CHARS })
}

fn object_schema(properties: Value, required: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The tools that a client may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSelection(BTreeSet<Tool>);

/// An unknown tool in a list of tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown tool `{name}`; the tools are {}", Tool::ALL.map(Tool::name).join(", "))]
pub struct ToolSelectionError {
    name: String,
}

impl Default for ToolSelection {
    fn default() -> Self {
        Self(Tool::ALL[..Tool::DEFAULT_COUNT].iter().copied().collect())
    }
}

impl ToolSelection {
    /// Returns the tools, in the order of [`Tool::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = Tool> + '_ {
        self.0.iter().copied()
    }

    /// Whether a tool is selected.
    #[must_use]
    pub fn contains(&self, tool: Tool) -> bool {
        self.0.contains(&tool)
    }

    /// Removes the tools that change data.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self(self.0.into_iter().filter(|tool| tool.effect() == ToolEffect::None).collect())
    }
}

/// Parses a comma-separated list of tool names, `default` and `all`.
impl FromStr for ToolSelection {
    type Err = ToolSelectionError;

    fn from_str(list: &str) -> Result<Self, ToolSelectionError> {
        let mut selected = BTreeSet::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "default" => selected.extend(Self::default().0),
                "all" => selected.extend(Tool::ALL),
                name => {
                    selected.insert(Tool::find(name).ok_or_else(|| ToolSelectionError { name: name.to_owned() })?);
                }
            }
        }
        Ok(Self(selected))
    }
}

impl fmt::Display for ToolSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iter().map(Tool::name).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_lists_of_names() {
        let selection: ToolSelection = "default, list_threads".parse().unwrap();
        assert_eq!(
            selection.to_string(),
            "search_memory,recall,read_thread,add_memory,update_memory,delete_memory,list_threads"
        );
        assert_eq!(selection.read_only().to_string(), "search_memory,recall,read_thread,list_threads");
        assert_eq!("all".parse::<ToolSelection>().unwrap().iter().count(), Tool::ALL.len());
        assert_eq!("search_memories".parse::<ToolSelection>().unwrap().to_string(), "search_memory");
        let error = "search_memory,decide_approval".parse::<ToolSelection>().unwrap_err().to_string();
        assert!(error.starts_with("unknown tool `decide_approval`; the tools are search_memory, recall,"), "{error}");
    }
}
