use threadkeep_core::{JsonText, Namespace, RecordName, RecordOwner, StoreError};
use threadkeep_memory::{MemoryError, RecordUpdate};

use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

fn note() -> RecordName {
    RecordName { namespace: Namespace::app("notes").unwrap(), key: "a".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn records_of_users_and_tenants_are_updated() {
    on_all_stores(async |env: TestEnv| {
        for scope in [ana(), acme()] {
            let (memory, owner, name) = (&env.memory, RecordOwner::from(scope.default_owner()), note());
            let value = JsonText::of("first").unwrap();
            for (update, stored) in [
                (RecordUpdate::Delete, None),
                (RecordUpdate::Keep, None),
                (RecordUpdate::Write(value.clone()), Some(&value)),
                (RecordUpdate::Keep, Some(&value)),
                (RecordUpdate::Delete, None),
            ] {
                let before = memory.find_record(&scope, &owner, &name).await.unwrap();
                let mut seen = None;
                let updated = memory.update_record::<MemoryError>(&scope, &owner, &name, |record| {
                    seen = record.cloned();
                    Ok(update.clone())
                });
                updated.await.unwrap();
                assert_eq!(seen, before);
                let after = memory.find_record(&scope, &owner, &name).await.unwrap();
                assert_eq!(after.as_ref().map(|record| &record.value), stored, "{update:?}");
            }
            let rejected = memory.update_record::<MemoryError>(&scope, &owner, &name, |_| {
                Err(StoreError::invalid("note", "rejected").into())
            });
            assert_eq!(rejected.await.unwrap_err().to_string(), "invalid note: rejected");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn records_of_others_are_not_updated() {
    on_all_stores(async |env: TestEnv| {
        let write = || Ok::<_, MemoryError>(RecordUpdate::Write(JsonText::of("mine").unwrap()));
        let tenant = env.memory.update_record(&ana(), &RecordOwner::Tenant, &note(), |_| write()).await;
        assert!(matches!(tenant, Err(MemoryError::Store(StoreError::Denied(_)))), "{tenant:?}");
        let owner = RecordOwner::from(ben().default_owner());
        let other = env.memory.update_record(&ana(), &owner, &note(), |_| write()).await;
        assert!(other.as_ref().is_err_and(MemoryError::is_not_found), "{other:?}");
    })
    .await;
}
