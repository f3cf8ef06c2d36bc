//! Services that import in the background: a systemd user unit, and a launchd agent.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::App;

/// A service manager that runs a user's services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// A systemd user unit (Linux)
    Systemd,
    /// A launchd agent (macOS)
    Launchd,
}

/// Returns the words of the command that the service runs, with absolute paths. `options` are added as they are.
pub(super) fn words(
    app: &App,
    paths: &[PathBuf],
    all: bool,
    exclude: &[String],
    options: impl Iterator<Item = String>,
) -> Result<Vec<String>> {
    let absolute = |path: &Path| std::path::absolute(path).map(|path| path.display().to_string());
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let mut words = vec![program.display().to_string()];
    words.extend(app.global_words()?);
    words.extend(["import".to_owned(), "--watch".to_owned()]);
    if all {
        words.extend(["--all".to_owned(), "--yes".to_owned()]);
    }
    for pattern in exclude {
        words.extend(["--exclude".to_owned(), pattern.clone()]);
    }
    words.extend(options);
    if !paths.is_empty() {
        words.push("--".to_owned());
    }
    for path in paths {
        words.push(absolute(path)?);
    }
    Ok(words)
}

impl Kind {
    /// Returns the file that describes the service.
    pub(super) fn text(self, words: &[String]) -> String {
        match self {
            Self::Systemd => {
                let command: Vec<_> = words.iter().map(|word| systemd_word(word)).collect();
                format!(
                    "[Unit]\nDescription=Threadkeep: import new conversations\n\n[Service]\nExecStart={}\nRestart=on-failure\nRestartSec=30\nNice=10\n\n[Install]\nWantedBy=default.target",
                    command.join(" ")
                )
            }
            Self::Launchd => {
                let arguments: String =
                    words.iter().map(|word| format!("    <string>{}</string>\n", xml(word))).collect();
                format!(
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>threadkeep.import</string>\n  <key>ProgramArguments</key>\n  <array>\n{arguments}  </array>\n  <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n  <key>ProcessType</key>\n  <string>Background</string>\n</dict>\n</plist>"
                )
            }
        }
    }

    /// Describes how to install the service.
    pub(super) const fn instructions(self) -> &'static str {
        match self {
            Self::Systemd => {
                "save this as ~/.config/systemd/user/threadkeep-import.service, then run\n  systemctl --user enable --now threadkeep-import"
            }
            Self::Launchd => {
                "save this as ~/Library/LaunchAgents/threadkeep.import.plist, then run\n  launchctl load ~/Library/LaunchAgents/threadkeep.import.plist"
            }
        }
    }
}

/// Quotes a word for `ExecStart`, where `%` and `$` are special even in quotes.
fn systemd_word(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,%$".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => escaped,
        false => format!("\"{escaped}\""),
    }
}

fn xml(word: &str) -> String {
    word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_quoted() {
        let words = ["/opt/my tools/threadkeep", "--exclude", "50%\"$a\\b<&>"].map(str::to_owned);
        let unit = Kind::Systemd.text(&words);
        assert!(unit.contains("ExecStart=\"/opt/my tools/threadkeep\" --exclude \"50%%\\\"$$a\\\\b<&>\"\n"), "{unit}");
        let agent = Kind::Launchd.text(&words);
        assert!(agent.contains("<string>50%\"$a\\b&lt;&amp;&gt;</string>"), "{agent}");
    }
}
