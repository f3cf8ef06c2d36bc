use serde::{Deserialize, Serialize};
use threadkeep::context::{ContextPolicy, Pruning, RecallFrom, RecallPolicy, Rendering, SummaryPolicy, Trimming};
use threadkeep::core::TokenCount;
use utoipa::ToSchema;

use crate::whole_number::optional_whole_number;

/// The contents and the format of a context. All fields are optional.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyJson {
    /// The first message of the context, which is never truncated.
    system_prompt: Option<String>,
    /// The maximum number of messages from the thread. Default: 20.
    #[schema(minimum = 1, maximum = 1000)]
    #[serde(deserialize_with = "optional_whole_number")]
    window: Option<usize>,
    /// The maximum number of tokens in the context. Default: unlimited.
    #[serde(deserialize_with = "optional_whole_number")]
    budget: Option<u64>,
    /// The number of characters after which a message of the history is truncated. Default: unlimited.
    #[serde(deserialize_with = "optional_whole_number")]
    message_characters: Option<usize>,
    /// Whether to include a summary of messages that are omitted. Default: true.
    summary: Option<bool>,
    /// The maximum number of characters in the summary. Default: 4,000.
    #[serde(deserialize_with = "optional_whole_number")]
    summary_characters: Option<usize>,
    /// Where to search for messages that are relevant to the question. Default: `nowhere`.
    recall_from: RecallFromJson,
    /// The maximum number of recalled messages. Default: 50.
    #[serde(deserialize_with = "optional_whole_number")]
    recall_messages: Option<usize>,
    /// If set, the messages of the window are selected by relevance. This many of the newest messages are always included.
    #[serde(deserialize_with = "optional_whole_number")]
    pruning_newest: Option<usize>,
    /// If set, the history is trimmed in steps, so that its start stays the same between steps. The value is the percentage of
    /// the window and the budget that a step keeps. Default: no steps.
    #[schema(minimum = 1, maximum = 100)]
    #[serde(deserialize_with = "optional_whole_number")]
    keep_percent: Option<u8>,
    /// The format of the context. Default: `chat`.
    rendering: RenderingJson,
    /// Whether to include the user's preferences. Default: true.
    preferences: Option<bool>,
}

/// The format of a context.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RenderingJson {
    /// Messages with roles and tool parts.
    #[default]
    Chat,
    /// One user message, with the history as text between markers.
    Transcript,
}

/// Where to search for relevant messages.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecallFromJson {
    #[default]
    Nowhere,
    /// The thread itself.
    Thread,
    /// All threads of the thread's user.
    User,
}

impl From<&ContextPolicy> for PolicyJson {
    fn from(policy: &ContextPolicy) -> Self {
        Self {
            system_prompt: policy.system_prompt.clone(),
            window: policy.window,
            budget: policy.budget.map(|budget| budget.0),
            message_characters: policy.message_characters,
            summary: Some(policy.summary.is_some()),
            summary_characters: policy.summary.as_ref().map(|summary| summary.characters),
            recall_from: match policy.recall.from {
                RecallFrom::Nowhere => RecallFromJson::Nowhere,
                RecallFrom::Thread => RecallFromJson::Thread,
                RecallFrom::User => RecallFromJson::User,
            },
            recall_messages: Some(policy.recall.messages),
            pruning_newest: policy.pruning.as_ref().map(|pruning| pruning.newest),
            keep_percent: match policy.trimming {
                Trimming::Sliding => None,
                Trimming::Steps { keep_percent } => Some(keep_percent),
            },
            rendering: match policy.rendering {
                Rendering::Chat => RenderingJson::Chat,
                Rendering::Transcript => RenderingJson::Transcript,
            },
            preferences: Some(policy.preferences),
        }
    }
}

impl From<PolicyJson> for ContextPolicy {
    fn from(json: PolicyJson) -> Self {
        let default = Self::default();
        let mut summary = SummaryPolicy::default();
        summary.characters = json.summary_characters.unwrap_or(summary.characters);
        let mut recall = RecallPolicy::default();
        recall.messages = json.recall_messages.unwrap_or(recall.messages);
        recall.from = match json.recall_from {
            RecallFromJson::Nowhere => RecallFrom::Nowhere,
            RecallFromJson::Thread => RecallFrom::Thread,
            RecallFromJson::User => RecallFrom::User,
        };
        Self {
            system_prompt: json.system_prompt,
            window: json.window.or(default.window),
            budget: json.budget.map(TokenCount),
            message_characters: json.message_characters,
            summary: json.summary.unwrap_or(true).then_some(summary),
            recall,
            pruning: json.pruning_newest.map(|newest| Pruning { newest, ..Pruning::default() }),
            trimming: json.keep_percent.map_or(Trimming::Sliding, |keep_percent| Trimming::Steps { keep_percent }),
            rendering: match json.rendering {
                RenderingJson::Chat => Rendering::Chat,
                RenderingJson::Transcript => Rendering::Transcript,
            },
            preferences: json.preferences.unwrap_or(true),
            ..default
        }
    }
}
