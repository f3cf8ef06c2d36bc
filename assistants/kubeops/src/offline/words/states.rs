//! Objects that are meant by their state: "the crashing one", "the completed pods", "the one that restarted 4 times".

use crate::cluster::ObjectSummary;
use crate::kinds::kind_word;

use super::Reading;
use super::arguments::number_of;

/// The state of the objects that a message means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::offline) enum State {
    Crashing,
    Failed,
    Completed,
    Pending,
    Pulling,
    NotReady,
    Cordoned,
    Unhealthy,
    Healthy,
    /// Restarted this many times.
    Restarted(u64),
    /// Restarted more often than this.
    MoreRestarts(u64),
    /// Has this many replicas.
    Replicas(u64),
    /// Has more replicas than this.
    MoreReplicas(u64),
    /// Has this many restarts or replicas: "the one with 12".
    Count(u64),
    /// Restarted most often.
    MostRestarted,
    LeastRestarted,
    MostReplicas,
    LeastReplicas,
    /// Most replicas of workloads, most restarts of pods: "which one has the most?"
    Most,
    Least,
}

const WORDS: &[(&str, State)] = &[
    ("crashing", State::Crashing),
    ("crashlooping", State::Crashing),
    ("crashloopbackoff", State::Crashing),
    ("crashed", State::Crashing),
    ("looping", State::Crashing),
    ("dying", State::Crashing),
    ("oomkilled", State::Crashing),
    ("oomed", State::Crashing),
    ("segfaulted", State::Crashing),
    ("crashes", State::Crashing),
    ("dies", State::Crashing),
    ("failed", State::Failed),
    ("errored", State::Failed),
    ("completed", State::Completed),
    ("finished", State::Completed),
    ("succeeded", State::Completed),
    ("done", State::Completed),
    ("pending", State::Pending),
    ("unscheduled", State::Pending),
    ("imagepullbackoff", State::Pulling),
    ("errimagepull", State::Pulling),
    ("notready", State::NotReady),
    ("cordoned", State::Cordoned),
    ("waiting", State::Pending),
    ("fails", State::Unhealthy),
    ("down", State::Unhealthy),
    ("broken", State::Unhealthy),
    ("failing", State::Unhealthy),
    ("unhealthy", State::Unhealthy),
    ("bad", State::Unhealthy),
    ("sick", State::Unhealthy),
    ("dead", State::Unhealthy),
    ("stuck", State::Unhealthy),
    ("unready", State::Unhealthy),
    ("red", State::Unhealthy),
    ("flapping", State::Unhealthy),
    ("problematic", State::Unhealthy),
    ("missing", State::Unhealthy),
    ("healthy", State::Healthy),
    ("running", State::Healthy),
    ("working", State::Healthy),
    ("works", State::Healthy),
    ("good", State::Healthy),
];

/// Words for a healthy state that follow "is": "the one that is ready".
const HEALTHY: [&str; 8] = ["ready", "up", "fine", "ok", "okay", "alright", "starting", "serving"];

impl State {
    /// Returns the state that a word names.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        WORDS.iter().find(|(own, _)| *own == word).map(|(_, state)| *state)
    }

    /// Whether the state compares several objects.
    pub(in crate::offline) const fn is_superlative(self) -> bool {
        matches!(
            self,
            Self::MostRestarted
                | Self::LeastRestarted
                | Self::MostReplicas
                | Self::LeastReplicas
                | Self::Most
                | Self::Least
        )
    }

    /// Returns the objects that are shown in exactly this state. Workloads with problems do not show which problem it is.
    pub(in crate::offline) fn filter_exactly(self, objects: &[ObjectSummary]) -> Vec<ObjectSummary> {
        let found = self.filter(objects).into_iter();
        match self {
            Self::Crashing | Self::Failed => found.filter(|object| !object.state.is_empty()).collect(),
            _ => found.collect(),
        }
    }

    /// Returns the objects in this state. Of those with problems, the exact state counts first.
    pub(in crate::offline) fn filter(self, objects: &[ObjectSummary]) -> Vec<ObjectSummary> {
        let select = |fits: &dyn Fn(&ObjectSummary) -> bool| -> Vec<ObjectSummary> {
            objects.iter().filter(|object| fits(object)).cloned().collect()
        };
        let in_state = |names: &[&str]| select(&|object| names.iter().any(|name| object.state.contains(name)));
        let unhealthy = || select(&|object| object.is_unhealthy);
        let or_unhealthy = |found: Vec<ObjectSummary>| if found.is_empty() { unhealthy() } else { found };
        let has_replicas = objects.iter().any(|object| object.replicas.is_some());
        match self {
            Self::Most if has_replicas => Self::MostReplicas.filter(objects),
            Self::Most => Self::MostRestarted.filter(objects),
            Self::Least if has_replicas => Self::LeastReplicas.filter(objects),
            Self::Least => Self::LeastRestarted.filter(objects),
            Self::Crashing => or_unhealthy(in_state(&["Crash", "OOM", "Error"])),
            Self::Failed => or_unhealthy(in_state(&["Error", "Failed", "OOM", "Crash"])),
            Self::Completed => in_state(&["Completed", "Succeeded"]),
            Self::Pending => in_state(&["Pending", "ContainerCreating"]),
            Self::Pulling => in_state(&["ImagePull"]),
            Self::NotReady => or_unhealthy(in_state(&["NotReady"])),
            Self::Cordoned => in_state(&["SchedulingDisabled"]),
            Self::Unhealthy => unhealthy(),
            Self::Healthy => {
                select(&|object| !object.is_unhealthy && !matches!(&*object.state, "Completed" | "Succeeded"))
            }
            Self::Restarted(times) => select(&|object| object.restarts == Some(times)),
            Self::MoreRestarts(times) => select(&|object| object.restarts.is_some_and(|own| own > times)),
            Self::Replicas(count) => select(&|object| object.replicas == Some(count)),
            Self::MoreReplicas(count) => select(&|object| object.replicas.is_some_and(|own| own > count)),
            Self::Count(count) => {
                let restarted = Self::Restarted(count).filter(objects);
                if restarted.is_empty() { Self::Replicas(count).filter(objects) } else { restarted }
            }
            Self::MostRestarted => {
                let most = objects.iter().filter_map(|object| object.restarts).max().filter(|most| *most > 0);
                select(&|object| most.is_some() && object.restarts == most)
            }
            Self::LeastRestarted => {
                let least = objects.iter().filter_map(|object| object.restarts).min();
                select(&|object| least.is_some() && object.restarts == least)
            }
            Self::MostReplicas => {
                let most = objects.iter().filter_map(|object| object.replicas).max();
                select(&|object| most.is_some() && object.replicas == most)
            }
            Self::LeastReplicas => {
                let least = objects.iter().filter_map(|object| object.replicas).min();
                select(&|object| least.is_some() && object.replicas == least)
            }
        }
    }
}

impl Reading {
    /// Reads the state by which a message means objects.
    pub(super) fn read_state(&mut self) {
        let state_at = |at: usize| WORDS.iter().find(|(word, _)| *word == self.word(at)).map(|(_, state)| *state);
        let ends_noun = |word: &str| matches!(word, "one" | "ones") || kind_word(word).is_some();
        let (mut found, mut is_several) = (None, false);
        for at in 0..self.words.len() {
            let next = self.word(at + 1);
            if let Some(state) = state_at(at)
                && ends_noun(next)
                && !self.is_excluded(at)
                && found.is_none()
                && self.is_after_article(at)
            {
                (found, is_several) = (Some(state), next == "ones" || crate::kinds::is_plural(next));
            }
            // "The one that crashed", "the pod which has 4 restarts", "the one not ready".
            let is_relative =
                matches!(next, "that" | "which" | "thats" | "with" | "without" | "who" | "not" | "isnt" | "having");
            let is_noun = ends_noun(self.word(at)) || self.word(at) == "thing";
            if found.is_none() && is_relative && is_noun && !self.is_excluded(at) {
                found = self.relative_clause(at + 1, &state_at);
                is_several = self.word(at) == "ones" || crate::kinds::is_plural(self.word(at));
            }
        }
        // "Which of all these was pending?"
        if found.is_none() && self.asks_of_all() {
            (found, is_several) = ((0..self.words.len()).rev().find_map(state_at), false);
        }
        if found.is_none()
            && let Some(state) = self.predicate(&state_at)
        {
            (found, is_several) = (Some(state), self.has_any(&["ones", "are", "arent"]));
        }
        // "Which one of those has just one replica?"
        if found.is_none()
            && self.has("which")
            && let Some(at) = (2..self.words.len())
                .find(|at| matches!(self.word(*at), "replica" | "replicas") && number_of(self.word(at - 1)).is_some())
            && matches!(self.word(at - 2), "has" | "have" | "just" | "only" | "with" | "exactly")
        {
            (found, is_several) = (number_of(self.word(at - 1)).map(|count| State::Replicas(count.into())), false);
        }
        // "Which of those have more than one replica?"
        if found.is_none()
            && self.has("which")
            && let Some(at) = (3..self.words.len()).find(|at| {
                matches!(self.word(*at), "replica" | "replicas")
                    && self.word(at - 2) == "than"
                    && self.word(at - 3) == "more"
            })
        {
            let count = number_of(self.word(at - 1));
            (found, is_several) = (count.map(|count| State::MoreReplicas(count.into())), true);
        }
        // "Which pods in sensors restarted more than 5 times?"
        if found.is_none()
            && self.has("which")
            && self.kind.as_deref() == Some("pods")
            && self.words.iter().any(|word| word.starts_with("restart"))
            && let Some(number) = self.words.windows(3).find_map(|three| match &*three[0] {
                "more" if three[1] == "than" => number_of(&three[2]),
                "over" | "above" => number_of(&three[1]),
                _ => None,
            })
        {
            (found, is_several) = (Some(State::MoreRestarts(number.into())), true);
        }
        // "Which of them has scheduling disabled?"
        let is_cordoned = ["scheduling disabled", "scheduling off"].iter().any(|phrase| self.says(phrase));
        if found.is_none() && is_cordoned && self.has("which") {
            (found, is_several) = (Some(State::Cordoned), false);
        }
        // "Which one's been restarting?"
        let of_list = ["which one", "which ones", "which of"].iter().any(|phrase| self.says(phrase));
        if found.is_none()
            && of_list
            && self.has_any(&["restarting", "restarted", "restarts"])
            && !self
                .has_any(&["most", "least", "fewest", "should", "be", "we", "you", "i", "never", "not", "more", "less"])
        {
            (found, is_several) = (Some(State::MoreRestarts(0)), false);
        }
        if found.is_none()
            && let Some(state) = self.superlative()
        {
            (found, is_several) = (Some(state), false);
        }
        let Some(state) = found else { return };
        self.state = Some(state);
        if is_several {
            self.each = true;
        }
    }

    /// "Plus the one with two replicas": the number says which object is meant, and is no number that is wanted.
    pub(super) fn leave_number_to_state(&mut self) {
        let Some(State::Replicas(count) | State::Count(count) | State::MoreReplicas(count)) = self.state else {
            return;
        };
        let is_stated = matches!(self.replicas, Some(super::Replicas::To(number)) if u64::from(number) == count);
        let numbers = self.words.iter().filter(|word| *word != "one" && number_of(word).is_some()).count();
        if !is_stated || numbers > 1 {
            return;
        }
        self.replicas = None;
        let names_scale = self.words.iter().any(|word| word.starts_with("scal") || word == "resize");
        self.verb = self.verb.filter(|verb| *verb != crate::command::Verb::Scale || names_scale);
    }

    /// Returns the state that a clause from a word on says of "the one" before it: "that keeps crashing", "with three replicas".
    fn relative_clause(&self, start: usize, state_at: &dyn Fn(usize) -> Option<State>) -> Option<State> {
        let end = (start + 7).min(self.words.len());
        let any = |fits: &dyn Fn(&str) -> bool| (start..end).any(|at| fits(self.word(at)));
        let restarts = any(&|word| word.starts_with("restart"));
        let replicas = any(&|word| matches!(word, "replica" | "replicas" | "copies" | "copy" | "instances"));
        let is_replica = |at: usize| matches!(self.word(at), "replica" | "copy" | "instance");
        let number = (start + 1..end).find_map(|at| match self.word(at) {
            "single" | "one" => is_replica(at + 1).then_some(1),
            word => number_of(word),
        });
        let is_negated = any(&|word| {
            matches!(word, "never" | "not" | "no" | "without" | "isnt" | "arent" | "doesnt" | "wont" | "cant" | "hasnt")
        });
        let is_most = any(&|word| matches!(word, "most" | "highest" | "more"));
        let is_least = any(&|word| matches!(word, "least" | "fewest" | "lowest" | "fewer" | "less"));
        // "The one with 12" ends with the number, or a new clause follows.
        let ends_with_number = self.word(start) == "with"
            && (number_of(self.word(start + 1)).is_some())
            && matches!(self.word(start + 2), "" | "and" | "then" | "please" | "pls" | "of" | "again");
        // "With more than 5 restarts": other comparisons with a number are no state, so that none of them is dropped.
        if number.is_some() && any(&|word| word == "than") {
            return number
                .filter(|_| restarts && any(&|word| word == "more"))
                .map(|times| State::MoreRestarts(times.into()));
        }
        match number {
            _ if restarts && is_least => return Some(State::LeastRestarted),
            _ if replicas && is_least => return Some(State::LeastReplicas),
            _ if restarts && is_most => return Some(State::MostRestarted),
            _ if replicas && is_most => return Some(State::MostReplicas),
            None if is_most && self.word(end - 1) == "most" => return Some(State::Most),
            None if is_least && matches!(self.word(end - 1), "least" | "fewest") => return Some(State::Least),
            Some(number) if restarts => return Some(State::Restarted(number.into())),
            Some(number) if replicas => return Some(State::Replicas(number.into())),
            Some(number) if ends_with_number => return Some(State::Count(number.into())),
            _ if restarts && is_negated => return Some(State::Restarted(0)),
            _ if restarts => return Some(State::MostRestarted),
            _ => {}
        }
        if any(&|word| matches!(word, "pull" | "pulling" | "pulls")) {
            return Some(State::Pulling);
        }
        let all: Vec<(usize, State)> = (start..end.min(start + 6))
            .filter_map(|at| {
                let is_healthy = HEALTHY.contains(&self.word(at));
                state_at(at).or_else(|| is_healthy.then_some(State::Healthy)).map(|state| (at, state))
            })
            .collect();
        // "That's stuck pending": the word that says more.
        let is_exact = |(_, state): &&(usize, State)| !matches!(state, State::Unhealthy | State::Healthy);
        let stated = all.iter().find(is_exact).filter(|_| !is_negated).or(all.first()).copied();
        match stated? {
            (at, State::Healthy) if is_negated => {
                Some(if self.word(at) == "ready" { State::NotReady } else { State::Unhealthy })
            }
            // "The one that isn't crashing".
            (_, _) if is_negated => Some(State::Healthy),
            (_, state) => Some(state),
        }
    }

    /// "Which of those restarted the most?", "which one has the fewest replicas?"
    fn superlative(&self) -> Option<State> {
        let asks_which = self.has("which")
            && (self.has_any(&["those", "them", "these", "one", "two", "ones"]) || self.kind.is_some());
        let is_most = self.has_any(&["most", "highest", "worst", "maximum"])
            || self.has_any(&["more", "higher"]) && !self.says("one more") && self.number_is_absent();
        let is_least =
            self.has_any(&["least", "fewest", "lowest", "minimum", "fewer", "lower"]) && self.number_is_absent();
        let is_about_restarts = self.words.iter().any(|word| word.starts_with("restart"));
        let is_about_replicas = self.has_any(&["replicas", "copies", "instances"]);
        // "Which one has the most?"
        let is_open = self.words.last().is_some_and(|word| {
            matches!(&**word, "most" | "least" | "fewest" | "more" | "fewer" | "highest" | "lowest")
        }) && self.names.is_empty();
        let is_never = ["never", "not", "didnt", "hasnt", "havent", "no"].iter().any(|word| self.has(word));
        if asks_which && is_about_restarts && is_never && self.number_is_absent() {
            return Some(State::Restarted(0));
        }
        match (asks_which, is_most, is_least) {
            (true, true, false) if is_about_restarts => Some(State::MostRestarted),
            (true, false, true) if is_about_restarts => Some(State::LeastRestarted),
            (true, true, false) if is_about_replicas => Some(State::MostReplicas),
            (true, false, true) if is_about_replicas => Some(State::LeastReplicas),
            (true, true, false) if is_open => Some(State::Most),
            (true, false, true) if is_open => Some(State::Least),
            _ => None,
        }
    }

    /// "Which one isn't ready?", "which of them is still pending?"
    fn predicate(&self, state_at: &dyn Fn(usize) -> Option<State>) -> Option<State> {
        let asked = self.words.iter().position(|word| word == "which")?;
        let is_of_list = matches!(self.word(asked + 1), "one" | "ones" | "isnt" | "arent")
            || self.word(asked + 1) == "of" && self.has_any(&["them", "those", "these"]);
        let is_copula = |word: &str| matches!(word, "is" | "isnt" | "are" | "arent" | "was" | "wasnt" | "not");
        let copula = (asked..self.words.len()).find(|at| is_copula(self.word(*at))).filter(|_| is_of_list)?;
        let is_negated = self.word(copula).ends_with("nt") || self.words[copula..].iter().any(|word| word == "not");
        let is_filler = |word: &str| {
            matches!(word, "not" | "still" | "currently" | "actually" | "now" | "even" | "all" | "fully" | "quite")
        };
        let at = (copula + 1..self.words.len()).find(|at| !is_filler(self.word(*at)));
        // "Which pods are up?", and then "and which one isn't?"
        let Some(at) = at else { return is_negated.then_some(State::Unhealthy) };
        let ends =
            self.words[at + 1..].iter().all(|word| is_filler(word) || matches!(&**word, "right" | "atm" | "then"));
        let state = match self.word(at) {
            "ready" | "ok" | "okay" | "up" | "fine" => State::Healthy,
            "down" => State::Unhealthy,
            _ => state_at(at)?,
        };
        match (state, is_negated) {
            _ if !ends => None,
            (state, false) => Some(state),
            (State::Healthy, true) => Some(if self.word(at) == "ready" { State::NotReady } else { State::Unhealthy }),
            (_, true) => None,
        }
    }

    /// "Which of all these was pending?": all objects that the conversation showed are meant.
    pub(in crate::offline) fn asks_of_all(&self) -> bool {
        self.has_any(&["which", "what", "whats"])
            && [
                "of all these",
                "of all those",
                "of all of these",
                "of all of those",
                "of all of them",
                "of all",
                "of these all",
            ]
            .iter()
            .any(|phrase| self.says(phrase))
    }

    fn number_is_absent(&self) -> bool {
        !self.words.iter().any(|word| word != "one" && word != "two" && number_of(word).is_some())
    }

    /// Whether a message means an object by a description that is no known state: "the one with the timeouts". The conversation may show
    /// which one it is, but not in a form that can be compared.
    pub(in crate::offline) fn is_described(&self) -> bool {
        let is_speaker = |word: &str| matches!(word, "i" | "you" | "u" | "we" | "he" | "she" | "they" | "just");
        (1..self.words.len()).any(|at| {
            self.word(at) == "one"
                && matches!(self.word(at - 1), "the" | "that")
                && matches!(self.word(at + 1), "with" | "that" | "thats" | "which" | "who")
                && at + 2 < self.words.len()
                && !is_speaker(self.word(at + 2))
        })
    }

    /// Whether the words before one are "the", "that" or "all", so it is not a question for objects in a state.
    fn is_after_article(&self, at: usize) -> bool {
        (at.saturating_sub(3)..at).any(|before| {
            matches!(self.word(before), "the" | "that" | "this" | "all" | "those" | "these" | "both" | "other")
        })
    }

    /// Whether part of a message says what to leave alone: "keep the failed one".
    fn is_excluded(&self, at: usize) -> bool {
        (at.saturating_sub(3)..at).any(|before| {
            // "Not that, the failed one".
            let is_of_other = matches!(self.word(before + 1), "that" | "this" | "it") && before + 1 < at;
            matches!(self.word(before), "keep" | "leave" | "not" | "except" | "without" | "but" | "spare")
                && !is_of_other
        })
    }
}
