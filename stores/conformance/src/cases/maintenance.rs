use threadkeep_core::{
    Batch, DrivenThread, OpenThread, Owner, PutRecord, RecordName, RecordOwner, RecordWrite, SweepReport, Timestamp,
};

use super::dump_restore::thread_with_history;
use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{
    EIGHT_DAYS, acme, ana, app, at, batch, note_write, put, system, tenant, thread_id, user, user_id,
};
use crate::run::TestEnv;

pub(super) async fn a_sweep_reports_what_it_removed(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let kept = Conversation::open(client, &ana(), 1, at(0)).await;
    for number in 1..=3 {
        kept.append(number..=number, at(1)).await;
    }
    let deleted = Conversation::open(client, &ana(), 2, at(0)).await;
    client.delete_thread(&ana(), deleted.id, at(1)).await.expect("the thread exists");
    for number in 3..=4 {
        let open = OpenThread { expires_at: Some(at(10)), ..OpenThread::new(&ana(), thread_id(number)) };
        Conversation::open_as(client, &ana(), &open, at(0)).await;
    }
    let ana_owner = RecordOwner::User(user_id("ana"));
    let write = RecordWrite { expires_at: Some(at(10)), ..note_write(ana_owner, "k", "1") };
    client.write_record(&ana(), &write, at(1)).await.expect("writing works");
    let counts = async |second| {
        let report = client.sweep(at(second)).await.expect("sweeping works");
        // The number of leftover messages depends on the store.
        SweepReport { leftover_messages: 0, ..report }
    };
    assert_eq!(counts(5).await, SweepReport::default());
    let expired = SweepReport { expired_threads: 2, expired_records: 1, ..SweepReport::default() };
    assert_eq!(counts(10).await, expired);
    assert_eq!(counts(10).await, SweepReport::default());
    let old = SweepReport { commit_records: 3, deleted_ids: 1, ..SweepReport::default() };
    assert_eq!(counts(EIGHT_DAYS).await, old);
    assert_eq!(counts(EIGHT_DAYS).await, SweepReport::default());
    assert_eq!(kept.texts(at(EIGHT_DAYS)).await.len(), 3, "a sweep removed messages of a live thread");
    assert_eq!(kept.thread(at(EIGHT_DAYS)).await.positions.change, 3);
}

pub(super) async fn a_healthy_store_has_no_findings(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    assert_eq!(client.verify().await.expect("verifying works"), threadkeep_core::VerifyReport::default());
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let other = Conversation::open(client, &user("globex", "ana"), 1, at(0)).await;
    conversation.append(1..=5, at(1)).await;
    other.append(1..=7, at(1)).await;
    conversation.commit(&Batch { put: vec![put(app("notes"), "k", "1")], ..batch("put") }, at(2)).await;
    client.write_record(&acme(), &note_write(RecordOwner::Tenant, "k", "1"), at(3)).await.expect("writing works");
    for _ in 0..2 {
        let report = client.verify().await.expect("verifying works");
        assert_eq!((report.tenants, report.threads, report.messages, report.records), (2, 2, 12, 2));
        assert_eq!(report.findings, []);
        client.repair(at(4)).await.expect("repairing works");
        client.catch_up_fully().await;
    }
    assert_eq!((conversation.texts(at(5)).await.len(), other.texts(at(5)).await.len()), (5, 7));
}

pub(super) async fn a_repair_does_not_change_data(env: &TestEnv<'_>) {
    let store = env.open().await;
    let conversation = thread_with_history(&store.client).await;
    let (dump, thread) = (conversation.dump(5).await, conversation.thread(at(9)).await);
    store.client.repair(at(9)).await.expect("repairing works");
    store.client.catch_up_fully().await;
    assert_eq!((conversation.dump(5).await, conversation.thread(at(9)).await), (dump, thread));
    let found = store.client.search(&ana(), &super::search::query_for("walrus"), at(9)).await;
    assert_eq!(found.expect("searching works").frequencies, [1]);
}

/// Returns the record that names the driver of a thread.
fn driver(value: &str) -> PutRecord {
    let RecordName { namespace, key } = RecordName::driver();
    put(namespace, &key, value)
}

pub(super) async fn driven_threads_are_listed_across_tenants(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    let zoe = user("globex", "zoë");
    let shared = OpenThread::new(&acme(), thread_id(4));
    let conversations = [
        Conversation::open(client, &zoe, 1, at(0)).await,
        Conversation::open(client, &ana(), 3, at(0)).await,
        Conversation::open(client, &ana(), 2, at(0)).await,
        Conversation::open_as(client, &acme(), &shared, at(0)).await,
        // A thread that expires, a thread that is not driven, and a thread whose records have similar names.
        Conversation::open_as(
            client,
            &ana(),
            &OpenThread { expires_at: Some(at(10)), ..OpenThread::new(&ana(), thread_id(5)) },
            at(0),
        )
        .await,
        Conversation::open(client, &ana(), 6, at(0)).await,
        Conversation::open(client, &ana(), 7, at(0)).await,
    ];
    for (number, conversation) in conversations.iter().enumerate().take(5) {
        let start = Batch { put: vec![driver("1")], ..batch(&format!("start {number}")) };
        conversation.commit(&start, at(1)).await;
    }
    let others =
        vec![put(app("run"), "active", "1"), put(system("run"), "waiting/1", "1"), put(system("ru"), "active", "1")];
    conversations[6].commit(&Batch { put: others, ..batch("others") }, at(1)).await;
    let (all, tenants) = (list_all(client, 100, at(2)).await, ["acme", "acme", "acme", "acme", "globex"].map(tenant));
    assert_eq!(all.iter().map(|driven| driven.tenant.clone()).collect::<Vec<_>>(), tenants);
    assert_eq!(all.iter().map(|driven| driven.thread).collect::<Vec<_>>(), [2, 3, 4, 5, 1].map(thread_id));
    let owner = |name: &str| Owner::User(user_id(name));
    let owners = [owner("ana"), owner("ana"), Owner::Tenant, owner("ana"), owner("zoë")];
    assert_eq!(all.iter().map(|driven| driven.owner.clone()).collect::<Vec<_>>(), owners);
    assert_eq!(list_all(client, 2, at(2)).await, all, "in pages");
    assert_eq!(list_all(client, 100, at(10)).await.len(), 4, "an expired thread is listed");

    let later = Batch { put: vec![driver("2")], ..batch("later") };
    let version = conversations[2].commit(&later, at(3)).await.change;
    let release = Batch { delete: vec![RecordName::driver()], ..batch("release") };
    conversations[1].commit(&release, at(3)).await;
    client.delete_thread(&zoe, conversations[0].id, at(3)).await.expect("the thread exists");
    let remaining = list_all(client, 100, at(4)).await;
    assert_eq!(remaining.iter().map(|driven| driven.thread).collect::<Vec<_>>(), [2, 4, 5].map(thread_id));
    assert_eq!((remaining[0].record.value.as_str(), remaining[0].record.version), ("2", version));
    assert_eq!(remaining[0].record.key, RecordName::driver().key);
}

/// Lists all driven threads page by page.
async fn list_all(client: &Client, limit: usize, now: Timestamp) -> Vec<DrivenThread> {
    let mut all: Vec<DrivenThread> = Vec::new();
    loop {
        let page = client.list_driven_threads(all.last(), limit, now).await.expect("reading works");
        let is_last = page.len() < limit;
        all.extend(page);
        if is_last {
            return all;
        }
    }
}
