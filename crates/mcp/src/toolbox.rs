//! [`Toolbox`]: the tools of one scope.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use threadkeep::core::{plain_json_error, whole_number};
use threadkeep::{Memory, Scope};
use tokio::sync::Semaphore;

use crate::tools::{context, documents, knowledge_graph, memories, preferences, read_thread, recall, search, threads};
use crate::{Tool, ToolFailure, ToolSelection};

/// The maximum number of tools that run at the same time. Further calls wait.
const RUNNING_CALLS: usize = 16;

/// The tools that a client may use, on behalf of one scope. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Toolbox {
    pub(crate) memory: Memory,
    pub(crate) scope: Scope,
    tools: ToolSelection,
    running: Arc<Semaphore>,
}

impl Toolbox {
    /// Creates a toolbox.
    #[must_use]
    pub fn new(memory: Memory, scope: Scope, tools: ToolSelection) -> Self {
        Self { memory, scope, tools, running: Arc::new(Semaphore::new(RUNNING_CALLS)) }
    }

    /// Returns the selected tools.
    #[must_use]
    pub fn tools(&self) -> &ToolSelection {
        &self.tools
    }

    /// Calls a tool. `client` is the name of the calling program, which is stored with new memories.
    ///
    /// # Errors
    /// [`ToolFailure`]; its text is for the model.
    pub async fn call(&self, name: &str, arguments: Map<String, Value>, client: &str) -> Result<Value, ToolFailure> {
        let tool = Tool::find(name).filter(|tool| self.tools.contains(*tool));
        let tool = tool.ok_or_else(|| ToolFailure::UnknownTool(name.chars().take(60).collect()))?;
        let _running = self.running.acquire().await;
        match tool {
            Tool::SearchMemory => search::run(self, read(arguments)?).await,
            Tool::Recall => recall::run(self, read(arguments)?).await,
            Tool::ReadThread => read_thread::run(self, read(arguments)?).await,
            Tool::AddMemory => memories::add(self, read(arguments)?, client).await,
            Tool::UpdateMemory => memories::update(self, read(arguments)?).await,
            Tool::DeleteMemory => memories::delete(self, read(arguments)?).await,
            Tool::ListThreads => threads::run(self, read(arguments)?).await,
            Tool::GetMemory => memories::get(self, read(arguments)?).await,
            Tool::ListMemories => memories::list(self, read(arguments)?).await,
            Tool::GetContext => context::run(self, read(arguments)?).await,
            Tool::ListPreferences => preferences::run(self, read(arguments)?).await,
            Tool::SearchDocuments => documents::run(self, read(arguments)?).await,
            Tool::CreateEntities => knowledge_graph::create_entities(self, read(arguments)?).await,
            Tool::CreateRelations => knowledge_graph::create_relations(self, read(arguments)?).await,
            Tool::AddObservations => knowledge_graph::add_observations(self, read(arguments)?).await,
            Tool::DeleteEntities => knowledge_graph::delete_entities(self, read(arguments)?).await,
            Tool::DeleteObservations => knowledge_graph::delete_observations(self, read(arguments)?).await,
            Tool::DeleteRelations => knowledge_graph::delete_relations(self, read(arguments)?).await,
            Tool::ReadGraph => knowledge_graph::read_graph(self, read(arguments)?).await,
            Tool::SearchNodes => knowledge_graph::search_nodes(self, read(arguments)?).await,
            Tool::OpenNodes => knowledge_graph::open_nodes(self, read(arguments)?).await,
        }
    }
}

fn read<T: DeserializeOwned>(mut arguments: Map<String, Value>) -> Result<T, ToolFailure> {
    arguments.values_mut().for_each(write_as_integer);
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let argument = if path == "." { "list".to_owned() } else { path };
        let reason = plain_json_error(&error.inner().to_string());
        ToolFailure::argument(argument, reason.chars().take(300).collect::<String>())
    })
}

/// Converts a whole number that is written with a fraction, such as `5.0`, to an integer. Some models write all numbers this way.
fn write_as_integer(value: &mut Value) {
    if let Value::Number(number) = value
        && number.is_f64()
        && let Some(integer) = whole_number(number).and_then(|integer| i64::try_from(integer).ok())
    {
        *value = integer.into();
    }
}
