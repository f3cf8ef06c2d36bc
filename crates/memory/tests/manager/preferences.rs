use threadkeep_memory::MemoryError;

use super::probe::{Fate, Probe};
use super::world::{World, acme, ana, ben, everywhere};

// S0.41
#[tokio::test(start_paused = true)]
async fn preferences_belong_to_a_user_and_last() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        memory.set_preference(&ana(), "usual_line", "Victoria").await.unwrap();
        memory.set_preference(&ana(), "usual_line", "Northern").await.unwrap();
        memory.set_preference(&ana(), "home_station", &["Bank", "Monument"]).await.unwrap();
        let process = world.another_process();
        assert_eq!(process.preference::<String>(&ana(), "usual_line").await.unwrap().as_deref(), Some("Northern"));
        assert_eq!(process.preference::<String>(&ben(), "usual_line").await.unwrap(), None);
        let listed = process.list_preferences(&ana()).await.unwrap();
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
async fn what_is_no_preference_is_refused() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let error = memory.set_preference(&acme(), "line", "Northern").await.unwrap_err();
        assert!(matches!(error, MemoryError::Invalid { field: "scope", .. }), "{error}");
        let error = memory.set_preference(&ana(), "", "Northern").await.unwrap_err();
        assert_eq!(error.to_string(), "invalid document key: empty");
        memory.set_preference(&ana(), "line", "Northern").await.unwrap();
        assert!(memory.preference::<u64>(&ana(), "line").await.is_err(), "another shape is no default");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn changes_at_the_same_time_all_count() {
    everywhere(async |world: World| {
        let writers = (0..8).map(|_| {
            let memory = world.memory.clone();
            tokio::spawn(async move {
                let count = |trips: Option<u64>| Some(trips.unwrap_or(0) + 1);
                memory.update_preference(&ana(), "trips", count).await.unwrap();
            })
        });
        futures::future::try_join_all(writers).await.unwrap();
        assert_eq!(world.memory.preference::<u64>(&ana(), "trips").await.unwrap(), Some(8));
    })
    .await;
    let (probe, world) = Probe::world();
    probe.will_end([Fate::LostReply]);
    let count = |trips: Option<u64>| Some(trips.unwrap_or(0) + 1);
    assert_eq!(world.memory.update_preference(&ana(), "trips", count).await.unwrap(), Some(1));
    assert_eq!(world.memory.preference::<u64>(&ana(), "trips").await.unwrap(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_preferences_has_no_end_of_page() {
    everywhere(async |world: World| {
        for number in 0..1_050 {
            world.memory.set_preference(&ana(), &format!("{number:04}"), &number).await.unwrap();
        }
        let listed = world.memory.list_preferences(&ana()).await.unwrap();
        assert_eq!(listed.len(), 1_050);
        assert!(listed.is_sorted_by(|one, other| one.key < other.key));
    })
    .await;
}
