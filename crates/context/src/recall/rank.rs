use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use threadkeep_core::text::TermCounts;
use threadkeep_core::{Message, Part, ThreadId};

use super::bm25::{Statistics, score_all, weights};
use super::question::{Question, name_parts};

/// The number of neighbouring messages on either side that affect the score of a message.
pub const REACH: u64 = 4;

/// Messages further apart in time belong to different sessions and are not neighbours.
const SESSION_GAP_MS: i64 = 6 * 60 * 60 * 1000;

/// A message to rank.
#[derive(Clone, Copy, Debug)]
pub struct RankCandidate<'a> {
    /// The message's thread.
    pub thread: ThreadId,
    /// The message.
    pub message: &'a Message,
    /// How often the message's plain text contains each word of the question ([`Question::count`]).
    pub counts: &'a TermCounts,
}

/// Weights of the parts of a score. Recall uses the defaults. Other weights serve to measure the effect of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// The weight of the words in nearby messages, relative to those of the message itself.
    pub passage: f64,
    /// The factor by which a word's value decreases with every position of distance.
    pub passage_decay: f64,
    /// The share of the scores of the adjacent messages.
    pub neighbour: f64,
    /// The additional share of the score of the directly preceding message if it is a question.
    pub answer: f64,
    /// The bonus for a message whose speaker the question names, as a share of its words and passage.
    pub speaker: f64,
    /// The factor for words that are the name of a speaker. Lower, because other speakers use the name as well.
    pub name: f64,
    /// The bonus for a message in a period that the question refers to, as a share of its words and passage.
    pub period: f64,
    /// The bonus for a message that mentions a time if the question asks when, as a share of its words and passage.
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
    /// BM25 alone, without the other parts.
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

/// The parts of a score. The score is their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScoreParts {
    /// The question's words in the message itself.
    pub words: f64,
    /// The question's words in the message or near it.
    pub passage: f64,
    /// The contribution of the scores of adjacent messages.
    pub neighbours: f64,
    /// The bonus for the speaker.
    pub speaker: f64,
    /// The bonus for the period or for mentioning a time.
    pub time: f64,
}

impl ScoreParts {
    /// Returns the score.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.without_neighbours() + self.neighbours
    }

    fn without_neighbours(&self) -> f64 {
        self.words + self.passage + self.speaker + self.time
    }
}

/// A ranked message.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'a> {
    /// The message.
    pub candidate: RankCandidate<'a>,
    /// The parts of the message's score.
    pub parts: ScoreParts,
}

/// Ranks messages by score, best first. Equal scores are ordered newest first. Messages with score 0 are omitted.
///
/// The order of the input does not matter, and duplicates are ignored. To score a message by its surroundings, include
/// the messages up to [`REACH`] positions around it. The result depends only on the arguments.
#[must_use]
pub fn rank<'a>(
    question: &Question,
    candidates: &[RankCandidate<'a>],
    statistics: &Statistics,
    weights: &Weights,
) -> Vec<Ranked<'a>> {
    let mut candidates = candidates.to_vec();
    candidates.sort_by_key(|candidate| (candidate.thread, candidate.message.seq));
    candidates.dedup_by_key(|candidate| (candidate.thread, candidate.message.seq));
    let mut ranked = Dialogue::new(question, candidates, statistics, weights).score();
    ranked.retain(|ranked| ranked.parts.score() > 0.0);
    let newer = |candidate: &RankCandidate<'_>| {
        (Reverse(candidate.message.created_at), Reverse(candidate.message.seq), candidate.thread)
    };
    ranked.sort_by(|one, other| {
        let by_score = other.parts.score().total_cmp(&one.parts.score());
        by_score.then_with(|| newer(&one.candidate).cmp(&newer(&other.candidate)))
    });
    ranked
}

/// Ranks messages by their own words only, to select those whose neighbours are worth loading. Otherwise like [`rank`].
#[must_use]
pub fn rank_by_words<'a>(
    question: &Question,
    candidates: &[RankCandidate<'a>],
    statistics: &Statistics,
) -> Vec<Ranked<'a>> {
    let words_alone = Weights { name: Weights::default().name, ..Weights::WORDS_ALONE };
    rank(question, candidates, statistics, &words_alone)
}

/// The candidates of all threads, ordered by thread and position, with precomputed properties.
struct Dialogue<'a, 'b> {
    question: &'b Question,
    weights: &'b Weights,
    candidates: Vec<RankCandidate<'a>>,
    /// The weight of each word of the question.
    word_weights: Vec<f64>,
    /// For each candidate, whether the question names its speaker.
    is_named: Vec<bool>,
    names_anyone: bool,
}

impl<'a, 'b> Dialogue<'a, 'b> {
    fn new(
        question: &'b Question,
        candidates: Vec<RankCandidate<'a>>,
        statistics: &Statistics,
        scale: &'b Weights,
    ) -> Self {
        let authors = candidates.iter().filter_map(|candidate| candidate.message.content.author.as_deref());
        let speakers: BTreeSet<String> = authors.collect::<BTreeSet<_>>().into_iter().flat_map(name_parts).collect();
        let is_name = question.speaker_name_flags(&speakers);
        // If the question consists of names only, the user is searching for the names, so they are not discounted.
        let discount = if is_name.iter().all(|is_name| *is_name) { 1.0 } else { scale.name };
        let mut word_weights = weights(&word_counts_of(&candidates), statistics);
        for (weight, is_name) in word_weights.iter_mut().zip(is_name) {
            *weight *= if is_name { discount } else { 1.0 };
        }
        let is_named: Vec<bool> =
            candidates.iter().map(|candidate| question.refers_to_speaker_of(candidate.message)).collect();
        let names_anyone = is_named.contains(&true);
        Self { question, weights: scale, candidates, word_weights, is_named, names_anyone }
    }

    fn score(self) -> Vec<Ranked<'a>> {
        let words = score_all(&word_counts_of(&self.candidates), &self.word_weights);
        let own_parts: Vec<ScoreParts> =
            words.into_iter().enumerate().map(|(at, words)| self.own_parts(at, words)).collect();
        let mut ranked: Vec<Ranked<'a>> = self
            .candidates
            .iter()
            .zip(&own_parts)
            .map(|(candidate, parts)| Ranked { candidate: *candidate, parts: *parts })
            .collect();
        for (at, ranked) in ranked.iter_mut().enumerate() {
            ranked.parts.neighbours = self.neighbour_score(at, &own_parts);
        }
        ranked
    }

    /// Scores a candidate without its neighbours.
    fn own_parts(&self, at: usize, words: f64) -> ScoreParts {
        let message = self.candidates[at].message;
        let passage = self.weights.passage * self.passage(at);
        let base = words + passage;
        if base <= 0.0 {
            return ScoreParts::default();
        }
        let share = |is_met: bool, weight: f64| if is_met { weight * base } else { 0.0 };
        let is_in_period = self.question.periods().iter().any(|period| period.contains(message.created_at));
        let mentions_time = self.question.is_answered_by_time_in(&message.plain_text());
        ScoreParts {
            words,
            passage,
            neighbours: 0.0,
            speaker: share(self.is_named[at], self.weights.speaker),
            time: share(is_in_period, self.weights.period) + share(mentions_time, self.weights.when),
        }
    }

    /// Sums the question's words near a candidate. Each word is discounted by the distance to its nearest occurrence.
    fn passage(&self, at: usize) -> f64 {
        let mut best_by_word: BTreeMap<usize, f64> = BTreeMap::new();
        for near in self.around(at, REACH) {
            let distance = self.candidates[near].message.seq.abs_diff(self.candidates[at].message.seq);
            let decay = self.weights.passage_decay.powi(i32::try_from(distance).unwrap_or(i32::MAX));
            for (word, _) in self.candidates[near].counts.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let best = best_by_word.entry(word).or_default();
                *best = best.max(decay);
            }
        }
        best_by_word.into_iter().map(|(word, decay)| decay * self.word_weights[word]).sum()
    }

    fn neighbour_score(&self, at: usize, own_parts: &[ScoreParts]) -> f64 {
        let shares = self.around(at, 1).filter(|near| *near != at).map(|near| {
            let is_answer =
                near < at && asks(self.candidates[near].message) && (!self.names_anyone || self.is_named[at]);
            let share = self.weights.neighbour + if is_answer { self.weights.answer } else { 0.0 };
            share * own_parts[near].without_neighbours()
        });
        shares.sum()
    }

    /// Returns the candidates within a distance in the same thread and session, including the candidate itself.
    fn around(&self, at: usize, reach: u64) -> impl Iterator<Item = usize> {
        let candidate = self.candidates[at];
        let is_near = move |near: &usize| {
            let neighbour = self.candidates[*near];
            let apart_ms = neighbour.message.created_at.as_millis().abs_diff(candidate.message.created_at.as_millis());
            neighbour.thread == candidate.thread
                && neighbour.message.seq.abs_diff(candidate.message.seq) <= reach
                && apart_ms <= SESSION_GAP_MS.unsigned_abs()
        };
        // Positions are distinct and ascending, so candidates further away in the list are not nearer in the thread.
        let reach = usize::try_from(reach).unwrap_or(usize::MAX);
        let last = at.saturating_add(reach).min(self.candidates.len() - 1);
        (at.saturating_sub(reach)..=last).filter(is_near)
    }
}

fn word_counts_of<'a>(candidates: &[RankCandidate<'a>]) -> Vec<&'a TermCounts> {
    candidates.iter().map(|candidate| candidate.counts).collect()
}

/// Whether a text part of a message ends with a question mark.
fn asks(message: &Message) -> bool {
    let is_question = |part: &Part| matches!(part, Part::Text(text) if text.trim_end().ends_with('?'));
    message.content.parts.iter().any(is_question)
}

#[cfg(test)]
mod tests;
