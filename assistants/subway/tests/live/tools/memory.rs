use threadkeep::Scope;
use threadkeep::core::ToolError;

use crate::mta::FakeMta;
use crate::user::TestUser;

// S2.21, S2.22
#[tokio::test]
async fn preferences_are_stored_per_user_and_can_be_replaced() {
    let ana = TestUser::of(&FakeMta::start().await).await;
    let ben = ana.another("ben");
    let saved = ana.ask("save_preference", r#"{"key": "home station", "value": "86 St"}"#).await;
    assert_eq!(saved, "Saved your home station: 86 St");
    ana.ask("save_preference", r#"{"key": "My home_station", "value": "Astor Pl"}"#).await;
    assert_eq!(ana.facts("get_preference", r#"{"key": "Home station"}"#).await["value"], "Astor Pl");
    let missing = ana.ask("get_preference", r#"{"key": "work"}"#).await;
    assert_eq!(missing, "You have no work saved, only: home station.");
    assert_eq!(ben.ask("get_preference", r#"{"key": "home station"}"#).await, "You have no home station saved.");
    let without_user = TestUser { scope: Scope::tenant("acme").unwrap(), ..ana };
    let error = without_user.call("save_preference", r#"{"key": "home", "value": "86 St"}"#).await.unwrap_err();
    assert!(matches!(error, ToolError::Denied(_)), "{error}");
}

// S2.23
#[tokio::test]
async fn trips_are_counted_per_user_once_a_turn() {
    let mut ana = TestUser::of(&FakeMta::start().await).await;
    let ben = ana.another("ben");
    assert_eq!(ana.ask("get_common_trips", "{}").await, "You have not asked for any trips yet.");
    ana.ask("get_route", r#"{"from_station": "Astor Pl", "to_station": "Bedford Av"}"#).await;
    for turn in ["turn 2", "turn 3"] {
        ana.turn = turn.to_owned();
        // Different names of the same place, and several tools in one turn.
        ana.ask("get_route", r#"{"from_station": "South Ferry", "to_station": "Penn Station"}"#).await;
        ana.ask("get_route_with_arrivals", r#"{"from_station": "South Ferry on the 1", "to_station": "Penn"}"#).await;
        ana.ask("plan_trip_with_transfers", "{}").await;
    }
    ana.ask("get_route", r#"{"from_station": "South Ferry", "to_station": "Hogwarts"}"#).await;
    let common = ana.ask("get_common_trips", "{}").await;
    assert_eq!(
        common,
        "Your most common trips:\n- South Ferry to 34 St-Penn Station (1 2 3): 2 times\n- Astor Pl to Bedford Av: once"
    );
    assert_eq!(ben.facts("get_common_trips", "{}").await["trips"], serde_json::json!([]));
}

// S2.48
#[tokio::test]
async fn preferences_and_trips_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let mta = FakeMta::start().await;
    let ana = TestUser { memory: threadkeep::open(&url).await.unwrap(), ..TestUser::of(&mta).await };
    ana.ask("save_preference", r#"{"key": "home station", "value": "Astor Pl"}"#).await;
    ana.ask("get_route", r#"{"from_station": "Astor Pl", "to_station": "Bedford Av"}"#).await;
    drop(ana);
    let restarted = TestUser { memory: threadkeep::open(&url).await.unwrap(), ..TestUser::of(&mta).await };
    assert_eq!(restarted.ask("get_preference", r#"{"key": "home station"}"#).await, "Your home station: Astor Pl");
    assert!(restarted.ask("get_common_trips", "{}").await.ends_with("\n- Astor Pl to Bedford Av: once"));
}
