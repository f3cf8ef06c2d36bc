use threadkeep_core::{Content, EPHEMERAL, Map, OpenThread, Role, Scope, ThreadId, Timestamp};
use threadkeep_memory::{AppendOptions, Draft, Memory, RecallOptions, SearchOptions, ThreadTail};

use super::probe::Probe;
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

fn dialogue_start() -> Timestamp {
    "2026-05-01T08:00:00Z".parse().unwrap()
}

/// Returns the messages of a dialogue over several days: small talk with some memorable facts.
fn dialogue_drafts(turn_count: usize) -> Vec<Draft> {
    let drafts = (0..turn_count).map(|turn| {
        let text = match turn % 12 {
            3 => format!("What did you paint this time, number {turn}?"),
            4 => "A heron by the lake, last Sunday.".to_owned(),
            7 => "My sister moved to Lisbon.".to_owned(),
            8 => "¿Y cuándo salen los trenes a Córdoba?".to_owned(),
            other => format!("Small talk about the weather, part {other}."),
        };
        let (author, role) = if turn % 2 == 0 { ("Ana", Role::User) } else { ("Ben", Role::Assistant) };
        let content = Content { author: Some(author.to_owned()), ..Content::text(role, text) };
        let at = dialogue_start().plus_ms(i64::try_from(turn).unwrap() * 1_800_000);
        Draft::new(content).with_created_at(at).with_external_id(turn.to_string())
    });
    drafts.collect()
}

async fn append_dialogue(memory: &Memory, scope: &Scope, turn_count: usize) -> ThreadId {
    let thread = memory.open(scope).await.unwrap().thread.id;
    for drafts in dialogue_drafts(turn_count).chunks(100) {
        memory.append_all(scope, thread, drafts.to_vec(), &AppendOptions::default()).await.unwrap();
    }
    thread
}

const QUESTIONS: [&str; 6] = [
    "What did Ana paint?",
    "When did Ana paint a heron?",
    "Where did the sister move in May 2026?",
    "¿A qué hora sale el tren a cordoba?",
    "What was said about the weather last week?",
    "who are you?",
];

/// Returns the positions and scores of the recalled messages. Scores are rounded, so that they can be compared.
async fn recall_seqs_and_scores(memory: &Memory, thread: ThreadId, question: &str) -> Vec<(u64, String)> {
    let options = RecallOptions { thread: Some(thread), limit: 20, ..RecallOptions::default() };
    let results = memory.recall(&ana(), question, &options).await.unwrap();
    assert!(results.unsearched.is_empty());
    results.messages.iter().map(|found| (found.message.seq, format!("{:.9}", found.score))).collect()
}

#[tokio::test(start_paused = true)]
async fn recall_does_not_depend_on_the_store_or_index_lag() {
    let mut expected: Vec<Vec<(u64, String)>> = Vec::new();
    let plain = TestEnv::plain();
    let thread = append_dialogue(&plain.memory, &ana(), 150).await;
    for question in QUESTIONS {
        expected.push(recall_seqs_and_scores(&plain.memory, thread, question).await);
    }
    assert!(expected[..5].iter().all(|turns| !turns.is_empty()));
    let envs = std::iter::once(TestEnv::sqlite())
        .chain(TestEnv::on_servers().into_iter().map(|(_, env)| env))
        .chain([1, 2, 3, 42, 2026].map(TestEnv::faulty));
    for env in envs {
        let thread = append_dialogue(&env.memory, &ana(), 150).await;
        for _ in 0..2 {
            for (question, expected) in QUESTIONS.iter().zip(&expected) {
                assert_eq!(recall_seqs_and_scores(&env.memory, thread, question).await, *expected, "{question}");
            }
            while !env.backend.search.catch_up(1_000).await.unwrap().done {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_recalled_with_its_question_and_score_parts_add_up() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let thread = env.open_thread().await;
        for (turn, text) in ["Hello", "What did you paint?", "A heron.", "Goodbye"].into_iter().enumerate() {
            let role = if turn % 2 == 0 { Role::User } else { Role::Assistant };
            memory.append(&ana(), thread, Draft::new(Content::text(role, text))).await.unwrap();
        }
        let results = memory.recall(&ana(), "Which painting was it?", &RecallOptions::default()).await.unwrap();
        let seqs: Vec<_> = results.messages.iter().map(|found| found.message.seq).collect();
        assert_eq!(seqs[..2], [3, 2]);
        for turn in &results.messages {
            let parts = turn.parts;
            let sum = parts.words + parts.passage + parts.neighbours + parts.speaker + parts.time;
            assert!((turn.score - sum).abs() < 1e-9 && turn.thread == thread);
        }
        let without_tail =
            RecallOptions { except: Some(ThreadTail { thread, from_seq: 2 }), ..RecallOptions::default() };
        let results = memory.recall(&ana(), "Which painting was it?", &without_tail).await.unwrap();
        assert_eq!(results.messages.iter().map(|found| found.message.seq).collect::<Vec<_>>(), [1]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn recall_is_limited_to_the_scope() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let (first, second) = (env.open_thread().await, env.open_thread().await);
        let bens_thread = memory.open(&ben()).await.unwrap().thread.id;
        memory.append(&ana(), first, Draft::user("a walrus")).await.unwrap();
        memory.append(&ana(), second, Draft::user("another walrus")).await.unwrap();
        memory.append(&ben(), bens_thread, Draft::user("my secret walrus")).await.unwrap();
        let recall = async |scope: &Scope, thread: Option<ThreadId>| {
            let options = RecallOptions { thread, ..RecallOptions::default() };
            memory.recall(scope, "walrus", &options).await.unwrap().messages.len()
        };
        assert_eq!(recall(&ana(), None).await, 2);
        assert_eq!(recall(&ana(), Some(first)).await, 1);
        assert_eq!(recall(&ana(), Some(bens_thread)).await, 0);
        assert_eq!(recall(&acme(), None).await, 3);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn hostile_questions_are_handled() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let thread = append_dialogue(memory, &ana(), 30).await;
        let long = "heron ".repeat(50_000);
        let many_words: String = (0..5_000).map(|number| format!("w{number} ")).collect();
        for question in
            ["", " … ", "\u{202e}\u{0}", "\" OR 99=99 --", "NEAR(a b)*", "heron AND NOT", &long, &many_words]
        {
            let options = RecallOptions { thread: Some(thread), ..RecallOptions::default() };
            let results = memory.recall(&ana(), question, &options).await.unwrap();
            assert!(results.messages.len() <= 10);
            assert_eq!(results.messages.is_empty(), !question.contains("heron"), "{:.20}", question);
        }
        let zero_limit = RecallOptions { limit: 0, ..RecallOptions::default() };
        let error = memory.recall(&ana(), "heron", &zero_limit).await.unwrap_err();
        assert_eq!(error.to_string(), "invalid limit: must be at least 1");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_number_of_recall_calls_does_not_depend_on_the_thread_length() {
    let mut calls = Vec::new();
    for turns in [300, 1_200] {
        let (probe, env) = Probe::new_env();
        let thread = append_dialogue(&env.memory, &ana(), turns).await;
        probe.take_calls();
        for question in &QUESTIONS[..3] {
            recall_seqs_and_scores(&env.memory, thread, question).await;
        }
        calls.push(probe.take_calls());
    }
    // For each question, one call reads the candidates and another reads the neighbours of the best candidates.
    assert_eq!(calls[0], [("find_messages", 6)]);
    assert_eq!(calls[1], calls[0]);
}

#[tokio::test(start_paused = true)]
async fn common_words_do_not_hide_rare_words_and_can_be_searched() {
    let servers = TestEnv::on_servers().into_iter().map(|(_, env)| env);
    for env in [TestEnv::plain(), TestEnv::sqlite()].into_iter().chain(servers) {
        let (memory, thread) = (&env.memory, env.open_thread().await);
        memory.append(&ana(), thread, Draft::user("A walrus took the train to the station.")).await.unwrap();
        for _ in 0..3 {
            let talk = (0..500).map(|_| Draft::user("The train left the station.")).collect();
            memory.append_all(&ana(), thread, talk, &AppendOptions::default()).await.unwrap();
        }
        while !env.backend.search.catch_up(10_000).await.unwrap().done {}
        let options = RecallOptions { thread: Some(thread), ..RecallOptions::default() };
        let rare = memory.recall(&ana(), "Which walrus took a train from the station?", &options).await.unwrap();
        assert_eq!(rare.messages[0].message.seq, 1);
        let common = memory.recall(&ana(), "train station", &options).await.unwrap();
        assert_eq!(common.messages.len(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn ephemeral_messages_are_found_only_in_their_thread() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let ephemeral_metadata = || Map::from_iter([(EPHEMERAL.to_owned(), true.into())]);
        let regular = memory.open(&ana()).await.unwrap().thread.id;
        memory.append(&ana(), regular, Draft::user("The heron stands by the lake.")).await.unwrap();
        let open =
            OpenThread { metadata: ephemeral_metadata(), ..OpenThread::new(&ana(), memory.generate_thread_id()) };
        let ephemeral = memory.open_thread(&ana(), open).await.unwrap().thread.id;
        let content = Content { metadata: ephemeral_metadata(), ..Content::text(Role::User, "A heron, where?") };
        memory.append(&ana(), ephemeral, Draft::new(content)).await.unwrap();
        for scope in [ana(), acme()] {
            let searched = memory.search(&scope, "heron", &SearchOptions::default()).await.unwrap();
            assert_eq!(searched.hits.iter().map(|hit| hit.thread).collect::<Vec<_>>(), [regular]);
            let recalled = memory.recall(&scope, "Where is a heron?", &RecallOptions::default()).await.unwrap();
            assert_eq!(recalled.messages.iter().map(|found| found.thread).collect::<Vec<_>>(), [regular]);
        }
        let in_thread = RecallOptions { thread: Some(ephemeral), ..RecallOptions::default() };
        assert_eq!(memory.recall(&ana(), "Where is a heron?", &in_thread).await.unwrap().messages.len(), 1);
        let in_thread = SearchOptions { thread: Some(ephemeral), ..SearchOptions::default() };
        assert_eq!(memory.search(&ana(), "heron", &in_thread).await.unwrap().hits.len(), 1);
    })
    .await;
}
