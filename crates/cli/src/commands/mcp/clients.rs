//! The programs that start MCP servers, and where each of them keeps its list of servers.

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::commands::places::System;

/// A program that starts MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// Claude Code, for all your projects
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor, for all your projects
    Cursor,
    /// Visual Studio Code, for all your workspaces
    #[value(name = "vscode")]
    VsCode,
}

impl Client {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
        }
    }

    /// Returns the file in which the program keeps its servers; `None` if the environment does not specify the user's folder.
    pub(super) fn file(self, system: System, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        let home = || system.home(&variable);
        let application_data = || system.application_data(&variable);
        match self {
            Self::ClaudeCode => Some(variable("CLAUDE_CONFIG_DIR").or_else(home)?.join(".claude.json")),
            Self::ClaudeDesktop => Some(application_data()?.join("Claude").join("claude_desktop_config.json")),
            Self::Cursor => Some(home()?.join(".cursor").join("mcp.json")),
            Self::VsCode => Some(application_data()?.join("Code").join("User").join("mcp.json")),
        }
    }

    /// Returns the field of the file that contains the servers.
    pub(super) const fn section(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor => "mcpServers",
        }
    }

    /// Returns the entry of a server that the program starts.
    pub(super) fn entry(self, command: &str, arguments: &[String]) -> Value {
        match self {
            Self::ClaudeCode | Self::VsCode => json!({ "type": "stdio", "command": command, "args": arguments }),
            Self::ClaudeDesktop | Self::Cursor => json!({ "command": command, "args": arguments }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_depend_on_the_system() {
        let variable = |name: &str| match name {
            "HOME" => Some(PathBuf::from("/home/ana")),
            "USERPROFILE" => Some(PathBuf::from("C:/Users/ana")),
            "APPDATA" => Some(PathBuf::from("C:/Users/ana/AppData/Roaming")),
            _ => None,
        };
        use Client::{ClaudeCode, ClaudeDesktop, Cursor, VsCode};
        use System::{Linux, MacOs, Windows};
        for (client, system, expected) in [
            (ClaudeCode, Linux, "/home/ana/.claude.json"),
            (ClaudeCode, Windows, "C:/Users/ana/.claude.json"),
            (ClaudeDesktop, Linux, "/home/ana/.config/Claude/claude_desktop_config.json"),
            (ClaudeDesktop, MacOs, "/home/ana/Library/Application Support/Claude/claude_desktop_config.json"),
            (ClaudeDesktop, Windows, "C:/Users/ana/AppData/Roaming/Claude/claude_desktop_config.json"),
            (Cursor, MacOs, "/home/ana/.cursor/mcp.json"),
            (VsCode, Linux, "/home/ana/.config/Code/User/mcp.json"),
            (VsCode, MacOs, "/home/ana/Library/Application Support/Code/User/mcp.json"),
            (VsCode, Windows, "C:/Users/ana/AppData/Roaming/Code/User/mcp.json"),
        ] {
            assert_eq!(client.file(system, variable), Some(PathBuf::from(expected)), "{client:?} on {system:?}");
        }
        for system in [Linux, MacOs, Windows] {
            assert_eq!(Cursor.file(system, |_| None), None);
        }
    }

    #[test]
    fn variables_move_the_files() {
        let moved =
            |name: &str| matches!(name, "CLAUDE_CONFIG_DIR" | "XDG_CONFIG_HOME").then(|| PathBuf::from("/elsewhere"));
        let file = |client: Client| client.file(System::Linux, moved);
        assert_eq!(file(Client::ClaudeCode), Some(PathBuf::from("/elsewhere/.claude.json")));
        assert_eq!(file(Client::VsCode), Some(PathBuf::from("/elsewhere/Code/User/mcp.json")));
    }
}
