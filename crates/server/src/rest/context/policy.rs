use serde::{Deserialize, Serialize};
use threadkeep::context::{ContextPolicy, Pruning, RecallFrom, RecallPolicy, Rendering, SummaryPolicy, Trimming};
use threadkeep::core::TokenCount;
use utoipa::ToSchema;

/// What a context may hold, and how it is written. What is left out has its default.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyJson {
    /// Stands first, never cut.
    system_prompt: Option<String>,
    /// Messages of the thread at most. Default: 20.
    #[schema(minimum = 1, maximum = 1000)]
    window: Option<usize>,
    /// Tokens of the whole at most.
    budget: Option<u64>,
    /// Characters after which a message of the history is cut.
    message_characters: Option<usize>,
    /// Whether a summary stands in for messages that fell out. Default: true.
    summary: Option<bool>,
    /// Characters of the summary at most. Default: 4,000.
    summary_characters: Option<usize>,
    /// Where messages that bear on the question are looked for. Default: nowhere.
    recall_from: RecallFromJson,
    /// Recalled messages at most. Default: 50.
    recall_messages: Option<usize>,
    /// Chooses the window by relevance: the newest so many messages always stay.
    pruning_newest: Option<usize>,
    /// Trims in steps, so that the beginning stays the same: what is left after a step, in percent.
    #[schema(minimum = 1, maximum = 100)]
    keep_percent: Option<u8>,
    /// How the context is written. Default: `chat`.
    rendering: RenderingJson,
    /// Whether what the user prefers is told. Default: true.
    preferences: Option<bool>,
}

/// How a context is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RenderingJson {
    /// As messages with roles and tool parts.
    #[default]
    Chat,
    /// As one user message, the history as text between markers.
    Transcript,
}

/// Where messages are recalled from.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecallFromJson {
    #[default]
    Nowhere,
    /// In the thread itself.
    Thread,
    /// In all threads of the user whom the thread belongs to.
    User,
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
