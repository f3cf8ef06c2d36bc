mod slots;

use std::fmt;

use threadkeep_core::text::Language;
use threadkeep_core::{Portable, Value};

use crate::extract::Choice;
use crate::outcome::Outcome;
use crate::utterance::folded_words;
pub use slots::Slots;

/// A user's intent: example messages, the slots that it needs, the tools to call, and how to word the answer from their
/// results.
///
/// # Examples
/// Examples train the classifier. They name kinds of entities in braces: `how do i get from {station} to {station}`. An
/// example with `(a|b|)` is expanded to each alternative. Normalized words suffice: lower case, no punctuation.
///
/// # Slots
/// A slot is filled by a mention after one of its cue words ("from", "to"). The remaining mentions fill required slots,
/// and optional slots without cues, in the order of declaration. A required slot that is still empty is filled from the
/// conversation; otherwise the user is asked. If the slot is not carried and has no question, the intent does not apply. A
/// mention that fills no slot is reported to the user and never dropped silently.
pub struct Intent {
    pub(crate) name: String,
    pub(crate) example: Option<String>,
    pub(crate) examples: Vec<String>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) rounds: Vec<Round>,
    pub(crate) says: Option<AnswerFn>,
    pub(crate) says_of_failure: Option<AnswerFn>,
    pub(crate) yields: Option<YieldsFn>,
    /// The slot that holds what the results add to the question, and the function that reads it from them.
    pub(crate) records: Option<(String, RecordsFn)>,
    pub(crate) aspects: Vec<Aspect>,
    /// Pairs of slots that a reversal exchanges.
    pub(crate) swaps: Vec<(String, String)>,
    /// Pairs of slots that exclude each other: only the one filled last has a value.
    pub(crate) alternatives: Vec<(String, String)>,
    /// Pairs of slots whose lists must not have an element in common.
    pub(crate) disjoint: Vec<(String, String)>,
    /// The intents after which this one applies; empty if it always applies.
    pub(crate) follows: Vec<String>,
    /// The intent that "yes" expresses after this one.
    pub(crate) confirmed_by: Option<String>,
    /// Whether the slots can be restored from the arguments of the intent's calls.
    pub(crate) is_restorable: bool,
    /// The aspects that this intent answers after intents without these aspects.
    pub(crate) answers_aspects: Vec<String>,
    /// The intent that takes over follow-ups for which this one has no slot or aspect.
    pub(crate) continued_by: Option<String>,
    /// Whether the entities that the intent mentions are facts about the user.
    pub(crate) is_about_user: bool,
    /// The aspect of a trip that a question means instead of this intent, and when it does.
    pub(crate) about_trip: Option<(String, Box<dyn TripFn>)>,
    /// The kind of mention that decides for this intent before the classifier does.
    pub(crate) decided_by: Option<(String, DecidesFn)>,
    /// The kinds of mentions with which the intent does not apply.
    pub(crate) excluded_by: Vec<String>,
}

/// A function of the slots of a question and of an earlier trip.
pub(crate) trait TripFn: Portable + Fn(&Slots, &Slots) -> bool {}
impl<F: Portable + Fn(&Slots, &Slots) -> bool> TripFn for F {}

/// A function of the mentioned value, and of whether the last question has the same intent.
pub(crate) type DecidesFn = fn(&Choice, bool) -> bool;

/// A part of an answer that users ask for separately.
pub(crate) struct Aspect {
    pub(crate) name: String,
    pub(crate) says: AnswerFn,
}

pub(crate) type AnswerFn = Box<dyn OutcomeFn<String>>;
pub(crate) type YieldsFn = Box<dyn OutcomeFn<Vec<(String, Choice)>>>;
pub(crate) type RecordsFn = Box<dyn OutcomeFn<Option<Choice>>>;

/// A function of an outcome.
pub(crate) trait OutcomeFn<T>: Portable + Fn(&Outcome<'_>) -> T {}
impl<T, F: Portable + Fn(&Outcome<'_>) -> T> OutcomeFn<T> for F {}

/// Calls that are made at the same time.
pub(crate) struct Round {
    pub(crate) calls: Vec<Call>,
}

pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: Box<dyn OutcomeFn<Option<Value>>>,
}

impl Intent {
    /// Creates an intent without examples.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            example: None,
            examples: Vec::new(),
            slots: Vec::new(),
            rounds: Vec::new(),
            says: None,
            says_of_failure: None,
            yields: None,
            records: None,
            aspects: Vec::new(),
            swaps: Vec::new(),
            alternatives: Vec::new(),
            disjoint: Vec::new(),
            follows: Vec::new(),
            confirmed_by: None,
            answers_aspects: Vec::new(),
            continued_by: None,
            is_about_user: false,
            is_restorable: false,
            about_trip: None,
            decided_by: None,
            excluded_by: Vec::new(),
        }
    }

    /// Sets the example message for the model's description of itself.
    #[must_use]
    pub fn example(mut self, example: impl Into<String>) -> Self {
        self.example = Some(example.into());
        self
    }

    /// Adds example messages.
    #[must_use]
    pub fn examples<'a>(mut self, examples: impl IntoIterator<Item = &'a str>) -> Self {
        self.examples.extend(examples.into_iter().map(str::to_owned));
        self
    }

    /// Answers a follow-up question about one aspect of the result, such as `ask:duration`: calls the tools again, and
    /// words the answer for the question. The class of the aspect has separate examples, see
    /// [`OfflineModelBuilder::examples`].
    ///
    /// [`OfflineModelBuilder::examples`]: crate::OfflineModelBuilder::examples
    #[must_use]
    pub fn aspect(mut self, class: &str, says: impl Fn(&Outcome<'_>) -> String + Portable) -> Self {
        self.aspects.push(Aspect { name: class.to_owned(), says: Box::new(says) });
        self
    }

    /// Declares that the arguments of this intent's calls have the names of its slots, or the names declared by
    /// [`Slot::argument`]. An earlier message that can no longer be interpreted is then restored from its calls.
    #[must_use]
    pub fn restored_from_calls(mut self) -> Self {
        self.is_restorable = true;
        self
    }

    /// Answers questions about an aspect after intents without this aspect: "is it accessible?" after a departure board
    /// is a question about the station.
    #[must_use]
    pub fn answers_aspect(mut self, class: &str) -> Self {
        self.answers_aspects.push(class.to_owned());
        self
    }

    /// Declares the intent that takes over follow-ups for which this one has no slot or aspect: "without the E" after a
    /// comparison of lines asks for the route. Slots of the same name keep their values. A follow-up that fills all
    /// required slots continues with that intent too, because nothing is left of the earlier question.
    #[must_use]
    pub fn continued_by(mut self, intent: impl Into<String>) -> Self {
        self.continued_by = Some(intent.into());
        self
    }

    /// Declares that the entities that this intent mentions are facts about the user. Later questions can refer to them
    /// by pronouns, but do not carry them over: where the user works is not where the next trip starts.
    #[must_use]
    pub fn about_user(mut self) -> Self {
        self.is_about_user = true;
        self
    }

    /// Declares a kind of mention that decides for this intent before the classifier does, such as words that ask where two
    /// lines meet. `decides` is called with the value, and with whether the last question has the same intent. The intent applies
    /// if it has a slot for each other mention of the message.
    #[must_use]
    pub fn decided_by(mut self, kind: &str, decides: fn(&Choice, bool) -> bool) -> Self {
        self.decided_by = Some((kind.to_owned(), decides));
        self
    }

    /// Declares a kind of mention with which the intent does not apply: a message that asks how long a ride takes does not ask for the
    /// next trains, although it has the same entities.
    #[must_use]
    pub fn excluded_by(mut self, kind: &str) -> Self {
        self.excluded_by.push(kind.to_owned());
        self
    }

    /// Declares that a question means an aspect of the last trip instead of this intent if `is_about` returns true for the slots of the
    /// question and of the trip: after a trip, "how many stops does the N make?" asks about the ride.
    #[must_use]
    pub fn about_trip(mut self, aspect: &str, is_about: impl Fn(&Slots, &Slots) -> bool + Portable) -> Self {
        self.about_trip = Some((aspect.to_owned(), Box::new(is_about)));
        self
    }

    /// Declares two slots whose values are exchanged if the user says "the other way".
    #[must_use]
    pub fn swaps(mut self, one: &str, other: &str) -> Self {
        self.swaps.push((one.to_owned(), other.to_owned()));
        self
    }

    /// Declares two slots that exclude each other, such as the times to leave and to arrive: filling one clears the
    /// other.
    #[must_use]
    pub fn alternatives(mut self, one: &str, other: &str) -> Self {
        self.alternatives.push((one.to_owned(), other.to_owned()));
        self
    }

    /// Declares two slots whose lists must not have an element in common: a line that a follow-up asks for is no longer
    /// avoided.
    #[must_use]
    pub fn disjoint(mut self, one: &str, other: &str) -> Self {
        self.disjoint.push((one.to_owned(), other.to_owned()));
        self
    }

    /// Restricts the intent to follow-ups of these intents: "and the express?" means one thing after a route, and another
    /// after a departure board.
    #[must_use]
    pub fn follows<'a>(mut self, intents: impl IntoIterator<Item = &'a str>) -> Self {
        self.follows.extend(intents.into_iter().map(str::to_owned));
        self
    }

    /// Declares the intent that "yes" expresses after the answer to this one, which asks for confirmation. The slots of
    /// the confirmed intent are filled from the slots of this one, and from the entities that its results yield.
    #[must_use]
    pub fn confirmed_by(mut self, intent: impl Into<String>) -> Self {
        self.confirmed_by = Some(intent.into());
        self
    }

    /// Also fills a slot from another slot of earlier turns, for an intent that several assistants share.
    #[must_use]
    pub fn carrying(mut self, slot: &str, from: impl Into<String>) -> Self {
        let from = from.into();
        for known in self.slots.iter_mut().filter(|known| known.name == slot) {
            known.is_carried = true;
            known.carried_from.push(from.clone());
        }
        self
    }

    /// Adds a slot.
    #[must_use]
    pub fn slot(mut self, slot: Slot) -> Self {
        self.slots.push(slot);
        self
    }

    /// Calls a tool with all slots as arguments. Several calls are made together.
    #[must_use]
    pub fn calls(self, tool: impl Into<String>) -> Self {
        self.calls_with(tool, |slots| slots.arguments())
    }

    /// Calls a tool with arguments computed from the slots.
    #[must_use]
    pub fn calls_with(mut self, tool: impl Into<String>, arguments: impl Fn(&Slots) -> Value + Portable) -> Self {
        let call = Call { tool: tool.into(), arguments: Box::new(move |outcome| Some(arguments(outcome.slots()))) };
        match self.rounds.first_mut() {
            Some(first) => first.calls.push(call),
            None => self.rounds.push(Round { calls: vec![call] }),
        }
        self
    }

    /// Calls a tool after all previous calls have results; skips the call if `arguments` returns `None`.
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

    /// Sets the answer for successful calls. Default: the tools' results as returned.
    #[must_use]
    pub fn says(mut self, says: impl Fn(&Outcome<'_>) -> String + Portable) -> Self {
        self.says = Some(Box::new(says));
        self
    }

    /// Adds an answer for successful calls that takes precedence over the one set before if it is not `None`.
    #[must_use]
    pub fn says_first(mut self, says: impl Fn(&Outcome<'_>) -> Option<String> + Portable) -> Self {
        self.says = self.says.map(|otherwise| {
            let first = move |outcome: &Outcome<'_>| says(outcome).unwrap_or_else(|| otherwise(outcome));
            Box::new(first) as AnswerFn
        });
        self
    }

    /// Sets the answer for a failed call. Default: a quotation of the tool's error.
    #[must_use]
    pub fn says_of_failure(mut self, says: impl Fn(&Outcome<'_>) -> String + Portable) -> Self {
        self.says_of_failure = Some(Box::new(says));
        self
    }

    /// Extracts the entities that results mention, with their kinds, so that later messages can refer to them. For
    /// example, the preferences yield the home station.
    #[must_use]
    pub fn yields(mut self, yields: impl Fn(&Outcome<'_>) -> Vec<(String, Choice)> + Portable) -> Self {
        self.yields = Some(Box::new(yields));
        self
    }

    /// Records what the results say about the question, such as the rides of a route, as a slot of the answered question. Functions
    /// of later questions can read it ([`Slot::inherited_by`]); follow-ups do not keep it.
    #[must_use]
    pub fn records(mut self, slot: &str, reads: impl Fn(&Outcome<'_>) -> Option<Choice> + Portable) -> Self {
        self.records = Some((slot.to_owned(), Box::new(reads)));
        self
    }
}

impl Intent {
    /// Whether a slot is an end of a trip, which a reversal exchanges with the other end.
    pub(crate) fn is_end_of_trip(&self, slot: &str) -> bool {
        self.swaps.iter().any(|(one, other)| one == slot || other == slot)
    }
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intent").field("name", &self.name).field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// The kind of slots that take words verbatim.
pub(crate) const TEXT_KIND: &str = "text";

/// A parameter of an intent.
pub struct Slot {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) is_required: bool,
    pub(crate) is_carried: bool,
    /// Whether follow-ups do not keep the value.
    pub(crate) is_momentary: bool,
    /// Whether the slot takes the words after a cue verbatim.
    pub(crate) is_text: bool,
    /// Further slots of earlier turns from which the value is carried over.
    pub(crate) carried_from: Vec<String>,
    /// The name of the argument that contains the value in calls, if it differs from the name of the slot.
    pub(crate) argument: Option<String>,
    /// Whether other slots may replace the most likely meaning of a name.
    pub(crate) narrows_assumed: bool,
    /// The slot of the previous turn that a pronoun in this slot refers to.
    pub(crate) pronoun_from: Option<String>,
    /// The questions to ask if the slot is missing; the first one is the default.
    pub(crate) questions: Vec<(Language, String)>,
    pub(crate) cues: Vec<String>,
    pub(crate) default: Option<Choice>,
    /// Derives the value from the other slots if neither the message nor the conversation has it.
    pub(crate) complement: Option<fn(&Slots) -> Option<Choice>>,
    /// Derives the value from the slots of an earlier question and of this one if the message has none.
    pub(crate) inherits: Option<InheritFn>,
    /// Returns the opposite of a value that declares none.
    pub(crate) opposite: Option<fn(&Choice) -> Option<Choice>>,
    /// Whether a follow-up such as "and not the 5 either" adds to the value.
    pub(crate) is_cumulative: bool,
    /// Whether a value in a follow-up belongs in this slot rather than in another of its kind, given the slots so far.
    /// Whether words can be the text of the slot.
    pub(crate) accepts: Option<Box<dyn AcceptFn>>,
    pub(crate) prefers: Option<fn(&Choice, &Slots) -> bool>,
    pub(crate) narrows: Option<BoxedNarrowFn>,
    /// Replaces a value that the message does not name, given the other slots.
    pub(crate) relocates: Option<InheritedChoiceFn>,
}

/// A function that derives a value from the slots of an earlier question and of this one.
pub(crate) type InheritFn = fn(&Slots, &Slots) -> Option<Choice>;

/// A function that returns another value for a slot, given the other slots.
pub(crate) type InheritedChoiceFn = fn(&Choice, &Slots) -> Option<Choice>;

/// A function that narrows choices by the other slots.
type BoxedNarrowFn = Box<dyn NarrowFn>;
pub(crate) trait NarrowFn: Portable + Fn(&[Choice], &Slots) -> Vec<Choice> {}
impl<F: Portable + Fn(&[Choice], &Slots) -> Vec<Choice>> NarrowFn for F {}

/// A function that decides whether words can be the text of a slot.
pub(crate) trait AcceptFn: Portable + Fn(&str) -> bool {}
impl<F: Portable + Fn(&str) -> bool> AcceptFn for F {}

impl Slot {
    /// Creates a slot that must be filled: from the message, otherwise from the conversation, otherwise by asking the
    /// user.
    #[must_use]
    pub fn required(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { is_required: true, is_carried: true, ..Self::optional(name, kind) }
    }

    /// Creates a slot that is filled only from the message.
    #[must_use]
    pub fn optional(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            is_required: false,
            is_carried: false,
            is_momentary: false,
            is_text: false,
            carried_from: Vec::new(),
            argument: None,
            narrows_assumed: false,
            pronoun_from: None,
            questions: Vec::new(),
            cues: Vec::new(),
            default: None,
            complement: None,
            inherits: None,
            opposite: None,
            is_cumulative: false,
            accepts: None,
            prefers: None,
            narrows: None,
            relocates: None,
        }
    }

    /// Creates a slot that takes the words of the message after a cue, up to the end of the clause: "remember that …".
    /// [`Slot::after`] declares the cues. The first cue in the message is used; of cues that start at the same word,
    /// the longest. If the message contains no cue, the slot is empty. A slot without declared cues takes the whole
    /// clause.
    #[must_use]
    pub fn text(name: impl Into<String>) -> Self {
        Self { is_text: true, ..Self::optional(name, TEXT_KIND) }
    }

    /// Leaves a text slot empty if `accepts` rejects the words: "my neighbour says the 4 is quicker" is no preference.
    #[must_use]
    pub fn accepting(mut self, accepts: impl Fn(&str) -> bool + Portable) -> Self {
        self.accepts = Some(Box::new(accepts));
        self
    }

    /// Sets the question to ask if the slot is missing, in English.
    #[must_use]
    pub fn asks(self, question: impl Into<String>) -> Self {
        self.asks_in(Language::English, question)
    }

    /// Sets the question to ask in a language if the slot is missing.
    #[must_use]
    pub fn asks_in(mut self, language: Language, question: impl Into<String>) -> Self {
        self.questions.push((language, question.into()));
        self
    }

    pub(crate) fn question(&self, language: Language) -> Option<&str> {
        let own = self.questions.iter().find(|(known, _)| *known == language);
        own.or(self.questions.first()).map(|(_, question)| question.as_str())
    }

    /// Fills the slot from a mention after one of these cue words.
    #[must_use]
    pub fn after<'a>(mut self, cues: impl IntoIterator<Item = &'a str>) -> Self {
        self.cues.extend(cues.into_iter().map(|cue| folded_words(cue).join(" ")));
        self
    }

    /// Removes cues.
    #[must_use]
    pub fn without_cues<'a>(mut self, cues: impl IntoIterator<Item = &'a str>) -> Self {
        let removed: Vec<&str> = cues.into_iter().collect();
        self.cues.retain(|cue| !removed.contains(&cue.as_str()));
        self
    }

    /// Declares that the value holds for one message: "how long is the L part" says nothing about the next question.
    #[must_use]
    pub fn momentary(mut self) -> Self {
        self.is_momentary = true;
        self
    }

    /// Prevents the slot from being filled from earlier turns.
    #[must_use]
    pub fn fresh(mut self) -> Self {
        self.is_carried = false;
        self
    }

    /// Sets the name of the argument that has the slot's value in calls.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>) -> Self {
        self.argument = Some(name.into());
        self
    }

    /// Lets other slots also replace the most likely meaning of a name, for tools that do not do this themselves.
    #[must_use]
    pub fn narrowing_assumed(mut self) -> Self {
        self.narrows_assumed = true;
        self
    }

    /// Declares the slot of the previous turn that a pronoun in this slot refers to: in "when is the next one from
    /// there?", the start of the trip.
    #[must_use]
    pub fn pronoun_from(mut self, slot: impl Into<String>) -> Self {
        self.pronoun_from = Some(slot.into());
        self
    }

    /// Fills the slot from another slot of earlier turns: a return trip starts at the destination of the outward trip.
    #[must_use]
    pub fn carried_from(mut self, slot: impl Into<String>) -> Self {
        self.is_carried = true;
        self.carried_from.push(slot.into());
        self
    }

    /// Sets the default value.
    #[must_use]
    pub fn or(mut self, default: Choice) -> Self {
        self.default = Some(default);
        self
    }

    /// Derives the value from the other slots if neither the message nor the conversation has it: a trip to work starts at home.
    #[must_use]
    pub fn complemented_by(mut self, complement: fn(&Slots) -> Option<Choice>) -> Self {
        self.complement = Some(complement);
        self
    }

    /// If the message has no value, derives it from the slots of an earlier question (the first argument) and of this
    /// one (the second): after a trip, "the next train" goes where the trip goes.
    #[must_use]
    pub fn inherited_by(mut self, inherits: fn(&Slots, &Slots) -> Option<Choice>) -> Self {
        self.inherits = Some(inherits);
        self
    }

    /// Derives the value that "the other way" means: "away from Canarsie" after a board towards Canarsie.
    #[must_use]
    pub fn opposite_by(mut self, opposite: fn(&Choice) -> Option<Choice>) -> Self {
        self.opposite = Some(opposite);
        self
    }

    /// Adds to a list instead of replacing it in follow-ups such as "and not the 5 either".
    #[must_use]
    pub fn cumulative(mut self) -> Self {
        self.is_cumulative = true;
        self
    }

    /// Takes a value of a follow-up that would otherwise fill another slot of this kind: "and Canarsie?" after a departure board of
    /// the L means the direction, because trains of the L end there.
    #[must_use]
    pub fn preferred_for(mut self, prefers: fn(&Choice, &Slots) -> bool) -> Self {
        self.prefers = Some(prefers);
        self
    }

    /// Replaces a value that the message does not name if the other slots exclude it: after a board for 86 St on the 6, "and the Q?" is
    /// about 86 St on the Q.
    #[must_use]
    pub fn relocated_by(mut self, relocates: fn(&Choice, &Slots) -> Option<Choice>) -> Self {
        self.relocates = Some(relocates);
        self
    }

    /// Narrows the meanings of an ambiguous name by the other slots. If several meanings remain, the user is asked to
    /// choose. An empty result keeps all meanings.
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
