use threadkeep_core::{
    Batch, DrivenThread, OpenThread, Owner, PutRecord, RecordName, RecordOwner, RecordWrite, SweepReport, Timestamp,
};

use super::dump_restore::eventful;
use crate::client::Client;
use crate::conversation::Conversation;
use crate::given::{EIGHT_DAYS, acme, ana, app, at, batch, note, put, system, tenant, thread_id, user, user_id};
use crate::run::Stage;

pub(super) async fn a_sweep_tells_what_it_removed(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let kept = Conversation::open(client, &ana(), 1, at(0)).await;
    for number in 1..=3 {
        kept.say(number..=number, at(1)).await;
    }
    let deleted = Conversation::open(client, &ana(), 2, at(0)).await;
    client.delete_thread(&ana(), deleted.id, at(1)).await.expect("the thread is there");
    for number in 3..=4 {
        let open = OpenThread { expires_at: Some(at(10)), ..OpenThread::new(&ana(), thread_id(number)) };
        Conversation::open_as(client, &ana(), &open, at(0)).await;
    }
    let of_ana = RecordOwner::User(user_id("ana"));
    let write = RecordWrite { expires_at: Some(at(10)), ..note(of_ana, "k", "1") };
    client.write_record(&ana(), &write, at(1)).await.expect("writing works");
    let counts = async |second| {
        let report = client.sweep(at(second)).await.expect("sweeping works");
        // How much was left to be cleaned up at once is a store's own affair.
        SweepReport { leftover_messages: 0, ..report }
    };
    assert_eq!(counts(5).await, SweepReport::default());
    let expired = SweepReport { expired_threads: 2, expired_records: 1, ..SweepReport::default() };
    assert_eq!(counts(10).await, expired);
    assert_eq!(counts(10).await, SweepReport::default());
    let old = SweepReport { commit_records: 3, deleted_ids: 1, ..SweepReport::default() };
    assert_eq!(counts(EIGHT_DAYS).await, old);
    assert_eq!(counts(EIGHT_DAYS).await, SweepReport::default());
    assert_eq!(kept.texts(at(EIGHT_DAYS)).await.len(), 3, "a sweep removes no message of a living thread");
    assert_eq!(kept.thread(at(EIGHT_DAYS)).await.positions.change, 3);
}

pub(super) async fn a_healthy_store_verifies_clean(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    assert_eq!(client.verify().await.expect("verifying works"), threadkeep_core::VerifyReport::default());
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let other = Conversation::open(client, &user("globex", "ana"), 1, at(0)).await;
    conversation.say(1..=5, at(1)).await;
    other.say(1..=7, at(1)).await;
    conversation.commit(&Batch { put: vec![put(app("notes"), "k", "1")], ..batch("put") }, at(2)).await;
    client.write_record(&acme(), &note(RecordOwner::Tenant, "k", "1"), at(3)).await.expect("writing works");
    for _ in 0..2 {
        let report = client.verify().await.expect("verifying works");
        assert_eq!((report.tenants, report.threads, report.messages, report.records), (2, 2, 12, 2));
        assert_eq!(report.findings, []);
        client.repair(at(4)).await.expect("repairing works");
        client.catch_up_fully().await;
    }
    assert_eq!((conversation.texts(at(5)).await.len(), other.texts(at(5)).await.len()), (5, 7));
}

pub(super) async fn a_repair_changes_no_truth(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let conversation = eventful(&subject.client).await;
    let (dump, thread) = (conversation.dump(5).await, conversation.thread(at(9)).await);
    subject.client.repair(at(9)).await.expect("repairing works");
    subject.client.catch_up_fully().await;
    assert_eq!((conversation.dump(5).await, conversation.thread(at(9)).await), (dump, thread));
    let found = subject.client.search(&ana(), &super::search::query_for("walrus"), at(9)).await;
    assert_eq!(found.expect("searching works").frequencies, [1]);
}

/// The record that says who drives a thread, as a commit puts it.
fn driver(value: &str) -> PutRecord {
    let RecordName { namespace, key } = RecordName::driver();
    put(namespace, &key, value)
}

pub(super) async fn driven_threads_are_found_wherever_they_are(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    let zoe = user("globex", "zoë");
    let shared = OpenThread::new(&acme(), thread_id(4));
    let conversations = [
        Conversation::open(client, &zoe, 1, at(0)).await,
        Conversation::open(client, &ana(), 3, at(0)).await,
        Conversation::open(client, &ana(), 2, at(0)).await,
        Conversation::open_as(client, &acme(), &shared, at(0)).await,
        // One that expires, one that is not driven, and one with records of nearly the same name.
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
        let begun = Batch { put: vec![driver("1")], ..batch(&format!("begin {number}")) };
        conversation.commit(&begun, at(1)).await;
    }
    let others =
        vec![put(app("run"), "active", "1"), put(system("run"), "waiting/1", "1"), put(system("ru"), "active", "1")];
    conversations[6].commit(&Batch { put: others, ..batch("others") }, at(1)).await;
    let (all, tenants) = (listed(client, 100, at(2)).await, ["acme", "acme", "acme", "acme", "globex"].map(tenant));
    assert_eq!(all.iter().map(|driven| driven.tenant.clone()).collect::<Vec<_>>(), tenants);
    assert_eq!(all.iter().map(|driven| driven.thread).collect::<Vec<_>>(), [2, 3, 4, 5, 1].map(thread_id));
    let owner = |name: &str| Owner::User(user_id(name));
    let owners = [owner("ana"), owner("ana"), Owner::Tenant, owner("ana"), owner("zoë")];
    assert_eq!(all.iter().map(|driven| driven.owner.clone()).collect::<Vec<_>>(), owners);
    assert_eq!(listed(client, 2, at(2)).await, all, "in pages");
    assert_eq!(listed(client, 100, at(10)).await.len(), 4, "what has expired is left out");

    let later = Batch { put: vec![driver("2")], ..batch("later") };
    let version = conversations[2].commit(&later, at(3)).await.change;
    let let_go = Batch { delete: vec![RecordName::driver()], ..batch("end") };
    conversations[1].commit(&let_go, at(3)).await;
    client.delete_thread(&zoe, conversations[0].id, at(3)).await.expect("the thread is there");
    let left = listed(client, 100, at(4)).await;
    assert_eq!(left.iter().map(|driven| driven.thread).collect::<Vec<_>>(), [2, 4, 5].map(thread_id));
    assert_eq!((left[0].record.value.as_str(), left[0].record.version), ("2", version));
    assert_eq!(left[0].record.key, RecordName::driver().key);
}

/// All driven threads, in pages.
async fn listed(client: &Client, limit: usize, now: Timestamp) -> Vec<DrivenThread> {
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
