//! The tools of a server, as assistants call them.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use threadkeep::core::{ToolDescription, ToolEffect, ToolSpec};
use threadkeep::{JsonText, Tool, ToolContext, ToolError, ToolOutput};

use super::link::Link;
use super::names::tool_name;
use super::spec::ServerSpec;
use crate::protocol::client::{Caller, ListedTool};

/// The maximum number of tools of one server.
const MAX_TOOLS: usize = 128;
/// The maximum number of tools that are read from the list of one server.
const MAX_LISTED: usize = 1_000;
/// The maximum size of the schema of one tool, in bytes.
const SCHEMA_BYTES: usize = 16 * 1024;
/// The maximum size of the schemas of one server, in bytes.
const ALL_SCHEMA_BYTES: usize = 256 * 1024;
/// The maximum length of a description, in characters.
const DESCRIPTION_CHARS: usize = 2_000;
/// The maximum number of omitted tools that are named.
const MAX_NAMED: usize = 10;

/// A tool of a server.
#[derive(Debug)]
pub(crate) struct ExternalTool {
    spec: ToolSpec,
    /// The name that the server uses.
    name: String,
    is_allowed: bool,
    link: Arc<Link>,
}

/// The tools that a server offers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Arc<ExternalTool>>,
    /// The tools that are not used, with the reason.
    pub(crate) omitted: Vec<String>,
}

impl ExternalTool {
    /// Returns the name for models.
    pub(crate) fn model_name(&self) -> &str {
        self.spec.name()
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.is_allowed
    }
}

#[async_trait]
impl Tool for ExternalTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// The annotations of the server are not considered: a server could declare that a call changes nothing although it does.
    fn effect(&self, arguments: &Map<String, Value>) -> ToolEffect {
        if self.is_allowed {
            return ToolEffect::Allowed;
        }
        let arguments: Vec<String> = arguments.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        ToolEffect::HasSideEffects { preview: format!("{}({})", self.spec.name(), arguments.join(", ")) }
    }

    async fn call(&self, _: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        self.link.call(&self.name, arguments.clone()).await
    }
}

/// Lists the tools of a server.
///
/// # Errors
/// The reason, for the operator.
pub(crate) async fn list(caller: &Caller, spec: &ServerSpec, link: &Arc<Link>) -> Result<Listing, String> {
    let (listed, has_more) = caller.list_tools(MAX_LISTED).await?;
    Ok(select(listed, has_more, spec, link))
}

/// Selects the listed tools that can be used.
fn select(listed: Vec<ListedTool>, has_more: bool, spec: &ServerSpec, link: &Arc<Link>) -> Listing {
    let (mut listing, mut names, mut schema_bytes) = (Listing::default(), BTreeSet::new(), 0);
    let mut missing: BTreeSet<&String> = spec.tools.iter().flatten().chain(&spec.allowed).collect();
    let mut omitted: Vec<(String, String)> = Vec::new();
    for tool in listed {
        missing.remove(&tool.name);
        if spec.tools.as_ref().is_some_and(|tools| !tools.contains(&tool.name)) {
            continue;
        }
        let schema = object_schema(tool.schema);
        let size = schema.as_str().len();
        let problem = if tool.name.trim().is_empty() {
            Some("it has no name".to_owned())
        } else if !names.insert(tool.name.clone()) {
            Some("the server lists it twice".to_owned())
        } else if size > SCHEMA_BYTES {
            Some(format!("its schema has {size} bytes, at most {SCHEMA_BYTES} are accepted"))
        } else if listing.tools.len() == MAX_TOOLS {
            Some(format!("at most {MAX_TOOLS} tools of a server are used"))
        } else if schema_bytes + size > ALL_SCHEMA_BYTES {
            Some(format!("the schemas of a server may have {ALL_SCHEMA_BYTES} bytes together"))
        } else {
            None
        };
        if let Some(problem) = problem {
            omitted.push((tool.name, problem));
            continue;
        }
        schema_bytes += size;
        let description = ToolDescription {
            name: tool_name(&spec.name, &tool.name),
            description: tool.description.chars().take(DESCRIPTION_CHARS).collect(),
            parameters: schema,
            is_strict: None,
        };
        listing.tools.push(Arc::new(ExternalTool {
            spec: ToolSpec { timeout: spec.call_timeout, ..ToolSpec::new(description) },
            is_allowed: spec.allowed.contains(&tool.name),
            name: tool.name,
            link: Arc::clone(link),
        }));
    }
    let rest = omitted.len().saturating_sub(MAX_NAMED);
    let named = omitted.into_iter().take(MAX_NAMED);
    listing.omitted = named.map(|(name, problem)| format!("`{}` is not used: {problem}", printable(&name))).collect();
    if rest > 0 {
        listing.omitted.push(format!("{rest} more tools are not used"));
    }
    if has_more {
        listing.omitted.push(format!("only the first {MAX_LISTED} tools of its list were read"));
    }
    listing.omitted.extend(missing.into_iter().map(|name| format!("`{}` does not exist", printable(name))));
    listing
}

/// Returns the start of a name without control characters.
fn printable(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(60).collect()
}

/// Returns the schema with the fields that providers require.
fn object_schema(mut schema: Map<String, Value>) -> JsonText {
    schema.remove("$schema");
    schema.insert("type".to_owned(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    JsonText::from(&Value::Object(schema))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external::server_specs;

    fn listed(name: &str, schema: Value) -> ListedTool {
        let Value::Object(schema) = schema else { panic!() };
        ListedTool { name: name.to_owned(), description: "x".repeat(3_000), schema }
    }

    fn select_for(entry: Value, tools: Vec<ListedTool>) -> Listing {
        let spec = server_specs([("s", &entry)], &|_| None).unwrap().remove(0);
        select(tools, false, &spec, &Arc::new(Link::new("s")))
    }

    #[test]
    fn listings_are_bounded() {
        let tools = (0..10_000).map(|n| listed(&format!("t{n}"), json!({}))).collect();
        let listing = select_for(json!({ "command": "x" }), tools);
        assert_eq!((listing.tools.len(), listing.omitted.len()), (MAX_TOOLS, MAX_NAMED + 1));
        assert_eq!(listing.omitted[MAX_NAMED], "9862 more tools are not used");
        assert_eq!(listing.tools[0].spec.description.description.chars().count(), DESCRIPTION_CHARS);
        let wide = json!({ "properties": { "a": { "description": "x".repeat(SCHEMA_BYTES) } } });
        let listing = select_for(
            json!({ "command": "x" }),
            vec![listed("wide", wide), listed("", json!({})), listed("a", json!({})), listed("a", json!({}))],
        );
        assert_eq!(listing.tools.len(), 1);
        assert_eq!(listing.omitted.len(), 3, "{:?}", listing.omitted);
    }

    #[test]
    fn calls_require_approval_unless_the_operator_allows_the_tool() {
        let entry = json!({ "command": "x", "tools": ["get", "set", "gone"], "allow": ["get"] });
        let tools = vec![listed("get", json!({})), listed("set", json!({})), listed("other", json!({}))];
        let listing = select_for(entry, tools);
        let effects: Vec<ToolEffect> =
            listing.tools.iter().map(|tool| tool.effect(&Map::from_iter([("a".to_owned(), json!("b"))]))).collect();
        let preview = r#"s__set(a: "b")"#.to_owned();
        assert_eq!(effects, [ToolEffect::Allowed, ToolEffect::HasSideEffects { preview }]);
        assert_eq!(listing.omitted, ["`gone` does not exist"]);
        assert_eq!(listing.tools[0].spec.description.parameters.as_str(), r#"{"type":"object","properties":{}}"#);
    }
}
