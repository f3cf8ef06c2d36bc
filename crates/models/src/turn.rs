//! A request, read as a turn of a conversation.

use threadkeep_core::{ChatMessage, ChatRequest, Role, ToolCall, ToolResult, Value};

/// A request as seen from its last question: what was said before, and what was done for it since.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    request: &'a ChatRequest,
    /// Where the question stands; `None` where no user has spoken.
    question: Option<usize>,
}

impl<'a> Turn<'a> {
    /// Finds the last message of a user.
    #[must_use]
    pub fn of(request: &'a ChatRequest) -> Self {
        Self { request, question: request.messages.iter().rposition(|message| message.role == Role::User) }
    }

    /// What the user said last; empty where no user has spoken.
    #[must_use]
    pub fn question(&self) -> String {
        self.question.map(|at| self.request.messages[at].plain_text()).unwrap_or_default()
    }

    /// What stands before the question.
    #[must_use]
    pub fn earlier(&self) -> &'a [ChatMessage] {
        &self.request.messages[..self.question.unwrap_or(0)]
    }

    /// What the turn has added to the question: calls and their results.
    #[must_use]
    pub fn since(&self) -> &'a [ChatMessage] {
        self.question.map_or(&self.request.messages[..], |at| &self.request.messages[at + 1..])
    }

    /// The calls of this turn in order, each with its result where there is one.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange<'a>> {
        exchanges(self.since())
    }

    /// The result of this turn's last call of a tool, as JSON where it is that, else as a JSON string.
    ///
    /// # Errors
    /// Says what is missing: the call, its result, or a success.
    pub fn result(&self, tool: &str) -> Result<Value, String> {
        let exchanges = self.exchanges();
        let called = exchanges.iter().rev().find(|exchange| exchange.call.name == tool);
        let exchange = called.ok_or_else(|| format!("{tool} was not called in this turn"))?;
        let result = exchange.result.ok_or_else(|| format!("{tool} has no result yet"))?;
        if result.is_error {
            return Err(format!("{tool} failed: {}", result.output));
        }
        Ok(exchange.value())
    }

    /// The number that tells this turn from others of its thread: the position of the question, or its place among
    /// the messages where it has none.
    pub(crate) fn number(&self) -> u64 {
        let place = self.question.unwrap_or(0);
        let seq = self.request.messages.get(place).and_then(|message| message.seq);
        seq.unwrap_or(place as u64)
    }
}

/// A call and what came back.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// Its result, where it has come.
    pub result: Option<&'a ToolResult>,
}

impl Exchange<'_> {
    /// What the tool gave, as JSON where it is that, else as a JSON string; null where nothing has come.
    #[must_use]
    pub fn value(&self) -> Value {
        let Some(result) = self.result else { return Value::Null };
        serde_json::from_str(&result.output).unwrap_or_else(|_| Value::String(result.output.clone()))
    }

    /// The arguments of the call.
    #[must_use]
    pub fn arguments(&self) -> Value {
        self.call.arguments.read().unwrap_or(Value::Null)
    }

    /// Whether the tool said that it failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.result.is_some_and(|result| result.is_error)
    }
}

/// The calls among messages in order, each with the first result after it that names it.
pub(crate) fn exchanges(messages: &[ChatMessage]) -> Vec<Exchange<'_>> {
    let mut exchanges: Vec<Exchange<'_>> = Vec::new();
    for message in messages {
        exchanges.extend(message.tool_calls().map(|call| Exchange { call, result: None }));
        for result in message.tool_results() {
            let open = |exchange: &&mut Exchange<'_>| exchange.result.is_none() && exchange.call.id == result.call_id;
            if let Some(exchange) = exchanges.iter_mut().find(open) {
                exchange.result = Some(result);
            }
        }
    }
    exchanges
}
