//! External MCP servers, whose tools assistants call.
//!
//! Start with [`ServerSpec`], an entry of the operator's configuration, and [`ExternalServer`], which starts the server, restarts it
//! when it ends, and offers its tools. Nothing that a server says is trusted: its texts, schemas and results are limited in size, and
//! each call requires approval unless the operator allows the tool by name.

mod connection;
mod link;
mod names;
mod probe;
mod reader;
mod server;
mod spec;
mod tools;

pub use probe::{ServerProbe, probe};
pub use server::ExternalServer;
pub use spec::{ServerConnection, ServerSpec, server_specs};
