//! The conversation context of model calls, assembled once per distinct text of node instructions.

use std::sync::Arc;

use threadkeep_context::{Fate, Report};
use threadkeep_core::{ChatMessage, Role, StoreError};
use threadkeep_graph::Failure;
use threadkeep_memory::{CachedContext, ContextOptions, MemoryError, Prefetched};

use super::EffectExecutor;
use crate::ContextSize;

impl EffectExecutor<'_> {
    /// Returns the conversation through the user's question.
    pub(super) async fn conversation_context(
        &self,
        instructions: Option<&str>,
    ) -> Result<Arc<Vec<ChatMessage>>, Failure> {
        let mut contexts = self.contexts.lock().await;
        let found = contexts.assembled.iter().find(|(cached, _)| cached.as_deref() == instructions);
        if let Some((_, messages)) = found {
            return Ok(Arc::clone(messages));
        }
        let (messages, report) = self.assemble(instructions, contexts.read.take()).await?;
        let length: usize = messages.iter().map(|message| message.plain_text().chars().count()).sum();
        tracing::debug!("Conversation context length: {length} chars");
        if let Some(report) = report.filter(|_| contexts.report.is_none()) {
            contexts.size = context_size(&report);
            contexts.report = Some(report);
        }
        let messages = Arc::new(messages);
        contexts.assembled.push((instructions.map(str::to_owned), Arc::clone(&messages)));
        Ok(messages)
    }

    async fn assemble(
        &self,
        instructions: Option<&str>,
        read: Option<Prefetched>,
    ) -> Result<(Vec<ChatMessage>, Option<Report>), Failure> {
        let mut policy = self.policy.clone();
        let texts = [policy.system_prompt.take(), self.prepared.grounding.clone(), instructions.map(str::to_owned)];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        policy.system_prompt = (!texts.is_empty()).then(|| texts.join("\n\n"));
        let options = ContextOptions {
            counter: Arc::clone(&self.definition().counter),
            recalled: self.prepared.recalled.clone(),
            embedder: self.definition().embedder.clone(),
            enrichment: self.prepared.enrichment.clone(),
            through_seq: Some(self.history_end_seq),
            turn: None,
        };
        let (scope, thread, question) = (&self.access.scope, self.access.thread, Some(self.question.as_str()));
        let assembled = match &read {
            Some(read) => self.memory.context_of(read, question, &policy, &options).await,
            None => self.memory.shared_context(scope, thread, question, &policy, &options).await,
        };
        match assembled.map(CachedContext::into_assembled) {
            Ok(assembled) => Ok((assembled.context.messages, Some(assembled.context.report))),
            // If the history cannot be read, the question is answered without it.
            Err(MemoryError::Store(StoreError::Unavailable { .. } | StoreError::Corrupt { .. })) => {
                let system = policy.system_prompt.map(|prompt| ChatMessage::text(Role::System, prompt));
                Ok((system.into_iter().chain([ChatMessage::text(Role::User, &self.question)]).collect(), None))
            }
            Err(error) => Err(Failure::new("context_failed", error.to_string())),
        }
    }
}

fn context_size(report: &Report) -> ContextSize {
    let count = |fates: &[Fate]| {
        report.messages.iter().filter(|span| fates.contains(&span.fate)).map(threadkeep_context::FateSpan::count).sum()
    };
    let recalled = report.recalled.iter().filter(|found| found.fate == Fate::Recalled).count();
    ContextSize {
        messages: count(&[Fate::Kept, Fate::Truncated]),
        tokens: report.tokens.total.0,
        summary: count(&[Fate::Summarised]),
        recalled: recalled as u64,
        dropped: count(&[Fate::Dropped, Fate::Pruned]),
    }
}
