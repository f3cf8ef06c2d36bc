//! Tools that call functions, with a schema derived from the type of their arguments.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use threadkeep_core::{
    JsonText, Map, Tool, ToolContext, ToolDescription, ToolEffect, ToolError, ToolOutput, ToolSpec, Value,
};

type ToolFn = dyn Fn(ToolContext, Map) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;
type PreviewFn = dyn Fn(&Map) -> Option<String> + Send + Sync;

/// A tool that calls a function.
#[derive(Clone)]
pub struct FnTool {
    spec: ToolSpec,
    /// Describes the side effects of a call; `None` for a call without side effects.
    preview: Option<Arc<PreviewFn>>,
    function: Arc<ToolFn>,
}

impl FnTool {
    /// Creates a read-only tool. The schema of its arguments is derived from `A`, with doc comments as descriptions.
    pub fn new<A, F, R>(name: &str, description: &str, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send,
        F: Fn(ToolContext, A) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let run = move |context, arguments: Map| -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
            match serde_json::from_value::<A>(Value::Object(arguments)) {
                Ok(arguments) => Box::pin(function(context, arguments)),
                Err(error) => Box::pin(std::future::ready(Err(ToolError::Arguments(error.to_string())))),
            }
        };
        Self::with_schema(name, description, schema_of::<A>(), run)
    }

    /// Creates a read-only tool with a given schema.
    pub fn with_schema<F, R>(name: &str, description: &str, parameters: JsonText, function: F) -> Self
    where
        F: Fn(ToolContext, Map) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let (name, description) = (name.to_owned(), description.to_owned());
        let spec = ToolSpec::new(ToolDescription { name, description, parameters, is_strict: None });
        Self {
            spec,
            preview: None,
            function: Arc::new(move |context, arguments| Box::pin(function(context, arguments))),
        }
    }

    /// Declares that every call has side effects and needs approval. `preview` describes a call for the person who decides.
    #[must_use]
    pub fn with_side_effects(self, preview: impl Fn(&Map) -> String + Send + Sync + 'static) -> Self {
        self.with_side_effects_where(move |arguments| Some(preview(arguments)))
    }

    /// Declares that some calls have side effects and need approval: those for which `preview` returns a description.
    #[must_use]
    pub fn with_side_effects_where(self, preview: impl Fn(&Map) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { preview: Some(Arc::new(preview)), ..self }
    }

    /// Adds another name for an argument.
    #[must_use]
    pub fn with_alias(mut self, alias: &str, argument: &str) -> Self {
        self.spec.aliases.push((alias.to_owned(), argument.to_owned()));
        self
    }

    /// Sets the timeout of a call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = timeout;
        self
    }

    /// Sets the maximum number of characters of a result that a model reads.
    #[must_use]
    pub fn with_output_characters(mut self, characters: usize) -> Self {
        self.spec.output_characters = characters;
        self
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("name", &self.spec.name()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, arguments: &Map) -> ToolEffect {
        match self.preview.as_ref().and_then(|preview| preview(arguments)) {
            Some(preview) => ToolEffect::HasSideEffects { preview },
            None => ToolEffect::ReadOnly,
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map) -> Result<ToolOutput, ToolError> {
        (self.function)(context.clone(), arguments.clone()).await
    }
}

/// Returns the JSON Schema of an argument type, without its title and other parts that models do not need.
fn schema_of<A: JsonSchema>() -> JsonText {
    let mut schema = schemars::generate::SchemaSettings::draft07()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<A>()
        .to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("title");
        schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    JsonText::from(&schema)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct Arguments {
        /// The station's name.
        station: String,
        /// How many trains.
        limit: Option<u8>,
    }

    #[test]
    fn the_schema_is_derived_from_the_argument_type() {
        let tool = FnTool::new("arrivals", "Lists arrivals", |_, arguments: Arguments| async move {
            Ok(ToolOutput::text(format!("{} {:?}", arguments.station, arguments.limit)))
        });
        insta::assert_snapshot!(tool.spec.description.parameters.as_str(), @r#"{"type":"object","properties":{"station":{"type":"string","description":"The station's name."},"limit":{"type":["integer","null"],"format":"uint8","minimum":0,"maximum":255,"description":"How many trains."}},"required":["station"]}"#);
    }
}
