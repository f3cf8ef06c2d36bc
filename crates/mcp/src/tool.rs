//! The tools: names, descriptions, annotations and schemas.

mod knowledge_graph;
mod selection;

use serde_json::{Value, json};

pub use selection::{ToolSelection, ToolSelectionError};

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
    CreateEntities,
    CreateRelations,
    AddObservations,
    DeleteEntities,
    DeleteObservations,
    DeleteRelations,
    ReadGraph,
    SearchNodes,
    OpenNodes,
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
    /// All tools: first those that are selected by default, last those of the knowledge graph.
    pub const ALL: [Self; 21] = [
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
        Self::CreateEntities,
        Self::CreateRelations,
        Self::AddObservations,
        Self::DeleteEntities,
        Self::DeleteObservations,
        Self::DeleteRelations,
        Self::ReadGraph,
        Self::SearchNodes,
        Self::OpenNodes,
    ];
    /// The number of tools that are selected by default.
    const DEFAULT_COUNT: usize = 6;
    /// The number of tools of the knowledge graph.
    const KNOWLEDGE_GRAPH_COUNT: usize = 9;

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
            Self::CreateEntities => "create_entities",
            Self::CreateRelations => "create_relations",
            Self::AddObservations => "add_observations",
            Self::DeleteEntities => "delete_entities",
            Self::DeleteObservations => "delete_observations",
            Self::DeleteRelations => "delete_relations",
            Self::ReadGraph => "read_graph",
            Self::SearchNodes => "search_nodes",
            Self::OpenNodes => "open_nodes",
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
            Self::AddMemory | Self::CreateEntities | Self::CreateRelations | Self::AddObservations => ToolEffect::Adds,
            Self::UpdateMemory
            | Self::DeleteMemory
            | Self::DeleteEntities
            | Self::DeleteObservations
            | Self::DeleteRelations => ToolEffect::Overwrites,
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
            Self::CreateEntities => "Add entities to the knowledge graph. Entities whose name exists are not changed.",
            Self::CreateRelations => "Add relations between existing entities, in the active voice (works_at).",
            Self::AddObservations => "Add facts to existing entities, one per observation.",
            Self::DeleteEntities => "Erase entities with their relations. Cannot be undone.",
            Self::DeleteObservations => "Erase observations of entities.",
            Self::DeleteRelations => "Erase relations.",
            Self::ReadGraph => {
                "Read the knowledge graph in pages: entities by name, each with the relations that start at it."
            }
            Self::SearchNodes => {
                "Find entities whose name, type or observations contain the query or all its words, with their relations."
            }
            Self::OpenNodes => "Read entities by name, with their relations.",
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
            Self::CreateEntities => (json!({ "entities": knowledge_graph::entities() }), json!(["entities"])),
            Self::CreateRelations | Self::DeleteRelations => {
                (json!({ "relations": knowledge_graph::relations() }), json!(["relations"]))
            }
            Self::AddObservations => (json!({ "observations": knowledge_graph::additions() }), json!(["observations"])),
            Self::DeleteEntities => (json!({ "entityNames": knowledge_graph::names() }), json!(["entityNames"])),
            Self::DeleteObservations => (json!({ "deletions": knowledge_graph::deletions() }), json!(["deletions"])),
            Self::ReadGraph => (json!({ "limit": limit(500), "cursor": cursor }), json!([])),
            Self::SearchNodes => {
                (json!({ "query": query_schema(), "limit": limit(100), "cursor": cursor }), json!(["query"]))
            }
            Self::OpenNodes => (json!({ "names": knowledge_graph::names(), "cursor": cursor }), json!(["names"])),
        };
        object_schema(properties, required)
    }

    /// Returns the schema of the result.
    pub(crate) fn output_schema(self) -> Value {
        let string = json!({ "type": "string" });
        let list = json!({ "type": "array", "items": { "type": "object" } });
        let names = json!({ "type": "array", "items": string });
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
            Self::CreateEntities => (json!({ "entities": list, "existing": names }), json!(["entities"])),
            Self::CreateRelations => (json!({ "relations": list }), json!(["relations"])),
            Self::AddObservations => (json!({ "results": list }), json!(["results"])),
            Self::DeleteEntities | Self::DeleteObservations | Self::DeleteRelations => (
                json!({ "success": { "type": "boolean" }, "message": string, "not_found": names }),
                json!(["success", "message"]),
            ),
            Self::ReadGraph | Self::SearchNodes | Self::OpenNodes => (
                json!({ "notice": string, "entities": list, "relations": list, "next_cursor": string }),
                json!(["entities", "relations"]),
            ),
        };
        // Later versions may add fields to results, so the schema allows additional ones.
        json!({ "type": "object", "properties": properties, "required": required })
    }
}

fn query_schema() -> Value {
    json!({ "type": "string", "maxLength": crate::tools::QUERY_CHARS })
}

fn object_schema(properties: Value, required: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
