//! Interprets a request as a turn of a conversation.

use threadkeep_core::text::Language;
use threadkeep_core::{ChatMessage, ChatRequest, Role, ToolCall, ToolResult, Value};

use crate::phrases::Phrases;
use crate::utterance::folded_words;

/// The maximum number of messages from which the language of the answer is detected.
const MAX_LANGUAGE_MESSAGES: usize = 5;

/// A view of a request: its last question, the messages before it, and the tool calls since.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    request: &'a ChatRequest,
    /// The messages of the request as they were written.
    said: &'a [ChatMessage],
    /// The index of the question; `None` if there is no user message.
    question: Option<usize>,
}

impl<'a> Turn<'a> {
    /// Locates the last user message of a request.
    #[must_use]
    pub fn of(request: &'a ChatRequest) -> Self {
        let question = request.messages.iter().rposition(|message| message.role == Role::User);
        Self { request, said: &request.messages, question }
    }

    /// Sets the messages as they were written, before they were completed.
    pub(crate) fn with_said(mut self, said: &'a [ChatMessage]) -> Self {
        self.said = said;
        self
    }

    /// Returns the text of the last user message; empty if there is none.
    #[must_use]
    pub fn question(&self) -> String {
        self.question.map(|at| self.request.messages[at].plain_text()).unwrap_or_default()
    }

    /// Returns the language of the question, or of the user's newest message whose language is detected by its function
    /// words or by the markers of the phrases. The default is the language of the first phrases.
    #[must_use]
    pub fn language(&self, all: &[Phrases]) -> Language {
        let earlier = self.earlier().iter().rev().filter(|message| message.role == Role::User);
        let mut texts = std::iter::once(self.question()).chain(earlier.map(ChatMessage::plain_text));
        let marked = |text: &str| {
            let words = folded_words(text);
            let marks = |phrases: &&Phrases| words.iter().any(|word| phrases.markers.contains(word));
            all.iter().find(marks).map(|phrases| phrases.language)
        };
        let language_of = |text: String| Language::of(&text).or_else(|| marked(&text));
        let known = texts.by_ref().take(MAX_LANGUAGE_MESSAGES).find_map(language_of);
        let default = || all.first().map_or(Language::English, |phrases| phrases.language);
        known.filter(|known| all.iter().any(|phrases| phrases.language == *known)).unwrap_or_else(default)
    }

    /// Returns the messages before the question.
    #[must_use]
    pub fn earlier(&self) -> &'a [ChatMessage] {
        &self.request.messages[..self.question.unwrap_or(0)]
    }

    /// Returns the messages before the question as they were written: those that continue earlier ones are not completed.
    #[must_use]
    pub fn said(&self) -> &'a [ChatMessage] {
        &self.said[..self.question.unwrap_or(0)]
    }

    /// Returns the question as it was written, before it was completed.
    #[must_use]
    pub fn question_as_written(&self) -> String {
        self.question.and_then(|at| self.said.get(at)).map(ChatMessage::plain_text).unwrap_or_default()
    }

    /// Returns the messages after the question: calls and their results.
    #[must_use]
    pub fn since(&self) -> &'a [ChatMessage] {
        self.question.map_or(&self.request.messages[..], |at| &self.request.messages[at + 1..])
    }

    /// Returns the calls of this turn in order, each with its result if there is one.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange<'a>> {
        exchanges(self.since())
    }

    /// Returns the result of this turn's last call of a tool: parsed if it is JSON, else as a JSON string.
    ///
    /// # Errors
    /// A message that names what is missing: the call, its result, or a successful result.
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

    /// Returns a number that identifies this turn within its thread: the position of the question, or its index among
    /// the messages if it has no position.
    fn number(&self) -> u64 {
        let index = self.question.unwrap_or(0);
        let seq = self.request.messages.get(index).and_then(|message| message.seq);
        seq.unwrap_or(index as u64)
    }

    /// Returns a generator of ids for new calls of this turn, unique within the thread: the prefix, the number of the
    /// turn, and a counter.
    pub fn call_ids(&self, prefix: &'static str) -> impl FnMut() -> String + use<> {
        let number = self.number();
        let mut count = self.since().iter().flat_map(ChatMessage::tool_calls).count();
        move || {
            count += 1;
            format!("{prefix}_{number}_{count}")
        }
    }
}

/// A call and its result.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// The result, if there is one yet.
    pub result: Option<&'a ToolResult>,
}

impl Exchange<'_> {
    /// Returns the result: parsed if it is JSON, otherwise as a JSON string; null without a result.
    #[must_use]
    pub fn value(&self) -> Value {
        let Some(result) = self.result else { return Value::Null };
        serde_json::from_str(&result.output).unwrap_or_else(|_| Value::String(result.output.clone()))
    }

    /// Returns the arguments of the call.
    #[must_use]
    pub fn arguments(&self) -> Value {
        self.call.arguments.read().unwrap_or(Value::Null)
    }

    /// Whether the result is an error.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.result.is_some_and(|result| result.is_error)
    }
}

/// Returns the calls among messages in order, each with its first result.
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
