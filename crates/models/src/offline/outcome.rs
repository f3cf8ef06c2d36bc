use threadkeep_core::Value;

use super::intent::Slots;
use crate::Exchange;

/// What is known for an intent, and what its calls gave so far.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    pub(super) slots: &'a Slots,
    pub(super) exchanges: Vec<Exchange<'a>>,
}

impl<'a> Outcome<'a> {
    /// What is known.
    #[must_use]
    pub fn slots(&self) -> &'a Slots {
        self.slots
    }

    /// The calls of this intent, in order, with their results.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange<'a>] {
        &self.exchanges
    }

    /// What the last call of a tool gave, as JSON where it is that, else as a JSON string. Null where it was not called
    /// or failed.
    #[must_use]
    pub fn result(&self, tool: &str) -> Value {
        let called = self.exchanges.iter().rev().find(|exchange| exchange.call.name == tool && !exchange.has_failed());
        called.map_or(Value::Null, Exchange::value)
    }

    /// What a tool said of its failure, if the last call of it failed.
    #[must_use]
    pub fn failure(&self, tool: &str) -> Option<&'a str> {
        let called = self.exchanges.iter().rev().find(|exchange| exchange.call.name == tool)?;
        called.result.filter(|result| result.is_error).map(|result| result.output.as_str())
    }
}
