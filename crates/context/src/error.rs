use threadkeep_core::TokenCount;

/// Why no context was assembled, named for what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The policy makes no sense. Change it.
    #[error("invalid {field}: {reason}")]
    Invalid {
        /// Which of its fields.
        field: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// Not even the system prompt and the mark of a message that is cut to nothing fit. Raise the budget.
    #[error("a budget of {budget} tokens is too small; at least {needed} are needed")]
    BudgetTooSmall {
        /// The budget.
        budget: TokenCount,
        /// What the smallest context takes.
        needed: TokenCount,
    },
}

impl ContextError {
    pub(crate) const fn invalid(field: &'static str, reason: &'static str) -> Self {
        Self::Invalid { field, reason }
    }
}
