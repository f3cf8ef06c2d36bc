//! A test user: calls the tools as an agent would on the user's behalf.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{Memory, Scope};
use threadkeep_subway::{Subway, SubwayTools};

use crate::mta::{FakeMta, now};

pub(crate) struct TestUser {
    pub(crate) memory: Memory,
    pub(crate) subway: Arc<Subway>,
    pub(crate) scope: Scope,
    /// The time of tool calls.
    pub(crate) now: Timestamp,
    pub(crate) turn: String,
}

impl TestUser {
    /// Creates the user `ana` with a new memory.
    pub(crate) async fn of(mta: &FakeMta) -> Self {
        Self::with(mta.subway()).await
    }

    pub(crate) async fn with(subway: Subway) -> Self {
        let memory = threadkeep::open("memory:").await.unwrap();
        let scope = Scope::user("acme", "ana").unwrap();
        Self { memory, subway: Arc::new(subway), scope, now: now(), turn: "turn 1".to_owned() }
    }

    /// Creates another user with the same memory.
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

    /// Returns the text of a tool's result.
    pub(crate) async fn ask(&self, tool: &str, arguments: &str) -> String {
        self.call(tool, arguments).await.unwrap().text
    }

    /// Returns the JSON value of a tool's result.
    pub(crate) async fn facts(&self, tool: &str, arguments: &str) -> Value {
        self.call(tool, arguments).await.unwrap().value.unwrap().read().unwrap()
    }
}
