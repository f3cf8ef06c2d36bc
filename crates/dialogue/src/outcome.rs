use threadkeep_core::Value;
use threadkeep_core::text::Language;

use crate::Exchange;
use crate::intent::Slots;

/// The slots of an intent, and the results of its calls so far.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    pub(crate) slots: &'a Slots,
    pub(crate) exchanges: Vec<Exchange<'a>>,
    pub(crate) language: Language,
    pub(crate) aspect: Option<&'a str>,
}

impl<'a> Outcome<'a> {
    /// Returns the language to answer in.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the class of the aspect that the message asks for, such as `ask:wait`.
    #[must_use]
    pub fn aspect(&self) -> Option<&'a str> {
        self.aspect
    }

    /// Returns the slots.
    #[must_use]
    pub fn slots(&self) -> &'a Slots {
        self.slots
    }

    /// Returns the calls of this intent in order, with their results.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange<'a>] {
        &self.exchanges
    }

    /// Returns the result of the last successful call of a tool: parsed if it is JSON, else as a JSON string. Null if there
    /// is none.
    #[must_use]
    pub fn result(&self, tool: &str) -> Value {
        let called = self.exchanges.iter().rev().find(|exchange| exchange.call.name == tool && !exchange.has_failed());
        called.map_or(Value::Null, Exchange::value)
    }

    /// Returns the error of the last call of a tool, if it failed.
    #[must_use]
    pub fn failure(&self, tool: &str) -> Option<&'a str> {
        let called = self.exchanges.iter().rev().find(|exchange| exchange.call.name == tool)?;
        called.result.filter(|result| result.is_error).map(|result| result.output.as_str())
    }
}
