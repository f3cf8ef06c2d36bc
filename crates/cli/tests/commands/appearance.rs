//! Help text, colour, and the protection of the terminal against stored text.

use super::{Cli, assert_prints};

const COMMANDS: [&str; 34] = [
    "migrate",
    "supabase",
    "import",
    "threads",
    "show",
    "append",
    "search",
    "browse",
    "recall",
    "context",
    "export",
    "erase",
    "stats",
    "check",
    "backup",
    "restore",
    "vacuum",
    "serve",
    "open",
    "keys",
    "audit",
    "demo",
    "chat",
    "ask",
    "docs",
    "approvals",
    "trace",
    "graph",
    "subway",
    "tesis",
    "config",
    "models",
    "completions",
    "man",
];

#[test]
fn help_lists_every_command_and_each_has_an_example() {
    let cli = Cli::new();
    let help = cli.out(&["-h"]);
    assert_prints!(cli, "help", help);
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
        let text = cli.out(&[command, "--help"]);
        assert!(text.contains("Example") && text.contains(&format!("threadkeep {command}")), "{text}");
    }
    assert_eq!(cli.out(&["--version"]), format!("threadkeep {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn colour_is_off_outside_terminals_unless_requested() {
    let cli = Cli::with_garden();
    for arguments in [&["show", "web:garden"][..], &["search", "carrots"], &["threads"]] {
        assert!(!cli.out(arguments).contains('\u{1b}'), "{arguments:?}");
    }
    for arguments in [&["context", "web:garden"][..], &["context", "web:garden", "--explain"], &["recall", "carrots"]] {
        assert!(!cli.out(arguments).contains('\u{1b}'), "{arguments:?}");
        assert!(cli.out(&[arguments, &["--color", "always"]].concat()).contains('\u{1b}'), "{arguments:?}");
    }
    let search = cli.out(&["search", "tomatoes", "--color", "always"]);
    assert!(search.contains("\u{1b}[1m\u{1b}[33mtomatoes\u{1b}[0m"), "{search:?}");
    assert!(!cli.out(&["search", "tomatoes", "--color", "never"]).contains('\u{1b}'));
}

#[test]
fn stored_text_cannot_control_the_terminal() {
    let cli = Cli::new();
    let harmful = b"before \x1b]0;owned\x07 \x1b[2J after \xe2\x80\xae";
    cli.run_with_input(&["append", "evil\u{202e}", "--create", "--author", "Eve"], harmful);
    for arguments in [&["show", "evil\u{202e}"][..], &["search", "owned"], &["threads"]] {
        let out = cli.out(arguments);
        assert!(out.contains("before") && out.contains("after"), "{out}");
        assert!(!out.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{out:?}");
    }
    let question = "who is owned \u{1b}[31m\u{7}?";
    for arguments in [
        &["context", "evil\u{202e}", question, "--recall"][..],
        &["context", "evil\u{202e}", question, "--transcript"],
        &["context", "evil\u{202e}", question, "--recall", "--explain", "--keep", "turn\u{202e}"],
        &["context", "--turn", "turn\u{202e}"],
        &["recall", question],
    ] {
        let output = cli.run(arguments);
        assert!(output.code == Some(0) && output.out.contains("before"), "{output}");
        assert!(!format!("{output}").contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}']), "{output:?}");
    }
    for name in ["other\u{202e}", "\u{1b}[3J"] {
        let output = cli.run(&["context", "--turn", name]);
        assert!(output.code != Some(0) && !output.err.contains(['\u{1b}', '\u{202e}']), "{output:?}");
    }
    assert_eq!(
        cli.json(&["show", "evil\u{202e}"])["messages"][0]["parts"][0]["text"].as_str().unwrap().as_bytes(),
        harmful
    );
}

#[test]
fn completions_and_manual_pages_cover_every_command() {
    let cli = Cli::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = cli.out(&["completions", shell]);
        assert!(COMMANDS.iter().all(|command| script.contains(command)), "{shell}");
    }
    let page = cli.out(&["man"]);
    assert!(page.contains(".TH threadkeep 1"), "{page}");
    let output = cli.run(&["man", "pages"]);
    assert_eq!((output.code, output.err.starts_with("wrote ")), (Some(0), true), "{output}");
    for command in COMMANDS {
        let page = std::fs::read_to_string(cli.path(&format!("pages/threadkeep-{command}.1"))).unwrap();
        assert!(page.contains(".SH NAME") && page.contains("Example"), "{page}");
    }
}
