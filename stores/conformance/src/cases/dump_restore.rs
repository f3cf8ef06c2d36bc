use threadkeep_core::{
    Batch, Conflict, Content, Dump, DumpEntry, Effect, Kind, Map, MessageQuery, NewMessage, OpenThread, Owner,
    RecordOwner, RecordQuery, RecordWrite, Replacement, Role, Scope, StoreError, TenantId, ThreadName, ThreadOrder,
    ThreadPatch, ThreadQuery,
};

use super::search::query_for;
use crate::client::Client;
use crate::conversation::Conversation;
use crate::given::{
    acme, adds, ana, app, assert_error, at, batch, ben, conflict_of, message_id, note, put, says, system, tenant,
    thread_id, thread_key, user, user_id,
};
use crate::run::Stage;

/// A thread in which everything has happened that can happen to one.
pub(crate) async fn eventful(client: &Client) -> Conversation {
    let open = OpenThread {
        title: Some("Títle".to_owned()),
        expires_at: Some(at(1_000_000)),
        ..OpenThread::new(&ana(), thread_id(1)).with_key(thread_key("slack:T1:C1"))
    };
    let conversation = Conversation::open_as(client, &ana(), &open, at(0)).await;
    conversation.say(1..=9, at(1)).await;
    let called = NewMessage { external_id: Some("x10".to_owned()), ..says(10, "a walrus") };
    conversation.commit(&adds(vec![called]), at(2)).await;
    let content = Content::text(Role::Assistant, "anew");
    let replace = vec![Replacement { id: message_id(5), content }];
    conversation.commit(&Batch { replace, ..batch("replace") }, at(3)).await;
    conversation.commit(&Batch { erase: vec![message_id(6)], ..batch("erase") }, at(4)).await;
    conversation.commit(&Batch { trim_below: Some(3), ..batch("trim") }, at(5)).await;
    let puts = vec![put(app("notes"), "k", r#"{"odd" :  [1.50]}"#), put(system("run"), "journal", "[]")];
    conversation.commit(&Batch { put: puts, ..batch("put") }, at(6)).await;
    let metadata: Map = serde_json::from_str(r#"{"z": 1, "a": 2}"#).expect("the cases write JSON well");
    let patch = ThreadPatch { metadata: Some(metadata), ..ThreadPatch::default() };
    conversation.commit(&Batch { patch, ..batch("patch") }, at(7)).await;
    conversation
}

async fn restore(client: &Client, chunks: &[Dump]) {
    for chunk in chunks {
        client.restore_thread(acme().tenant_id(), thread_id(1), chunk).await.expect("restoring works");
    }
}

pub(super) async fn a_thread_moves_verbatim(stage: &Stage<'_>) {
    let from = stage.open().await;
    let source = eventful(&from.client).await;
    for chunk in [1, 3, 8, 1000] {
        let to = stage.open().await;
        let chunks = source.dump(chunk).await;
        assert_eq!(chunks.len(), 8_usize.div_ceil(chunk), "eight entries in chunks of {chunk}");
        assert!(chunks.iter().all(|dump| dump.entries.len() <= chunk));
        let effects = chunks[0].commits.iter().flat_map(|commit| &commit.effects);
        assert_eq!(effects.filter(|effect| matches!(effect, Effect::Appended { .. })).count(), 0);
        assert!(chunks[1..].iter().all(|dump| dump.thread.is_none() && dump.commits.is_empty()));
        restore(&to.client, &chunks).await;
        let target = Conversation { client: to.client.clone(), ..source.clone() };
        for size in [chunk, 1000] {
            assert_eq!(target.dump(size).await, source.dump(size).await);
        }
        assert_eq!(target.thread(at(9)).await, source.thread(at(9)).await);
        assert_eq!(target.messages(at(9)).await, source.messages(at(9)).await);
        assert_eq!(target.changes(0, at(9)).await, source.changes(0, at(9)).await);
        let records = RecordQuery::of(RecordOwner::Thread(source.id));
        let moved = to.client.list_records(&ana(), &records, at(9)).await.expect("reading works");
        assert_eq!(moved, from.client.list_records(&ana(), &records, at(9)).await.expect("reading works"));
        assert_goes_on(&target).await;
    }
}

/// A restored thread takes commits as if it had never moved.
async fn assert_goes_on(target: &Conversation) {
    let replayed = target.commit(&Batch { erase: vec![message_id(6)], ..batch("erase") }, at(10)).await;
    assert_eq!((replayed.change, replayed.replayed), (4, true));
    let taken = target.try_commit(&adds(vec![says(6, "six again")]), at(10)).await;
    assert_eq!(conflict_of(taken), Conflict::MessageId { id: message_id(6), seq: 6 });
    let called = NewMessage { external_id: Some("x10".to_owned()), ..says(20, "twenty") };
    assert_eq!(conflict_of(target.try_commit(&adds(vec![called]), at(10)).await), Conflict::ExternalId { seq: 10 });
    let outcome = target.commit(&adds(vec![says(11, "eleven")]), at(11)).await;
    assert_eq!((outcome.change, outcome.first_seq), (8, 11));
    let key = ThreadName::Key(Owner::User(user_id("ana")), thread_key("slack:T1:C1"));
    let found = target.client.find_thread(&ana(), &key, at(12)).await.expect("reading works");
    assert_eq!(found.map(|thread| thread.id), Some(target.id));
    target.client.catch_up_fully().await;
    let report = target.client.verify().await.expect("verifying works");
    assert_eq!((report.threads, report.messages, report.findings), (1, 8, Vec::new()));
}

pub(super) async fn a_restored_thread_is_found_by_its_words(stage: &Stage<'_>) {
    let (from, to) = (stage.open().await, stage.open().await);
    let source = eventful(&from.client).await;
    restore(&to.client, &source.dump(3).await).await;
    to.client.catch_up_fully().await;
    let answer = to.client.search(&ana(), &query_for("walrus"), at(9)).await.expect("searching works");
    let behind = answer.behind.iter().any(|behind| behind.indexed_seq < 10);
    assert!(behind || answer.hits.iter().any(|hit| hit.seq == 10));
    assert_eq!(answer.frequencies, [1]);
}

pub(super) async fn an_unfinished_restoration_is_invisible(stage: &Stage<'_>) {
    let (from, to) = (stage.open().await, stage.open().await);
    let source = eventful(&from.client).await;
    let chunks = source.dump(3).await;
    restore(&to.client, &chunks[..chunks.len() - 1]).await;
    let target = Conversation { client: to.client.clone(), ..source.clone() };
    assert!(!target.is_there(at(9)).await);
    let key = ThreadName::Key(Owner::User(user_id("ana")), thread_key("slack:T1:C1"));
    assert!(to.client.find_thread(&ana(), &key, at(9)).await.expect("reading works").is_none());
    let page = to.client.list_threads(&acme(), &ThreadQuery::new(ThreadOrder::Created, 10), at(9)).await;
    assert_eq!(page.expect("reading works").threads, []);
    let messages = to.client.list_messages(&ana(), source.id, &MessageQuery::newest(10), at(9)).await;
    assert_error!(messages, StoreError::NotFound(Kind::Thread));
    assert_error!(target.try_commit(&adds(vec![says(11, "late")]), at(9)).await, StoreError::NotFound(Kind::Thread));
    let records = RecordQuery::of(RecordOwner::Thread(source.id));
    assert_eq!(to.client.list_records(&ana(), &records, at(9)).await.expect("reading works"), []);
    to.client.catch_up_fully().await;
    let found = to.client.search(&acme(), &query_for("message walrus"), at(9)).await.expect("searching works");
    assert_eq!((found.hits, found.behind), (Vec::new(), Vec::new()));
    let dump = to.client.dump_thread(acme().tenant_id(), source.id, None, 10).await;
    assert_error!(dump, StoreError::NotFound(Kind::Thread));
    assert_eq!(to.client.verify().await.expect("verifying works").findings, []);

    // From the beginning again: what the first attempt left is gone.
    restore(&to.client, &chunks).await;
    assert_eq!(target.dump(3).await, chunks);
}

pub(super) async fn a_first_chunk_discards_what_was_begun(stage: &Stage<'_>) {
    let (from, elsewhere, to) = (stage.open().await, stage.open().await, stage.open().await);
    let source = eventful(&from.client).await;
    let larger = Conversation::open(&elsewhere.client, &ben(), 1, at(0)).await;
    larger.say(1..=30, at(1)).await;
    let note = Batch { put: vec![put(app("notes"), "stray", "1")], ..batch("stray") };
    larger.commit(&note, at(1)).await;
    restore(&to.client, &larger.dump(25).await[..1]).await;
    let chunks = source.dump(4).await;
    restore(&to.client, &chunks).await;
    assert_eq!(Conversation { client: to.client.clone(), ..source }.dump(4).await, chunks);
    assert_eq!(to.client.verify().await.expect("verifying works").findings, []);
}

pub(super) async fn restoring_overwrites_no_thread(stage: &Stage<'_>) {
    let (from, to) = (stage.open().await, stage.open().await);
    let source = eventful(&from.client).await;
    let chunks = source.dump(1000).await;
    let there = Conversation::open(&to.client, &ben(), 1, at(0)).await;
    there.say(1..=1, at(1)).await;
    let tenant_id = acme().tenant_id().clone();
    let answer = to.client.restore_thread(&tenant_id, thread_id(1), &chunks[0]).await;
    assert_eq!(conflict_of(answer), Conflict::Thread);
    assert_eq!(there.texts(at(2)).await, ["message 1"]);
    // Nor a thread that claims the same key.
    let claimant = OpenThread::new(&ana(), thread_id(2)).with_key(thread_key("slack:T1:C1"));
    let to = stage.open().await;
    let claimant = Conversation::open_as(&to.client, &ana(), &claimant, at(0)).await;
    let answer = to.client.restore_thread(&tenant_id, thread_id(1), &chunks[0]).await;
    assert_eq!(conflict_of(answer), Conflict::Thread);
    assert!(claimant.is_there(at(1)).await);
    // Twice is once too often.
    let to = stage.open().await;
    restore(&to.client, &chunks).await;
    let answer = to.client.restore_thread(&tenant_id, thread_id(1), &chunks[0]).await;
    assert_eq!(conflict_of(answer), Conflict::Thread);
    // A chunk from the middle begins nothing.
    let middle = source.dump(3).await[1].clone();
    let to = stage.open().await;
    let answer = to.client.restore_thread(&tenant_id, thread_id(1), &middle).await;
    assert_error!(answer, StoreError::Invalid { .. });
}

pub(super) async fn records_move_verbatim(stage: &Stage<'_>) {
    let (from, to) = (stage.open().await, stage.open().await);
    let of_ana = RecordOwner::User(user_id("ana"));
    for round in 0..5 {
        let write = note(of_ana.clone(), "k", &format!("{round}"));
        from.client.write_record(&ana(), &write, at(1)).await.expect("writing works");
    }
    let write = RecordWrite { expires_at: Some(at(99)), ..note(RecordOwner::Tenant, "t", r#"{"a" : 1}"#) };
    from.client.write_record(&acme(), &write, at(1)).await.expect("writing works");
    let moved = note(of_ana.clone(), "k", "0");
    to.client.write_record(&ana(), &moved, at(1)).await.expect("writing works");
    let mut versions = Vec::new();
    for owner in [of_ana.clone(), RecordOwner::Tenant] {
        let query = RecordQuery::of(owner.clone());
        let records = from.client.list_records(&acme(), &query, at(2)).await.expect("reading works");
        for record in &records {
            let restored = to.client.restore_record(acme().tenant_id(), &owner, record).await;
            restored.expect("restoring works");
            versions.push(record.version);
        }
        assert_eq!(to.client.list_records(&acme(), &query, at(2)).await.expect("reading works"), records);
    }
    let anew = to.client.write_record(&ana(), &note(of_ana, "k", "9"), at(3)).await.expect("writing works");
    assert!(!versions.contains(&anew.version) && anew.version > versions[0], "a version came back after the move");
}

pub(super) async fn tenants_and_owners_are_listed(stage: &Stage<'_>) {
    let subject = stage.open().await;
    let client = &subject.client;
    assert_eq!(client.list_tenants(None, 10).await.expect("reading works"), []);
    for (number, scope) in (1..).zip([ben(), ana(), acme(), user("globex", "zoë"), user("Acme", "ana")]) {
        Conversation::open(client, &scope, number, at(0)).await;
    }
    let of_cleo = RecordOwner::User(user_id("cleo"));
    client.write_record(&acme(), &note(of_cleo, "k", "1"), at(1)).await.expect("writing works");
    // The internal tenant is one of the store's, although nobody may name it.
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
    for (place, owner) in owners.iter().enumerate() {
        let rest = client.list_owners(&names[1], Some(owner), 2).await.expect("reading works");
        assert_eq!(rest, owners[place + 1..].iter().take(2).cloned().collect::<Vec<_>>());
    }
    assert_eq!(client.list_owners(&names[2], None, 10).await.expect("reading works"), [Owner::Tenant, user("zoë")]);
    assert_eq!(client.list_owners(&tenant("nobody"), None, 10).await.expect("reading works"), []);
}

pub(super) async fn stored_text_is_taken_as_it_is(stage: &Stage<'_>) {
    // What a source has stored is moved even where it is not what this version would write.
    let (from, to) = (stage.open().await, stage.open().await);
    let conversation = Conversation::open(&from.client, &ana(), 1, at(0)).await;
    conversation.commit(&adds(vec![says(1, "one")]), at(1)).await;
    let mut chunks = conversation.dump(10).await;
    for entry in &mut chunks[0].entries {
        if let DumpEntry::Message { body, .. } = entry {
            *body = r#"1u{ "parts":[{"text":"one"}], "later":[1] }"#.to_owned();
        }
    }
    restore(&to.client, &chunks).await;
    let target = Conversation { client: to.client.clone(), ..conversation };
    assert_eq!(target.dump(10).await, chunks);
    assert_eq!(target.texts(at(2)).await, ["one"]);
}
