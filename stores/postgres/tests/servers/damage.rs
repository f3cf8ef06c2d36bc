//! Detecting and repairing rows that were changed by something other than the store.

use threadkeep_core::{Batch, Content, Finding, Replacement, Role, Severity};
use threadkeep_postgres_server::Database;
use threadkeep_store_postgres::PostgresStore;

use crate::schema::empty_database;
use crate::support::{ana, batch, client, message, message_id, now, open_thread, thread_id};

/// Creates a database with three messages, and replaces the second one.
async fn database_with_messages() -> Option<(Database, threadkeep_core::Backend)> {
    let (database, _) = empty_database().await?;
    let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
    open_thread(&backend, &ana(), 1).await;
    let append = vec![message(1, "one"), message(2, "two"), message(3, "the bill says msg<4321>")];
    backend.store.commit(&ana(), thread_id(1), Batch { append, ..batch(1) }, now()).await.unwrap();
    let replace = vec![Replacement { id: message_id(2), content: Content::text(Role::Assistant, "two again") }];
    backend.store.commit(&ana(), thread_id(1), Batch { replace, ..batch(2) }, now()).await.unwrap();
    backend.search.catch_up(usize::MAX).await.unwrap();
    Some((database, backend))
}

fn details(findings: &[Finding], severity: Severity) -> Vec<&str> {
    let matching = findings.iter().filter(|finding| finding.severity == severity);
    matching
        .inspect(|finding| assert_eq!(finding.thread, Some(thread_id(1))))
        .map(|finding| finding.detail.as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_finds_changed_rows_by_checksum() {
    let Some((database, backend)) = database_with_messages().await else { return };
    let report = backend.maintenance.verify().await.unwrap();
    assert_eq!((report.messages, report.unchecked, report.findings), (3, 0, Vec::new()));
    let client = client(&database).await;
    let set = |what: &str, seq: u64| format!("UPDATE threadkeep.messages SET {what} WHERE seq = {seq}");
    for (seq, change, undo) in [
        (3, "body = replace(body, 'msg<4321>', 'msg<9999>')", "body = replace(body, 'msg<9999>', 'msg<4321>')"),
        (2, "role = 0", "role = 2"),
        (1, "created_at = created_at + 1", "created_at = created_at - 1"),
        (1, "external_id = 'x'", "external_id = NULL"),
    ] {
        client.batch_execute(&set(change, seq)).await.unwrap();
        let report = backend.maintenance.verify().await.unwrap();
        let damage = details(&report.findings, Severity::Damage);
        assert!(
            damage.len() == 1 && damage[0].starts_with(&format!("position {seq}, message ")),
            "{change}: {damage:?}"
        );
        assert!(!damage[0].contains("msg<"), "{damage:?}");
        // The index still contains the original terms.
        assert_eq!(details(&report.findings, Severity::Derived).len(), usize::from(seq == 3), "{change}: {report:?}");
        client.batch_execute(&set(undo, seq)).await.unwrap();
    }
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_rebuilds_an_index_that_differs_from_the_text() {
    let Some((database, backend)) = database_with_messages().await else { return };
    let change =
        "UPDATE threadkeep.message_terms SET terms = terms || array_to_tsvector(ARRAY['walrus']) WHERE seq = 1";
    client(&database).await.batch_execute(change).await.unwrap();
    let findings = backend.maintenance.verify().await.unwrap().findings;
    assert_eq!(details(&findings, Severity::Derived).len(), 1, "{findings:?}");
    backend.maintenance.repair(now()).await.unwrap();
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}

/// Versions from before checksums were introduced write messages without one, which is not damage.
#[tokio::test(flavor = "multi_thread")]
async fn messages_of_older_instances_are_unchecked() {
    let Some((database, backend)) = database_with_messages().await else { return };
    let client = client(&database).await;
    let empty = "'{}', '{}', '{}', '{}'";
    let commit = format!(
        "SELECT outcome FROM threadkeep.commit('acme', 'user/ana', '{}', 5, 5, '\\x01', 5, false, false, NULL, NULL, \
         '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', ARRAY['{}'::uuid], ARRAY[1::smallint], \
         ARRAY['1u\"three\"'], ARRAY['three'], '{{}}', NULL, {empty}, '{{}}', '{{}}', '{{}}', '{{}}', \
         false, false, NULL, NULL, false, NULL, true, false)",
        thread_id(1),
        message_id(3)
    );
    let outcome: String = client.query_one(&commit, &[]).await.unwrap().get(0);
    assert_eq!(outcome, "done");
    let report = backend.maintenance.verify().await.unwrap();
    assert_eq!((report.messages, report.unchecked, details(&report.findings, Severity::Damage)), (3, 1, Vec::new()));
}
