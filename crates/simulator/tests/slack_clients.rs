//! Slack's own client packages work with the simulated Slack, and Slack's framework accepts the events that it signs.
//!
//! `cargo xtask test` installs the packages into the folders `python` and `node` of the target folder.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use threadkeep_simulator::slack::{APP_TOKEN, App, BOT_ID, BOT_TOKEN, BOT_USER, SIGNING_SECRET, Slack, TEAM, sign};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// How long a script may take.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(60);
const CHANNEL: &str = "C0CLIENT";

fn is_skipped(program: &str) -> bool {
    std::env::var("THREADKEEP_MISSING_PROGRAMS").is_ok_and(|names| names.split(',').any(|name| name == program))
}

/// Returns a path in the target folder.
fn installed(path: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(3).unwrap().join(path);
    assert!(path.exists(), "{} is missing: `cargo xtask test` installs it", path.display());
    path
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn python(part: &str, slack: &Slack) -> Command {
    let mut command = Command::new(installed("python/bin/python"));
    command.arg(script("slack_client.py")).args([part, &slack.api_url(), BOT_TOKEN, SIGNING_SECRET, APP_TOKEN]);
    // Proxies in the environment must not be used for the loopback interface.
    command.env("NO_PROXY", "*").kill_on_drop(true);
    command
}

/// Returns the command for a Node.js script. The script is copied to a folder with the packages, because Node.js looks up
/// modules beside it.
fn node(name: &str, folder: &Path, arguments: &[&str]) -> Command {
    std::fs::copy(script(name), folder.join(name)).unwrap();
    std::os::unix::fs::symlink(installed("node/node_modules"), folder.join("node_modules")).unwrap();
    let mut command = Command::new("node");
    command.arg(folder.join(name)).args(arguments);
    command.env("NO_PROXY", "*").kill_on_drop(true);
    command
}

async fn output(mut command: Command) -> Value {
    let output = tokio::time::timeout(SCRIPT_TIMEOUT, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn posts(slack: &Slack) -> usize {
    slack.calls().iter().filter(|call| call.method == "chat.postMessage").count()
}

#[tokio::test]
async fn slack_sdk_drives_the_workspace() {
    if is_skipped("python") {
        return;
    }
    let slack = Slack::start().await.unwrap();
    let result = output(python("web_api", &slack)).await;
    assert_eq!(result["me"], json!([TEAM, BOT_USER, BOT_ID]));
    assert_eq!(result["pages"], json!([["m4", "m3", "m2", "m1"], ["m0", "root"]]));
    assert_eq!(result["thread"], json!([["root", true], ["changed", true]]));
    assert_eq!(result["replies"], 1);
    assert_eq!(result["metadata"], json!({ "event_type": "answer", "event_payload": { "turn": "t1" } }));
    assert_eq!(result["newer"], json!([5, 6]));
    assert_eq!((&result["user"], &result["channel"]), (&json!(TEAM), &json!(true)));
    assert_eq!(
        result["errors"],
        json!([
            "channel_not_found",
            "no_text",
            "thread_not_found",
            "message_not_found",
            "message_not_found",
            "unknown_method",
            "invalid_cursor",
            "invalid_auth",
            "not_authed",
        ])
    );
}

#[tokio::test]
async fn slack_sdk_waits_when_it_is_rate_limited() {
    if is_skipped("python") {
        return;
    }
    let slack = Slack::start().await.unwrap();
    slack.limit(2, 1);
    let result = output(python("limited", &slack)).await;
    assert_eq!(result["ts"], slack.messages()[0].ts);
    assert_eq!((posts(&slack), slack.messages().len()), (1, 1));
}

#[tokio::test]
async fn the_node_package_drives_the_workspace() {
    if is_skipped("node") {
        return;
    }
    let slack = Slack::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let command = node("slack_client.mjs", folder.path(), &[&slack.api_url(), BOT_TOKEN]);
    slack.limit(1, 1);
    let result = output(command).await;
    assert_eq!(result["me"], json!([TEAM, BOT_USER, BOT_ID]));
    assert_eq!(result["pages"], json!([["m4", "m3", "m2", "m1"], ["m0", "root"]]));
    assert_eq!(result["thread"], json!(["root", "changed"]));
    assert_eq!(result["metadata"], json!({ "event_type": "answer", "event_payload": { "turn": "t1" } }));
    let errors = json!(["channel_not_found", "message_not_found", "unknown_method", "invalid_auth"]);
    assert_eq!(result["errors"], errors);
}

/// A running script, and the lines that it prints.
struct Running {
    lines: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        Self { lines: BufReader::new(process.stdout.take().unwrap()).lines(), _process: process }
    }

    /// Returns what the script prints next.
    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(SCRIPT_TIMEOUT, self.lines.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

/// An app made with Slack's framework.
struct BoltApp {
    app: App,
    running: Running,
}

impl BoltApp {
    async fn start(slack: &Slack) -> Self {
        let mut running = Running::start(python("bolt", slack));
        let url = format!("http://127.0.0.1:{}/slack/events", running.next().await);
        Self { app: App::at(&url, "", ""), running }
    }

    /// Returns what the app prints next.
    async fn next(&mut self) -> Value {
        self.running.next().await
    }
}

#[tokio::test]
async fn slack_sdk_uploads_a_file() {
    if is_skipped("python") {
        return;
    }
    let slack = Slack::start().await.unwrap();
    let result = output(python("files", &slack)).await;
    assert_eq!(result["shared"][1], "Answer");
    assert_eq!(result["thread"], json!([["root", []], ["here", ["answer.txt"]]]));
    assert_eq!(result["error"], "file_not_found");
    assert_eq!(slack.messages()[1].files[0].text(), "a long answer");
}

/// Drives a Socket Mode client, which must connect, acknowledge, and reconnect.
async fn drive_in_socket_mode(slack: &Slack, mut running: Running, has_retries: bool) {
    let mut next = async || {
        let mut line = running.next().await;
        if !has_retries && line.is_array() {
            line.as_array_mut().unwrap().truncate(3);
        }
        line
    };
    assert_eq!(next().await, "connected");
    slack.wait_for_sockets(1).await;
    let said = slack.say(&App::SocketMode, CHANNEL, "U1", "hello", None).await;
    let expected = |text: &str, retry: u32| match has_retries {
        true => json!(["events_api", "message", text, retry]),
        false => json!(["events_api", "message", text]),
    };
    assert_eq!(next().await, expected("hello", 0));
    let pressed = slack.press(&App::SocketMode, &said, "U2", "yes").await;
    assert_eq!((pressed.status, pressed.attempts), (Some(200), 1));
    assert_eq!(next().await[1], "block_actions");
    // Slack announces the end of the connection, and the client opens another one.
    slack.announce_disconnect("refresh_requested");
    slack.close_announced();
    slack.wait_for_sockets(1).await;
    slack.say(&App::SocketMode, CHANNEL, "U1", "still there?", None).await;
    assert_eq!(next().await, expected("still there?", 0));
    if has_retries {
        slack.say(&App::SocketMode, CHANNEL, "U1", "again", None).await;
        assert_eq!(next().await, expected("again", 0));
        assert_eq!(next().await, expected("again", 1));
    }
}

#[tokio::test]
async fn slack_sdk_connects_in_socket_mode() {
    if is_skipped("python") {
        return;
    }
    let slack = Slack::start().await.unwrap();
    let running = Running::start(python("socket", &slack));
    tokio::time::timeout(SCRIPT_TIMEOUT, drive_in_socket_mode(&slack, running, true)).await.unwrap();
}

#[tokio::test]
async fn the_node_package_connects_in_socket_mode() {
    if is_skipped("node") {
        return;
    }
    let slack = Slack::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(node("socket_client.mjs", folder.path(), &[&slack.api_url(), APP_TOKEN]));
    tokio::time::timeout(SCRIPT_TIMEOUT, drive_in_socket_mode(&slack, running, false)).await.unwrap();
}

#[tokio::test]
async fn bolt_accepts_the_events_that_the_workspace_signs() {
    if is_skipped("python") {
        return;
    }
    let slack = Slack::start().await.unwrap();
    let mut bolt = BoltApp::start(&slack).await;
    let said = slack.say(&bolt.app, CHANNEL, "U1", "hello", None).await;
    assert_eq!(bolt.next().await, json!(["message", "U1", "hello"]));
    assert_eq!(slack.edit(&bolt.app, CHANNEL, &said.ts, "hello there").await.status, Some(200));
    assert_eq!(bolt.next().await, json!(["changed", "hello", "hello there"]));
    assert_eq!(slack.erase(&bolt.app, CHANNEL, &said.ts).await.status, Some(200));
    assert_eq!(bolt.next().await, json!(["deleted", "hello there"]));

    let question = slack.say(&bolt.app, CHANNEL, "U1", &format!("<@{BOT_USER}> delete it"), None).await;
    let both = [bolt.next().await, bolt.next().await];
    for kind in ["message", "app_mention"] {
        assert!(both.contains(&json!([kind, "U1", format!("<@{BOT_USER}> delete it")])), "{both:?}");
    }
    let find =
        |messages: &[threadkeep_simulator::slack::Message]| messages.iter().find(|one| one.is_from_bot()).cloned();
    let request = tokio::time::timeout(SCRIPT_TIMEOUT, slack.wait_for(find)).await.unwrap();
    assert_eq!(request.thread_ts.as_deref(), Some(&*question.ts));
    assert_eq!(slack.react(&bolt.app, CHANNEL, &request.ts, "U2", "white_check_mark").await.status, Some(200));
    assert_eq!(bolt.next().await, json!(["reaction", "U2", "white_check_mark"]));
    assert_eq!(slack.press(&bolt.app, &request, "U2", "yes").await.status, Some(200));
    assert_eq!(bolt.next().await, json!(["pressed", "U2", "7"]));
}

#[tokio::test]
async fn bolt_verifies_its_url_and_refuses_other_signatures() {
    if is_skipped("python") {
        return;
    }
    let slack = Slack::start().await.unwrap();
    let bolt = BoltApp::start(&slack).await;
    let body = json!({ "type": "url_verification", "challenge": "3eZbrw1aB", "token": "x" }).to_string();
    let verified = slack.post(bolt.app.events_url(), &body, "application/json", None).await;
    assert_eq!(verified.status, Some(200));
    assert!(verified.body.contains("3eZbrw1aB"), "{}", verified.body);

    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let status = async |timestamp: u64, secret: &str| {
        let timestamp = timestamp.to_string();
        let signature = sign(secret, &timestamp, &body);
        let request = client.post(bolt.app.events_url()).header("content-type", "application/json");
        let request = request.header("x-slack-request-timestamp", timestamp).header("x-slack-signature", signature);
        request.body(body.clone()).send().await.unwrap().status().as_u16()
    };
    assert_eq!(status(now, SIGNING_SECRET).await, 200);
    assert_eq!(status(now, "another secret").await, 401);
    assert_eq!(status(now - 301, SIGNING_SECRET).await, 401);
}
