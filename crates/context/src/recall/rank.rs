use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use threadkeep_core::text::TermCounts;
use threadkeep_core::{Message, Part, ThreadId};

use super::bm25::{Statistics, score_all, weights};
use super::question::{Question, name_parts};

/// How many turns around a hit have a part in the ranking, on either side.
pub const REACH: u64 = 4;

/// Turns further apart in time are of two sittings, and no neighbours.
const SITTING_MS: i64 = 6 * 60 * 60 * 1000;

/// A message that may answer.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The thread that it stands in.
    pub thread: ThreadId,
    /// The message.
    pub message: &'a Message,
    /// How often it holds each of the question's words ([`Question::count`] of its plain text).
    pub counts: &'a TermCounts,
}

/// How much each part counts. The default is what recall uses; others are for measuring what a part brings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Of the words said within a few turns, beside those of the turn itself.
    pub passage: f64,
    /// What is left of a word with every turn of distance.
    pub passage_decay: f64,
    /// Of what the turn before and the turn after are worth.
    pub neighbour: f64,
    /// Of what a question just before is worth, on top.
    pub answer: f64,
    /// Added for a turn of a speaker whom the question names, as a share of its words and passage.
    pub speaker: f64,
    /// What is left of a word that is the name of a speaker: both say it, of each other.
    pub name: f64,
    /// Added for a turn of the days that the question speaks of, as a share likewise.
    pub period: f64,
    /// Added for a turn that speaks of time where the question asks when, as a share likewise.
    pub when: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            passage: 1.0,
            passage_decay: 0.8,
            neighbour: 0.3,
            answer: 0.5,
            speaker: 0.5,
            name: 0.2,
            period: 0.5,
            when: 0.3,
        }
    }
}

impl Weights {
    /// Words alone: BM25.
    pub const WORDS_ALONE: Self = Self {
        passage: 0.0,
        passage_decay: 0.0,
        neighbour: 0.0,
        answer: 0.0,
        speaker: 0.0,
        name: 1.0,
        period: 0.0,
        when: 0.0,
    };
}

/// What a score is made of. The parts add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// The question's words in the turn itself.
    pub words: f64,
    /// The question's words in it or near it.
    pub passage: f64,
    /// Lent by the turns before and after.
    pub neighbours: f64,
    /// For being said by whom the question names.
    pub speaker: f64,
    /// For being of the days that the question speaks of, or for telling when.
    pub time: f64,
}

impl Parts {
    /// The score.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.own() + self.neighbours
    }

    fn own(&self) -> f64 {
        self.words + self.passage + self.speaker + self.time
    }
}

/// A turn with its place in the ranking.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'a> {
    /// The turn.
    pub turn: Turn<'a>,
    /// What it is worth, and why.
    pub parts: Parts,
}

/// Ranks turns by how well they answer, best first; of equals the newer first. Turns that are worth nothing are left
/// out.
///
/// The turns may come in any order, each once. To know a hit by its surroundings, give the turns up to [`REACH`]
/// positions around it as well. The result depends on nothing but the arguments.
#[must_use]
pub fn rank<'a>(
    question: &Question,
    turns: &[Turn<'a>],
    statistics: &Statistics,
    weights: &Weights,
) -> Vec<Ranked<'a>> {
    let mut turns = turns.to_vec();
    turns.sort_by_key(|turn| (turn.thread, turn.message.seq));
    turns.dedup_by_key(|turn| (turn.thread, turn.message.seq));
    let mut ranked = Dialogue::new(question, turns, statistics, weights).score();
    ranked.retain(|ranked| ranked.parts.score() > 0.0);
    let newer = |turn: &Turn<'_>| (Reverse(turn.message.created_at), Reverse(turn.message.seq), turn.thread);
    ranked.sort_by(|one, other| {
        let by_score = other.parts.score().total_cmp(&one.parts.score());
        by_score.then_with(|| newer(&one.turn).cmp(&newer(&other.turn)))
    });
    ranked
}

/// Ranks turns by their own words alone, as [`rank`] does otherwise: to choose those whose surroundings are worth reading.
#[must_use]
pub fn lexical<'a>(question: &Question, turns: &[Turn<'a>], statistics: &Statistics) -> Vec<Ranked<'a>> {
    let words_alone = Weights { name: Weights::default().name, ..Weights::WORDS_ALONE };
    rank(question, turns, statistics, &words_alone)
}

/// The turns of all threads in order, with what is known of each.
struct Dialogue<'a, 'b> {
    question: &'b Question,
    weights: &'b Weights,
    turns: Vec<Turn<'a>>,
    /// What each of the question's words is worth.
    word_weights: Vec<f64>,
    /// Whether the question names each turn's speaker.
    is_named: Vec<bool>,
    names_anyone: bool,
}

impl<'a, 'b> Dialogue<'a, 'b> {
    fn new(question: &'b Question, turns: Vec<Turn<'a>>, statistics: &Statistics, scale: &'b Weights) -> Self {
        let authors = turns.iter().filter_map(|turn| turn.message.content.author.as_deref());
        let speakers: BTreeSet<String> = authors.collect::<BTreeSet<_>>().into_iter().flat_map(name_parts).collect();
        let is_name = question.names(&speakers);
        // Only names to look for: then they are what is looked for.
        let discount = if is_name.iter().all(|is_name| *is_name) { 1.0 } else { scale.name };
        let mut word_weights = weights(&counts_of(&turns), statistics);
        for (weight, is_name) in word_weights.iter_mut().zip(is_name) {
            *weight *= if is_name { discount } else { 1.0 };
        }
        let is_named: Vec<bool> = turns.iter().map(|turn| question.is_about_speaker_of(turn.message)).collect();
        let names_anyone = is_named.contains(&true);
        Self { question, weights: scale, turns, word_weights, is_named, names_anyone }
    }

    fn score(self) -> Vec<Ranked<'a>> {
        let words = score_all(&counts_of(&self.turns), &self.word_weights);
        let own: Vec<Parts> = words.into_iter().enumerate().map(|(at, words)| self.own(at, words)).collect();
        let mut ranked: Vec<Ranked<'a>> =
            self.turns.iter().zip(&own).map(|(turn, parts)| Ranked { turn: *turn, parts: *parts }).collect();
        for (at, ranked) in ranked.iter_mut().enumerate() {
            ranked.parts.neighbours = self.lent_to(at, &own);
        }
        ranked
    }

    /// What a turn is worth without its neighbours.
    fn own(&self, at: usize, words: f64) -> Parts {
        let message = self.turns[at].message;
        let passage = self.weights.passage * self.passage(at);
        let base = words + passage;
        if base <= 0.0 {
            return Parts::default();
        }
        let share = |is_met: bool, weight: f64| if is_met { weight * base } else { 0.0 };
        let is_in_period = self.question.periods().iter().any(|period| period.contains(message.created_at));
        let tells_when = self.question.is_met_by_time_in(&message.plain_text());
        Parts {
            words,
            passage,
            neighbours: 0.0,
            speaker: share(self.is_named[at], self.weights.speaker),
            time: share(is_in_period, self.weights.period) + share(tells_when, self.weights.when),
        }
    }

    /// The question's words that are said near a turn, each for as much as its nearest mention leaves.
    fn passage(&self, at: usize) -> f64 {
        let mut left: BTreeMap<usize, f64> = BTreeMap::new();
        for near in self.around(at, REACH) {
            let distance = self.turns[near].message.seq.abs_diff(self.turns[at].message.seq);
            let rest = self.weights.passage_decay.powi(i32::try_from(distance).unwrap_or(i32::MAX));
            for (word, _) in self.turns[near].counts.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let best = left.entry(word).or_default();
                *best = best.max(rest);
            }
        }
        left.into_iter().map(|(word, rest)| rest * self.word_weights[word]).sum()
    }

    fn lent_to(&self, at: usize, own: &[Parts]) -> f64 {
        let lent = self.around(at, 1).filter(|near| *near != at).map(|near| {
            let is_answer = near < at && asks(self.turns[near].message) && (!self.names_anyone || self.is_named[at]);
            let share = self.weights.neighbour + if is_answer { self.weights.answer } else { 0.0 };
            share * own[near].own()
        });
        lent.sum()
    }

    /// The turns within a distance in the same thread and sitting, the turn itself included.
    fn around(&self, at: usize, reach: u64) -> impl Iterator<Item = usize> {
        let here = self.turns[at];
        let is_near = move |near: &usize| {
            let there = self.turns[*near];
            let apart_ms = there.message.created_at.as_millis().abs_diff(here.message.created_at.as_millis());
            there.thread == here.thread
                && there.message.seq.abs_diff(here.message.seq) <= reach
                && apart_ms <= SITTING_MS.unsigned_abs()
        };
        // As positions only grow, nothing further away in the list is nearer.
        let reach = usize::try_from(reach).unwrap_or(usize::MAX);
        let last = at.saturating_add(reach).min(self.turns.len() - 1);
        (at.saturating_sub(reach)..=last).filter(is_near)
    }
}

fn counts_of<'a>(turns: &[Turn<'a>]) -> Vec<&'a TermCounts> {
    turns.iter().map(|turn| turn.counts).collect()
}

/// Whether a message ends one of its texts with a question.
fn asks(message: &Message) -> bool {
    let is_question = |part: &Part| matches!(part, Part::Text(text) if text.trim_end().ends_with('?'));
    message.content.parts.iter().any(is_question)
}

#[cfg(test)]
mod tests;
