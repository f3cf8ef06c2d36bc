//! A document source that also finds passages whose wording differs from that of the question.

use async_trait::async_trait;
use threadkeep::agent::{ContextSource, DocumentSource, Excerpt, Failure, SourceQuery};

use crate::evidence::best_first;
use crate::evidence::question::Question;
use crate::evidence::related::expansion;

/// Finds passages that contain words of the question, then passages that contain related words.
#[derive(Clone, Debug)]
pub(crate) struct WidenedDocuments(pub(crate) DocumentSource);

#[async_trait]
impl ContextSource for WidenedDocuments {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn find(&self, source_query: &SourceQuery<'_>) -> Result<Vec<Excerpt>, Failure> {
        let mut found = self.0.find(source_query).await?;
        let question = Question::new(source_query.query, "");
        let related = expansion(question.topic.iter().map(|word| word.stems.as_slice()));
        if related.is_empty() {
            return Ok(found);
        }
        let others = self.0.find(&SourceQuery { query: &related, ..*source_query }).await?;
        let known = found.len();
        for excerpt in others {
            if !found[..known].iter().any(|other| other.source.id == excerpt.source.id) {
                found.push(excerpt);
            }
        }
        found = best_first(&question, found);
        found.truncate(source_query.limit);
        Ok(found)
    }
}
