//! The plugin that adds the assistant to a program.

use std::sync::Arc;

use threadkeep::Assistant;
use threadkeep::agent::plugin::{
    AssistantParts, AssistantPlugin, Example, FailureKind, PluginError, PluginSettings, Setting, SettingDefault,
    SettingKind,
};

use crate::assistant::{ABOUT, NAME};
use crate::{Cluster, Config, Kubeops};

/// The plugin.
pub const PLUGIN: AssistantPlugin = AssistantPlugin {
    offline_abilities: "the kubeops assistant reads the cluster and requests changes",
    examples: &[
        Example { command: "chat kubeops", shows: "operate the cluster of KUBECONFIG" },
        Example { command: "ask kubeops 'anything crashing in prod?'", shows: "" },
    ],
    settings: &[KUBECONFIG, CONTEXT, CONFIG],
    watched: &[KUBECONFIG, CONFIG],
    retention: |settings| Ok(Some(config(settings)?.memory.retention())),
    health,
    ..AssistantPlugin::new(NAME, ABOUT, make)
};

const KUBECONFIG: Setting = Setting {
    variable: "KUBECONFIG",
    key: "kubeops.kubeconfig",
    kind: SettingKind::File,
    help: "the kubeconfig of the cluster",
    default: SettingDefault::Description("~/.kube/config, or the pod's service account"),
};
const CONTEXT: Setting = Setting {
    variable: "KUBEOPS_CONTEXT",
    key: "kubeops.context",
    kind: SettingKind::Text,
    help: "the context of the kubeconfig",
    default: SettingDefault::Description("its current context"),
};
const CONFIG: Setting = Setting {
    variable: "KUBEOPS_CONFIG",
    key: "kubeops.config",
    kind: SettingKind::File,
    help: "the YAML file with memory, access and approvals",
    default: SettingDefault::Description("the defaults in docs/slack.md"),
};

/// Reads the assistant's configuration from its settings.
///
/// # Errors
/// The file cannot be read, or has an invalid value.
pub fn config(settings: &PluginSettings) -> Result<Config, PluginError> {
    let Some(file) = settings.file(&CONFIG) else { return Ok(Config::default()) };
    let invalid = |error: String| {
        PluginError::new(FailureKind::Setup, format!("{}: {error}", file.display()))
            .with_hint("docs/slack.md describes the file")
    };
    let text = std::fs::read_to_string(&file).map_err(|error| invalid(error.to_string()))?;
    Config::from_yaml(&text).map_err(|error| invalid(error.to_string()))
}

fn cluster(settings: &PluginSettings, config: &Config) -> Cluster {
    Cluster::open(settings.file(&KUBECONFIG).as_deref(), settings.get(&CONTEXT), config.access.clone())
}

fn make(parts: AssistantParts, settings: &PluginSettings) -> Result<Arc<dyn Assistant>, PluginError> {
    let config = config(settings)?;
    Ok(Arc::new(Kubeops::new(cluster(settings, &config), &config, parts.model)))
}

fn health(settings: &PluginSettings) -> Result<Option<String>, PluginError> {
    let config = config(settings)?;
    let cluster = cluster(settings, &config);
    let mode = if config.access.read_only { ", read-only" } else { "" };
    Ok(Some(match cluster.problem() {
        Some(problem) => problem.to_owned(),
        None => format!("kubeconfig found, namespace {}{mode}", cluster.default_namespace()),
    }))
}
