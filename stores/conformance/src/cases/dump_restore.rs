use threadkeep_core::{
    Batch, Conflict, Content, Dump, DumpEntry, Effect, Kind, Map, MessageQuery, NewMessage, OpenThread, Owner,
    RecordOwner, RecordQuery, RecordWrite, Replacement, Role, Scope, StoreError, TenantId, ThreadOrder, ThreadPatch,
    ThreadQuery, ThreadRef,
};

use super::search::query_for;
use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{
    acme, ana, app, appending, assert_error, at, batch, ben, conflict_of, message_id, note_write, put, system, tenant,
    thread_id, thread_key, user, user_id, user_message,
};
use crate::run::TestEnv;

/// Creates a thread whose history contains every kind of change.
pub(crate) async fn thread_with_history(client: &Client) -> Conversation {
    let open = OpenThread {
        title: Some("Títle".to_owned()),
        expires_at: Some(at(1_000_000)),
        ..OpenThread::new(&ana(), thread_id(1)).with_key(thread_key("slack:T1:C1"))
    };
    let conversation = Conversation::open_as(client, &ana(), &open, at(0)).await;
    conversation.append(1..=9, at(1)).await;
    let with_external_id = NewMessage { external_id: Some("x10".to_owned()), ..user_message(10, "a walrus") };
    conversation.commit(&appending(vec![with_external_id]), at(2)).await;
    let content = Content::text(Role::Assistant, "edited");
    let replace = vec![Replacement { id: message_id(5), content }];
    conversation.commit(&Batch { replace, ..batch("replace") }, at(3)).await;
    conversation.commit(&Batch { erase: vec![message_id(6)], ..batch("erase") }, at(4)).await;
    conversation.commit(&Batch { trim_below: Some(3), ..batch("trim") }, at(5)).await;
    let puts = vec![put(app("notes"), "k", r#"{"odd" :  [1.50]}"#), put(system("run"), "journal", "[]")];
    conversation.commit(&Batch { put: puts, ..batch("put") }, at(6)).await;
    let metadata: Map = serde_json::from_str(r#"{"z": 1, "a": 2}"#).expect("valid JSON");
    let patch = ThreadPatch { metadata: Some(metadata), ..ThreadPatch::default() };
    conversation.commit(&Batch { patch, ..batch("patch") }, at(7)).await;
    conversation
}

pub(super) async fn restore(client: &Client, chunks: &[Dump]) {
    for chunk in chunks {
        client.restore_thread(acme().tenant_id(), thread_id(1), chunk).await.expect("restoring works");
    }
}

pub(super) async fn a_thread_is_restored_verbatim(env: &TestEnv<'_>) {
    let from = env.open().await;
    let source = thread_with_history(&from.client).await;
    for chunk_size in [1, 3, 8, 1000] {
        let to = env.open().await;
        let chunks = source.dump(chunk_size).await;
        assert_eq!(chunks.len(), 8_usize.div_ceil(chunk_size), "eight entries in chunks of {chunk_size}");
        assert!(chunks.iter().all(|dump| dump.entries.len() <= chunk_size));
        let effects = chunks[0].commits.iter().flat_map(|commit| &commit.effects);
        assert_eq!(effects.filter(|effect| matches!(effect, Effect::Appended { .. })).count(), 0);
        assert!(chunks[1..].iter().all(|dump| dump.thread.is_none() && dump.commits.is_empty()));
        restore(&to.client, &chunks).await;
        let target = Conversation { client: to.client.clone(), ..source.clone() };
        for size in [chunk_size, 1000] {
            assert_eq!(target.dump(size).await, source.dump(size).await);
        }
        assert_eq!(target.thread(at(9)).await, source.thread(at(9)).await);
        assert_eq!(target.messages(at(9)).await, source.messages(at(9)).await);
        assert_eq!(target.changes(0, at(9)).await, source.changes(0, at(9)).await);
        let records = RecordQuery::of(RecordOwner::Thread(source.id));
        let moved = to.client.list_records(&ana(), &records, at(9)).await.expect("reading works");
        assert_eq!(moved, from.client.list_records(&ana(), &records, at(9)).await.expect("reading works"));
        assert_usable(&target).await;
    }
}

/// Asserts that a restored thread accepts commits like the original.
async fn assert_usable(target: &Conversation) {
    let replayed = target.commit(&Batch { erase: vec![message_id(6)], ..batch("erase") }, at(10)).await;
    assert_eq!((replayed.change, replayed.replayed), (4, true));
    let taken = target.try_commit(&appending(vec![user_message(6, "six again")]), at(10)).await;
    assert_eq!(conflict_of(taken), Conflict::MessageId { id: message_id(6), seq: 6 });
    let with_external_id = NewMessage { external_id: Some("x10".to_owned()), ..user_message(20, "twenty") };
    assert_eq!(
        conflict_of(target.try_commit(&appending(vec![with_external_id]), at(10)).await),
        Conflict::ExternalId { seq: 10 }
    );
    let outcome = target.commit(&appending(vec![user_message(11, "eleven")]), at(11)).await;
    assert_eq!((outcome.change, outcome.first_seq), (8, 11));
    let key = ThreadRef::Key(Owner::User(user_id("ana")), thread_key("slack:T1:C1"));
    let found = target.client.find_thread(&ana(), &key, at(12)).await.expect("reading works");
    assert_eq!(found.map(|thread| thread.id), Some(target.id));
    target.client.catch_up_fully().await;
    let report = target.client.verify().await.expect("verifying works");
    assert_eq!((report.threads, report.messages, report.findings), (1, 8, Vec::new()));
}

pub(super) async fn a_restored_thread_is_searchable(env: &TestEnv<'_>) {
    let (from, to) = (env.open().await, env.open().await);
    let source = thread_with_history(&from.client).await;
    restore(&to.client, &source.dump(3).await).await;
    to.client.catch_up_fully().await;
    let answer = to.client.search(&ana(), &query_for("walrus"), at(9)).await.expect("searching works");
    let behind = answer.unindexed.iter().any(|behind| behind.indexed_seq < 10);
    assert!(behind || answer.hits.iter().any(|hit| hit.seq == 10));
    assert_eq!(answer.frequencies, [1]);
}

pub(super) async fn an_unfinished_restore_is_invisible(env: &TestEnv<'_>) {
    let (from, to) = (env.open().await, env.open().await);
    let source = thread_with_history(&from.client).await;
    let chunks = source.dump(3).await;
    restore(&to.client, &chunks[..chunks.len() - 1]).await;
    let target = Conversation { client: to.client.clone(), ..source.clone() };
    assert!(!target.exists(at(9)).await);
    let key = ThreadRef::Key(Owner::User(user_id("ana")), thread_key("slack:T1:C1"));
    assert!(to.client.find_thread(&ana(), &key, at(9)).await.expect("reading works").is_none());
    let page = to.client.list_threads(&acme(), &ThreadQuery::new(ThreadOrder::Created, 10), at(9)).await;
    assert_eq!(page.expect("reading works").threads, []);
    let messages = to.client.list_messages(&ana(), source.id, &MessageQuery::newest(10), at(9)).await;
    assert_error!(messages, StoreError::NotFound(Kind::Thread));
    assert_error!(
        target.try_commit(&appending(vec![user_message(11, "late")]), at(9)).await,
        StoreError::NotFound(Kind::Thread)
    );
    let records = RecordQuery::of(RecordOwner::Thread(source.id));
    assert_eq!(to.client.list_records(&ana(), &records, at(9)).await.expect("reading works"), []);
    to.client.catch_up_fully().await;
    let found = to.client.search(&acme(), &query_for("message walrus"), at(9)).await.expect("searching works");
    assert_eq!((found.hits, found.unindexed), (Vec::new(), Vec::new()));
    let dump = to.client.dump_thread(acme().tenant_id(), source.id, None, 10).await;
    assert_error!(dump, StoreError::NotFound(Kind::Thread));
    assert_eq!(to.client.verify().await.expect("verifying works").findings, []);

    // A second attempt starts over and discards the data of the first.
    restore(&to.client, &chunks).await;
    assert_eq!(target.dump(3).await, chunks);
}

pub(super) async fn a_first_chunk_discards_an_unfinished_restore(env: &TestEnv<'_>) {
    let (from, other, to) = (env.open().await, env.open().await, env.open().await);
    let source = thread_with_history(&from.client).await;
    let larger = Conversation::open(&other.client, &ben(), 1, at(0)).await;
    larger.append(1..=30, at(1)).await;
    let stray = Batch { put: vec![put(app("notes"), "stray", "1")], ..batch("stray") };
    larger.commit(&stray, at(1)).await;
    restore(&to.client, &larger.dump(25).await[..1]).await;
    let chunks = source.dump(4).await;
    restore(&to.client, &chunks).await;
    assert_eq!(Conversation { client: to.client.clone(), ..source }.dump(4).await, chunks);
    assert_eq!(to.client.verify().await.expect("verifying works").findings, []);
}

pub(super) async fn restoring_does_not_overwrite_a_thread(env: &TestEnv<'_>) {
    let (from, to) = (env.open().await, env.open().await);
    let source = thread_with_history(&from.client).await;
    let chunks = source.dump(1000).await;
    let existing = Conversation::open(&to.client, &ben(), 1, at(0)).await;
    existing.append(1..=1, at(1)).await;
    let tenant_id = acme().tenant_id().clone();
    let answer = to.client.restore_thread(&tenant_id, thread_id(1), &chunks[0]).await;
    assert_eq!(conflict_of(answer), Conflict::Thread);
    assert_eq!(existing.texts(at(2)).await, ["message 1"]);
    // A thread with the same key is not overwritten either.
    let same_key = OpenThread::new(&ana(), thread_id(2)).with_key(thread_key("slack:T1:C1"));
    let to = env.open().await;
    let same_key = Conversation::open_as(&to.client, &ana(), &same_key, at(0)).await;
    let answer = to.client.restore_thread(&tenant_id, thread_id(1), &chunks[0]).await;
    assert_eq!(conflict_of(answer), Conflict::Thread);
    assert!(same_key.exists(at(1)).await);
    // A thread cannot be restored twice.
    let to = env.open().await;
    restore(&to.client, &chunks).await;
    let answer = to.client.restore_thread(&tenant_id, thread_id(1), &chunks[0]).await;
    assert_eq!(conflict_of(answer), Conflict::Thread);
    // A restore cannot start with a later chunk.
    let middle = source.dump(3).await[1].clone();
    let to = env.open().await;
    let answer = to.client.restore_thread(&tenant_id, thread_id(1), &middle).await;
    assert_error!(answer, StoreError::Invalid { .. });
}

pub(super) async fn records_are_restored_verbatim(env: &TestEnv<'_>) {
    let (from, to) = (env.open().await, env.open().await);
    let ana_owner = RecordOwner::User(user_id("ana"));
    for round in 0..5 {
        let write = note_write(ana_owner.clone(), "k", &format!("{round}"));
        from.client.write_record(&ana(), &write, at(1)).await.expect("writing works");
    }
    let write = RecordWrite { expires_at: Some(at(99)), ..note_write(RecordOwner::Tenant, "t", r#"{"a" : 1}"#) };
    from.client.write_record(&acme(), &write, at(1)).await.expect("writing works");
    let moved = note_write(ana_owner.clone(), "k", "0");
    to.client.write_record(&ana(), &moved, at(1)).await.expect("writing works");
    let mut versions = Vec::new();
    for owner in [ana_owner.clone(), RecordOwner::Tenant] {
        let query = RecordQuery::of(owner.clone());
        let records = from.client.list_records(&acme(), &query, at(2)).await.expect("reading works");
        for record in &records {
            let restored = to.client.restore_record(acme().tenant_id(), &owner, record).await;
            restored.expect("restoring works");
            versions.push(record.version);
        }
        assert_eq!(to.client.list_records(&acme(), &query, at(2)).await.expect("reading works"), records);
    }
    let next = to.client.write_record(&ana(), &note_write(ana_owner, "k", "9"), at(3)).await.expect("writing works");
    assert!(!versions.contains(&next.version) && next.version > versions[0], "a version was reused after the restore");
}

pub(super) async fn tenants_and_owners_are_listed(env: &TestEnv<'_>) {
    let store = env.open().await;
    let client = &store.client;
    assert_eq!(client.list_tenants(None, 10).await.expect("reading works"), []);
    for (number, scope) in (1..).zip([ben(), ana(), acme(), user("globex", "zoë"), user("Acme", "ana")]) {
        Conversation::open(client, &scope, number, at(0)).await;
    }
    let cleo_owner = RecordOwner::User(user_id("cleo"));
    client.write_record(&acme(), &note_write(cleo_owner, "k", "1"), at(1)).await.expect("writing works");
    // The internal tenant is listed, although clients cannot use its name.
    let internal = TenantId::internal();
    Conversation::open(client, &Scope::Tenant(internal.clone()), 6, at(0)).await;
    let names = [tenant("Acme"), tenant("acme"), tenant("globex"), internal];
    assert_eq!(client.list_tenants(None, 10).await.expect("reading works"), names);
    assert_eq!(client.list_tenants(None, 2).await.expect("reading works"), names[..2]);
    assert_eq!(client.list_tenants(Some(&names[0]), 10).await.expect("reading works"), names[1..]);
    assert_eq!(client.list_tenants(Some(&names[3]), 10).await.expect("reading works"), []);

    let user = |name| Owner::User(user_id(name));
    let owners = [Owner::Tenant, user("ana"), user("ben"), user("cleo")];
    assert_eq!(client.list_owners(&names[1], None, 10).await.expect("reading works"), owners);
    for (index, owner) in owners.iter().enumerate() {
        let rest = client.list_owners(&names[1], Some(owner), 2).await.expect("reading works");
        assert_eq!(rest, owners[index + 1..].iter().take(2).cloned().collect::<Vec<_>>());
    }
    assert_eq!(client.list_owners(&names[2], None, 10).await.expect("reading works"), [Owner::Tenant, user("zoë")]);
    assert_eq!(client.list_owners(&tenant("unknown"), None, 10).await.expect("reading works"), []);
}

pub(super) async fn stored_bodies_are_restored_unchanged(env: &TestEnv<'_>) {
    let (from, to) = (env.open().await, env.open().await);
    let conversation = Conversation::open(&from.client, &ana(), 1, at(0)).await;
    conversation.commit(&appending(vec![user_message(1, "one")]), at(1)).await;
    let mut chunks = conversation.dump(10).await;
    for entry in &mut chunks[0].entries {
        if let DumpEntry::Message { body, .. } = entry {
            // This version would write the body differently.
            *body = r#"1u{ "parts":[{"text":"one"}], "later":[1] }"#.to_owned();
        }
    }
    restore(&to.client, &chunks).await;
    let target = Conversation { client: to.client.clone(), ..conversation };
    assert_eq!(target.dump(10).await, chunks);
    assert_eq!(target.texts(at(2)).await, ["one"]);
}
