use threadkeep_core::TokenCount;

/// An error of context assembly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The policy is invalid. Change it.
    #[error("invalid {field}: {reason}")]
    Invalid {
        /// The invalid field.
        field: &'static str,
        /// What is wrong with the value.
        reason: &'static str,
    },
    /// The smallest context, which is the system prompt and a newest message without its text, does not fit. Raise the
    /// budget.
    #[error("a budget of {budget} tokens is too small; at least {needed} are needed")]
    BudgetTooSmall {
        /// The budget.
        budget: TokenCount,
        /// The size of the smallest context.
        needed: TokenCount,
    },
}

impl ContextError {
    pub(crate) const fn invalid(field: &'static str, reason: &'static str) -> Self {
        Self::Invalid { field, reason }
    }
}
