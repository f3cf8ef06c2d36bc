//! An assistant for London's Underground, Elizabeth line, DLR and Overground: status, routes, trains and stations.
//!
//! Pass [`UndergroundAssistant`] to an agent. Without a language model, it answers with its [`offline_model`]. [`PLUGIN`] registers
//! the assistant with a program. [`Underground`] answers queries from the built-in network and from TfL's service ([`Tfl`]).
//!
//! Powered by TfL Open Data. Contains OS data © Crown copyright and database rights, and Geomni UK map data © and database rights.
#![warn(missing_docs)]

mod arrivals;
mod assistant;
mod lines;
mod map;
mod mentions;
mod names;
mod network;
mod notices;
mod offline;
mod plugin;
mod prompt;
mod routing;
mod services;
mod spoken_lines;
mod station;
mod status;
pub mod tfl;
mod tools;
mod underground;
mod wording;

pub use arrivals::{ArrivalsAnswer, Train};
pub use assistant::{APOLOGY, UndergroundAssistant};
pub use lines::{COLLABORATIVE_AGENT, LINES, LineInfo, MODES, STATUS_AGENT, find_line, find_network_lines, line_runs};
pub use mentions::mentions;
pub use network::{london, names, network};
pub use offline::{REFERRALS, offline_model};
pub use plugin::PLUGIN;
pub use prompt::REFUSAL;
pub use routing::{MAX_AGENTS, RoutedAgents, RoutingContext, last_mentioned_line, refers_to_usual_line, route};
pub use services::{Service, TIMETABLE_DATE, night_lines, services_at};
pub use station::{LineStations, StationInfo, TrainTimes, find_stations_on_line, train_times};
pub use status::{LineStatusView, StatusAnswer, view_of};
pub use tfl::{TFL_ADDRESS, Tfl, TflOptions};
pub use tools::{TOOLS, UndergroundTools, nearest_stations};
pub use underground::{CHANGE_SECONDS, RideTime, Underground, clean_name, find_route, ride_time};
