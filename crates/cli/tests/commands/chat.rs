//! Conversations with assistants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Cli, RunOutput};

const NOW: [&str; 2] = ["--now", "2026-05-03T09:00:00Z"];

fn turns(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn ask_prints_the_whole_turn_as_json() {
    let cli = Cli::new();
    cli.out(&[&["ask", "The tent is blue.", "--thread", "camping"], &NOW[..]].concat());
    let turn = cli.json(&[
        "ask",
        "general",
        "What colour is the tent?",
        "--now",
        "2026-06-01T10:00:00Z",
        "--thread",
        "camping",
    ]);
    let members: Vec<&str> = turn.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        members,
        [
            "thread",
            "turn",
            "agent",
            "routed_agent",
            "confidence",
            "model",
            "status",
            "reply",
            "error",
            "tool_calls",
            "approvals",
            "sources",
            "usage",
            "context",
            "data",
            "stored",
            "started_at",
            "duration_ms"
        ]
    );
    assert_eq!(turn["started_at"], "2026-06-01T10:00:00Z");
    assert_eq!(turn["stored"], serde_json::json!([{"seq": 3, "role": "user"}, {"seq": 4, "role": "assistant"}]));
    assert_eq!(
        (&turn["agent"], &turn["model"], &turn["status"]),
        (&"general".into(), &"offline".into(), &"completed".into())
    );
    assert_eq!(cli.json(&["show", "camping"])["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn answers_quote_their_sources() {
    let cli = Cli::new();
    let statement = ["ask", "The tent is blue.", "--thread", "tent"];
    assert_eq!(cli.out(&[&statement, &NOW[..]].concat()), "I will keep that in mind.\n");
    let out = cli.out(&["ask", "Which tent is blue?"]);
    let (answer, sources) = out.split_once("\n\n").unwrap();
    assert_eq!(answer, "You said on 3 May 2026: “The tent is blue.” [1]");
    assert!(sources.starts_with("[1] said by the user on 2026-05-03 (message #1 of thread "), "{sources}");
}

#[test]
fn questions_without_a_thread_are_ephemeral() {
    let cli = Cli::new();
    let at = |time: &'static str| ["--now", time];
    let (noon, late) = (at("2026-05-03T12:00:00Z"), at("2026-05-04T12:00:01Z"));
    cli.out(&[&["append", "tent", "We own a tent.", "--create"], &noon[..]].concat());
    let turn = cli.json(&[&["ask", "The tent is blue."], &noon[..]].concat());
    let thread = turn["thread"].as_str().unwrap();
    let listed = cli.json(&[&["threads"], &noon[..]].concat());
    assert_eq!((listed["threads"].as_array().unwrap().len(), &listed["threads"][0]["key"]), (1, &"tent".into()));
    for arguments in [&["search", "blue"][..], &["recall", "Is it blue?"], &["export"]] {
        let out = cli.out(&[arguments, &noon[..]].concat());
        assert!(!out.contains("blue."), "{arguments:?}: {out}");
    }
    let answer = cli.out(&[&["ask", "What is blue?"], &noon[..]].concat());
    assert!(!answer.contains("is blue."), "{answer}");
    // The thread can be displayed and continued for a day.
    let shown = cli.json(&[&["show", thread], &noon[..]].concat());
    assert_eq!(shown["thread"]["metadata"]["threadkeep.ephemeral"], true, "{shown}");
    cli.out(&[&["trace", turn["turn"].as_str().unwrap()], &noon[..]].concat());
    let next = cli.json(&[&["ask", "Thanks.", "--thread", thread], &noon[..]].concat());
    assert_eq!(next["thread"], thread);
    assert_eq!(cli.json(&[&["threads"], &noon[..]].concat())["threads"].as_array().unwrap().len(), 1);
    assert_eq!(cli.run(&[&["show", thread], &late[..]].concat()).code, Some(1));
    cli.out(&[&["vacuum"], &late[..]].concat());
    assert!(!cli.contains_bytes(b"The tent is blue."));
}

#[test]
fn input_lines_are_turns_of_one_conversation() {
    let cli = Cli::new();
    let input = b"The tent is blue.\n\nWhich tent is blue?\nThanks";
    let output = cli.run_with_input(&[&["chat", "general", "--json"], &NOW[..]].concat(), input);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output}");
    let turns = turns(&output.out);
    let replies: Vec<&str> = turns.iter().map(|turn| turn["reply"].as_str().unwrap()).collect();
    assert_eq!(replies[..2], ["I will keep that in mind.", "You said on 3 May 2026: “The tent is blue.” [1]"]);
    assert_eq!(turns.len(), 3);
    assert!(turns.iter().all(|turn| turn["thread"] == turns[0]["thread"]));
}

#[test]
fn empty_chats_store_nothing() {
    let cli = Cli::new();
    for input in ["", "/quit\n", "\n\n/trace\n/context\n/clear\n/threads\n/nonsense\n/help\n"] {
        let output = cli.run_with_input(&["chat"], input.as_bytes());
        assert_eq!(output.code, Some(0), "{output}");
        assert!(!output.err.contains("to resume"), "{output}");
    }
    assert_eq!(cli.json(&["threads"])["threads"], serde_json::json!([]));
}

#[test]
fn slash_commands_inspect_the_chat() {
    let cli = Cli::new();
    let input =
        "Remember that my seat is the window.\n/trace\nWhere is my seat?\n/context\n/threads\n/clear\nA new one.\n";
    let output = cli.run_with_input(&["chat", "--thread", "trip"], input.as_bytes());
    assert_eq!(output.code, Some(0), "{output}");
    for expected in [
        "I will remember that your seat is the window.",
        "tool set_preference{\"name\":\"seat\",\"value\":\"the window\"}",
        "Your seat is the window.",
        "history",
        "* ",
    ] {
        assert!(output.out.contains(expected), "{expected}: {output}");
    }
    assert!(output.err.contains("to resume: ") && output.err.contains(" chat --thread "), "{output}");
    assert_eq!(cli.json(&["threads"])["threads"].as_array().unwrap().len(), 2);
}

#[test]
fn turns_can_be_traced_later() {
    let cli = Cli::new();
    cli.out(&["ask", "The tent is blue.", "--thread", "camping"]);
    let turn = cli.json(&["ask", "Which tent is blue?", "--thread", "camping"]);
    let id = turn["turn"].as_str().unwrap();
    let traced = cli.out(&["trace", id]);
    assert!(traced.contains("assistant    general") && traced.contains("status       completed"), "{traced}");
    assert_eq!(cli.json(&["trace", id])["reply"], turn["reply"]);
    let explained = cli.out(&["context", "--turn", id, "--explain"]);
    assert!(explained.contains("system prompt"), "{explained}");
    let output = cli.run(&["trace", "nothing"]);
    assert_eq!((output.code, output.err.contains("turn `nothing` not found")), (Some(1), true), "{output}");
}

#[test]
fn invalid_questions_are_rejected() {
    let cli = Cli::new();
    for (arguments, code, expected) in [
        (&["ask", "missing", "Hello?"][..], 1, "assistant `missing` not found"),
        (&["ask", " "], 2, "the question is empty"),
        (&["ask", "Hello?", "--model", "nonsense:x"], 2, "the model cannot be used"),
        (&["chat", "../etc/passwd"], 1, "not found"),
        (&["ask", "Hello?", "--now", "soon"], 2, "--now"),
        (&["approvals", "approve", "x"], 1, "not found"),
    ] {
        let output = cli.run(arguments);
        assert_eq!((output.code, output.err.contains(expected)), (Some(code), true), "{arguments:?}: {output}");
        assert!(!cli.store().exists(), "{arguments:?}");
    }
    cli.out(&["ask", "Hello."]);
    let output = cli.run(&["approvals", "deny", "x"]);
    assert_eq!((output.code, output.err.contains("approval `x` not found")), (Some(1), true), "{output}");
    assert_eq!(cli.json(&["approvals", "list", "--all"]), serde_json::json!({"approvals": []}));
}

/// A model that accepts a question and never replies.
struct SilentModel(TcpListener);

impl SilentModel {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn configure(&self, command: &mut Command) {
        let url = format!("http://{}/v1", self.0.local_addr().unwrap());
        command.env("OPENAI_BASE_URL", url).env("OPENAI_MODEL", "silent").env("NO_PROXY", "127.0.0.1");
    }

    /// Waits for a question. Returns its connection.
    fn wait(&self) -> std::net::TcpStream {
        let (mut stream, _) = self.0.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().starts_with("POST "));
        stream.flush().unwrap();
        stream
    }
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_answer_and_stores_the_question() {
    let (cli, silent) = (Cli::new(), SilentModel::new());
    let mut command = cli.command(&["ask", "Are you there?", "--thread", "calls", "--json"]);
    silent.configure(&mut command);
    let child = command.spawn().unwrap();
    let _connection = silent.wait();
    interrupt(&child);
    let output: RunOutput = child.wait_with_output().unwrap().into();
    assert_eq!(output.code, Some(130), "{output}");
    let turn: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!((&turn["status"], &turn["error"]["code"]), (&"failed".into(), &"stopped".into()));
    let answer = cli.json(&["ask", "Is anybody there?", "--thread", "calls"]);
    assert_eq!(answer["stored"][0]["seq"], 3, "{answer}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_in_a_chat_stops_only_the_turn() {
    let (cli, silent) = (Cli::new(), SilentModel::new());
    let mut command = cli.command(&["chat"]);
    silent.configure(&mut command);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"Are you there?\n").unwrap();
    let _connection = silent.wait();
    interrupt(&child);
    input.write_all(b"/trace\n/quit\n").unwrap();
    drop(input);
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(out.contains("(stopped)"), "{out}");
}

#[cfg(target_os = "linux")]
#[test]
fn killed_turns_resume_immediately() {
    let (cli, silent) = (Cli::new(), SilentModel::new());
    let question = ["ask", "Are you there?", "--thread", "calls"];
    let mut command = cli.command(&[&question[..], &NOW[..]].concat());
    silent.configure(&mut command);
    let mut killed = command.spawn().unwrap();
    let _connection = silent.wait();
    killed.kill().unwrap();
    killed.wait().unwrap();

    // The time is unchanged, so the lease has not expired.
    let turn = cli.json(&[&["ask", "The tent is blue.", "--thread", "calls"], &NOW[..]].concat());
    assert_eq!(turn["status"], "completed", "{turn}");
    let shown = cli.json(&["show", "calls"]);
    let roles: Vec<&str> =
        shown["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}

#[test]
fn invalid_utf8_does_not_end_the_input() {
    let cli = Cli::new();
    let output = cli.run_with_input(&["chat", "--json"], b"tw\xff\xfe\0o\nThanks\n");
    assert_eq!((output.code, turns(&output.out).len()), (Some(0), 2), "{output}");
    let long = [b"The tent is blue.\n", &[b'a'; 1024 * 1024 + 1][..], b"\n"].concat();
    let output = cli.run_with_input(&["chat", "--json"], &long);
    assert_eq!((output.code, turns(&output.out).len()), (Some(1), 1), "{output}");
    assert!(output.err.contains("is longer than 1048576 bytes"), "{output}");
}
