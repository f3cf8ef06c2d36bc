//! The token of a server without a key: where it is stored, when it is printed, and that it is required.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::serve::{Server, TOKEN};
use super::{Cli, RunOutput, TIMEOUT};

const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--model", "offline"];

/// A server with its stored token and its standard output.
struct TokenServer {
    child: Child,
    address: String,
    out: BufReader<ChildStdout>,
}

impl TokenServer {
    fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("listening on")).unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        let (_, address) = listening.split_once("//").unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { address: address.to_owned(), child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn status(&self, token: &str) -> String {
        ask(&self.address, token)
    }
}

impl Drop for TokenServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the status of a request with a token.
fn ask(address: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let header = if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
    let request = format!("GET /v1/threads HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

fn stored_token(cli: &Cli) -> String {
    std::fs::read_to_string(cli.path("threadkeep/token")).unwrap().trim().to_owned()
}

#[test]
fn tokens_are_generated_once_per_user_and_not_printed_to_files() {
    let cli = Cli::new();
    // Two servers that start at the same time.
    let (mut one, other) = std::thread::scope(|scope| {
        let start = || TokenServer::start(cli.command(&SERVE));
        let (one, other) = (scope.spawn(start), scope.spawn(start));
        (one.join().unwrap(), other.join().unwrap())
    });
    let token = stored_token(&cli);
    assert!(token.starts_with("tkl_") && token.len() == 47, "{token}");
    assert_eq!(one.line(), format!("export OPENAI_BASE_URL=http://{}/v1", one.address));
    assert_eq!(one.line(), format!("# OPENAI_API_KEY is in {}", cli.path("threadkeep/token").display()));
    for server in [&one, &other] {
        assert_eq!((server.status("").as_str(), server.status("sk-any").as_str()), ("401", "401"));
        assert_eq!(server.status(&token), "200");
    }
    drop((one, other));
    let again = TokenServer::start(cli.command(&SERVE));
    assert_eq!((again.status(&token), stored_token(&cli)), ("200".to_owned(), token));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| cli.path(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("threadkeep/token"), mode("threadkeep")), (0o600, 0o700));
        std::fs::set_permissions(cli.path("threadkeep/token"), PermissionsExt::from_mode(0o644)).unwrap();
        let refused = cli.run(&SERVE);
        assert_eq!((refused.code, refused.err.contains("chmod 600")), (Some(2), true), "{refused}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn terminals_show_the_token() {
    let cli = Cli::new();
    let program = format!("{} serve --listen 127.0.0.1:0 --model offline", env!("CARGO_BIN_EXE_threadkeep"));
    let mut command = Command::new("script");
    let of_cli = cli.command(&[]);
    for (name, value) in of_cli.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["-qec", &program, "/dev/null"]).current_dir(cli.path("")).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let printed = lines.find_map(|line| line.trim_end().strip_prefix("export OPENAI_API_KEY=").map(str::to_owned));
    drop(child.kill());
    drop(child.wait());
    assert_eq!(printed.unwrap(), stored_token(&cli));
}

#[test]
fn given_tokens_are_not_stored() {
    let cli = Cli::new();
    let chosen = "chosen-by-this-test";
    let mut typed = TokenServer::start(cli.command(&[&SERVE[..], &["--token", chosen, "--json"]].concat()));
    let printed: Value = serde_json::from_str(&typed.line()).unwrap();
    let listening = format!("http://{}", typed.address);
    let expected = serde_json::json!({ "listening": listening, "openai_base_url": format!("{listening}/v1") });
    assert_eq!(printed, expected);
    let file = cli.file("chosen", format!("{chosen}\n"));
    let mut of_file = cli.command(&SERVE);
    of_file.env("THREADKEEP_TOKEN_FILE", file);
    let of_file = TokenServer::start(of_file);
    let mut of_environment = cli.command(&SERVE);
    of_environment.env("THREADKEEP_TOKEN", chosen);
    let of_environment = TokenServer::start(of_environment);
    for server in [&typed, &of_file, &of_environment] {
        assert_eq!((server.status(chosen).as_str(), server.status("").as_str()), ("200", "401"));
    }
    assert!(!cli.path("threadkeep").exists());
    for wrong in ["short", "with spaces in the middle of it"] {
        let refused = cli.run(&[&SERVE[..], &["--token", wrong]].concat());
        assert_eq!((refused.code, refused.err.contains("16 to 1024")), (Some(2), true), "{refused}");
        assert!(!refused.err.contains(wrong), "{refused}");
    }
    let mut checked = cli.command(&["config", "check"]);
    let checked = RunOutput::from(checked.env("THREADKEEP_TOKEN", "short").output().unwrap());
    assert_eq!((checked.code, checked.out.contains("16 to 1024")), (Some(1), true), "{checked}");
    let shown = cli.json(&["config", "show"]);
    let setting =
        shown["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == "server.token").unwrap();
    assert_eq!(setting["value"], cli.path("threadkeep/token").display().to_string());
}

/// A server with a key has no token and generates none.
#[test]
fn servers_with_a_key_have_no_token() {
    let cli = Cli::new();
    let key = cli.out(&["keys", "create", "phone"]).lines().next().unwrap().to_owned();
    let mut server = TokenServer::start(cli.command(&SERVE));
    assert_eq!((server.status(&key).as_str(), server.status(TOKEN).as_str()), ("200", "401"));
    assert!(server.line().starts_with("export OPENAI_BASE_URL=") && server.line().contains("keys create"));
    assert!(!cli.path("threadkeep").exists());
}

#[test]
fn disabling_the_token_prints_a_warning() {
    let cli = Cli::new();
    let server = Server::start_with(cli.command(&[&SERVE[..], &["--insecure-no-token"]].concat()));
    assert_eq!(ask(&server.address, ""), "200");
    server.wait_for_log("warning: --insecure-no-token: every program on this machine");
    server.wait_for_log("WARN");
    assert!(!cli.path("threadkeep").exists());
    let both = cli.run(&[&SERVE[..], &["--insecure-no-token", "--token", TOKEN]].concat());
    assert_eq!(both.code, Some(2), "{both}");
    let elsewhere = cli.run(&["serve", "--listen", "0.0.0.0:0", "--insecure-no-token"]);
    assert_eq!((elsewhere.code, elsewhere.err.contains("keys create")), (Some(2), true), "{elsewhere}");
}

/// The log contains no token at any level, for all ways to send one.
#[test]
fn logs_do_not_contain_the_token() {
    let cli = Cli::new();
    for form in [&[][..], &["--log-json"]] {
        let mut command = cli.command(&[&SERVE[..], form].concat());
        command.env("RUST_LOG", "trace");
        let mut server = Server::start_with(command);
        let exchange = format!(r#"{{"token":"{TOKEN}"}}"#);
        let page = format!("origin: http://{}\r\n", server.address);
        let given = server.ask_with("POST /v1/session", &page, &exchange);
        assert!(given.starts_with("HTTP/1.1 204"), "{given}");
        let cookie = given.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let cookie = cookie.split(';').next().unwrap();
        for (request, headers) in [
            ("GET /v1/threads", format!("authorization: Bearer {TOKEN}\r\n")),
            ("GET /v1/threads", format!("x-api-key: {TOKEN}\r\n")),
            ("GET /v1/threads", format!("cookie: {cookie}\r\n")),
            ("GET /v1/threads", format!("authorization: Bearer {TOKEN}\r\nx-forwarded-for: 192.0.2.1\r\n")),
            ("GET /v1/threads", format!("authorization: {TOKEN}\r\nx-api-key: {TOKEN}\r\n")),
            ("POST /v1/session", format!("x-api-key: {TOKEN}\r\n")),
        ] {
            server.ask_with(request, &headers, "");
        }
        server.signal("-TERM");
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        server.wait_for_log("shutting down");
        let log = server.log.lock().unwrap().join("\n");
        let (_, code) = cookie.split_once('.').unwrap();
        assert!(log.contains("/v1/session") && !log.contains(&TOKEN[4..]) && !log.contains(code), "{log}");
    }
}

/// Creates a browser that stores its arguments in a file.
#[cfg(unix)]
fn browser(cli: &Cli) -> (String, std::path::PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let arguments_file = cli.path("browser-arguments");
    let script = format!("#!/bin/sh\nprintf '%s' \"$*\" > {0}.part && mv {0}.part {0}\n", arguments_file.display());
    let browser = cli.file("browser", script);
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).unwrap();
    (browser, arguments_file)
}

#[cfg(unix)]
#[test]
fn open_passes_no_secret_to_the_browser() {
    let cli = Cli::new();
    let server = TokenServer::start(cli.command(&SERVE));
    let token = stored_token(&cli);
    let listen = ["--listen", server.address.as_str()];
    let page_of_server = format!("http://{}/v1/session", server.address);
    let printed = cli.json(&[&["open", "general", "--print"], &listen[..]].concat())["url"].to_string();
    assert!(printed.contains(&page_of_server) && printed.ends_with("&assistant=general\""), "{printed}");
    assert!(!printed.contains(&token), "browsers keep it in their history: {printed}");

    let (browser, arguments_file) = browser(&cli);
    let mut command = cli.command(&[&["open"], &listen[..]].concat());
    let opened = RunOutput::from(command.env("BROWSER", browser).output().unwrap());
    assert_eq!((opened.code, opened.out.as_str()), (Some(0), ""), "{opened}");
    let began = Instant::now();
    while !arguments_file.exists() {
        assert!(began.elapsed() < TIMEOUT, "no browser was opened: {opened}");
        std::thread::yield_now();
    }
    let opened_url = std::fs::read_to_string(arguments_file).unwrap();
    let (page, code) = opened_url.split_once("#token=").unwrap();
    assert_eq!(page, page_of_server);
    assert!(!opened_url.contains(&token), "others can read it in the list of processes: {opened_url}");
    // Exchange the code as the page does.
    let body = format!(r#"{{"token":"{code}"}}"#);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!("POST /v1/session HTTP/1.1\r\nhost: {0}\r\norigin: http://{0}\r\n", server.address);
    let head = format!("{head}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 204") && answer.contains("HttpOnly; SameSite=Strict"), "{answer}");
    assert_eq!(server.status(code), "401", "the code is not a token");
}

#[test]
fn open_prints_the_url_without_a_browser_and_requires_a_server() {
    let cli = Cli::new();
    let server = TokenServer::start(cli.command(&SERVE));
    let mut command = cli.command(&["open", "--listen", &server.address]);
    for name in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"] {
        command.env_remove(name);
    }
    if cfg!(all(unix, not(target_os = "macos"))) {
        let output = RunOutput::from(command.output().unwrap());
        assert!(output.out.starts_with(&format!("http://{}/v1/session#token=", server.address)), "{output}");
        assert!(output.err.contains("no browser"), "{output}");
    }
    let missed = cli.run(&["open", "--listen", "127.0.0.1:9"]);
    assert_eq!((missed.code, missed.err.contains("threadkeep serve")), (Some(3), true), "{missed}");
    assert_eq!(cli.run(&["open", "--listen", "127.0.0.1:0", "--print"]).code, Some(2));
}

/// The variables that `serve` prints for its clients do not configure a model. Otherwise a server would use itself as its
/// provider.
#[test]
fn variables_that_serve_prints_select_no_model() {
    let cli = Cli::new();
    let selected = |key: &str| {
        let mut command = cli.command(&["models", "--no-ping", "--json"]);
        command.env("OPENAI_API_KEY", key).env("OPENAI_BASE_URL", "http://127.0.0.1:7437/v1");
        let output = RunOutput::from(command.output().unwrap());
        let found: Value = serde_json::from_str(&output.out).unwrap();
        (found["selected"].clone(), found["models"].to_string().contains("OPENAI_MODEL"))
    };
    assert_eq!(selected(TOKEN), (Value::from("offline"), false));
    assert_eq!(selected("sk-another"), (Value::Null, true), "any other server needs OPENAI_MODEL");
}
