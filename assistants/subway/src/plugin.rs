//! The subway as a program plugs it in: its settings, its command, its files and its endpoints.

mod fetch;

use std::sync::Arc;

use threadkeep::Assistant;
use threadkeep::agent::plugin::{
    Argument, ArgumentForm, AssistantParts, AssistantPlugin, CommandGroup, Example, Fault, Lookup, PluginCommand,
    PluginError, PluginSettings, Setting, SettingDefault, SettingKind,
};

use crate::assistant::{ABOUT, NAME};
use crate::gtfs::{GTFS_ADDRESS, load_timetable};
use crate::live::{LIVE_ADDRESS, LiveOptions};
use crate::subway::{Subway, SubwayOptions};
use crate::{SubwayAssistant, Timetable};

/// The subway, for the list of a program's assistants.
pub const PLUGIN: AssistantPlugin = AssistantPlugin {
    offline: "the subway's looks up what you ask",
    examples: &[
        Example { command: "chat subway", shows: "one about New York's subway" },
        Example { command: "ask subway 'Next 6 at Astor Place'", shows: "" },
        Example { command: "graph subway", shows: "" },
    ],
    settings: &[LIVE, LIVE_KEY, FEED, TIMETABLE, CLIENT_KEY],
    watched: &[TIMETABLE],
    client_key: Some(CLIENT_KEY),
    health,
    commands: Some(COMMANDS),
    lookups: &LOOKUPS,
    ..AssistantPlugin::new(NAME, ABOUT, make)
};

const LIVE: Setting = Setting {
    variable: "MTA_FEEDS",
    key: "mta.feeds",
    kind: SettingKind::Url,
    help: "where the subway's live trains are asked for",
    default: SettingDefault::Shown(LIVE_ADDRESS),
};
const LIVE_KEY: Setting = Setting {
    variable: "MTA_API_KEY",
    key: "mta.api_key",
    kind: SettingKind::Secret,
    help: "the MTA's key; its feeds need none",
    default: SettingDefault::Shown(""),
};
const FEED: Setting = Setting {
    variable: "MTA_GTFS_URL",
    key: "mta.gtfs_url",
    kind: SettingKind::Url,
    help: "where `subway fetch` brings the timetable from",
    default: SettingDefault::Shown(GTFS_ADDRESS),
};
const TIMETABLE: Setting = Setting {
    variable: "MTA_TIMETABLE",
    key: "mta.timetable",
    kind: SettingKind::File,
    help: "the file that keeps the subway's timetable",
    default: SettingDefault::DataFile("subway.timetable"),
};
const CLIENT_KEY: Setting = Setting {
    variable: "SUBWAY_API_KEY",
    key: "subway.api_key",
    kind: SettingKind::Secret,
    help: "the key that clients of /chat and its like share",
    default: SettingDefault::Shown(""),
};

const COMMANDS: CommandGroup = CommandGroup {
    about: "Look after the timetable of New York's subway",
    details: "The subway's assistant works without a timetable, at two minutes a stop. With one it knows the hours of the \
              day and what each ride takes.",
    examples: &[
        Example { command: "subway fetch", shows: "the timetable that the MTA publishes" },
        Example { command: "subway fetch gtfs_subway.zip", shows: "a file or folder that you have" },
    ],
    commands: &[PluginCommand {
        name: "fetch",
        about: "Bring the current timetable, check it, and keep it",
        details: "The timetable that was kept before stays until the new one is whole.",
        arguments: &[Argument {
            name: fetch::FROM,
            value: "FROM",
            form: ArgumentForm::Optional,
            help: "An address, a zip archive or a folder of GTFS [default: MTA_GTFS_URL, else where the MTA publishes it]",
        }],
        run: fetch::run,
    }],
};

const LOOKUPS: [Lookup; 4] = [
    Lookup {
        endpoint: "route",
        if_given: None,
        tool: "get_route",
        arguments: &[("from", "from_station"), ("to", "to_station")],
    },
    Lookup {
        endpoint: "arrivals",
        if_given: None,
        tool: "get_train_arrivals",
        arguments: &[("station", "station_name"), ("line", "line")],
    },
    Lookup {
        endpoint: "stations",
        if_given: Some("line"),
        tool: "find_stations_on_line",
        arguments: &[("line", "line")],
    },
    Lookup { endpoint: "stations", if_given: None, tool: "get_station_info", arguments: &[("station", "station")] },
];

fn make(parts: AssistantParts, settings: &PluginSettings) -> Result<Arc<dyn Assistant>, PluginError> {
    let usual = LiveOptions::default();
    let live = LiveOptions {
        base: settings.get(&LIVE).map_or(usual.base, str::to_owned),
        key: settings.get(&LIVE_KEY).map(str::to_owned),
        ..usual
    };
    let subway = Subway::open(SubwayOptions { live, timetable: settings.file(&TIMETABLE) }).map_err(|error| {
        PluginError::new(Fault::Caller, error)
            .with_hint("`threadkeep subway fetch` brings the timetable anew; without the file it works too")
    })?;
    Ok(Arc::new(SubwayAssistant::new(&parts.memory, Arc::new(subway), parts.model)))
}

fn health(settings: &PluginSettings) -> Result<Option<String>, PluginError> {
    let Some(file) = settings.file(&TIMETABLE) else { return Ok(Some(WITHOUT.to_owned())) };
    let kept = load_timetable(&file).map_err(|error| PluginError::new(Fault::Caller, error))?;
    Ok(Some(match kept.as_ref().map(Timetable::valid_dates) {
        Some(Some((from, to))) => format!("a timetable of {from} to {to}"),
        Some(None) => "a timetable without a day".to_owned(),
        None => WITHOUT.to_owned(),
    }))
}

const WITHOUT: &str = "no timetable: a stop counts for two minutes";

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_in(file: &std::path::Path) -> PluginSettings {
        let file = file.display().to_string();
        PluginSettings::new(PLUGIN.settings, |name| (name == TIMETABLE.variable).then(|| file.clone()), None)
    }

    #[test]
    fn it_says_what_timetable_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("subway.timetable");
        assert_eq!(health(&PluginSettings::default()).unwrap().as_deref(), Some(WITHOUT));
        assert_eq!(health(&kept_in(&file)).unwrap().as_deref(), Some(WITHOUT));
        std::fs::write(&file, "something else entirely").unwrap();
        let error = health(&kept_in(&file)).unwrap_err();
        assert!(error.to_string().contains("subway.timetable"), "{error}");
    }
}
