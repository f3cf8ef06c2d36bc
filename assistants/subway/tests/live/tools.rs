//! Tool calls as a model makes them: by name, with JSON arguments, returning text and a JSON value.

mod answers;
mod errors;
mod memory;
mod timetable;

use std::collections::BTreeSet;

use serde_json::json;
use threadkeep::core::ToolEffect;
use threadkeep::{Map, Value};
use threadkeep_subway::{SubwayTools, TOOLS};

use crate::mta::FakeMta;
use crate::user::TestUser;

/// The required tool names.
const NAMES: [&str; 11] = [
    "get_route",
    "get_route_with_arrivals",
    "get_train_arrivals",
    "compare_local_vs_express",
    "plan_trip_with_transfers",
    "get_station_info",
    "find_stations_on_line",
    "save_preference",
    "get_preference",
    "get_common_trips",
    "get_transfer_timing",
];

// S2.10
#[tokio::test]
async fn all_required_tools_exist() {
    let ana = TestUser::of(&FakeMta::start().await).await;
    let tools = SubwayTools::new(ana.memory.clone(), ana.subway.clone()).all();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name()).collect();
    assert_eq!(names, TOOLS);
    assert_eq!(BTreeSet::from(TOOLS), BTreeSet::from(NAMES));
    for tool in &tools {
        assert_eq!(tool.effect(&Map::new()), ToolEffect::ReadOnly, "no tool requires approval");
        assert!(!tool.spec().description.description.is_empty());
    }
}

// S2.15, S2.17, S2.21
#[tokio::test]
async fn tools_have_the_required_arguments() {
    let ana = TestUser::of(&FakeMta::start().await).await;
    let tools = SubwayTools::new(ana.memory.clone(), ana.subway.clone()).all();
    let schema_of = |name: &str| -> Value {
        let tool = tools.iter().find(|tool| tool.spec().name() == name).unwrap();
        tool.spec().description.parameters.read().unwrap()
    };
    let trip = json!(["from_station", "to_station"]);
    for (name, required) in [
        ("get_route", trip.clone()),
        ("get_route_with_arrivals", trip.clone()),
        ("get_transfer_timing", trip),
        ("get_train_arrivals", json!(["station_name"])),
        (
            "compare_local_vs_express",
            json!(["from_station", "to_station", "transfer_station", "local_line", "express_lines"]),
        ),
        ("plan_trip_with_transfers", Value::Null),
        ("get_station_info", json!(["station"])),
        ("find_stations_on_line", json!(["line"])),
        ("save_preference", json!(["key", "value"])),
        ("get_preference", json!(["key"])),
        ("get_common_trips", Value::Null),
    ] {
        assert_eq!(schema_of(name)["required"], required, "{name}");
    }
    assert!(schema_of("get_train_arrivals")["properties"]["line"].is_object(), "the filter by line is optional");
}
