//! Where programs keep their conversations on this machine.

use std::path::{Path, PathBuf};

use super::super::places::{System, variable};
use super::exclusions::Exclusions;

/// A place with conversations of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) program: &'static str,
    pub(super) path: PathBuf,
}

/// The editors in whose folders extensions keep their data.
const EDITORS: [&str; 5] = ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];
/// Editor extensions: the name of the program, and the folder of its data.
const EXTENSIONS: [(&str, &str); 2] = [("Cline", "saoudrizwan.claude-dev"), ("Roo Code", "rooveterinaryinc.roo-cline")];

/// Returns the places that exist and are not excluded.
pub(super) fn existing(exclusions: &Exclusions) -> Vec<Place> {
    let mut places = candidates(System::current(), variable);
    places.retain(|place| place.path.exists() && !exclusions.matches(&place.path));
    places
}

/// Returns all places in which programs keep their conversations: the defaults, or the folders set in the environment.
fn candidates(system: System, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<Place> {
    let mut places = Vec::new();
    let mut add = |program, path: Option<PathBuf>| places.extend(path.map(|path| Place { program, path }));
    let home = system.home(&variable);
    let in_home = |path: &str| home.as_ref().map(|home| home.join(path));
    let claude = variable("CLAUDE_CONFIG_DIR").or_else(|| in_home(".claude"));
    add("Claude Code", claude.map(|folder| folder.join("projects")));
    let codex = variable("CODEX_HOME").or_else(|| in_home(".codex"));
    for folder in ["sessions", "archived_sessions"] {
        add("Codex", codex.as_ref().map(|codex| codex.join(folder)));
    }
    add("Gemini CLI", in_home(".gemini/tmp"));
    add("Continue", in_home(".continue/sessions"));
    add("Cline", in_home(".cline/data/sessions"));
    let data = system.application_data(&variable);
    for editor in EDITORS {
        let storage = data.as_ref().map(|data| data.join(editor).join("User/globalStorage"));
        for (program, extension) in EXTENSIONS {
            add(program, storage.as_ref().map(|storage| storage.join(extension).join("tasks")));
        }
        if editor == "Cursor" {
            add("Cursor", storage.map(|storage| storage.join("state.vscdb")));
        }
    }
    add("Aider", in_home(super::files::AIDER_FILE));
    if let Ok(folder) = std::env::current_dir()
        && Some(&folder) != home.as_ref()
    {
        add("Aider", Some(folder.join(super::files::AIDER_FILE)));
    }
    places
}

/// Returns a path with the home folder abbreviated.
pub(super) fn abbreviated(path: &Path) -> String {
    let home = System::current().home(&variable);
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_system_and_the_environment() {
        let linux = candidates(System::Linux, |name| (name == "HOME").then(|| PathBuf::from("/home/ana")));
        let has = |places: &[Place], program: &str, path: &str| {
            places.iter().any(|place| place.program == program && place.path == Path::new(path))
        };
        assert!(has(&linux, "Claude Code", "/home/ana/.claude/projects"));
        assert!(has(&linux, "Cursor", "/home/ana/.config/Cursor/User/globalStorage/state.vscdb"));
        assert!(has(&linux, "Cline", "/home/ana/.config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks"));
        let other = candidates(System::MacOs, |name| match name {
            "HOME" => Some(PathBuf::from("/Users/ana")),
            "CODEX_HOME" => Some(PathBuf::from("/data/codex")),
            _ => None,
        });
        assert!(has(&other, "Codex", "/data/codex/sessions"));
        assert!(has(
            &other,
            "Roo Code",
            "/Users/ana/Library/Application Support/VSCodium/User/globalStorage/rooveterinaryinc.roo-cline/tasks"
        ));
    }
}
