//! The tool `kubectl`: reads are free, and a change needs an approval for exactly that change.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use threadkeep::core::{Tool, ToolContext, ToolDescription, ToolEffect, ToolError, ToolOutput, ToolSpec};
use threadkeep::{FnTool, JsonText, Map, Value};

use crate::cluster::{Cluster, CommandError};
use crate::command::Command;

/// The name of the tool.
pub(crate) const NAME: &str = "kubectl";

const DESCRIPTION: &str = "Reads the Kubernetes cluster, or requests a change of it. Reads: get, find, describe, logs, events, \
                           top, rollout_status, rollout_history. A change waits for the approval of a person; request it at once \
                           instead of asking the user for permission. One call changes one object, by its exact name.";

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The tool.
#[derive(Debug)]
pub(crate) struct Kubectl {
    spec: ToolSpec,
    cluster: Arc<Cluster>,
}

impl Kubectl {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        // The schema is derived from the type of the arguments.
        let schema =
            FnTool::new::<Command, _, _>(NAME, DESCRIPTION, |_, _| std::future::ready(Ok(ToolOutput::default())));
        let description: ToolDescription = schema.spec().description.clone();
        Self { spec: ToolSpec { timeout: TIMEOUT, ..ToolSpec::new(description) }, cluster }
    }
}

/// Reads the command of a call.
pub(crate) fn read_command(arguments: &Map) -> Result<Command, ToolError> {
    serde_json::from_value(Value::Object(arguments.clone())).map_err(|error| ToolError::Arguments(error.to_string()))
}

/// Returns the line of a command, followed by the effect that its dry run showed.
pub(crate) fn preview(command: &Command) -> String {
    match &command.basis {
        Some(basis) => format!("{}\n{}", command.line(), basis.effect),
        None => command.line(),
    }
}

#[async_trait]
impl Tool for Kubectl {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, arguments: &Map) -> ToolEffect {
        match read_command(arguments) {
            Ok(command) if !command.verb.is_read() => ToolEffect::HasSideEffects { preview: preview(&command) },
            // Invalid arguments fail when the tool is called.
            _ => ToolEffect::ReadOnly,
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map) -> Result<ToolOutput, ToolError> {
        let command = read_command(arguments)?;
        let outcome = if command.verb.is_read() {
            self.cluster.read(&command).await
        } else if context.approval.is_some() {
            self.cluster.apply(&command).await
        } else {
            return Err(ToolError::Denied("a change needs an approval".to_owned()));
        };
        let outcome = outcome.map_err(tool_error)?;
        let value = JsonText::of(&outcome).map_err(|error| ToolError::Failed(error.to_string()))?;
        Ok(ToolOutput { text: outcome.text, value: Some(value), ..ToolOutput::default() })
    }
}

pub(crate) fn tool_error(error: CommandError) -> ToolError {
    match error {
        CommandError::Invalid(text) => ToolError::Arguments(text),
        CommandError::NotAllowed(text) => ToolError::Denied(text),
        CommandError::NotFound(text) => ToolError::NotFound(text),
        CommandError::Unreachable(text) => ToolError::Unavailable(text),
        CommandError::Failed(text) => ToolError::Failed(text),
    }
}
