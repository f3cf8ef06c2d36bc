//! Checks that the list is consistent, that adding an assistant to it makes the assistant available, and that no other file
//! names an assistant.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use threadkeep::Definition;
use threadkeep::agent::plugin::{
    Argument, ArgumentForm, CommandCall, CommandFuture, CommandGroup, CommandOutcome, Example, PluginCommand,
    PluginSettings, Setting, SettingDefault, SettingKind,
};
use threadkeep::core::ToolEffect;
use threadkeep::models::ScriptedModel;
use threadkeep::{JsonText, Map};

use super::*;
use crate::arguments::Arguments;
use crate::commands::assistant::{add_commands, find_invocation, run};
use crate::commands::config::rows;
use crate::commands::{App, Status};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::settings::with_settings_of;

const ALMANAC: Setting = Setting {
    variable: "GARDENER_ALMANAC",
    key: "gardener.almanac",
    kind: SettingKind::File,
    help: "the file with the days for sowing",
    default: SettingDefault::Description("none"),
};

/// A list with one test assistant.
const GARDENERS: &[AssistantPlugin] = &[AssistantPlugin {
    settings: &[ALMANAC],
    watched: &[ALMANAC],
    commands: Some(CommandGroup {
        about: "Look after the almanac",
        details: "It is a book.",
        examples: &[Example { command: "gardener sow carrots", shows: "writes them down" }],
        commands: &[PluginCommand {
            name: "sow",
            about: "Write down what is sown",
            details: "",
            arguments: &[
                Argument { name: "plant", value: "PLANT", form: ArgumentForm::Required, help: "What is sown" },
                Argument { name: "bed", value: "BED", form: ArgumentForm::Optional, help: "Where" },
                Argument { name: "file", value: "FILE", form: ArgumentForm::Option, help: "The file to write" },
                Argument { name: "early", value: "", form: ArgumentForm::Flag, help: "Under glass" },
            ],
            run: sow,
        }],
    }),
    ..AssistantPlugin::new("gardener", "Knows the allotment.", |_, _| {
        Ok(Arc::new(Definition::new("gardener", Arc::new(ScriptedModel::new()))))
    })
}];

fn sow(call: CommandCall<'_>) -> CommandFuture<'_> {
    Box::pin(async move {
        let given = |name| call.arguments.get(name);
        let text = format!("{:?} {:?} {:?}", given("plant"), given("bed"), given("early"));
        call.host.begin_step("sowing");
        call.host.show_bytes(1, None);
        call.host.replace_file(Path::new(given("file").unwrap()), text.as_bytes())?;
        Ok(CommandOutcome { text, notes: vec![], json: JsonText::new("{}").unwrap(), has_findings: true })
    })
}

fn app() -> App {
    let Arguments { global, .. } = Arguments::try_parse_from(["threadkeep", "config", "show"]).unwrap();
    let output = Output::new(&global);
    App { global, output, interrupt: Interrupt::default(), settings: Settings::default() }
}

fn program() -> clap::Command {
    add_commands(clap::Command::new("threadkeep"), GARDENERS)
}

#[test]
fn settings_of_a_listed_assistant_are_shown() {
    let rows = rows(&app(), &with_settings_of(GARDENERS));
    let row = rows.iter().find(|row| row.name == "GARDENER_ALMANAC").unwrap();
    assert_eq!((row.key, row.value.as_str(), row.from.as_str()), ("gardener.almanac", "none", "built in"));
    assert_eq!(row.about, "the file with the days for sowing");
}

#[test]
fn commands_of_a_listed_assistant_are_offered() {
    let help = program().render_help().to_string();
    assert!(help.contains("gardener  Look after the almanac"), "{help}");
    let mut program = program();
    program.build();
    let group = program.find_subcommand_mut("gardener").unwrap();
    let help = group.render_long_help().to_string();
    let example = "threadkeep gardener sow carrots               writes them down";
    assert!(help.starts_with("Look after the almanac\n\nIt is a book.\n") && help.contains(example), "{help}");
    let help = group.find_subcommand_mut("sow").unwrap().render_help().to_string();
    assert!(
        help.contains("sow [OPTIONS] <PLANT> [BED]") && help.contains("--file <FILE>  The file to write"),
        "{help}"
    );
}

#[tokio::test]
async fn commands_of_a_listed_assistant_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sown/beds.txt");
    for (more, written) in
        [(&["--early"][..], r#"Some("carrots") None Some("")"#), (&["north"], r#"Some("carrots") Some("north") None"#)]
    {
        let words = ["threadkeep", "gardener", "sow", "carrots", "--file", file.to_str().unwrap()];
        let matches = program().try_get_matches_from([&words, more].concat()).unwrap();
        let status = run(&app(), find_invocation(&matches, GARDENERS).unwrap()).await.unwrap();
        assert_eq!((status, std::fs::read_to_string(&file).unwrap().as_str()), (Status::Findings, written));
    }
    let count = std::fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(count, 1, "no temporary file remains");
    let error = program().try_get_matches_from(["threadkeep", "gardener", "sow"]).unwrap_err();
    assert_eq!(error.kind(), clap::error::ErrorKind::MissingRequiredArgument);
}

#[tokio::test]
async fn listed_assistants_match_their_plugin_values() {
    let program = Arguments::command();
    for plugin in BUILT_IN {
        check_assistant_name(plugin.name).unwrap();
        let memory = threadkeep::open("memory:").await.unwrap();
        let parts = AssistantParts { memory, model: None, embedder: None, tool_sources: Vec::new() };
        let made = (plugin.make)(parts, &PluginSettings::default()).unwrap();
        let definition = made.definition();
        assert_eq!((definition.name.as_str(), definition.description.as_str()), (plugin.name, plugin.about));
        for lookup in plugin.lookups {
            let tool = definition.tools.iter().find(|tool| tool.spec().name() == lookup.tool);
            let tool = tool.unwrap_or_else(|| panic!("no tool {}", lookup.tool));
            assert_eq!(tool.effect(&Map::new()), ToolEffect::ReadOnly, "{}", lookup.tool);
            let schema: serde_json::Value = tool.spec().description.parameters.read().unwrap();
            for (_, argument) in lookup.arguments {
                assert!(schema["properties"].get(argument).is_some(), "{}: {argument}", lookup.tool);
            }
        }
        assert!(plugin.watched.iter().all(|file| file.kind == SettingKind::File && plugin.settings.contains(file)));
        let client_key = plugin.client_key.iter();
        assert!(client_key.clone().all(|key| key.kind == SettingKind::Secret && plugin.settings.contains(key)));
        let group_examples = plugin.commands.iter().flat_map(|group| group.examples);
        for Example { command, .. } in plugin.examples.iter().chain(group_examples) {
            let word = command.split(' ').next().unwrap();
            assert!(program.find_subcommand(word).is_some(), "{command}");
        }
    }
}

/// Returns the names in the text that may occur only in the list of assistants. "general" alone is allowed, because it is an
/// English word.
fn names_in(text: &str, plugin: &AssistantPlugin) -> Vec<String> {
    let text = text.to_lowercase();
    let mut names = vec![format!("threadkeep_{}", plugin.name), format!("\"{}\"", plugin.name)];
    if plugin.name != DEFAULT {
        names.push(plugin.name.to_owned());
    }
    names.extend(plugin.settings.iter().flat_map(|setting| [setting.variable, setting.key]).map(str::to_lowercase));
    names.extend(plugin.lookups.iter().map(|lookup| lookup.tool.to_owned()));
    // kubectl reads this variable too, and its file has the same name.
    names.retain(|name| name != "kubeconfig" && text.contains(name.as_str()));
    names
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources.extend(self::sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            sources.push(path);
        }
    }
    sources
}

#[test]
fn no_other_file_names_a_listed_assistant() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The page without a server is a program of its own.
    let page = here.with_file_name("offline-page").join("src/assistants.rs");
    let list = [here.join("src/assistants.rs"), here.join("src/assistants/tests.rs"), page];
    let mut count = 0;
    let root = here.ancestors().nth(2).unwrap();
    for package in ["crates", "stores"].iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap()) {
        let source = package.unwrap().path().join("src");
        for file in sources(&source).iter().filter(|file| !list.contains(file)) {
            let text = std::fs::read_to_string(file).unwrap();
            let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
            for plugin in BUILT_IN {
                assert_eq!(names_in(code, plugin), Vec::<String>::new(), "{}", file.display());
            }
            count += 1;
        }
    }
    assert!(count > 200, "only {count} files were read");
    for text in ["use threadkeep_gardener::Almanac;", "settings.get(\"GARDENER_ALMANAC\")", "// the Gardener's tools"] {
        assert!(!names_in(text, &GARDENERS[0]).is_empty(), "{text}");
    }
}
