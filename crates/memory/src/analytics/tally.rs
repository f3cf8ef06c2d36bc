use std::collections::{HashMap, HashSet};

use threadkeep_core::{Message, Role, Source, Usage};

use super::{Analytics, Durations};
use crate::turns::is_answer;

/// Accumulates statistics, one message at a time.
#[derive(Debug, Default)]
pub(super) struct Tally {
    analytics: Analytics,
    durations_ms: Vec<u64>,
    /// The number of messages that cite each source.
    citations: HashMap<SourceKey, u64>,
    cited_in_thread: HashSet<SourceKey>,
    /// Whether there was a user message since the last answer.
    has_question: bool,
}

/// The kind and id of a source.
type SourceKey = (String, String);

impl Tally {
    pub(super) fn start_thread(&mut self) {
        self.analytics.threads += 1;
        self.cited_in_thread.clear();
        self.has_question = false;
    }

    pub(super) fn add_corrupt(&mut self, count: usize) {
        self.analytics.corrupt_messages += count as u64;
    }

    pub(super) fn add(&mut self, message: &Message) {
        let analytics = &mut self.analytics;
        let content = &message.content;
        analytics.messages += 1;
        *analytics.roles.entry(content.role).or_default() += 1;
        if let Some(agent) = &content.agent {
            *analytics.agents.entry(agent.clone()).or_default() += 1;
        }
        let at = message.created_at;
        analytics.first_message_at = Some(analytics.first_message_at.map_or(at, |first| first.min(at)));
        analytics.last_message_at = Some(analytics.last_message_at.map_or(at, |last| last.max(at)));
        if let Some(usage) = &content.usage {
            self.add_usage(usage);
        }
        match content.role {
            Role::User => self.has_question = true,
            Role::Assistant => {
                if is_answer(content) {
                    self.analytics.turns += u64::from(std::mem::take(&mut self.has_question));
                }
                self.add_sources(&content.sources);
            }
            Role::System | Role::Tool => {}
        }
    }

    pub(super) fn finish(mut self) -> Analytics {
        self.durations_ms.sort_unstable();
        self.analytics.durations = summarise_durations(&self.durations_ms);
        self.analytics.sources.distinct = self.citations.len() as u64;
        self.analytics.sources.reused = self.citations.values().filter(|count| **count > 1).count() as u64;
        self.analytics
    }

    fn add_usage(&mut self, usage: &Usage) {
        let analytics = &mut self.analytics;
        analytics.input_tokens = analytics.input_tokens.saturating_add(usage.input_tokens);
        analytics.output_tokens = analytics.output_tokens.saturating_add(usage.output_tokens);
        analytics.cost_usd += usage.cost_usd.unwrap_or(0.0);
        if let Some(model) = &usage.model {
            *analytics.models.entry(model.clone()).or_default() += 1;
        }
        self.durations_ms.extend(usage.duration_ms);
    }

    fn add_sources(&mut self, sources: &[Source]) {
        let cited: HashSet<SourceKey> = sources.iter().map(|source| (source.kind.clone(), source.id.clone())).collect();
        if cited.is_empty() {
            return;
        }
        let sources = &mut self.analytics.sources;
        sources.citations += cited.len() as u64;
        sources.citing_messages += 1;
        sources.reusing_messages += u64::from(cited.is_subset(&self.cited_in_thread));
        for source in cited {
            *self.citations.entry(source.clone()).or_default() += 1;
            self.cited_in_thread.insert(source);
        }
    }
}

/// Returns `None` for an empty list.
fn summarise_durations(sorted_ms: &[u64]) -> Option<Durations> {
    let (min_ms, max_ms) = (*sorted_ms.first()?, *sorted_ms.last()?);
    let percentile = |percent: usize| sorted_ms[(sorted_ms.len() * percent).div_ceil(100).max(1) - 1];
    Some(Durations { count: sorted_ms.len() as u64, min_ms, median_ms: percentile(50), p95_ms: percentile(95), max_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let median_and_p95 = |values: &[u64]| summarise_durations(values).map(|found| (found.median_ms, found.p95_ms));
        assert_eq!(median_and_p95(&[]), None);
        assert_eq!(median_and_p95(&[7]), Some((7, 7)));
        assert_eq!(median_and_p95(&[1, 2]), Some((1, 2)));
        assert_eq!(median_and_p95(&(1..=100).collect::<Vec<_>>()), Some((50, 95)));
        assert_eq!(median_and_p95(&(1..=20).collect::<Vec<_>>()), Some((10, 19)));
    }
}
