//! Checks whether a server can be used.

use std::sync::Arc;

use super::link::Link;
use super::server::open;
use super::spec::ServerSpec;

/// What a check of a server found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProbe {
    /// The names of its tools for models.
    pub tools: Vec<String>,
    /// The names of those that are called without approval.
    pub allowed: Vec<String>,
    /// The tools that are not used, with reasons, and configured tools that do not exist.
    pub problems: Vec<String>,
}

/// Starts a server, lists its tools and ends it.
///
/// # Errors
/// Why the server cannot be used.
pub async fn probe(spec: &ServerSpec) -> Result<ServerProbe, String> {
    let (connection, listing) = open(spec, &Arc::new(Link::new(&spec.name))).await?;
    connection.close("checked").await;
    let name = |tool: &Arc<super::tools::ExternalTool>| tool.model_name().to_owned();
    Ok(ServerProbe {
        tools: listing.tools.iter().map(name).collect(),
        allowed: listing.tools.iter().filter(|tool| tool.is_allowed()).map(name).collect(),
        problems: listing.omitted,
    })
}
