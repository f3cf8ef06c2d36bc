//! The plugin that adds the subway assistant to a program: settings, commands, watched files and endpoints.

mod fetch;

use std::sync::Arc;

use threadkeep::Assistant;
use threadkeep::agent::plugin::{
    Argument, ArgumentForm, AssistantParts, AssistantPlugin, CommandGroup, Example, FailureKind, Lookup, PluginCommand,
    PluginError, PluginSettings, Setting, SettingDefault, SettingKind,
};

use crate::assistant::{ABOUT, NAME};
use crate::gtfs::{GTFS_ADDRESS, load_timetable};
use crate::live::{LIVE_ADDRESS, LiveOptions};
use crate::map::map;
use crate::subway::{Subway, SubwayOptions};
use crate::{SubwayAssistant, Timetable};

/// The subway assistant's plugin.
pub const PLUGIN: AssistantPlugin = AssistantPlugin {
    offline_abilities: "the subway assistant looks up routes, trains and stations",
    examples: &[
        Example { command: "chat subway", shows: "chat about New York's subway" },
        Example { command: "ask subway 'Next 6 at Astor Place'", shows: "" },
        Example { command: "graph subway", shows: "" },
    ],
    settings: &[LIVE, LIVE_KEY, FEED, TIMETABLE, CLIENT_KEY],
    watched: &[TIMETABLE],
    client_key: Some(CLIENT_KEY),
    health,
    commands: Some(COMMANDS),
    lookups: &LOOKUPS,
    network_map: Some(map),
    ..AssistantPlugin::new(NAME, ABOUT, make)
};

const LIVE: Setting = Setting {
    variable: "MTA_FEEDS",
    key: "mta.feeds",
    kind: SettingKind::Url,
    help: "the URL of the subway's live feeds",
    default: SettingDefault::Description(LIVE_ADDRESS),
};
const LIVE_KEY: Setting = Setting {
    variable: "MTA_API_KEY",
    key: "mta.api_key",
    kind: SettingKind::Secret,
    help: "the MTA's API key; not required by its feeds",
    default: SettingDefault::Description(""),
};
const FEED: Setting = Setting {
    variable: "MTA_GTFS_URL",
    key: "mta.gtfs_url",
    kind: SettingKind::Url,
    help: "the URL from which `subway fetch` downloads the timetable",
    default: SettingDefault::Description(GTFS_ADDRESS),
};
const TIMETABLE: Setting = Setting {
    variable: "MTA_TIMETABLE",
    key: "mta.timetable",
    kind: SettingKind::File,
    help: "the file in which the subway's timetable is cached",
    default: SettingDefault::DataFile("subway.timetable"),
};
const CLIENT_KEY: Setting = Setting {
    variable: "SUBWAY_API_KEY",
    key: "subway.api_key",
    kind: SettingKind::Secret,
    help: "the key shared by clients of /chat and the other assistant endpoints",
    default: SettingDefault::Description(""),
};

const COMMANDS: CommandGroup = CommandGroup {
    about: "Manage the timetable of New York's subway",
    details: "Without a timetable, the subway assistant estimates two minutes per stop. With one, it knows departure times \
              and the duration of each ride.",
    examples: &[
        Example { command: "subway fetch", shows: "the timetable published by the MTA" },
        Example { command: "subway fetch gtfs_subway.zip", shows: "a local file or folder" },
    ],
    commands: &[PluginCommand {
        name: "fetch",
        about: "Download the current timetable, check it, and cache it",
        details: "The previous timetable is replaced only after the new one is complete.",
        arguments: &[Argument {
            name: fetch::FROM,
            value: "FROM",
            form: ArgumentForm::Optional,
            help: "A URL, a zip archive or a folder with a GTFS feed [default: MTA_GTFS_URL, or the MTA's URL]",
        }],
        run: fetch::run,
    }],
};

const LOOKUPS: [Lookup; 4] = [
    Lookup {
        endpoint: "route",
        required_parameter: None,
        tool: "get_route",
        arguments: &[("from", "from_station"), ("to", "to_station")],
    },
    Lookup {
        endpoint: "arrivals",
        required_parameter: None,
        tool: "get_train_arrivals",
        arguments: &[("station", "station_name"), ("line", "line")],
    },
    Lookup {
        endpoint: "stations",
        required_parameter: Some("line"),
        tool: "find_stations_on_line",
        arguments: &[("line", "line")],
    },
    Lookup {
        endpoint: "stations",
        required_parameter: None,
        tool: "get_station_info",
        arguments: &[("station", "station")],
    },
];

fn make(parts: AssistantParts, settings: &PluginSettings) -> Result<Arc<dyn Assistant>, PluginError> {
    let default = LiveOptions::default();
    let live = LiveOptions {
        base: settings.get(&LIVE).map_or(default.base, str::to_owned),
        key: settings.get(&LIVE_KEY).map(str::to_owned),
        ..default
    };
    let subway = Subway::open(SubwayOptions { live, timetable: settings.file(&TIMETABLE) }).map_err(|error| {
        PluginError::new(FailureKind::Setup, error).with_hint(
            "download the timetable again with `threadkeep subway fetch`, or delete the file to work without one",
        )
    })?;
    Ok(Arc::new(SubwayAssistant::new(&parts.memory, Arc::new(subway), parts.model)))
}

fn health(settings: &PluginSettings) -> Result<Option<String>, PluginError> {
    let Some(file) = settings.file(&TIMETABLE) else { return Ok(Some(NO_TIMETABLE.to_owned())) };
    let timetable = load_timetable(&file).map_err(|error| PluginError::new(FailureKind::Setup, error))?;
    Ok(Some(match timetable.as_ref().map(Timetable::valid_dates) {
        Some(Some((from, to))) => format!("timetable from {from} to {to}"),
        Some(None) => "the timetable covers no dates".to_owned(),
        None => NO_TIMETABLE.to_owned(),
    }))
}

const NO_TIMETABLE: &str = "no timetable: estimating two minutes per stop";

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_with_timetable(file: &std::path::Path) -> PluginSettings {
        let file = file.display().to_string();
        PluginSettings::new(PLUGIN.settings, |name| (name == TIMETABLE.variable).then(|| file.clone()), None)
    }

    #[test]
    fn health_reports_missing_and_damaged_timetables() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("subway.timetable");
        assert_eq!(health(&PluginSettings::default()).unwrap().as_deref(), Some(NO_TIMETABLE));
        assert_eq!(health(&settings_with_timetable(&file)).unwrap().as_deref(), Some(NO_TIMETABLE));
        std::fs::write(&file, "something else entirely").unwrap();
        let error = health(&settings_with_timetable(&file)).unwrap_err();
        assert!(error.to_string().contains("subway.timetable"), "{error}");
    }
}
