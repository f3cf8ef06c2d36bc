//! The plugin that adds the London assistant to a program.

use std::sync::Arc;

use threadkeep::Assistant;
use threadkeep::agent::plugin::{
    AssistantParts, AssistantPlugin, Example, Lookup, PluginError, PluginSettings, Setting, SettingDefault, SettingKind,
};

use crate::UndergroundAssistant;
use crate::assistant::{ABOUT, NAME};
use crate::map::map;
use crate::tfl::{TFL_ADDRESS, Tfl, TflOptions};
use crate::underground::Underground;

/// The London assistant's plugin.
pub const PLUGIN: AssistantPlugin = AssistantPlugin {
    offline_abilities: "the underground assistant looks up London's lines, trains and routes",
    examples: &[
        Example { command: "chat underground", shows: "chat about London's Underground" },
        Example { command: "ask underground 'How do I get from Paddington to Bank?'", shows: "" },
    ],
    settings: &[ADDRESS, KEY, CLIENT_KEY],
    client_key: Some(CLIENT_KEY),
    lookups: &LOOKUPS,
    network_map: Some(map),
    ..AssistantPlugin::new(NAME, ABOUT, make)
};

const ADDRESS: Setting = Setting {
    variable: "TFL_API",
    key: "tfl.api",
    kind: SettingKind::Url,
    help: "the URL of TfL's Unified API",
    default: SettingDefault::Description(TFL_ADDRESS),
};
const KEY: Setting = Setting {
    variable: "TFL_APP_KEY",
    key: "tfl.app_key",
    kind: SettingKind::Secret,
    help: "TfL's application key; without one, fewer requests are allowed",
    default: SettingDefault::Description(""),
};
const CLIENT_KEY: Setting = Setting {
    variable: "UNDERGROUND_API_KEY",
    key: "underground.api_key",
    kind: SettingKind::Secret,
    help: "the key shared by clients of the underground assistant's endpoints",
    default: SettingDefault::Description(""),
};

const LOOKUPS: [Lookup; 5] = [
    Lookup { endpoint: "lines", required_parameter: None, tool: "get_line_status", arguments: &[("line", "lines")] },
    Lookup {
        endpoint: "route",
        required_parameter: None,
        tool: "get_route",
        arguments: &[("from", "from_station"), ("to", "to_station")],
    },
    Lookup {
        endpoint: "arrivals",
        required_parameter: None,
        tool: "get_next_trains",
        arguments: &[("station", "station"), ("line", "line")],
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
    let default = TflOptions::default();
    let options = TflOptions {
        base: settings.get(&ADDRESS).map_or(default.base, str::to_owned),
        key: settings.get(&KEY).map(str::to_owned),
        ..default
    };
    let underground = Arc::new(Underground::new(Tfl::new(options)));
    let assistant = UndergroundAssistant::new(&parts.memory, underground, parts.model);
    Ok(Arc::new(assistant.with_embedder(parts.embedder)))
}
