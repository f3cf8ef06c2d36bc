//! Where the subway's trains and timetable come from, by the settings.

use std::path::PathBuf;

use threadkeep_subway::{LiveOptions, SubwayOptions};

use crate::settings::Settings;
use crate::store::data_file;

/// What a subway is made of.
pub(crate) fn options(settings: &Settings) -> SubwayOptions {
    let usual = LiveOptions::default();
    let live = LiveOptions {
        base: settings.get("MTA_FEEDS").unwrap_or(usual.base),
        key: settings.get("MTA_API_KEY"),
        ..usual
    };
    let timetable = settings.get("MTA_TIMETABLE").map(PathBuf::from).or_else(|| data_file("subway.timetable"));
    SubwayOptions { live, timetable }
}
