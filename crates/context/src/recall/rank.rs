use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use threadkeep_core::text::TermCounts;
use threadkeep_core::{Message, Part, ThreadId};

use super::bm25::{Statistics, score_all, weights};
use super::question::{Question, name_parts};

/// The number of neighbouring turns on either side of a hit that affect its score.
pub const REACH: u64 = 4;

/// Turns further apart in time belong to different sessions and are not neighbours.
const SESSION_GAP_MS: i64 = 6 * 60 * 60 * 1000;

/// A message to be ranked.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The message's thread.
    pub thread: ThreadId,
    /// The message.
    pub message: &'a Message,
    /// The counts of the question's words ([`Question::count`]) in the message's plain text.
    pub counts: &'a TermCounts,
}

/// Weights of the parts of a score. Recall uses the default; other weights are for measuring the effect of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Weight of the words in nearby turns, relative to those of the turn itself.
    pub passage: f64,
    /// The factor by which a word's value decreases with every turn of distance.
    pub passage_decay: f64,
    /// The share of the scores of the adjacent turns.
    pub neighbour: f64,
    /// The additional share of the score of a directly preceding question.
    pub answer: f64,
    /// The bonus for a turn of a speaker whom the question names, as a share of its words and passage.
    pub speaker: f64,
    /// The factor for words that are the name of a speaker: other speakers also use them.
    pub name: f64,
    /// The bonus for a turn in a period that the question refers to, as a share of its words and passage.
    pub period: f64,
    /// The bonus for a turn that mentions a time if the question asks when, as a share of its words and passage.
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
    /// BM25 without other parts.
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

/// The parts of a score, which add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// The question's words in the turn itself.
    pub words: f64,
    /// The question's words in the turn or near it.
    pub passage: f64,
    /// The share of the adjacent turns' scores.
    pub neighbours: f64,
    /// The bonus for the speaker.
    pub speaker: f64,
    /// The bonus for the period or for mentioning a time.
    pub time: f64,
}

impl Parts {
    /// Returns the score.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.own() + self.neighbours
    }

    fn own(&self) -> f64 {
        self.words + self.passage + self.speaker + self.time
    }
}

/// A ranked turn.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'a> {
    /// The turn.
    pub turn: Turn<'a>,
    /// The parts of its score.
    pub parts: Parts,
}

/// Ranks turns by score, best first; equal scores are ordered newest first. Turns with score 0 are omitted.
///
/// The order of the input does not matter, and duplicates are ignored. To score a hit by its surroundings, include the
/// turns up to [`REACH`] positions around it. The result depends only on the arguments.
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

/// Ranks turns by their own words only, to choose those whose neighbours are worth loading. Otherwise like [`rank`].
#[must_use]
pub fn lexical<'a>(question: &Question, turns: &[Turn<'a>], statistics: &Statistics) -> Vec<Ranked<'a>> {
    let words_alone = Weights { name: Weights::default().name, ..Weights::WORDS_ALONE };
    rank(question, turns, statistics, &words_alone)
}

/// The turns of all threads in order, with precomputed properties.
struct Dialogue<'a, 'b> {
    question: &'b Question,
    weights: &'b Weights,
    turns: Vec<Turn<'a>>,
    /// The weight of each word of the question.
    word_weights: Vec<f64>,
    /// For each turn, whether the question names its speaker.
    is_named: Vec<bool>,
    names_anyone: bool,
}

impl<'a, 'b> Dialogue<'a, 'b> {
    fn new(question: &'b Question, turns: Vec<Turn<'a>>, statistics: &Statistics, scale: &'b Weights) -> Self {
        let authors = turns.iter().filter_map(|turn| turn.message.content.author.as_deref());
        let speakers: BTreeSet<String> = authors.collect::<BTreeSet<_>>().into_iter().flat_map(name_parts).collect();
        let is_name = question.speaker_name_flags(&speakers);
        // If the question consists of names only, they are what the user is searching for.
        let discount = if is_name.iter().all(|is_name| *is_name) { 1.0 } else { scale.name };
        let mut word_weights = weights(&counts_of(&turns), statistics);
        for (weight, is_name) in word_weights.iter_mut().zip(is_name) {
            *weight *= if is_name { discount } else { 1.0 };
        }
        let is_named: Vec<bool> = turns.iter().map(|turn| question.refers_to_speaker_of(turn.message)).collect();
        let names_anyone = is_named.contains(&true);
        Self { question, weights: scale, turns, word_weights, is_named, names_anyone }
    }

    fn score(self) -> Vec<Ranked<'a>> {
        let words = score_all(&counts_of(&self.turns), &self.word_weights);
        let own: Vec<Parts> = words.into_iter().enumerate().map(|(at, words)| self.own(at, words)).collect();
        let mut ranked: Vec<Ranked<'a>> =
            self.turns.iter().zip(&own).map(|(turn, parts)| Ranked { turn: *turn, parts: *parts }).collect();
        for (at, ranked) in ranked.iter_mut().enumerate() {
            ranked.parts.neighbours = self.neighbour_score(at, &own);
        }
        ranked
    }

    /// Scores a turn without its neighbours.
    fn own(&self, at: usize, words: f64) -> Parts {
        let message = self.turns[at].message;
        let passage = self.weights.passage * self.passage(at);
        let base = words + passage;
        if base <= 0.0 {
            return Parts::default();
        }
        let share = |is_met: bool, weight: f64| if is_met { weight * base } else { 0.0 };
        let is_in_period = self.question.periods().iter().any(|period| period.contains(message.created_at));
        let mentions_time = self.question.is_answered_by_time_in(&message.plain_text());
        Parts {
            words,
            passage,
            neighbours: 0.0,
            speaker: share(self.is_named[at], self.weights.speaker),
            time: share(is_in_period, self.weights.period) + share(mentions_time, self.weights.when),
        }
    }

    /// Sums the question's words near a turn, each discounted by the distance of its nearest occurrence.
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

    fn neighbour_score(&self, at: usize, own: &[Parts]) -> f64 {
        let shares = self.around(at, 1).filter(|near| *near != at).map(|near| {
            let is_answer = near < at && asks(self.turns[near].message) && (!self.names_anyone || self.is_named[at]);
            let share = self.weights.neighbour + if is_answer { self.weights.answer } else { 0.0 };
            share * own[near].own()
        });
        shares.sum()
    }

    /// Returns the turns within a distance in the same thread and session, including the turn itself.
    fn around(&self, at: usize, reach: u64) -> impl Iterator<Item = usize> {
        let here = self.turns[at];
        let is_near = move |near: &usize| {
            let there = self.turns[*near];
            let apart_ms = there.message.created_at.as_millis().abs_diff(here.message.created_at.as_millis());
            there.thread == here.thread
                && there.message.seq.abs_diff(here.message.seq) <= reach
                && apart_ms <= SESSION_GAP_MS.unsigned_abs()
        };
        // Positions are distinct and ascending, so turns further away in the list are not nearer.
        let reach = usize::try_from(reach).unwrap_or(usize::MAX);
        let last = at.saturating_add(reach).min(self.turns.len() - 1);
        (at.saturating_sub(reach)..=last).filter(is_near)
    }
}

fn counts_of<'a>(turns: &[Turn<'a>]) -> Vec<&'a TermCounts> {
    turns.iter().map(|turn| turn.counts).collect()
}

/// Whether a text part of a message ends with a question mark.
fn asks(message: &Message) -> bool {
    let is_question = |part: &Part| matches!(part, Part::Text(text) if text.trim_end().ends_with('?'));
    message.content.parts.iter().any(is_question)
}

#[cfg(test)]
mod tests;
