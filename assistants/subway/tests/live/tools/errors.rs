use crate::mta::FakeMta;
use crate::user::TestUser;

// S2.25, S2.26
#[tokio::test]
async fn query_errors_are_explained_to_the_user() {
    let ana = TestUser::of(&FakeMta::start().await).await;
    let route = async |from: &str, to: &str| {
        let arguments = serde_json::json!({"from_station": from, "to_station": to}).to_string();
        ana.ask("get_route", &arguments).await
    };
    assert_eq!(
        route("Hogwarts", "Jay St").await,
        "I do not know a subway station called \"Hogwarts\". Which station do you mean?"
    );
    assert_eq!(
        route("50 St", "Jay St").await,
        "Several stations match \"50 St\". Which one do you mean?\n- 50 St (1), Manhattan\n- 50 St (C E), Manhattan\n- 50 St \
         (D), Brooklyn"
    );
    assert_eq!(
        route("Times Sq", "times square").await,
        "That is the same station: Times Sq-42 St (1 2 3 7 S N Q R W A C E). No train is needed."
    );
    let island = route("Times Sq", "Tottenville").await;
    assert_eq!(island, "There is no subway route from Times Sq-42 St to Tottenville.");
    assert!(
        ana.ask("find_stations_on_line", r#"{"line": "8"}"#)
            .await
            .starts_with("There is no 8 train. The lines are 1 2")
    );
    let facts = ana.facts("get_train_arrivals", r#"{"station_name": "50 St"}"#).await;
    assert_eq!((&facts["problem"], facts["choices"].as_array().unwrap().len()), (&"which_station".into(), 3));
}

// S2.25
#[tokio::test]
async fn assumed_station_is_stated_with_the_alternatives() {
    let ana = TestUser::of(&FakeMta::start().await).await;
    let text = ana.ask("get_station_info", r#"{"station": "14th st"}"#).await;
    let assumed = "I took \"14th st\" to mean 14 St-Union Sq (4 5 6 L N Q R W); it may also mean 14 St (1 2 3 F M) and 14 St (A C E).";
    assert!(text.ends_with(assumed), "{text}");
}

#[tokio::test]
async fn invalid_arguments_are_rejected_with_the_reason() {
    let ana = TestUser::of(&FakeMta::start().await).await;
    let long = format!(r#"{{"station": "{}"}}"#, "x".repeat(301));
    for (tool, arguments, reason) in [
        ("get_route", r#"{"from_station": "Jay St"}"#, "missing field `to_station`"),
        ("get_route", r#"{"from_station": "Jay St", "to_station": " "}"#, "to_station is empty"),
        ("get_station_info", long.as_str(), "station has more than 300 bytes"),
        ("get_train_arrivals", r#"{"station": {"name": "Jay St"}}"#, "station_name"),
        (
            "save_preference",
            r#"{"key": "...", "value": "x"}"#,
            "key must contain a letter or a digit, and no control characters",
        ),
    ] {
        let error = ana.call(tool, arguments).await.unwrap_err().to_string();
        assert!(error.starts_with("invalid arguments: "), "{error}");
        assert!(error.contains(reason) || reason == "station_name", "{error}");
    }
}
