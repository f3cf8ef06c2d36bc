use threadkeep_memory::MemoryError;

use super::probe::{Outcome, Probe};
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

// S0.41
#[tokio::test(start_paused = true)]
async fn preferences_belong_to_a_user_and_persist() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        memory.set_preference(&ana(), "usual_line", "Victoria").await.unwrap();
        memory.set_preference(&ana(), "usual_line", "Northern").await.unwrap();
        memory.set_preference(&ana(), "home_station", &["Bank", "Monument"]).await.unwrap();
        let other_process = env.another_process();
        assert_eq!(
            other_process.preference::<String>(&ana(), "usual_line").await.unwrap().as_deref(),
            Some("Northern")
        );
        assert_eq!(other_process.preference::<String>(&ben(), "usual_line").await.unwrap(), None);
        let listed = other_process.list_preferences(&ana()).await.unwrap();
        let listed: Vec<_> =
            listed.iter().map(|preference| (preference.key.as_str(), preference.value.as_str())).collect();
        assert_eq!(listed, [("home_station", r#"["Bank","Monument"]"#), ("usual_line", r#""Northern""#)]);

        memory.delete_preference(&ana(), "usual_line").await.unwrap();
        memory.delete_preference(&ana(), "usual_line").await.unwrap();
        assert_eq!(memory.preference::<String>(&ana(), "usual_line").await.unwrap(), None);
        assert_eq!(memory.list_preferences(&ben()).await.unwrap(), []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn invalid_preferences_are_rejected() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let error = memory.set_preference(&acme(), "line", "Northern").await.unwrap_err();
        assert!(matches!(error, MemoryError::Invalid { field: "scope", .. }), "{error}");
        let error = memory.set_preference(&ana(), "", "Northern").await.unwrap_err();
        assert_eq!(error.to_string(), "invalid record key: empty");
        memory.set_preference(&ana(), "line", "Northern").await.unwrap();
        assert!(
            memory.preference::<u64>(&ana(), "line").await.is_err(),
            "a value of another type is an error, not a default"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_updates_are_all_applied() {
    on_all_stores(async |env: TestEnv| {
        let writers = (0..8).map(|_| {
            let memory = env.memory.clone();
            tokio::spawn(async move {
                let increment = |trips: Option<u64>| Some(trips.unwrap_or(0) + 1);
                memory.update_preference(&ana(), "trips", increment).await.unwrap();
            })
        });
        futures::future::try_join_all(writers).await.unwrap();
        assert_eq!(env.memory.preference::<u64>(&ana(), "trips").await.unwrap(), Some(8));
    })
    .await;
    let (probe, env) = Probe::new_env();
    probe.script([Outcome::LostResponse]);
    let increment = |trips: Option<u64>| Some(trips.unwrap_or(0) + 1);
    assert_eq!(env.memory.update_preference(&ana(), "trips", increment).await.unwrap(), Some(1));
    assert_eq!(env.memory.preference::<u64>(&ana(), "trips").await.unwrap(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn all_preferences_are_listed() {
    on_all_stores(async |env: TestEnv| {
        for number in 0..1_050 {
            env.memory.set_preference(&ana(), &format!("{number:04}"), &number).await.unwrap();
        }
        let listed = env.memory.list_preferences(&ana()).await.unwrap();
        assert_eq!(listed.len(), 1_050);
        assert!(listed.is_sorted_by(|first, second| first.key < second.key));
    })
    .await;
}
