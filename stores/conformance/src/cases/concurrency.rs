use threadkeep_core::{DumpEntry, Kind, MessageQuery, OpenThread, StoreError};

use crate::conversation::Conversation;
use crate::given::{adds, ana, assert_error, at, message_id, says};
use crate::run::Stage;

/// So many writers at once.
const WRITERS: u128 = 64;
/// So many commits by each.
const COMMITS: u128 = 8;

/// The number of a writer's message: two in each commit.
fn number(writer: u128, commit: u128, message: u128) -> u128 {
    writer * 1000 + commit * 10 + message
}

pub(super) async fn writers_leave_no_gap(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let writers = (0..WRITERS).map(|writer| {
        let conversation = conversation.clone();
        tokio::spawn(async move {
            for commit in 0..COMMITS {
                let messages = (1..=2).map(|message| says(number(writer, commit, message), "hello")).collect();
                let outcome = conversation.commit(&adds(messages), at(1)).await;
                assert_eq!(outcome.count, 2);
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.expect("the writer ends");
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
        assert_eq!(own.iter().map(|message| message.id).collect::<Vec<_>>(), expected, "a writer's order is not kept");
        let pairs = own.chunks(2).all(|pair| pair[0].seq + 1 == pair[1].seq);
        assert!(pairs, "another commit's messages stand between those of one");
    }
    subject.client.catch_up_fully().await;
    assert_eq!(subject.client.verify().await.expect("verifying works").findings, []);
}

pub(super) async fn threads_do_not_wait_for_or_mix_with_each_other(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let writers = (0..8).map(|writer| {
        let client = subject.client.clone();
        tokio::spawn(async move {
            let conversation = Conversation::open(&client, &ana(), writer, at(0)).await;
            for commit in 1..=10 {
                conversation.say(commit..=commit, at(1)).await;
            }
            conversation.texts(at(2)).await
        })
    });
    let expected: Vec<_> = (1..=10).map(|number| format!("message {number}")).collect();
    for texts in futures::future::join_all(writers).await {
        assert_eq!(texts.expect("the writer ends"), expected); // S0.14
    }
}

pub(super) async fn readers_see_whole_commits(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let writer = {
        let conversation = conversation.clone();
        tokio::spawn(async move {
            for commit in 0..40 {
                conversation.say(commit * 3 + 1..=commit * 3 + 3, at(1)).await;
            }
        })
    };
    let readers = (0..4).map(|_| {
        let conversation = conversation.clone();
        tokio::spawn(async move {
            let mut seen = 0;
            while seen < 120 {
                let page = conversation.page(&MessageQuery::newest(10), at(2)).await;
                let last = page.messages.last().map_or(0, |message| message.seq);
                assert_eq!((last, last), (page.positions.seq, 3 * page.positions.change), "a part of a commit is seen");
                assert!(last >= seen, "time ran backwards");
                let gapless = page.messages.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq);
                assert!(gapless && page.messages.len() as u64 == last.min(10));
                seen = last;
                tokio::task::yield_now().await;
            }
        })
    });
    for reader in futures::future::join_all(readers).await {
        reader.expect("the reader ends");
    }
    writer.await.expect("the writer ends");
}

pub(super) async fn a_deletion_ends_all_writing(stage: &Stage<'_>) {
    let subject = stage.open().await;
    for round in 0..4 {
        let conversation = Conversation::open(&subject.client, &ana(), round, at(0)).await;
        let writers = (0..8).map(|writer| {
            let conversation = conversation.clone();
            tokio::spawn(async move {
                for commit in 0..200 {
                    let said = adds(vec![says(number(writer, commit, 0), "hello")]);
                    match conversation.try_commit(&said, at(1)).await {
                        Ok(_) => tokio::task::yield_now().await,
                        Err(StoreError::NotFound(Kind::Thread)) => return true,
                        Err(error) => panic!("a writer met {error:?}"),
                    }
                }
                false
            })
        });
        let writers: Vec<_> = writers.collect();
        while conversation.thread(at(1)).await.positions.seq < 8 {
            tokio::task::yield_now().await;
        }
        subject.client.delete_thread(&ana(), conversation.id, at(2)).await.expect("the thread is there");
        for writer in futures::future::join_all(writers).await {
            writer.expect("the writer ends");
        }
        assert!(!conversation.is_there(at(3)).await, "a late commit brought the thread back");
        let open = OpenThread::new(&ana(), conversation.id);
        assert_error!(subject.client.open_thread(&ana(), &open, at(3)).await, StoreError::NotFound(Kind::Thread));
        let dump = subject.client.dump_thread(ana().tenant_id(), conversation.id, None, 10).await;
        assert_error!(dump, StoreError::NotFound(Kind::Thread));
    }
    subject.client.catch_up_fully().await;
    assert_eq!(subject.client.verify().await.expect("verifying works").messages, 0);
}

pub(super) async fn dropped_writes_are_done_or_not_done(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = Conversation::open(&subject.client, &ana(), 1, at(0)).await;
    let tasks: Vec<_> = (0..60)
        .map(|commit| {
            let conversation = conversation.clone();
            tokio::spawn(async move {
                let messages = (1..=3).map(|message| says(commit * 10 + message, "hello")).collect();
                conversation.commit(&adds(messages), at(1)).await;
            })
        })
        .collect();
    for (place, task) in tasks.iter().enumerate() {
        if place % 2 == 0 {
            task.abort();
        }
        tokio::task::yield_now().await;
    }
    for (place, task) in tasks.into_iter().enumerate() {
        assert!(task.await.is_ok() || place % 2 == 0);
    }
    // What was dropped may still be under way; a commit of our own comes after it, or both are whole.
    conversation.say(9001..=9001, at(2)).await;
    let entries = conversation.entries().await;
    let seqs: Vec<_> = entries.iter().map(DumpEntry::seq).collect();
    assert_eq!(seqs, (1..=entries.len() as u64).collect::<Vec<_>>());
    let messages = conversation.messages(at(3)).await;
    let mut others: Vec<_> = messages.iter().filter(|message| message.id != message_id(9001)).collect();
    others.sort_by_key(|message| message.seq);
    assert!(others.len() >= 90 && others.len() % 3 == 0, "{} messages of commits of three", others.len());
    for (place, commit) in (0..60).map(|commit| (commit, [1, 2, 3].map(|message| message_id(commit * 10 + message)))) {
        let there = others.iter().filter(|message| commit.contains(&message.id)).count();
        assert!(there == 3 || (there == 0 && place % 2 == 0), "{there} messages of a commit of three");
    }
    assert_eq!(subject.client.verify().await.expect("verifying works").findings, []);
}
