use threadkeep_core::{DumpEntry, Kind, MessageQuery, OpenThread, StoreError};

use crate::conversation::Conversation;
use crate::fixtures::{ana, appending, assert_error, at, message_id, user_message};
use crate::run::TestEnv;
use crate::tasks::yield_now;

/// The number of concurrent writers.
const WRITERS: u128 = 64;
/// The number of commits of each writer.
const COMMITS: u128 = 8;

/// Returns the number of a writer's message. Each commit has two messages.
fn number(writer: u128, commit: u128, message: u128) -> u128 {
    writer * 1000 + commit * 10 + message
}

pub(super) async fn concurrent_writers_leave_no_gaps(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let writers = (0..WRITERS).map(|writer| {
        let conversation = conversation.clone();
        env.spawn(async move {
            for commit in 0..COMMITS {
                let messages = (1..=2).map(|message| user_message(number(writer, commit, message), "hello")).collect();
                let outcome = conversation.commit(&appending(messages), at(1)).await;
                assert_eq!(outcome.count, 2);
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.expect("the writer does not panic");
    }
    let positions = conversation.thread(at(2)).await.positions;
    let commits = u64::try_from(WRITERS * COMMITS).expect("a small number");
    assert_eq!((positions.seq, positions.change), (2 * commits, commits));
    let messages = conversation.messages(at(2)).await;
    let seqs: Vec<_> = messages.iter().map(|message| message.seq).collect();
    assert_eq!(seqs, (1..=2 * commits).collect::<Vec<_>>());
    for writer in 0..WRITERS {
        let expected: Vec<_> =
            (0..COMMITS).flat_map(|commit| [1, 2].map(|message| message_id(number(writer, commit, message)))).collect();
        let own: Vec<_> = messages.iter().filter(|message| expected.contains(&message.id)).collect();
        assert_eq!(
            own.iter().map(|message| message.id).collect::<Vec<_>>(),
            expected,
            "messages of one writer are not in commit order"
        );
        let are_adjacent = own.chunks(2).all(|pair| pair[0].seq + 1 == pair[1].seq);
        assert!(are_adjacent, "messages of different commits are interleaved");
    }
    store.client.catch_up_fully().await;
    assert_eq!(store.client.verify().await.expect("verifying works").findings, []);
}

pub(super) async fn threads_are_independent(env: &TestEnv<'_>) {
    let store = env.open().await;
    let writers = (0..8).map(|writer| {
        let client = store.client.clone();
        env.spawn(async move {
            let conversation = Conversation::open(&client, &ana(), writer, at(0)).await;
            for commit in 1..=10 {
                conversation.append(commit..=commit, at(1)).await;
            }
            conversation.texts(at(2)).await
        })
    });
    let expected: Vec<_> = (1..=10).map(|number| format!("message {number}")).collect();
    for texts in futures::future::join_all(writers).await {
        assert_eq!(texts.expect("the writer does not panic"), expected); // S0.14
    }
}

pub(super) async fn readers_see_whole_commits(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let writer = {
        let conversation = conversation.clone();
        env.spawn(async move {
            for commit in 0..40 {
                conversation.append(commit * 3 + 1..=commit * 3 + 3, at(1)).await;
            }
        })
    };
    let readers = (0..4).map(|_| {
        let conversation = conversation.clone();
        env.spawn(async move {
            let mut previous = 0;
            while previous < 120 {
                let page = conversation.page(&MessageQuery::newest(10), at(2)).await;
                let last = page.messages.last().map_or(0, |message| message.seq);
                assert_eq!(
                    (last, last),
                    (page.positions.seq, 3 * page.positions.change),
                    "a commit is partially visible"
                );
                assert!(last >= previous, "a later read returned an earlier state");
                let gapless = page.messages.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq);
                assert!(gapless && page.messages.len() as u64 == last.min(10));
                previous = last;
                yield_now().await;
            }
        })
    });
    for reader in futures::future::join_all(readers).await {
        reader.expect("the reader does not panic");
    }
    writer.await.expect("the writer does not panic");
}

pub(super) async fn a_deletion_stops_all_writers(env: &TestEnv<'_>) {
    let store = env.open().await;
    for round in 0..4 {
        let conversation = Conversation::open(&store.client, &ana(), round, at(0)).await;
        let writers = (0..8).map(|writer| {
            let conversation = conversation.clone();
            env.spawn(async move {
                for commit in 0..200 {
                    let append = appending(vec![user_message(number(writer, commit, 0), "hello")]);
                    match conversation.try_commit(&append, at(1)).await {
                        Ok(_) => yield_now().await,
                        Err(StoreError::NotFound(Kind::Thread)) => return true,
                        Err(error) => panic!("unexpected error of a writer: {error:?}"),
                    }
                }
                false
            })
        });
        let writers: Vec<_> = writers.collect();
        while conversation.thread(at(1)).await.positions.seq < 8 {
            yield_now().await;
        }
        store.client.delete_thread(&ana(), conversation.id, at(2)).await.expect("the thread exists");
        for writer in futures::future::join_all(writers).await {
            writer.expect("the writer does not panic");
        }
        assert!(!conversation.exists(at(3)).await, "a late commit restored the thread");
        let open = OpenThread::new(&ana(), conversation.id);
        assert_error!(store.client.open_thread(&ana(), &open, at(3)).await, StoreError::NotFound(Kind::Thread));
        let dump = store.client.dump_thread(ana().tenant_id(), conversation.id, None, 10).await;
        assert_error!(dump, StoreError::NotFound(Kind::Thread));
    }
    store.client.catch_up_fully().await;
    assert_eq!(store.client.verify().await.expect("verifying works").messages, 0);
}

pub(super) async fn dropped_writes_are_atomic(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let tasks: Vec<_> = (0..60)
        .map(|commit| {
            let conversation = conversation.clone();
            env.spawn(async move {
                let messages = (1..=3).map(|message| user_message(commit * 10 + message, "hello")).collect();
                conversation.commit(&appending(messages), at(1)).await;
            })
        })
        .collect();
    for (index, task) in tasks.iter().enumerate() {
        if index % 2 == 0 {
            task.abort();
        }
        yield_now().await;
    }
    for (index, task) in tasks.into_iter().enumerate() {
        assert!(task.await.is_ok() || index % 2 == 0);
    }
    // Dropped commits may still be running. This commit is serialised with them.
    conversation.append(9001..=9001, at(2)).await;
    let entries = conversation.entries().await;
    let seqs: Vec<_> = entries.iter().map(DumpEntry::seq).collect();
    assert_eq!(seqs, (1..=entries.len() as u64).collect::<Vec<_>>());
    let messages = conversation.messages(at(3)).await;
    let mut others: Vec<_> = messages.iter().filter(|message| message.id != message_id(9001)).collect();
    others.sort_by_key(|message| message.seq);
    assert!(others.len() >= 90 && others.len() % 3 == 0, "{} messages: a commit of three is incomplete", others.len());
    for (index, commit) in (0..60).map(|commit| (commit, [1, 2, 3].map(|message| message_id(commit * 10 + message)))) {
        let count = others.iter().filter(|message| commit.contains(&message.id)).count();
        assert!(count == 3 || (count == 0 && index % 2 == 0), "{count} of three messages of commit {index}");
    }
    assert_eq!(store.client.verify().await.expect("verifying works").findings, []);
}
