//! Compares and selects choices.

use std::collections::HashSet;

use crate::annotated::AnnotatedUtterance;
use crate::dialogue_state::DialogueState;
use crate::extract::Choice;

/// Whether two choices are the same entity, which messages may name differently.
pub(crate) fn is_same_entity(one: &Choice, other: &Choice) -> bool {
    one.value == other.value || (one.label == other.label && !one.hints.is_empty() && one.hints == other.hints)
}

/// Whether the labels of two choices share a word of at least four letters or a number: "Bedford Av" and "Bedford-Nostrand Avs".
pub(crate) fn shares_name(one: &Choice, other: &Choice) -> bool {
    let words = |choice: &Choice| crate::utterance::folded_words(&choice.label);
    let is_distinctive = |word: &&String| word.len() >= 4 || word.bytes().any(|byte| byte.is_ascii_digit());
    let others = words(other);
    words(one).iter().filter(is_distinctive).any(|word| others.contains(word))
}

/// Returns the choice that shares the most hints with a previous value: after a station on Lexington Avenue, "96th
/// instead?" means the 96th on Lexington Avenue. `None` if several choices share equally many, or no choice shares any.
pub(crate) fn closest<'a>(choices: &'a [Choice], previous: &Choice) -> Option<&'a Choice> {
    let shared = |choice: &Choice| choice.hints.iter().filter(|hint| previous.hints.contains(hint)).count();
    let most = choices.iter().map(shared).max().filter(|most| *most > 0)?;
    let mut best = choices.iter().filter(|choice| shared(choice) == most);
    best.next().filter(|_| best.next().is_none())
}

/// Returns the choice that the lists of the newest frame with a list hint at: after "next Q at Kings Hwy", "72nd Street" is the one
/// on the Q. `None` if they hint at several choices or at none.
pub(super) fn hinted_by_lists<'a>(choices: &'a [Choice], dialogue: &DialogueState) -> Option<&'a Choice> {
    let lists = dialogue.recent_frames().map(|frame| {
        let lists = frame.slots.0.iter().filter_map(|(_, choice)| choice.value.as_array());
        lists.flatten().filter_map(|value| value.as_str()).collect::<Vec<_>>()
    });
    let newest = lists.into_iter().find(|list| !list.is_empty())?;
    let mut hinted = choices.iter().filter(|choice| choice.hints.iter().any(|hint| newest.contains(&hint.as_str())));
    hinted.next().filter(|_| hinted.next().is_none())
}

/// Selects a choice by an ordinal, or by words that only the label and hints of this choice contain.
pub(crate) fn select_choice<'a>(
    annotated: &AnnotatedUtterance,
    choices: &'a [Choice],
    ordinals: &[String],
) -> Option<&'a Choice> {
    let message_words: HashSet<&str> = annotated.utterance.words().iter().map(|word| word.folded.as_str()).collect();
    // In "Second Avenue", the ordinal is a name.
    let utterance = &annotated.utterance;
    let is_name = |at: usize| matches!(utterance.word(at + 1), "avenue" | "av" | "ave" | "street" | "st");
    let occurs = |ordinal: &String| {
        (0..utterance.words().len()).any(|at| utterance.word(at) == ordinal.as_str() && !is_name(at))
    };
    let ordinal = ordinals.iter().position(occurs);
    if let Some(choice) = ordinal.and_then(|at| choices.get(at)) {
        return Some(choice);
    }
    let words: Vec<HashSet<String>> = choices.iter().map(words_of).collect();
    let shared = |word: &String| words.iter().all(|other| other.contains(word));
    let hits: Vec<usize> = words
        .iter()
        .map(|words| words.iter().filter(|word| message_words.contains(word.as_str()) && !shared(word)).count())
        .collect();
    let most = *hits.iter().max()?;
    let mut best = hits.iter().enumerate().filter(|(_, hits)| **hits == most && most > 0);
    match (best.next(), best.next()) {
        (Some((at, _)), None) => choices.get(at),
        _ => None,
    }
}

fn words_of(choice: &Choice) -> HashSet<String> {
    let texts = std::iter::once(&choice.label).chain(&choice.hints);
    texts.flat_map(|text| crate::utterance::folded_words(text)).collect()
}
