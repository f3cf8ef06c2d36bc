//! Turns frames into tool calls, and results into answers.

use threadkeep_core::text::Language;
use threadkeep_core::{
    ChatAnswer, ChatMessage, ChatRequest, Finish, JsonText, Part, Role, ToolCall, ToolChoice, Usage, Value,
};

use crate::acts::Act;
use crate::frame::{Frame, OpenSlot};
use crate::history::History;
use crate::intent::Intent;
use crate::model::{CompletesFn, NAME, OfflineModel, Unanswered};
use crate::outcome::Outcome;
use crate::phrases::{Phrases, fill};
use crate::quote::answer_by_quoting;
use crate::resolver::Resolution;
use crate::{Exchange, Turn};

/// The maximum length of quoted tool output, in characters.
const QUOTED_CHARACTERS: usize = 4_000;

/// Returns the request with each user message that depends on earlier ones completed, so that the question and the
/// messages before it lead to the same dialogue state in every turn.
fn with_complete_messages(request: &ChatRequest, complete: CompletesFn, from_said: bool) -> ChatRequest {
    let mut completed = request.clone();
    for at in 0..completed.messages.len() {
        let (earlier, rest) = completed.messages.split_at_mut(at);
        let earlier = if from_said { &request.messages[..at] } else { earlier };
        let message = &mut rest[0];
        if message.role == Role::User
            && let Some(text) = complete(&message.plain_text(), earlier)
        {
            *message = ChatMessage { seq: message.seq, ..ChatMessage::text(Role::User, text) };
        }
    }
    completed
}

/// The next step for a frame.
enum NextStep {
    Call(Vec<(String, Value)>),
    Say(String),
    /// The intent leads to no call, without which it cannot answer.
    Unanswered,
}

impl OfflineModel {
    pub(crate) fn respond(&self, request: &ChatRequest) -> ChatAnswer {
        let said = &request.messages[..];
        let completed =
            self.completes.map(|complete| with_complete_messages(request, complete, self.completes_from_said));
        let request = completed.as_ref().unwrap_or(request);
        let turn = Turn::of(request).with_said(said);
        let history = History::of(&turn);
        let (frames, referrals) = match self.resolver.resolve(&history) {
            Resolution::Frames(frames) => (frames, Vec::new()),
            Resolution::Mixed(frames, answers) => (frames, answers),
            Resolution::Act(act) => return text_answer(self.reply(act, &turn)),
            Resolution::Answer(answer) => return text_answer(self.answers[answer](&turn)),
            Resolution::OffTopic => return text_answer(self.fallback_answer(&turn, Unanswered::OffTopic)),
            Resolution::NotUnderstood => return text_answer(self.fallback_answer(&turn, Unanswered::NotUnderstood)),
        };
        let mut exchanges_left = turn.exchanges().into_iter();
        let steps = self.next_steps(&frames, request, self.phrases_for(&turn), &mut exchanges_left);
        if let [NextStep::Unanswered] = steps[..] {
            return text_answer(self.fallback_answer(&turn, Unanswered::NotUnderstood));
        }
        let calls: Vec<&(String, Value)> = steps
            .iter()
            .filter_map(|step| if let NextStep::Call(calls) = step { Some(calls) } else { None })
            .flatten()
            .collect();
        if calls.is_empty() {
            let texts =
                steps.iter().filter_map(|step| if let NextStep::Say(text) = step { Some(text.as_str()) } else { None });
            let referrals: Vec<String> = referrals.into_iter().map(|answer| self.answers[answer](&turn)).collect();
            let all = texts.chain(referrals.iter().map(String::as_str));
            return text_answer(all.collect::<Vec<_>>().join("\n\n"));
        }
        let mut next_id = turn.call_ids("call");
        let parts = calls.into_iter().map(|(tool, arguments)| call_part(next_id(), tool, arguments)).collect();
        answer(parts, Finish::ToolCalls)
    }

    /// Determines the next step of each frame. The calls of a round are made at the same time for all frames, so
    /// results are assigned to frames by their order.
    fn next_steps<'a>(
        &'a self,
        frames: &'a [Frame],
        request: &ChatRequest,
        phrases: &Phrases,
        exchanges_left: &mut impl Iterator<Item = Exchange<'a>>,
    ) -> Vec<NextStep> {
        let aspect = |frame: &Frame| {
            let aspects = &self.resolver.intents[frame.intent].aspects;
            frame.aspect.map(|aspect| aspects[aspect].name.as_str())
        };
        let start = |frame: &'a Frame| FrameProgress::new(frame, phrases.language, aspect(frame));
        let mut all_progress: Vec<FrameProgress<'a>> = frames.iter().map(start).collect();
        let most_rounds =
            frames.iter().map(|frame| self.resolver.intents[frame.intent].rounds.len()).max().unwrap_or(0);
        for round in 0..most_rounds {
            let mut has_calls = false;
            for progress in &mut all_progress {
                let intent = &self.resolver.intents[progress.frame.intent];
                has_calls |= progress.advance(intent, round, request, exchanges_left);
            }
            if has_calls {
                break;
            }
        }
        all_progress.into_iter().map(|progress| self.next_step(progress, phrases)).collect()
    }

    /// Returns the phrases in the language of the conversation.
    fn phrases_for(&self, turn: &Turn<'_>) -> &Phrases {
        let all = &self.resolver.phrases;
        let language = turn.language(all);
        all.iter().find(|phrases| phrases.language == language).unwrap_or(&all[0])
    }

    fn next_step(&self, progress: FrameProgress<'_>, phrases: &Phrases) -> NextStep {
        let intent = &self.resolver.intents[progress.frame.intent];
        if let Some(open) = progress.frame.open.first() {
            return NextStep::Say(self.ask(intent, open, phrases));
        }
        if let Some(tool) = &progress.disabled {
            return NextStep::Say(fill(&phrases.disabled, &[("tool", tool)]));
        }
        if !progress.calls.is_empty() {
            return NextStep::Call(progress.calls);
        }
        let (frame, outcome) = (progress.frame, progress.outcome);
        if outcome.exchanges.is_empty() && self.unanswered_without_call.contains(&intent.name) {
            return NextStep::Unanswered;
        }
        let says = frame.aspect.map(|aspect| &intent.aspects[aspect].says).or(intent.says.as_ref());
        let failed = outcome.exchanges.iter().find(|exchange| exchange.has_failed());
        let text = match (failed, &intent.says_of_failure, says) {
            (Some(_), Some(says), _) | (None, _, Some(says)) => says(&outcome),
            (Some(failed), None, _) => {
                let output = failed.result.map(|result| cut(&result.output)).unwrap_or_default();
                fill(&phrases.failed, &[("tool", &failed.call.name), ("output", &output)])
            }
            (None, _, None) => raw_results(&outcome, &phrases.done),
        };
        NextStep::Say(with_notes(text, frame, phrases))
    }

    fn reply(&self, act: Act, turn: &Turn<'_>) -> String {
        if let Some((_, reply)) = self.replies.iter().find(|(known, _)| *known == act) {
            return reply(turn);
        }
        let phrases = self.phrases_for(turn);
        match act {
            Act::Greet => self.phrase(&phrases.greeting),
            Act::Thank | Act::Affirm => phrases.welcome.clone(),
            Act::Leave => phrases.farewell.clone(),
            Act::Deny => phrases.declined.clone(),
            Act::Source => phrases.source.clone(),
            Act::Complain => phrases.apology.clone(),
            Act::Help | Act::Identity => self.describe(turn),
            Act::Again | Act::Reverse | Act::Change | Act::Correct | Act::Other => phrases.no_reference.clone(),
        }
    }

    /// Returns the model's description of itself, shortened to one line if the conversation already contains it.
    fn describe(&self, turn: &Turn<'_>) -> String {
        let phrases = self.phrases_for(turn);
        let description = self.phrase(&phrases.self_description);
        let is_known = |message: &ChatMessage| message.role == Role::Assistant && message.plain_text() == description;
        let example = self.resolver.intents.iter().find_map(|intent| intent.example.as_deref());
        match example.filter(|_| turn.earlier().iter().any(is_known)) {
            Some(example) => fill(&phrases.help_again, &[("example", example)]),
            None => description,
        }
    }

    fn ask(&self, intent: &Intent, open: &OpenSlot, phrases: &Phrases) -> String {
        let slot = &intent.slots[open.slot];
        if open.choices.is_empty() {
            return slot
                .question(phrases.language)
                .map_or_else(|| fill(&phrases.missing, &[("slot", &slot.kind)]), str::to_owned);
        }
        let labels: Vec<&str> = open.choices.iter().map(|choice| choice.label.as_str()).collect();
        let choices = match labels.split_last() {
            Some((last, before)) if !before.is_empty() => format!("{}{}{last}", before.join(", "), phrases.or),
            _ => labels.join(", "),
        };
        // The message does not mention the name if the choices are from the dialogue.
        let name = if open.ambiguous_text.is_empty() { &slot.kind } else { &open.ambiguous_text };
        fill(&phrases.ambiguous, &[("name", name), ("choices", &choices)])
    }

    fn fallback_answer(&self, turn: &Turn<'_>, cause: Unanswered) -> String {
        let phrases = self.phrases_for(turn);
        let own = || match &self.quotes {
            Some(passages) => answer_by_quoting(turn, passages(turn), phrases),
            None => self.phrase(&phrases.not_understood),
        };
        self.fallbacks.iter().find_map(|answers| answers(turn, cause)).unwrap_or_else(own)
    }

    fn phrase(&self, phrase: &str) -> String {
        let examples: String = self
            .resolver
            .intents
            .iter()
            .filter_map(|intent| Some(format!("\n- {}", intent.example.as_ref()?)))
            .collect();
        fill(phrase, &[("about", &self.about), ("examples", &examples)])
    }
}

/// The progress of a frame through its rounds of calls.
struct FrameProgress<'a> {
    frame: &'a Frame,
    outcome: Outcome<'a>,
    /// The calls to make next.
    calls: Vec<(String, Value)>,
    disabled: Option<String>,
}

impl<'a> FrameProgress<'a> {
    fn new(frame: &'a Frame, language: Language, aspect: Option<&'a str>) -> Self {
        let outcome = Outcome { slots: &frame.slots, exchanges: Vec::new(), language, aspect };
        Self { frame, outcome, calls: Vec::new(), disabled: None }
    }

    /// Consumes the existing exchanges of a round. Returns whether further calls must be made.
    fn advance(
        &mut self,
        intent: &Intent,
        round: usize,
        request: &ChatRequest,
        exchanges_left: &mut impl Iterator<Item = Exchange<'a>>,
    ) -> bool {
        let has_failed = self.outcome.exchanges.iter().any(Exchange::has_failed);
        if !self.frame.open.is_empty() || self.disabled.is_some() || has_failed {
            return false;
        }
        let Some(round) = intent.rounds.get(round) else { return false };
        let wanted = round.calls.iter().filter_map(|call| Some((call.tool.clone(), (call.arguments)(&self.outcome)?)));
        let wanted: Vec<(String, Value)> = wanted.collect();
        for (tool, arguments) in wanted {
            match exchanges_left.next() {
                Some(exchange) => self.outcome.exchanges.push(exchange),
                None if !may_call(request, &tool) => self.disabled = Some(tool),
                None => self.calls.push((tool, arguments)),
            }
        }
        !self.calls.is_empty()
    }
}

/// Appends a note with the parts of the message that the answer does not take into account.
fn with_notes(text: String, frame: &Frame, phrases: &Phrases) -> String {
    let parts: Vec<String> = frame.unused.iter().chain(&frame.unexplained).map(|words| format!("“{words}”")).collect();
    if parts.is_empty() {
        return text;
    }
    format!("{text}\n\n{}", fill(&phrases.ignored, &[("words", &parts.join(", "))]))
}

fn may_call(request: &ChatRequest, tool: &str) -> bool {
    request.tool_choice != ToolChoice::None && request.tools.iter().any(|known| known.name == tool)
}

fn raw_results(outcome: &Outcome<'_>, done: &str) -> String {
    let results = outcome.exchanges.iter().filter_map(|exchange| exchange.result);
    let texts: Vec<String> = results
        .map(|result| match serde_json::from_str(&result.output) {
            Ok(Value::String(text)) => cut(&text),
            _ => cut(&result.output),
        })
        .filter(|text| !text.is_empty())
        .collect();
    if texts.is_empty() { done.to_owned() } else { texts.join("\n\n") }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn text_answer(text: String) -> ChatAnswer {
    answer(vec![Part::Text(text)], Finish::Stop)
}

fn answer(parts: Vec<Part>, finish: Finish) -> ChatAnswer {
    let usage = Usage { model: Some(NAME.to_owned()), cost_usd: Some(0.0), ..Usage::default() };
    ChatAnswer { parts, finish, model: NAME.to_owned(), usage: Some(usage) }
}

fn call_part(id: String, name: &str, arguments: &Value) -> Part {
    Part::ToolCall(ToolCall { id, name: name.to_owned(), arguments: JsonText::from(arguments) })
}
