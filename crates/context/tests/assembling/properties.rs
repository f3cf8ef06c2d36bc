use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use threadkeep_context::{
    ChatMessage, Context, ContextError, ContextInput, ContextPolicy, Fate, ModelSummary, PreferenceLine, Pruning,
    RecallPolicy, Recalled, Rendering, Summary, SummaryPolicy, TRUNCATION_MARK, ThreadRange, Trimming, assemble,
    count_tokens, cut,
};
use threadkeep_core::{
    ApproximateCounter, Content, CorruptRow, JsonText, Message, Part, Role, ThreadId, Timestamp, TokenCount,
    TokenCounter, ToolCall, ToolResult,
};
use threadkeep_tokens::O200k;
use unicode_segmentation::UnicodeSegmentation;

use super::fixtures::{OddCounter, message};
use super::hostile::TEXTS;

fn arbitrary_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,8}( [a-z0-9]{1,8}){0,12}[.?]?",
        2 => proptest::sample::select(TEXTS).prop_map(str::to_owned),
        1 => any::<String>().prop_map(|text| text.replace('\0', "")),
        1 => proptest::collection::vec(proptest::sample::select(TEXTS), 1..6).prop_map(|texts| texts.join("\n")),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let id = || proptest::sample::select(&["a", "b", "c"][..]);
    let call = (id(), arbitrary_text()).prop_map(|(id, text)| {
        let arguments = JsonText::of(&serde_json::json!({ "text": text })).unwrap();
        Part::ToolCall(ToolCall { id: id.into(), name: "tool".into(), arguments })
    });
    let result = (id(), arbitrary_text(), any::<bool>())
        .prop_map(|(id, output, is_error)| Part::ToolResult(ToolResult { call_id: id.into(), output, is_error }));
    prop_oneof![6 => arbitrary_text().prop_map(Part::Text), 2 => call, 2 => result, 1 => arbitrary_text().prop_map(Part::Reasoning)]
}

fn content() -> impl Strategy<Value = Content> {
    let role = proptest::sample::select(&Role::ALL[..]);
    let author = proptest::option::weighted(0.2, "[A-Z][a-z]{1,6}");
    (role, author, proptest::collection::vec(part(), 0..4)).prop_map(|(role, author, parts)| Content {
        author,
        parts,
        ..Content::empty(role)
    })
}

/// Text in which most characters are part of a longer grapheme cluster.
fn clusters() -> impl Strategy<Value = String> {
    let cluster = proptest::sample::select(
        &["👨‍👩‍👧‍👦", "e\u{301}\u{302}", "🇲🇽", "👍🏽", "x", "한", "\u{1112}\u{1161}\u{11ab}", "נִ"][..],
    );
    proptest::collection::vec(cluster, 1..24).prop_map(|clusters| clusters.concat())
}

fn text_of(message: &ChatMessage) -> String {
    message.parts.iter().filter_map(Part::text).collect()
}

#[derive(Clone, Debug)]
struct Case {
    thread: ThreadRange,
    history: Vec<Message>,
    unreadable: Vec<CorruptRow>,
    question: Option<String>,
    summary: Option<Summary>,
    recalled: Vec<Recalled>,
    preferences: Vec<PreferenceLine>,
    anchor: Option<u64>,
    policy: ContextPolicy,
}

impl Case {
    fn input(&self) -> ContextInput<'_> {
        ContextInput {
            thread: self.thread,
            history: &self.history,
            unreadable: &self.unreadable,
            question: self.question.as_deref(),
            summary: self.summary.as_ref(),
            recalled: &self.recalled,
            preferences: &self.preferences,
            enrichment: None,
            anchor: self.anchor,
        }
    }

    fn assemble(&self, counter: &dyn TokenCounter) -> Option<Context> {
        match assemble(&self.input(), &self.policy, counter) {
            Ok(context) => Some(context),
            Err(ContextError::BudgetTooSmall { .. }) => None,
            Err(other) => panic!("{other}"),
        }
    }
}

fn policy() -> impl Strategy<Value = ContextPolicy> {
    let trimming = prop_oneof![
        3 => Just((Trimming::Sliding, None)),
        1 => (0_usize..4, 0_usize..30).prop_map(|(newest, consider)| (Trimming::Sliding, Some(Pruning { newest, consider }))),
        1 => (1_u8..=100).prop_map(|keep_percent| (Trimming::Steps { keep_percent }, None)),
    ];
    let summary = proptest::option::of((0_usize..500, 0_u8..=100));
    (
        proptest::option::of(arbitrary_text()),
        1_usize..20,
        proptest::option::weighted(0.8, 0_u64..600),
        proptest::option::of(0_usize..40),
        summary,
        (0_usize..4, 0_u8..=100, 0_usize..80),
        trimming,
        any::<bool>(),
    )
        .prop_map(|(system_prompt, window, budget, message_characters, summary, recall, trimming, is_chat)| {
            ContextPolicy {
                system_prompt,
                window: Some(window),
                budget: budget.map(TokenCount),
                message_characters,
                summary: summary.map(|(characters, share_percent)| SummaryPolicy { characters, share_percent }),
                recall: RecallPolicy {
                    messages: recall.0,
                    share_percent: recall.1,
                    message_characters: recall.2,
                    ..RecallPolicy::default()
                },
                trimming: trimming.0,
                pruning: trimming.1,
                rendering: if is_chat { Rendering::Chat } else { Rendering::Transcript },
                ..ContextPolicy::default()
            }
        })
}

fn case() -> impl Strategy<Value = Case> {
    // Each position is a message, erased, or unreadable.
    let rows = proptest::collection::vec((content(), 0_u8..20), 0..24);
    let recalled = proptest::collection::vec((0_u64..60, arbitrary_text(), any::<bool>()), 0..5);
    let preferences = proptest::collection::vec((arbitrary_text(), arbitrary_text()), 0..3);
    (
        rows,
        0_u64..30,
        proptest::option::of(arbitrary_text()),
        (0_u64..40, proptest::option::weighted(0.3, arbitrary_text())),
        recalled,
        preferences,
        proptest::option::of(0_u64..60),
        policy(),
    )
        .prop_map(|(rows, skipped, question, (covered, text), recalled, preferences, anchor, policy)| {
            let last_seq = skipped + rows.len() as u64;
            let (mut history, mut unreadable) = (Vec::new(), Vec::new());
            for (seq, (content, kind)) in (skipped + 1..).zip(rows) {
                match kind {
                    0 => {}
                    1 => unreadable.push(CorruptRow { seq, detail: "broken".into() }),
                    _ => history.push(message(seq, content)),
                }
            }
            let covered = covered.min(last_seq);
            let old = (1..=covered).map(|seq| message(seq, Content::text(Role::User, format!("fact {seq}"))));
            let summary = (covered > 0).then(|| Summary::extend(None, &old.collect::<Vec<_>>(), 1, covered, 300));
            let summary = summary.map(|summary| Summary { written: written(text, covered), ..summary });
            let find_message = |seq: u64| history.iter().find(|message| message.seq == seq).cloned();
            let recalled: Vec<Recalled> = recalled
                .into_iter()
                .filter(|(seq, _, elsewhere)| *elsewhere || (1..=skipped).contains(seq) || find_message(*seq).is_some())
                .map(|(seq, text, elsewhere)| Recalled {
                    thread: elsewhere.then(|| ThreadId::from_name(b"elsewhere")),
                    message: find_message(seq)
                        .filter(|_| !elsewhere)
                        .unwrap_or_else(|| message(seq, Content::text(Role::User, text))),
                    score: 1.0,
                })
                .collect();
            let preferences = preferences.into_iter().map(|(key, value)| PreferenceLine { key, value });
            Case {
                thread: ThreadRange { first_seq: 1, last_seq },
                history,
                unreadable,
                question,
                summary,
                recalled,
                preferences: preferences.collect(),
                anchor,
                policy,
            }
        })
}

/// A model's summary of the first half of the covered range.
fn written(text: Option<String>, covered: u64) -> Option<ModelSummary> {
    let text = text?;
    let (oldest_at, model) = (Timestamp::MIN, "scripted".to_owned());
    Some(ModelSummary { first_seq: 1, through_seq: covered / 2, oldest_at, model, text })
}

fn visible(context: &Context) -> BTreeSet<u64> {
    let spans = context.report.messages.iter().filter(|span| matches!(span.fate, Fate::Kept | Fate::Truncated));
    spans.map(|span| span.first_seq).collect()
}

fn check_budget(case: &Case, counter: &dyn TokenCounter) -> Result<(), TestCaseError> {
    let Some(context) = case.assemble(counter) else { return Ok(()) };
    let total = count_tokens(&context.messages, counter);
    prop_assert_eq!(context.report.tokens.total, total);
    if let Some(budget) = case.policy.budget {
        prop_assert!(total <= budget, "{} of {}", total, budget);
    }
    let tokens = context.report.tokens;
    let parts = [
        tokens.system_prompt,
        tokens.enrichment,
        tokens.preferences,
        tokens.summary,
        tokens.recalled,
        tokens.history,
        tokens.question,
    ];
    let parts: i64 = parts.iter().map(|part| part.0.cast_signed()).sum();
    prop_assert_eq!(parts + tokens.framing, total.0.cast_signed());
    Ok(())
}

/// Returns for each result the position of the latest preceding call with its id.
fn pairs(history: &[Message]) -> Vec<(u64, u64)> {
    let (mut calls, mut pairs) = (BTreeMap::new(), Vec::new());
    for message in history {
        for part in &message.content.parts {
            match part {
                Part::ToolCall(call) => {
                    calls.insert(call.id.clone(), message.seq);
                }
                Part::ToolResult(result) => pairs.extend(calls.get(&result.call_id).map(|call| (*call, message.seq))),
                _ => {}
            }
        }
    }
    pairs
}

#[test]
fn a_thousand_runs_produce_the_same_bytes() {
    let mut runner = TestRunner::deterministic();
    let cases: Vec<Case> = (0..20).map(|_| case().new_tree(&mut runner).unwrap().current()).collect();
    let write = |cases: &[Case]| {
        let contexts = cases.iter().map(|case| case.assemble(&ApproximateCounter));
        contexts.map(|context| context.map(|context| serde_json::to_string(&context).unwrap())).collect::<Vec<_>>()
    };
    let first = write(&cases);
    assert!(first.iter().flatten().count() >= 10, "most cases fit their budget");
    // 50 threads with 20 runs each, because hash seeds differ between threads and between maps.
    let threads = (0..50).map(|_| {
        let cases = cases.clone();
        std::thread::spawn(move || write(&cases))
    });
    for thread in threads.collect::<Vec<_>>() {
        assert_eq!(thread.join().unwrap(), first);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_budget_holds_for_every_counter(case in case()) {
        check_budget(&case, &ApproximateCounter)?;
        for counter in OddCounter::ALL {
            check_budget(&case, &counter)?;
        }
    }

    #[test]
    fn pairs_are_included_together(case in case()) {
        let Some(context) = case.assemble(&ApproximateCounter) else { return Ok(()) };
        let visible = visible(&context);
        for (call, result) in pairs(&case.history) {
            prop_assert_eq!(visible.contains(&call), visible.contains(&result), "{} and {}", call, result);
        }
        if case.policy.rendering == Rendering::Chat {
            // After the calls of an answer come their results, before any other message.
            let mut open: Vec<&str> = Vec::new();
            for message in &context.messages {
                let is_answer = message.parts.iter().any(|part| matches!(part, Part::ToolResult(_)));
                let calls_more = message.role == Role::Assistant;
                prop_assert!(is_answer || calls_more || open.is_empty(), "a call without a result");
                for part in &message.parts {
                    match part {
                        Part::ToolCall(call) => open.push(&call.id),
                        Part::ToolResult(result) => {
                            prop_assert!(!open.is_empty(), "a result without a call");
                            prop_assert_eq!(open.remove(0), &result.call_id);
                        }
                        _ => {}
                    }
                }
            }
            prop_assert!(open.is_empty());
        }
    }

    #[test]
    fn equal_inputs_produce_equal_bytes(case in case()) {
        let write = |context: Option<Context>| context.map(|context| serde_json::to_string(&context).unwrap());
        let first = write(case.assemble(&ApproximateCounter));
        prop_assert_eq!(&first, &write(case.clone().assemble(&ApproximateCounter)));
        // Another thread has other hash seeds.
        let elsewhere = std::thread::spawn(move || write(case.assemble(&ApproximateCounter))).join().unwrap();
        prop_assert_eq!(&first, &elsewhere);
    }

    #[test]
    fn no_message_is_included_twice(case in case()) {
        let Some(context) = case.assemble(&ApproximateCounter) else { return Ok(()) };
        let visible = visible(&context);
        let recalled = context.report.recalled.iter().filter(|found| found.fate == Fate::Recalled);
        let mut seen = BTreeSet::new();
        for found in recalled {
            prop_assert!(seen.insert((found.thread, found.seq)), "{} is recalled twice", found.seq);
            prop_assert!(found.thread.is_some() || !visible.contains(&found.seq), "{} is in the history too", found.seq);
        }
    }

    #[test]
    fn fates_cover_every_position_once(case in case()) {
        let Some(context) = case.assemble(&ApproximateCounter) else { return Ok(()) };
        let mut next = case.thread.first_seq;
        for span in &context.report.messages {
            prop_assert_eq!(span.first_seq, next);
            prop_assert!(span.last_seq >= span.first_seq);
            prop_assert_eq!(span.why.is_none(), span.fate == Fate::Kept);
            next = span.last_seq + 1;
        }
        prop_assert_eq!(next, case.thread.last_seq + 1);
        let window = case.policy.window.unwrap();
        prop_assert!(visible(&context).len() <= window);
        prop_assert_eq!(context.report.recalled.len(), case.recalled.len());
        let json = serde_json::to_string(&context.report).unwrap();
        prop_assert_eq!(serde_json::from_str::<threadkeep_context::Report>(&json).unwrap(), context.report);
    }

    #[test]
    fn texts_are_truncated_at_grapheme_boundaries(
        texts in proptest::collection::vec(clusters(), 1..6),
        characters in proptest::option::of(0_usize..30),
        budget in proptest::option::of(20_u64..120),
        is_chat in any::<bool>(),
    ) {
        let history: Vec<Message> =
            (1..).zip(&texts).map(|(seq, text)| message(seq, Content::text(Role::User, text))).collect();
        let policy = ContextPolicy {
            message_characters: characters,
            budget: budget.map(TokenCount),
            rendering: if is_chat { Rendering::Chat } else { Rendering::Transcript },
            ..ContextPolicy::window(10)
        };
        let Ok(context) = assemble(&super::fixtures::whole(&history), &policy, &ApproximateCounter) else { return Ok(()) };
        let cuts = context.report.messages.iter().filter(|span| span.fate == Fate::Truncated);
        for (span, whole) in cuts.filter_map(|span| Some((span, texts.get(usize::try_from(span.first_seq).ok()? - 1)?))) {
            // The visible text is a prefix that ends at a grapheme boundary, followed by the mark.
            let prefixes = whole.grapheme_indices(true).map(|(at, _)| format!("{}{TRUNCATION_MARK}", &whole[..at]));
            let is_visible = |prefix: &str| match is_chat {
                true => context.messages.iter().any(|sent| sent.seq == Some(span.first_seq) && text_of(sent) == prefix),
                false => {
                    let block = format!("User: {prefix}\n\n");
                    let text = context.newest_text();
                    text.contains(&block) || text.ends_with(&format!("]\n{prefix}")) || text == prefix
                }
            };
            prop_assert!(prefixes.into_iter().any(|prefix| is_visible(&prefix)), "{:?} in {:?}", whole, context.messages);
        }
    }

    #[test]
    fn a_truncated_text_is_as_long_as_permitted(text in clusters(), characters in 0_usize..40) {
        match cut(&text, characters) {
            None => prop_assert!(text.chars().count() <= characters),
            Some(kept) => {
                let rest = text.strip_prefix(kept).unwrap();
                prop_assert_eq!(text.grapheme_indices(true).find(|(at, _)| *at == kept.len()).map(|(at, _)| at), Some(kept.len()));
                prop_assert!(kept.chars().count() <= characters);
                let next = rest.graphemes(true).next().unwrap();
                prop_assert!(kept.chars().count() + next.chars().count() > characters);
            }
        }
    }

    #[test]
    fn a_summary_is_bounded_and_only_extends_forward(case in case()) {
        let Some(policy) = case.policy.summary else { return Ok(()) };
        let Some(Context { summary: Some(summary), .. }) = case.assemble(&ApproximateCounter) else { return Ok(()) };
        if Some(&summary) != case.summary.as_ref() {
            let characters: usize = summary.items.iter().map(|item| item.text.chars().count()).sum();
            prop_assert!(characters <= policy.characters);
            prop_assert!(summary.through_seq > case.summary.as_ref().map_or(0, |old| old.through_seq));
        }
        prop_assert!(summary.items.is_sorted_by_key(|item| item.seq));
        prop_assert!(summary.items.iter().all(|item| summary.covers(item.seq)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_budget_holds_for_a_real_counter(case in case()) {
        check_budget(&case, &O200k)?;
    }
}
