//! Tools for searching conversations and documents.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use threadkeep::agent::{ContextSource, DocumentSource, Excerpt, Failure, SourceQuery};
use threadkeep::core::{ToolContext, ToolError, ToolOutput};
use threadkeep::{Embedder, FnTool, JsonText, Memory, Scope, Value};

use crate::remembered::RememberedSource;

/// The maximum number of excerpts that a call returns.
const MAX_EXCERPTS: usize = 10;
/// The maximum number of documents in a list.
const MAX_LISTED: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
struct Question {
    /// What to look for, as a question or as words.
    question: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArguments {}

/// Searches all conversations of the user.
pub(crate) fn recall(memory: Memory) -> FnTool {
    let description = "Finds what was said in this and in earlier conversations with the user.";
    FnTool::new("recall", description, move |context: ToolContext, arguments: Question| {
        let memory = memory.clone();
        async move { search(&[Arc::new(RememberedSource)], &memory, &context, &arguments.question).await }
    })
}

/// Searches the user's documents.
pub(crate) fn search_documents(memory: Memory, libraries: Vec<String>, embedder: Option<Arc<dyn Embedder>>) -> FnTool {
    let description = "Finds passages in the user's documents, with their locations.";
    FnTool::new("search_documents", description, move |context: ToolContext, arguments: Question| {
        let memory = memory.clone();
        let source =
            |library: &String| -> Arc<dyn ContextSource> { Arc::new(DocumentSource::new(library, embedder.clone())) };
        let sources: Vec<Arc<dyn ContextSource>> = libraries.iter().map(source).collect();
        async move { search(&sources, &memory, &context, &arguments.question).await }
    })
}

/// Lists the user's documents.
pub(crate) fn list_documents(memory: Memory, libraries: Vec<String>) -> FnTool {
    let description = "Lists the user's documents.";
    FnTool::new("list_documents", description, move |context: ToolContext, _: NoArguments| {
        let (memory, libraries) = (memory.clone(), libraries.clone());
        async move {
            let mut titles = Vec::new();
            let tenant = Scope::Tenant(context.scope.tenant_id().clone());
            let scopes = if context.scope == tenant { vec![tenant] } else { vec![context.scope, tenant] };
            for library in &libraries {
                for scope in &scopes {
                    let documents = memory.list_library(scope, library).await.map_err(unavailable)?;
                    titles.extend(
                        documents.into_iter().map(|document| json!({"id": document.id, "title": document.title})),
                    );
                }
            }
            let more = titles.len().saturating_sub(MAX_LISTED);
            titles.truncate(MAX_LISTED);
            Ok(ToolOutput::json(JsonText::from(&json!({"documents": titles, "more": more}))))
        }
    })
}

async fn search(
    sources: &[Arc<dyn ContextSource>],
    memory: &Memory,
    context: &ToolContext,
    question: &str,
) -> Result<ToolOutput, ToolError> {
    if question.trim().is_empty() {
        return Err(ToolError::Arguments("question is empty".to_owned()));
    }
    let mut excerpts: Vec<Excerpt> = Vec::new();
    for source in sources {
        let source_query = SourceQuery {
            memory,
            scope: &context.scope,
            thread: context.thread,
            query: question,
            before_seq: None,
            limit: MAX_EXCERPTS,
        };
        let found =
            source.find(&source_query).await.map_err(|Failure { message, .. }| ToolError::Unavailable(message))?;
        // The results must not contain the question of this turn.
        excerpts.extend(found.into_iter().filter(|excerpt| excerpt.text.trim() != context.question.trim()));
    }
    excerpts.truncate(MAX_EXCERPTS);
    let results: Vec<Value> =
        excerpts.iter().map(|excerpt| json!({"from": excerpt.heading, "text": excerpt.text})).collect();
    let sources = excerpts.into_iter().map(|excerpt| excerpt.source).collect();
    Ok(ToolOutput::json(JsonText::from(&json!({"found": results}))).with_sources(sources))
}

pub(crate) fn unavailable(error: threadkeep::MemoryError) -> ToolError {
    ToolError::Unavailable(error.to_string())
}
