use serde::Serialize;
use threadkeep::AssembledContext;
use threadkeep::context::Report;
use utoipa::ToSchema;

use crate::message::{ContextMessageJson, UnreadableJson};

/// The context of a model, with a report.
#[derive(Debug, Serialize, ToSchema)]
pub struct ContextJson<'a> {
    messages: Vec<ContextMessageJson<'a>>,
    /// The number of the thread's last change when the context was assembled.
    change: u64,
    /// Which messages are included and why, and the tokens of each part.
    #[schema(value_type = Object)]
    report: &'a Report,
    /// Whether the report was stored.
    is_report_kept: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<UnreadableJson<'a>>,
}

impl<'a> ContextJson<'a> {
    /// Converts a context.
    pub fn of(assembled: &'a AssembledContext) -> Self {
        Self {
            messages: assembled.context.messages.iter().map(Into::into).collect(),
            change: assembled.positions.change,
            report: &assembled.context.report,
            is_report_kept: assembled.is_report_stored,
            unreadable: assembled.unreadable.iter().map(Into::into).collect(),
        }
    }
}
