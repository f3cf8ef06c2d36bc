//! Which models are found, where from, and whether they answer.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use serde_json::json;

use super::{Cli, Ran, assert_looks};

const KEY: &str = "sk-secret-0123456789";

/// Variables that the machine of the test may have.
const VARIABLES: [&str; 18] = [
    "GROQ_API_KEY",
    "GROQ_MODEL",
    "GROQ_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_MODEL",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_BASE_URL",
    "OLLAMA_HOST",
    "OLLAMA_MODEL",
    "THREADKEEP_MODEL",
    "THREADKEEP_EMBEDDER",
    "THREADKEEP_PRICES",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

fn models(cli: &Cli, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command: Command = cli.command(&[&["models"], arguments].concat());
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let ran: Ran = command.output().unwrap().into();
    assert!(!format!("{ran}").contains(KEY), "{ran}");
    ran
}

/// A provider that answers every request with its list of models, or refuses the key.
fn provider(status: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap();
            assert!(request[..count].starts_with(b"GET /v1/models "));
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn without_a_key_the_offline_model_speaks() {
    let cli = Cli::new();
    let ran = models(&cli, &[], &[]);
    assert_looks!(cli, "models_offline", ran);
    assert!(!cli.store().exists(), "no store is needed");
}

#[test]
fn what_the_environment_gives_is_listed_in_order() {
    let cli = Cli::new();
    let variables = [
        ("GROQ_API_KEY", KEY),
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"),
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_MODEL", "claude-opus-5-5"),
        ("OLLAMA_HOST", "0.0.0.0"),
        ("THREADKEEP_EMBEDDER", "ollama:nomic-embed-text"),
    ];
    assert_looks!(cli, "models", models(&cli, &["--no-ping"], &variables));
    assert_looks!(cli, "models_json", models(&cli, &["--no-ping", "--json"], &variables));
    let ran = models(&cli, &["--no-ping", "--model", "groq:qwen3", "--json"], &variables);
    assert!(ran.out.starts_with(r#"{"selected":"groq:qwen3","#), "{ran}");
}

#[test]
fn a_provider_is_asked_whether_it_is_there() {
    let cli = Cli::new();
    let list = json!({"data": [{"id": "m"}, {"id": "other"}]}).to_string();
    let url = provider("200 OK", list);
    let variables = |model| [("OPENAI_BASE_URL", url.as_str()), ("OPENAI_MODEL", model), ("OPENAI_API_KEY", KEY)];
    let ran = models(&cli, &[], &variables("m"));
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.out.contains("ready"), "{ran}");
    let ran = models(&cli, &[], &variables("gone"));
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.err.contains("compatible: gone is not among its models: m, other"), "{ran}");
    let refusing = provider("401 Unauthorized", json!({"error": {"message": format!("bad key {KEY}")}}).to_string());
    let ran = models(&cli, &[], &[("GROQ_API_KEY", KEY), ("GROQ_BASE_URL", &refusing)]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.err.contains("groq: bad key [key]"), "{ran}");
}

#[test]
fn what_cannot_be_used_is_told() {
    let cli = Cli::new();
    let unusable =
        models(&cli, &["--no-ping"], &[("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"), ("OPENAI_API_KEY", KEY)]);
    assert_looks!(cli, "models_unusable", unusable);
    let ran = models(&cli, &["--model", "groq"], &[]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(1), "error: groq needs GROQ_API_KEY\nhint: docs/models.md lists the variables and names\n")
    );
    let file = cli.file("prices.json", r#"{"groq": {"openai/gpt-oss-120b": {"input": 7, "output": 8}}}"#);
    let ran = models(&cli, &["--no-ping"], &[("GROQ_API_KEY", KEY), ("THREADKEEP_PRICES", &file)]);
    assert!(ran.out.contains("7, 8"), "{ran}");
}

#[test]
fn a_file_of_prices_that_is_none_is_named_with_what_is_wrong_in_it() {
    let cli = Cli::new();
    for (prices, expected) in [
        ("{\"openai\": 1}", "invalid type: integer `1`, expected a map at line 1 column 12"),
        ("{\n\"openai\": {\"m\": {\"inptu\": 1}}}", "unknown field `inptu`, expected one of `input`"),
        (r#"{"openai": {"m": {"input": 1}}}"#, "missing field `output` at line 1 column 29"),
        (r#"{"openai": {"m": {"input": -1, "output": 1}}}"#, "invalid price for openai/m"),
        (r#"{"opnai": {"m": {"input": 1, "output": 1}}}"#, "`opnai` is no provider; there are openai, groq, "),
        ("", "EOF while parsing"),
    ] {
        let file = cli.file("prices.json", prices);
        let from_option = models(&cli, &["--no-ping", "--prices", &file], &[]);
        cli.file("config.yaml", format!("THREADKEEP_PRICES: {file}\n"));
        let asked = cli.command(&["ask", "Hello?"]).env("OPENAI_API_KEY", "k").output().unwrap().into();
        cli.file("config.yaml", "");
        for ran in [from_option, asked] {
            let error = format!("error: the prices in {file}: ");
            assert!(
                ran.code == Some(1) && ran.err.starts_with(&error) && ran.err.contains(expected),
                "{prices}: {ran}"
            );
            assert!(ran.err.contains("hint: docs/models.md"), "{ran}");
        }
    }
    let ran = models(&cli, &["--no-ping", "--prices", "nowhere.json"], &[]);
    assert!(ran.code == Some(1) && ran.err.contains("the prices in nowhere.json: No such file"), "{ran}");
}
