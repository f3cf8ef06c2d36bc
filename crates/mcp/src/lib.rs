//! Model Context Protocol (MCP): lets programs such as coding assistants search conversations and store memories.
//!
//! Start with [`Toolbox`]: the tools that one scope may use. [`serve_stdio`] serves a toolbox over the standard streams, [`answer_http`]
//! answers a request that a server received. Each tool is a function in `tools`; `tool` has their names, descriptions and schemas.
//! `protocol` is the only module that uses the MCP library. [`ExternalServer`] is the other direction: the tools of an external server,
//! for assistants.
//!
//! A memory is a user message in the scope's thread with the key `memories`, so searches, recalls and assistants find it like any
//! other message. Entities of the knowledge graph are records of the scope. Tools change and erase memories and entities only, never other
//! messages. Results mark quoted text as data.
#![warn(missing_docs)]

mod date;
mod external;
mod failure;
mod message_name;
mod prompts;
mod protocol;
mod resources;
mod tool;
mod toolbox;
mod tools;

pub use external::{ExternalServer, ServerConnection, ServerProbe, ServerSpec, probe, server_specs};
pub use failure::{ServeError, ToolFailure};
pub use protocol::{INSTRUCTIONS, answer_http, serve_stdio, tool_list};
pub use tool::{Tool, ToolSelection, ToolSelectionError};
pub use toolbox::Toolbox;
pub use tools::memories::MEMORIES_KEY;
