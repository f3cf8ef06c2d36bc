use proptest::prelude::*;
use threadkeep_core::{Content, MessageId, Role, Timestamp};
use uuid::Uuid;

use super::*;

fn now() -> Timestamp {
    "2026-11-21T08:00:00Z".parse().unwrap()
}

/// Creates a dialogue with one minute between messages.
fn dialogue(lines: &[(&str, &str)]) -> Vec<Message> {
    let lines = lines.iter().zip(1_u32..);
    let messages = lines.map(|((author, text), number)| {
        let content = Content { author: Some((*author).to_owned()), ..Content::text(Role::User, *text) };
        let id = MessageId(Uuid::from_u128(number.into()));
        let created_at = "2026-05-01T08:00:00Z".parse::<Timestamp>().unwrap().plus_ms(i64::from(number) * 60_000);
        Message { seq: number.into(), id, external_id: None, revision: 0, created_at, content }
    });
    messages.collect()
}

fn thread(number: u128) -> ThreadId {
    ThreadId(Uuid::from_u128(number))
}

fn parts_with(question: &str, messages: &[Message], weights: &Weights) -> Vec<(u64, ScoreParts)> {
    let question = Question::new(question, now());
    let counts: Vec<TermCounts> = messages.iter().map(|message| question.count(&message.plain_text())).collect();
    let candidates = messages.iter().zip(&counts);
    let candidates: Vec<_> =
        candidates.map(|(message, counts)| RankCandidate { thread: thread(1), message, counts }).collect();
    let statistics = Statistics { documents: 100, frequencies: Vec::new() };
    let ranked = rank(&question, &candidates, &statistics, weights);
    ranked.into_iter().map(|ranked| (ranked.candidate.message.seq, ranked.parts)).collect()
}

fn ranked_with(question: &str, messages: &[Message], weights: &Weights) -> Vec<u64> {
    parts_with(question, messages, weights).into_iter().map(|(seq, _)| seq).collect()
}

fn ranked(question: &str, messages: &[Message]) -> Vec<u64> {
    ranked_with(question, messages, &Weights::default())
}

#[test]
fn an_answer_without_common_words_ranks_by_its_question() {
    let messages = dialogue(&[
        ("Ana", "Nice weather today."),
        ("Ben", "What did you paint?"),
        ("Ana", "A heron by the lake."),
        ("Ben", "Lovely."),
    ]);
    assert_eq!(ranked("What was painted by Ana?", &messages)[..2], [3, 2]);
    let by_words_alone = ranked_with("What was painted by Ana?", &messages, &Weights::WORDS_ALONE);
    assert_eq!(by_words_alone, [2], "words alone do not find the answer");
}

#[test]
fn words_spread_over_a_passage_add_up() {
    let mut messages = dialogue(&[
        ("Ana", "the walrus"),
        ("Ben", "one"),
        ("Ben", "two"),
        ("Ana", "the zebra"),
        ("Ben", "three"),
        ("Ben", "four"),
        ("Ben", "five"),
        ("Ben", "six"),
        ("Ben", "seven"),
        ("Ana", "the walrus"),
    ]);
    let only_passage = Weights { passage: 1.0, passage_decay: 0.8, ..Weights::WORDS_ALONE };
    assert_eq!(ranked_with("walrus zebra", &messages, &only_passage)[..2], [4, 1]);
    // A passage does not extend to another day.
    for message in &mut messages[3..] {
        message.created_at = message.created_at.plus_ms(24 * 60 * 60 * 1000);
    }
    let parts = parts_with("walrus zebra", &messages, &only_passage);
    let passage = |seq: u64| parts.iter().find(|(at, _)| *at == seq).map(|(_, parts)| parts.passage);
    assert_eq!(passage(1), passage(10), "messages of the next day do not affect earlier ones");
}

#[test]
fn a_named_speaker_ranks_first_and_the_name_itself_weighs_little() {
    let messages = dialogue(&[("Ben", "I like herons"), ("Cleo", "hm"), ("Dan", "hm"), ("Ana", "I like herons")]);
    let no_neighbours = Weights { passage: 0.0, neighbour: 0.0, answer: 0.0, ..Weights::default() };
    assert_eq!(ranked_with("Does Ben like herons?", &messages, &no_neighbours), [1, 4]);
    assert_eq!(ranked_with("Does Ana like herons?", &messages, &no_neighbours), [4, 1]);
    let called = dialogue(&[("Ana", "Ben, hello Ben!"), ("Cleo", "hm"), ("Ben", "I saw herons and swans there once")]);
    assert_eq!(ranked_with("Which herons did Ben see?", &called, &no_neighbours)[0], 3);
    assert_eq!(ranked("Ben?", &called)[0], 1, "a question that is only a name searches for the name");
}

#[test]
fn dates_and_times_raise_matching_messages() {
    let mut messages = dialogue(&[("Ana", "a concert"), ("Ben", "hm"), ("Ana", "a concert")]);
    messages[0].created_at = "2025-07-09T10:00:00Z".parse().unwrap();
    assert_eq!(ranked("Which concert in July 2025?", &messages)[0], 1);
    assert_eq!(ranked("Which concert in May 2026?", &messages)[0], 3);
    assert_eq!(ranked("Which concert?", &messages)[0], 3, "equal scores are ordered newest first");
    let dialogue_with_time =
        dialogue(&[("Ana", "the concert was yesterday"), ("Ben", "hm"), ("Cleo", "the concert was very loud")]);
    let no_neighbours = Weights { passage: 0.0, neighbour: 0.0, answer: 0.0, ..Weights::default() };
    assert_eq!(ranked_with("When was the concert?", &dialogue_with_time, &no_neighbours)[0], 1);
}

#[test]
fn messages_of_other_threads_are_not_neighbours() {
    let messages = dialogue(&[("Ana", "the walrus"), ("Ana", "yes")]);
    let question = Question::new("walrus", now());
    let counts: Vec<_> = messages.iter().map(|message| question.count(&message.plain_text())).collect();
    let candidates = [
        RankCandidate { thread: thread(1), message: &messages[0], counts: &counts[0] },
        RankCandidate { thread: thread(2), message: &messages[1], counts: &counts[1] },
    ];
    assert_eq!(rank(&question, &candidates, &Statistics::default(), &Weights::default()).len(), 1);
    assert!(rank(&question, &[], &Statistics::default(), &Weights::default()).is_empty());
}

proptest! {
    #[test]
    fn the_order_of_the_input_does_not_matter(
        texts in prop::collection::vec("(walrus|zebra|heron|why\\?|yes|no| ){1,6}", 1..20),
        offset in 0_usize..20,
    ) {
        let spoken: Vec<(&str, &str)> = texts.iter().map(|text| ("Ana", text.as_str())).collect();
        let messages = dialogue(&spoken);
        let mut moved = messages.clone();
        moved.rotate_left(offset % messages.len());
        moved.push(messages[0].clone());
        let question = "Why did Ana see the walrus and the heron last week?";
        let expected = parts_with(question, &messages, &Weights::default());
        prop_assert_eq!(&expected, &parts_with(question, &moved, &Weights::default()));
        for (_, parts) in &expected {
            prop_assert!(parts.score().is_finite() && parts.score() > 0.0);
        }
    }

    #[test]
    fn arbitrary_questions_and_texts_give_finite_scores(question in "\\PC{0,80}", text in "\\PC{0,80}") {
        let messages = dialogue(&[("Ana", text.as_str()), ("\u{202e}Ben", question.as_str())]);
        for (_, parts) in parts_with(&question, &messages, &Weights::default()) {
            prop_assert!(parts.score().is_finite());
        }
    }
}
