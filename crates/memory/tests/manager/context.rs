use threadkeep_context::{ChatMessage, ContextPolicy, Fate, FateReason, Recalled, SummaryPolicy, Trimming};
use threadkeep_core::{
    DumpEntry, MessageQuery, OpenThread, Owner, Part, RecordOwner, RecordQuery, Scope, ThreadId, TokenCount,
};
use threadkeep_memory::{AppendOptions, ContextOptions, Draft, Memory, Retention, ThreadConfig};

use super::probe::Probe;
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

fn summarising_policy(window: usize) -> ContextPolicy {
    ContextPolicy { summary: Some(SummaryPolicy::default()), ..ContextPolicy::window(window) }
}

fn render(messages: &[ChatMessage]) -> Vec<String> {
    let text = |message: &ChatMessage| {
        let texts: Vec<&str> = message.parts.iter().filter_map(Part::text).collect();
        format!("{}: {}", message.role, texts.join("\n"))
    };
    messages.iter().map(text).collect()
}

/// Appends alternating questions and answers, numbered from `first`.
async fn append_exchanges(memory: &Memory, thread: ThreadId, first: usize, count: usize) {
    let draft = |number: usize| match number % 2 {
        1 => Draft::user(format!("question {number}")),
        _ => Draft::assistant(format!("answer {number}")),
    };
    for numbers in (first..first + count).collect::<Vec<_>>().chunks(500) {
        let drafts = numbers.iter().copied().map(draft).collect();
        memory.append_all(&ana(), thread, drafts, &AppendOptions::default()).await.unwrap();
    }
}

async fn context_text(memory: &Memory, scope: &Scope, thread: ThreadId, policy: &ContextPolicy) -> String {
    render(&memory.context(scope, thread, None, policy).await.unwrap().context.messages).join("\n")
}

/// Returns the values of all records of a thread.
async fn record_values(env: &TestEnv, thread: ThreadId) -> String {
    let query = RecordQuery::of(RecordOwner::Thread(thread));
    let records = env.backend.store.list_records(&acme(), &query, env.memory.now()).await.unwrap();
    records.iter().map(|record| record.value.as_str()).collect::<Vec<_>>().join("\n")
}

// S4.13
#[tokio::test(start_paused = true)]
async fn a_context_contains_the_newest_messages_and_the_question_once() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_exchanges(memory, thread, 1, 12).await;
        let policy = ContextPolicy::window(2);
        let expected = ["user: question 11", "assistant: answer 12", "user: and now?"];
        let before = memory.context(&ana(), thread, Some("and now?"), &policy).await.unwrap();
        assert_eq!(render(&before.context.messages), expected);
        assert_eq!(before.positions.seq, 12);
        memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
        for question in [Some("and now?"), None] {
            let after = memory.context(&ana(), thread, question, &ContextPolicy::window(3)).await.unwrap();
            assert_eq!(render(&after.context.messages), expected);
        }
        assert_eq!(
            memory.newest(&ana(), thread, 100).await.unwrap().len(),
            13,
            "messages outside the window remain stored"
        );
        assert!(memory.context(&ben(), thread, None, &policy).await.unwrap_err().is_not_found());
        assert!(memory.context(&ana(), thread, None, &ContextPolicy::window(0)).await.is_err());
    })
    .await;
}

// S1.44
#[tokio::test(start_paused = true)]
async fn the_history_limit_applies_to_the_prompt_only() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_exchanges(memory, thread, 1, 12).await;
        let config = ThreadConfig { history_limit: Some(3), ..ThreadConfig::default() };
        memory.set_thread_config(&ana(), thread, &config, None).await.unwrap();
        memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
        let config = memory.thread_config(&ana(), thread).await.unwrap();
        let policy = config.limit_context(&ContextPolicy::window(10));
        let context = memory.context(&ana(), thread, Some("and now?"), &policy).await.unwrap().context;
        assert_eq!(render(&context.messages), ["user: question 11", "assistant: answer 12", "user: and now?"]);
        assert_eq!(memory.newest(&ana(), thread, 100).await.unwrap().len(), 13);
        assert_eq!(config.limit_context(&ContextPolicy::window(2)).window, Some(2));
    })
    .await;
}

// S4.10
#[tokio::test(start_paused = true)]
async fn a_long_message_is_truncated_in_the_context_only() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let (exact, longer) = ("é".repeat(500), "é".repeat(501));
        for text in [&exact, &longer] {
            memory.append(&ana(), thread, Draft::user(text.as_str())).await.unwrap();
        }
        let policy = ContextPolicy { message_characters: Some(500), ..ContextPolicy::window(10) };
        let context = memory.context(&ana(), thread, Some("and?"), &policy).await.unwrap().context;
        let expected = [format!("user: {exact}"), format!("user: {exact}..."), "user: and?".to_owned()];
        assert_eq!(render(&context.messages), expected);
        assert_eq!(memory.newest(&ana(), thread, 1).await.unwrap()[0].plain_text(), longer);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_context_of_an_empty_thread_is_the_question() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let context = env.memory.context(&ana(), thread, Some("hello"), &summarising_policy(10)).await.unwrap();
        assert_eq!(render(&context.context.messages), ["user: hello"]);
        assert_eq!(context.context.report.messages, []);
    })
    .await;
}

// S0.28
#[tokio::test(start_paused = true)]
async fn a_corrupt_message_is_reported_and_the_rest_is_included() {
    let (source, target) = (TestEnv::plain(), TestEnv::plain());
    let thread = source.open_thread().await;
    append_exchanges(&source.memory, thread, 1, 5).await;
    let tenant = ana().tenant_id().clone();
    let mut dump = source.backend.maintenance.dump_thread(&tenant, thread, None, 100).await.unwrap();
    let DumpEntry::Message { body, .. } = &mut dump.entries[2] else { panic!("not a message") };
    *body = "1u{\"parts\":[{\"text\":\"sec".to_owned();
    target.backend.maintenance.restore_thread(&tenant, thread, dump).await.unwrap();

    let context = target.memory.context(&ana(), thread, None, &ContextPolicy::window(4)).await.unwrap();
    assert_eq!(render(&context.context.messages), ["assistant: answer 2", "assistant: answer 4", "user: question 5"]);
    assert_eq!(context.unreadable.iter().map(|row| row.seq).collect::<Vec<_>>(), [3]);
    let broken = context.context.report.messages.iter().find(|span| span.first_seq == 3).unwrap();
    assert_eq!((broken.fate, broken.why), (Fate::Absent, Some(FateReason::Unreadable)));
    // Messages outside the window are summarised despite the corrupt message.
    let summarised = target.memory.context(&ana(), thread, None, &summarising_policy(1)).await.unwrap();
    assert_eq!(summarised.context.summary.unwrap().through_seq, 4);
}

// S0.36
#[tokio::test(start_paused = true)]
async fn a_summary_is_stored_updated_and_used_by_other_processes() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        memory.append(&ana(), thread, Draft::user("My usual line is the Northern.")).await.unwrap();
        for turn in 0..30 {
            append_exchanges(memory, thread, 2 * turn + 2, 2).await;
            let policy = summarising_policy(6);
            assert!(
                context_text(memory, &ana(), thread, &policy).await.contains("usual line is the Northern"),
                "turn {turn}"
            );
        }
        let process = env.another_process();
        assert!(
            context_text(&process, &ana(), thread, &summarising_policy(6)).await.contains("usual line is the Northern")
        );
        let stored = record_values(&env, thread).await;
        assert!(stored.contains("\"through_seq\":55") && stored.contains("Northern"), "{stored}");
    })
    .await;
}

#[tokio::test]
async fn the_number_of_calls_does_not_depend_on_the_thread_length() {
    let (probe, env) = Probe::new_env();
    let thread = env.open_thread().await;
    for length in [40, 400, 4_000] {
        let stored = env.memory.get_thread(&ana(), thread).await.unwrap().message_count;
        let stored = usize::try_from(stored).unwrap();
        append_exchanges(&env.memory, thread, stored + 1, length - stored).await;
        while !is_caught_up(&env.memory, thread).await {}
        append_exchanges(&env.memory, thread, length + 1, 2).await;
        probe.take_calls();
        env.memory.context(&ana(), thread, None, &summarising_policy(16)).await.unwrap();
        let expected = [("read_thread_with_records", 1), ("write_derived", 1)];
        assert_eq!(probe.take_calls(), expected, "{length} messages");
        // No further message has left the window, so nothing is written.
        env.memory.context(&ana(), thread, None, &summarising_policy(16)).await.unwrap();
        assert_eq!(probe.take_calls(), expected[..1]);
    }
}

/// Assembles a context, and returns whether its summary covers all messages outside the window.
async fn is_caught_up(memory: &Memory, thread: ThreadId) -> bool {
    let context = memory.context(&ana(), thread, None, &summarising_policy(16)).await.unwrap().context;
    context.report.messages.iter().all(|span| span.fate != Fate::Dropped)
}

#[tokio::test(start_paused = true)]
async fn a_lagging_summary_catches_up_over_several_calls() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        memory.append(&ana(), thread, Draft::user("I need a window seat for 3 people.")).await.unwrap();
        append_exchanges(memory, thread, 2, 1_400).await;
        let mut calls = 1;
        while !is_caught_up(memory, thread).await {
            calls += 1;
        }
        assert_eq!(calls, 3);
        assert!(context_text(memory, &ana(), thread, &summarising_policy(16)).await.contains("3 people"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn edits_and_erasures_update_the_summary_in_the_same_commit() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let secret = memory.append(&ana(), thread, Draft::user("My secret is 4711.")).await.unwrap().messages[0].id;
        let edited = memory.append(&ana(), thread, Draft::user("I live in Oslo.")).await.unwrap().messages[0].id;
        let third = memory.append(&ana(), thread, Draft::user("My cat is 3 years old.")).await.unwrap().messages[0].id;
        append_exchanges(memory, thread, 4, 10).await;
        context_text(memory, &ana(), thread, &summarising_policy(2)).await;
        assert!(record_values(&env, thread).await.contains("4711"));

        memory.erase_messages(&ana(), thread, &[secret]).await.unwrap();
        let stored = record_values(&env, thread).await;
        assert!(!stored.contains("4711") && stored.contains("Oslo"), "{stored}");
        let content = Draft::user("I live in Lima.").content;
        memory.replace_message(&ana(), thread, edited, content, None).await.unwrap();
        assert!(!record_values(&env, thread).await.contains("Oslo"));
        memory.batch().erase(third).commit(&ana(), thread).await.unwrap();
        assert!(!record_values(&env, thread).await.contains("cat"));
        assert!(!context_text(memory, &ana(), thread, &summarising_policy(2)).await.contains("4711"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn trimming_removes_text_from_the_summary() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        memory.append(&ana(), thread, Draft::user("My secret is 4711.")).await.unwrap();
        append_exchanges(memory, thread, 2, 10).await;
        assert!(context_text(memory, &ana(), thread, &summarising_policy(2)).await.contains("4711"));
        memory.retain(&ana(), thread, &Retention { max_messages: Some(8), ttl_minutes: None }).await.unwrap();
        let stored = record_values(&env, thread).await;
        assert!(!stored.contains("4711") && stored.contains("question 7"), "{stored}");
        let context = memory.context(&ana(), thread, None, &summarising_policy(2)).await.unwrap().context;
        assert_eq!(context.report.messages[0].first_seq, 4);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn expired_messages_are_excluded_before_they_are_trimmed() {
    on_all_stores(async |env: TestEnv| {
        let retention = Some(Retention { max_messages: None, ttl_minutes: Some(60) });
        let options = threadkeep_memory::MemoryOptions { retention, ..env.memory.options().clone() };
        let env = env.with_options(options);
        let (memory, thread) = (&env.memory, env.open_thread().await);
        memory.append(&ana(), thread, Draft::user("My secret is 4711.")).await.unwrap();
        env.clock.advance_minutes(40);
        append_exchanges(memory, thread, 2, 6).await;
        assert!(context_text(memory, &ana(), thread, &summarising_policy(2)).await.contains("4711"));
        env.clock.advance_minutes(40);
        for policy in [summarising_policy(2), summarising_policy(20)] {
            assert!(!context_text(memory, &ana(), thread, &policy).await.contains("4711"));
        }
    })
    .await;
}

// S0.41
#[tokio::test(start_paused = true)]
async fn a_context_contains_only_the_users_own_preferences() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        memory.set_preference(&ana(), "usual_line", "Northern").await.unwrap();
        memory.set_preference(&ana(), "seats", &2).await.unwrap();
        memory.set_preference(&ben(), "usual_line", "Victoria").await.unwrap();
        memory.append(&ana(), thread, Draft::user("hello")).await.unwrap();
        let context = context_text(memory, &ana(), thread, &ContextPolicy::default()).await;
        assert_eq!(context, "system: What the user prefers:\n- seats: 2\n- usual_line: Northern\nuser: hello");
        assert_eq!(context_text(memory, &acme(), thread, &ContextPolicy::default()).await, "user: hello");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_report_is_stored_under_its_turn() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        append_exchanges(memory, thread, 1, 30).await;
        let old = memory.messages(&ana(), thread, &MessageQuery::newest(30)).await.unwrap().messages.remove(2);
        let options = ContextOptions {
            recalled: vec![Recalled { thread: Some(thread), message: old, score: 2.5 }],
            turn: Some("turn-7".to_owned()),
            ..ContextOptions::default()
        };
        let policy = ContextPolicy { budget: Some(TokenCount(500)), ..ContextPolicy::window(4) };
        let assembled = memory.context_with(&ana(), thread, Some("what?"), &policy, &options).await.unwrap();
        assert!(assembled.is_report_stored);
        let context = assembled.context;
        let fate_of = |seq| context.report.messages.iter().find(|span| span.first_seq == seq).unwrap().fate;
        assert_eq!((fate_of(3), fate_of(27)), (Fate::Recalled, Fate::Kept));
        let process = env.another_process();
        assert_eq!(process.context_report(&ana(), thread, "turn-7").await.unwrap(), Some(context.report));
        assert_eq!(process.context_report(&ana(), thread, "turn-8").await.unwrap(), None);
        assert_eq!(process.context_report(&ben(), thread, "turn-7").await.unwrap(), None);
        assert!(!record_values(&env, thread).await.contains("question 3"), "reports contain no message text");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_anchor_persists_across_turns() {
    on_all_stores(async |env: TestEnv| {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        let trimming = Trimming::Steps { keep_percent: 50 };
        let policy = ContextPolicy { trimming, ..summarising_policy(8) };
        let mut anchors = Vec::new();
        for turn in 0..10 {
            append_exchanges(memory, thread, 2 * turn + 1, 2).await;
            anchors.extend(memory.context(&ana(), thread, None, &policy).await.unwrap().context.anchor);
        }
        assert_eq!(anchors, [1, 1, 1, 1, 7, 7, 7, 13, 13, 13]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_context_of_a_shared_thread_is_not_stored_for_users() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.generate_thread_id()) };
        let thread = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        memory.append(&ana(), thread, Draft::user("My usual cluster is prod-eu-2.")).await.unwrap();
        append_exchanges(memory, thread, 2, 10).await;
        assert!(context_text(memory, &ben(), thread, &summarising_policy(2)).await.contains("prod-eu-2"));
        let options = ContextOptions { turn: Some("1".to_owned()), ..ContextOptions::default() };
        let context = memory.context_with(&ben(), thread, None, &summarising_policy(2), &options).await.unwrap();
        assert!(!context.is_report_stored);
        assert_eq!(record_values(&env, thread).await, "", "a user's context of a shared thread is not stored");
    })
    .await;
}
