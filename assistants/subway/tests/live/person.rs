//! Somebody who calls the tools, as an agent does on their behalf.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{Memory, Scope};
use threadkeep_subway::{Subway, SubwayTools};

use crate::mta::{Mta, now};

pub(crate) struct Person {
    pub(crate) memory: Memory,
    pub(crate) subway: Arc<Subway>,
    pub(crate) scope: Scope,
    /// What counts as now.
    pub(crate) now: Timestamp,
    pub(crate) turn: String,
}

impl Person {
    /// Ana, with a memory of her own.
    pub(crate) async fn of(mta: &Mta) -> Self {
        Self::with(mta.subway()).await
    }

    pub(crate) async fn with(subway: Subway) -> Self {
        let memory = threadkeep::open("memory:").await.unwrap();
        let scope = Scope::user("acme", "ana").unwrap();
        Self { memory, subway: Arc::new(subway), scope, now: now(), turn: "turn 1".to_owned() }
    }

    /// Somebody else, with the same memory.
    pub(crate) fn another(&self, name: &str) -> Self {
        let scope = Scope::user("acme", name).unwrap();
        let (memory, subway, turn) = (self.memory.clone(), Arc::clone(&self.subway), self.turn.clone());
        Self { memory, subway, scope, now: self.now, turn }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Result<ToolOutput, ToolError> {
        let tools = SubwayTools::new(self.memory.clone(), Arc::clone(&self.subway)).all();
        let tool = tools.iter().find(|known| known.spec().name() == tool).unwrap();
        let arguments = tool.spec().without_aliases(serde_json::from_str(arguments).unwrap());
        let context = ToolContext {
            scope: self.scope.clone(),
            thread: "01890000-0000-7000-8000-000000000000".parse().unwrap(),
            turn: self.turn.clone(),
            call_id: "call 1".to_owned(),
            question: "?".to_owned(),
            approval: None,
            now: threadkeep::Timestamp::from_micros(self.now.as_microsecond()).unwrap(),
        };
        tool.call(&context, &arguments).await
    }

    /// The words of an answer.
    pub(crate) async fn ask(&self, tool: &str, arguments: &str) -> String {
        self.call(tool, arguments).await.unwrap().text
    }

    /// The facts of an answer.
    pub(crate) async fn facts(&self, tool: &str, arguments: &str) -> Value {
        self.call(tool, arguments).await.unwrap().value.unwrap().read().unwrap()
    }
}
