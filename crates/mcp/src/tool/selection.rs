//! The tools that a client may use.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::{Tool, ToolEffect};

/// The tools that a client may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSelection(BTreeSet<Tool>);

/// An unknown tool in a list of tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown tool `{name}`; the tools are {}, and `default`, `knowledge_graph` and `all` select several",
    Tool::ALL.map(Tool::name).join(", ")
)]
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

/// Parses a comma-separated list of tool names, `default`, `knowledge_graph` and `all`.
impl FromStr for ToolSelection {
    type Err = ToolSelectionError;

    fn from_str(list: &str) -> Result<Self, ToolSelectionError> {
        let mut selected: BTreeSet<Tool> = BTreeSet::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "default" => selected.extend(Self::default().0),
                "knowledge_graph" => {
                    selected.extend(&Tool::ALL[Tool::ALL.len() - Tool::KNOWLEDGE_GRAPH_COUNT..]);
                }
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
        let graph: ToolSelection = "knowledge_graph".parse().unwrap();
        assert_eq!(graph.iter().next(), Some(Tool::CreateEntities));
        assert_eq!(graph.iter().count(), Tool::KNOWLEDGE_GRAPH_COUNT);
        assert_eq!(graph.read_only().to_string(), "read_graph,search_nodes,open_nodes");
        assert_eq!("all".parse::<ToolSelection>().unwrap().iter().count(), Tool::ALL.len());
        assert_eq!("search_memories".parse::<ToolSelection>().unwrap().to_string(), "search_memory");
        let error = "search_memory,decide_approval".parse::<ToolSelection>().unwrap_err().to_string();
        assert!(error.starts_with("unknown tool `decide_approval`; the tools are search_memory, recall,"), "{error}");
    }
}
