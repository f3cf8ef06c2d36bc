//! Tool calls that wait for approval are requested by one process and decided by another.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, Stdio};

use serde_json::{Value, json};

use super::Cli;

const CAREFUL: &str = "kind: Agent\nmetadata: {name: careful}\nspec:\n  \
                       tools: [list_preferences, {name: set_preference, approval: ask}]\n";
const CALL: &str = "set_preference(name: \"seat\", value: \"the window\")";
const ASK: &str = "Remember that my seat is the window.";

fn careful(cli: &Cli) -> String {
    cli.file("careful.yaml", CAREFUL)
}

/// Requests a call that needs approval. Returns the approval's id.
fn request_approval(cli: &Cli, path: &str) -> String {
    let turn = cli.json(&["ask", path, ASK, "--thread", "trip"]);
    assert_eq!((&turn["status"], &turn["approvals"][0]["preview"]), (&"waiting_for_approval".into(), &CALL.into()));
    turn["approvals"][0]["id"].as_str().unwrap().to_owned()
}

fn preferences(cli: &Cli, path: &str) -> Value {
    let turn = cli.json(&["ask", path, "What are my preferences?"]);
    turn["tool_calls"][0]["result"]["preferences"].clone()
}

/// A running chat.
struct Chat {
    child: Child,
    input: ChildStdin,
    notes: Lines<BufReader<ChildStderr>>,
}

impl Chat {
    fn start(cli: &Cli, arguments: &[&str]) -> Self {
        let mut child = cli.command(&[&["chat"], arguments].concat()).stdin(Stdio::piped()).spawn().unwrap();
        let (input, notes) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
        Self { child, input, notes: BufReader::new(notes).lines() }
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// Waits for a note that contains the text.
    fn wait_for(&mut self, expected: &str) -> String {
        let found = self.notes.find(|line| line.as_ref().unwrap().contains(expected));
        found.unwrap_or_else(|| panic!("no note contains {expected}")).unwrap()
    }

    /// Ends the chat. Returns its standard output.
    fn end(mut self) -> String {
        drop(self.input);
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{out}");
        out
    }
}

/// Returns the arguments of the command that a note suggests.
fn command(note: &str) -> Vec<String> {
    let (_, words) = note.split_once(" approvals ").unwrap();
    ["approvals"].into_iter().chain(words.split(' ')).map(str::to_owned).collect()
}

// S1.45, S4.18, S4.46, S4.47, S4.50
#[test]
fn calls_can_be_approved_from_another_terminal() {
    let cli = Cli::new();
    let path = careful(&cli);
    let mut chat = Chat::start(&cli, &[&path, "--thread", "trip"]);
    chat.type_line(ASK);
    chat.wait_for("decide with /approve or /deny [REASON]");
    let approve = command(&chat.wait_for("to approve: "));
    assert_eq!(preferences(&cli, &path), json!({}), "nothing runs before it is approved");
    let listed = cli.json(&["approvals", "list"]);
    assert_eq!(
        (&listed["approvals"][0]["preview"], &listed["approvals"][0]["state"]),
        (&CALL.into(), &"pending".into())
    );

    let approve: Vec<&str> = approve.iter().map(String::as_str).collect();
    assert_eq!(cli.out(&approve), "I will remember that your seat is the window.\n");
    assert_eq!(preferences(&cli, &path), json!({"seat": "the window"}));
    let again = cli.run(&approve);
    assert_eq!((again.code, again.err.contains("is already done")), (Some(1), true), "{again}");

    chat.type_line("Did it work?");
    chat.wait_for("decided elsewhere:");
    let out = chat.end();
    assert!(out.contains(&format!("⚠️ This action requires approval\n`{CALL}`")), "{out}");
    assert!(
        out.contains("I will remember that your seat is the window.\n") && out.contains("Yes: set_preference "),
        "{out}"
    );
}

// S1.45, S4.18, S4.50
#[test]
fn pending_calls_remain_after_their_chat_ends() {
    let cli = Cli::new();
    let path = careful(&cli);
    let id = request_approval(&cli, &path);
    let output = cli.run(&["approvals", "deny", &id, "--reason", "not by the window"]);
    assert_eq!(output.code, Some(1), "the assistant's file must be named: {output}");
    assert!(
        output.err.contains("requested the approval: assistant `careful` not found")
            && output.err.contains("--assistant ./careful.yaml")
    );

    let mut chat = Chat::start(&cli, &[&path, "--thread", "trip"]);
    chat.wait_for("to approve: ");
    chat.type_line("Did it work?");
    chat.type_line("/deny not by the window");
    chat.type_line("Did it work?");
    chat.type_line("/approve");
    chat.wait_for("no open approval in this conversation");
    let out = chat.end();
    assert!(out.contains(&format!("⚠️ waiting for approval: {CALL}")), "{out}");
    assert!(out.contains("Not yet: set_preference ") && out.contains("No: set_preference "), "{out}");
    assert!(out.contains("not by the window"), "{out}");
    assert_eq!(preferences(&cli, &path), json!({}));
    let all = cli.json(&["approvals", "list", "--all"]);
    let approval = &all["approvals"][0];
    assert_eq!((&approval["state"], &approval["reason"]), (&"denied".into(), &"not by the window".into()));
}

// S1.45
#[test]
fn calls_can_be_approved_with_other_arguments() {
    let cli = Cli::new();
    let path = careful(&cli);
    let id = request_approval(&cli, &path);
    let approve = |arguments| cli.run(&["approvals", "approve", &id, "--assistant", &path, "--arguments", arguments]);
    let output = approve("[]");
    assert_eq!((output.code, output.err.contains("--arguments is not a JSON object")), (Some(2), true), "{output}");
    let output = cli.run(&["approvals", "approve", &id, "--assistant", "general"]);
    assert_eq!(
        (output.code, output.err.contains("requested by assistant careful, not by general")),
        (Some(2), true),
        "{output}"
    );
    let output = approve(r#"{"name": "seat", "value": "the aisle"}"#);
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(0), "I will remember that your seat is the aisle.\n"),
        "{output}"
    );
    assert_eq!(preferences(&cli, &path), json!({"seat": "the aisle"}));
    let log = cli.json(&["audit"]);
    let entered = log["records"].as_array().unwrap().iter().map(|record| (&record["act"], &record["outcome"]));
    let approved: serde_json::Value = "approvals approve".into();
    assert!(entered.eq([(&approved, &"begun".into()), (&approved, &"done".into())]), "{log}");
    assert!(log["records"][0]["target"] == id.as_str() && !log.to_string().contains("aisle"), "{log}");
}

// S4.50
#[test]
fn expired_and_replaced_calls_are_void() {
    let cli = Cli::new();
    let path = careful(&cli);
    let asked = || {
        let turn = cli.json(&["ask", &path, ASK, "--thread", "trip", "--now", "2026-05-03T09:00:00Z"]);
        turn["approvals"][0]["id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (asked(), asked());
    let approve = |id: &str, now: &str| cli.run(&["approvals", "approve", id, "--assistant", &path, "--now", now]);
    let output = approve(&first, "2026-05-03T09:01:00Z");
    assert_eq!((output.code, output.err.contains("is already replaced")), (Some(1), true), "{output}");
    let output = approve(&second, "2026-05-03T09:30:00Z");
    assert_eq!((output.code, output.err.contains("is already expired")), (Some(1), true), "{output}");
    assert_eq!(preferences(&cli, &path), json!({}));
}

#[test]
fn calls_of_questions_without_a_thread_wait_for_approval() {
    let cli = Cli::new();
    let path = careful(&cli);
    let turn = cli.json(&["ask", &path, ASK]);
    let id = turn["approvals"][0]["id"].as_str().unwrap();
    assert_eq!(cli.json(&["approvals", "list"])["approvals"][0]["id"], id);
    assert_eq!(cli.json(&["threads"])["threads"], json!([]));
    cli.out(&["approvals", "approve", id, "--assistant", &path]);
    assert_eq!(preferences(&cli, &path), json!({"seat": "the window"}));
    assert_eq!(cli.json(&["threads"])["threads"], json!([]));
    assert_eq!(cli.json(&["search", "window"])["hits"], json!([]));
}
