use std::fmt;

use threadkeep_core::{Map, Portable, Value};

use super::extract::Choice;
use super::outcome::Outcome;
use super::pattern::Pattern;

/// Something that a user may want: how it is said, what has to be known for it, which tools are called, and what is said
/// of their results.
///
/// # Patterns
/// A pattern is what has to be said, in order; other words may stand between. `a|b` is either word, `delay*` any word
/// that begins so, `[word]` may be missing but counts where it is there, `{kind}` is a mention of that kind, and
/// `{name...}` takes all words that are left as the slot of that name. Of several intents the one that explains more of
/// the words is meant; between equals, the one that was declared first.
///
/// # Slots
/// A slot takes a mention that stands behind one of its cue words ("from", "to"); then required slots, and optional ones
/// without cues, take what is left, in the order of their declaration. What is still missing and required comes from the
/// conversation, or is asked for.
pub struct Intent {
    pub(super) name: String,
    pub(super) example: Option<String>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) excluded: Vec<Pattern>,
    pub(super) slots: Vec<Slot>,
    pub(super) rounds: Vec<Round>,
    pub(super) says: Option<Says>,
    pub(super) says_of_failure: Option<Says>,
    pub(super) yields: Option<Yields>,
    /// The intents of which one must have been meant last; empty for all.
    pub(super) follows: Vec<String>,
}

pub(super) type Says = Box<dyn Function<String>>;
pub(super) type Yields = Box<dyn Function<Vec<(String, Choice)>>>;

/// What is made of an outcome.
pub(super) trait Function<T>: Portable + Fn(&Outcome<'_>) -> T {}
impl<T, F: Portable + Fn(&Outcome<'_>) -> T> Function<T> for F {}

/// Calls that are made at once.
pub(super) struct Round {
    pub(super) calls: Vec<Call>,
}

pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Box<dyn Function<Option<Value>>>,
}

impl Intent {
    /// Makes an intent that nothing leads to yet.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            example: None,
            patterns: Vec::new(),
            excluded: Vec::new(),
            slots: Vec::new(),
            rounds: Vec::new(),
            says: None,
            says_of_failure: None,
            yields: None,
            follows: Vec::new(),
        }
    }

    /// Shows how it is asked for, in lists of what is understood.
    #[must_use]
    pub fn example(mut self, example: impl Into<String>) -> Self {
        self.example = Some(example.into());
        self
    }

    /// Adds a pattern; one that fits is enough.
    #[must_use]
    pub fn pattern(mut self, pattern: &str) -> Self {
        self.patterns.push(Pattern::parse(pattern));
        self
    }

    /// Adds several patterns.
    #[must_use]
    pub fn patterns<'a>(self, patterns: impl IntoIterator<Item = &'a str>) -> Self {
        patterns.into_iter().fold(self, Self::pattern)
    }

    /// Something else is meant where this pattern fits.
    #[must_use]
    pub fn unless(mut self, pattern: &str) -> Self {
        self.excluded.push(Pattern::parse(pattern));
        self
    }

    /// Is meant only where one of these intents was meant last: "and the express?" is one question behind a route, and
    /// another behind a departure board.
    #[must_use]
    pub fn follows<'a>(mut self, intents: impl IntoIterator<Item = &'a str>) -> Self {
        self.follows.extend(intents.into_iter().map(str::to_owned));
        self
    }

    /// Adds something that has to be known, or may be.
    #[must_use]
    pub fn slot(mut self, slot: Slot) -> Self {
        self.slots.push(slot);
        self
    }

    /// Calls a tool with all slots under their names. Several calls are made at once.
    #[must_use]
    pub fn calls(self, tool: impl Into<String>) -> Self {
        self.calls_with(tool, |slots| slots.arguments())
    }

    /// Calls a tool with arguments made of the slots.
    #[must_use]
    pub fn calls_with(mut self, tool: impl Into<String>, arguments: impl Fn(&Slots) -> Value + Portable) -> Self {
        let call = Call { tool: tool.into(), arguments: Box::new(move |outcome| Some(arguments(outcome.slots()))) };
        match self.rounds.first_mut() {
            Some(first) => first.calls.push(call),
            None => self.rounds.push(Round { calls: vec![call] }),
        }
        self
    }

    /// Calls a tool once all calls before have their results; not at all where `None` comes of them.
    #[must_use]
    pub fn then_calls(
        mut self,
        tool: impl Into<String>,
        arguments: impl Fn(&Outcome<'_>) -> Option<Value> + Portable,
    ) -> Self {
        if self.rounds.is_empty() {
            self.rounds.push(Round { calls: Vec::new() });
        }
        self.rounds.push(Round { calls: vec![Call { tool: tool.into(), arguments: Box::new(arguments) }] });
        self
    }

    /// Says this of the results. Without it, they are said as the tools gave them.
    #[must_use]
    pub fn says(mut self, says: impl Fn(&Outcome<'_>) -> String + Portable) -> Self {
        self.says = Some(Box::new(says));
        self
    }

    /// Says this where a tool failed. Without it, the tool's own words are quoted.
    #[must_use]
    pub fn says_of_failure(mut self, says: impl Fn(&Outcome<'_>) -> String + Portable) -> Self {
        self.says_of_failure = Some(Box::new(says));
        self
    }

    /// Tells what the results mention, by kind, so that later questions may refer to it: a home station from the
    /// preferences.
    #[must_use]
    pub fn yields(mut self, yields: impl Fn(&Outcome<'_>) -> Vec<(String, Choice)> + Portable) -> Self {
        self.yields = Some(Box::new(yields));
        self
    }
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intent").field("name", &self.name).field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// Something that an intent needs to know.
pub struct Slot {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_required: bool,
    pub(super) is_carried: bool,
    /// The slot of the turn before that it is carried from, where that is another than its own.
    pub(super) carried_from: Option<String>,
    pub(super) question: Option<String>,
    pub(super) cues: Vec<String>,
    pub(super) default: Option<Choice>,
    pub(super) narrows: Option<Narrows>,
}

/// Which choices are left, by what else is known.
type Narrows = Box<dyn Narrow>;
pub(super) trait Narrow: Portable + Fn(&[Choice], &Slots) -> Vec<Choice> {}
impl<F: Portable + Fn(&[Choice], &Slots) -> Vec<Choice>> Narrow for F {}

impl Slot {
    /// Makes a slot that has to be filled: from what is said, else from the conversation, else by asking.
    #[must_use]
    pub fn required(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { is_required: true, is_carried: true, ..Self::optional(name, kind) }
    }

    /// Makes a slot that is filled only from what is said.
    #[must_use]
    pub fn optional(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            is_required: false,
            is_carried: false,
            carried_from: None,
            question: None,
            cues: Vec::new(),
            default: None,
            narrows: None,
        }
    }

    /// Asks so where it is missing.
    #[must_use]
    pub fn asks(mut self, question: impl Into<String>) -> Self {
        self.question = Some(question.into());
        self
    }

    /// Takes the mention behind one of these words.
    #[must_use]
    pub fn after<'a>(mut self, cues: impl IntoIterator<Item = &'a str>) -> Self {
        self.cues.extend(cues.into_iter().map(super::pattern::fold_cue));
        self
    }

    /// Is not taken from earlier turns.
    #[must_use]
    pub fn fresh(mut self) -> Self {
        self.is_carried = false;
        self
    }

    /// Is taken from another slot of earlier turns: the way back begins where the way there ended.
    #[must_use]
    pub fn carried_from(mut self, slot: impl Into<String>) -> Self {
        self.is_carried = true;
        self.carried_from = Some(slot.into());
        self
    }

    /// Is this where nothing else fills it.
    #[must_use]
    pub fn or(mut self, default: Choice) -> Self {
        self.default = Some(default);
        self
    }

    /// Chooses among what a name may mean by the other slots. Whatever is left is asked about; nothing left counts as
    /// everything.
    #[must_use]
    pub fn narrowed_by(mut self, narrows: impl Fn(&[Choice], &Slots) -> Vec<Choice> + Portable) -> Self {
        self.narrows = Some(Box::new(narrows));
        self
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What is known for an intent, by the names of its slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slots(pub(super) Vec<(String, Choice)>);

impl Slots {
    /// What fills a slot.
    #[must_use]
    pub fn get(&self, slot: &str) -> Option<&Choice> {
        self.0.iter().find(|(name, _)| name == slot).map(|(_, choice)| choice)
    }

    /// The value that fills a slot; null where nothing does.
    #[must_use]
    pub fn value(&self, slot: &str) -> Value {
        self.get(slot).map_or(Value::Null, |choice| choice.value.clone())
    }

    /// What a person calls the thing that fills a slot; empty where nothing does.
    #[must_use]
    pub fn label(&self, slot: &str) -> &str {
        self.get(slot).map_or("", |choice| &choice.label)
    }

    /// All values under the names of their slots, as an object.
    #[must_use]
    pub fn arguments(&self) -> Value {
        Value::Object(self.0.iter().map(|(name, choice)| (name.clone(), choice.value.clone())).collect::<Map>())
    }

    pub(super) fn set(&mut self, slot: &str, choice: Choice) {
        match self.0.iter_mut().find(|(name, _)| name == slot) {
            Some((_, known)) => *known = choice,
            None => self.0.push((slot.to_owned(), choice)),
        }
    }
}
