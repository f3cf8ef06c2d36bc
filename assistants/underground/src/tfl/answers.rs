//! The API's responses, with only the fields that are used. Unknown and missing fields are accepted.

use serde::{Deserialize, Serialize};

/// The status of a line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusOfLine {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The statuses. A line can have several at once.
    #[serde(default)]
    pub line_statuses: Vec<LineStatus>,
}

/// One status of a line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LineStatus {
    /// The number: lower numbers are worse, but 10, 18 and 19 are not a problem, and 20 is normal at night.
    pub status_severity: i64,
    /// Its name, such as "Minor Delays".
    #[serde(default)]
    pub status_severity_description: String,
    /// The reason in the service's words.
    #[serde(default)]
    pub reason: Option<String>,
    /// When it is valid. Empty if it is valid now.
    #[serde(default)]
    pub validity_periods: Vec<ValidityPeriod>,
    /// The disruption, with its category.
    #[serde(default)]
    pub disruption: Option<StatusDisruption>,
}

/// The disruption of a status.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StatusDisruption {
    /// `RealTime`, `PlannedWork` or `Information`.
    #[serde(default)]
    pub category: String,
}

/// A period in which a status is valid.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidityPeriod {
    /// Its start.
    #[serde(default)]
    pub from_date: String,
    /// Its end.
    #[serde(default)]
    pub to_date: String,
    /// Whether the period included the time at which the service created the response.
    #[serde(default)]
    pub is_now: bool,
}

/// An announced train.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    /// The id of the line.
    #[serde(default)]
    pub line_id: String,
    /// The platform, such as "Southbound - Platform 6".
    #[serde(default)]
    pub platform_name: String,
    /// `inbound` or `outbound`.
    #[serde(default)]
    pub direction: Option<String>,
    /// The last station of the train.
    #[serde(default)]
    pub destination_name: Option<String>,
    /// The text shown on the train, such as "Morden via Bank".
    #[serde(default)]
    pub towards: Option<String>,
    /// The seconds until it arrives.
    #[serde(default)]
    pub time_to_station: i64,
    /// When it arrives, in UTC.
    #[serde(default)]
    pub expected_arrival: Option<String>,
    /// Where the train is.
    #[serde(default)]
    pub current_location: Option<String>,
}

/// A disruption at a stop.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Disruption {
    /// A description of the disruption.
    #[serde(default)]
    pub description: String,
    /// Its kind.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

/// The result of a search for stops.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StopSearch {
    /// The matches, best first.
    #[serde(default)]
    pub matches: Vec<StopMatch>,
}

/// A stop that a search found.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StopMatch {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its zone.
    #[serde(default)]
    pub zone: Option<String>,
}

/// A stop with its lines.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StopPoint {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub common_name: String,
    /// Its lines.
    #[serde(default)]
    pub lines: Vec<LineRef>,
}

/// A reference to a line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LineRef {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// The response of the journey planner: journeys, or the possible meanings of an ambiguous end.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JourneyAnswer {
    /// The journeys, best first.
    #[serde(default)]
    pub journeys: Vec<Journey>,
    /// The possible meanings of the origin.
    #[serde(default)]
    pub from_location_disambiguation: Option<Disambiguation>,
    /// The possible meanings of the destination.
    #[serde(default)]
    pub to_location_disambiguation: Option<Disambiguation>,
}

/// The possible meanings of an ambiguous place.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disambiguation {
    /// The possible meanings.
    #[serde(default)]
    pub disambiguation_options: Vec<PlaceOption>,
}

impl Disambiguation {
    /// Returns the parameter of the best match.
    #[must_use]
    pub fn best(&self) -> Option<&str> {
        let best = self.disambiguation_options.iter().max_by_key(|option| option.match_quality);
        best.map(|option| option.parameter_value.as_str())
    }
}

/// A possible meaning of an ambiguous place.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceOption {
    /// The value that identifies this place in the next request.
    #[serde(default)]
    pub parameter_value: String,
    /// How well it matches.
    #[serde(default)]
    pub match_quality: i64,
}

/// A journey.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Journey {
    /// The duration in minutes.
    #[serde(default)]
    pub duration: u32,
    /// The local time of the start.
    #[serde(default)]
    pub start_date_time: String,
    /// The local time of the end.
    #[serde(default)]
    pub arrival_date_time: String,
    /// Its parts.
    #[serde(default)]
    pub legs: Vec<JourneyLeg>,
}

/// A part of a journey.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JourneyLeg {
    /// The duration in minutes.
    #[serde(default)]
    pub duration: u32,
    /// The mode of transport.
    #[serde(default)]
    pub mode: Option<LineRef>,
    /// The lines that can be used for it.
    #[serde(default)]
    pub route_options: Vec<RouteOption>,
    /// Where it starts.
    #[serde(default)]
    pub departure_point: Option<Place>,
    /// Where it ends.
    #[serde(default)]
    pub arrival_point: Option<Place>,
    /// The stops on the way.
    #[serde(default)]
    pub path: Option<JourneyPath>,
    /// Whether it is disrupted.
    #[serde(default)]
    pub is_disrupted: bool,
}

impl JourneyLeg {
    /// Returns the id of the first line that can be used for the leg.
    #[must_use]
    pub fn line(&self) -> Option<&str> {
        let identified = self.route_options.iter().filter_map(|option| option.line_identifier.as_ref());
        identified.map(|line| line.id.as_str()).find(|id| !id.is_empty())
    }
}

/// A line that can be used for a leg.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteOption {
    /// The line.
    #[serde(default)]
    pub line_identifier: Option<LineRef>,
    /// The directions of its trains.
    #[serde(default)]
    pub directions: Vec<String>,
}

/// The stops of a leg.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JourneyPath {
    /// The stops.
    #[serde(default)]
    pub stop_points: Vec<LineRef>,
}

/// An end of a leg.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// Its name.
    #[serde(default)]
    pub common_name: String,
    /// Its id.
    #[serde(default)]
    pub naptan_id: String,
}
