//! Which models are found, where their settings come from, and whether they respond.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use serde_json::json;

use super::{Cli, RunOutput, assert_prints};

const KEY: &str = "sk-secret-0123456789";

/// Variables that may be set on the machine that runs the test.
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

fn models(cli: &Cli, arguments: &[&str], variables: &[(&str, &str)]) -> RunOutput {
    let mut command: Command = cli.command(&[&["models"], arguments].concat());
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let output: RunOutput = command.output().unwrap().into();
    assert!(!format!("{output}").contains(KEY), "{output}");
    output
}

/// Starts a provider that replies to every request with its list of models, or rejects the key.
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
fn the_offline_model_is_the_default() {
    let cli = Cli::new();
    let output = models(&cli, &[], &[]);
    assert_prints!(cli, "models_offline", output);
    assert!(!cli.store().exists(), "the command does not create a store");
}

#[test]
fn models_of_the_environment_are_listed_in_order() {
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
    assert_prints!(cli, "models", models(&cli, &["--no-ping"], &variables));
    assert_prints!(cli, "models_json", models(&cli, &["--no-ping", "--json"], &variables));
    let output = models(&cli, &["--no-ping", "--model", "groq:qwen3", "--json"], &variables);
    assert!(output.out.starts_with(r#"{"selected":"groq:qwen3","#), "{output}");
}

#[test]
fn providers_are_pinged() {
    let cli = Cli::new();
    let list = json!({"data": [{"id": "m"}, {"id": "other"}]}).to_string();
    let url = provider("200 OK", list);
    let variables = |model| [("OPENAI_BASE_URL", url.as_str()), ("OPENAI_MODEL", model), ("OPENAI_API_KEY", KEY)];
    let output = models(&cli, &[], &variables("m"));
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.out.contains("ready"), "{output}");
    let output = models(&cli, &[], &variables("gone"));
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.err.contains("compatible: gone is not among its models: m, other"), "{output}");
    let refusing = provider("401 Unauthorized", json!({"error": {"message": format!("bad key {KEY}")}}).to_string());
    let output = models(&cli, &[], &[("GROQ_API_KEY", KEY), ("GROQ_BASE_URL", &refusing)]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.err.contains("groq: bad key [key]"), "{output}");
}

#[test]
fn unusable_models_are_reported() {
    let cli = Cli::new();
    let unusable =
        models(&cli, &["--no-ping"], &[("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"), ("OPENAI_API_KEY", KEY)]);
    assert_prints!(cli, "models_unusable", unusable);
    let output = models(&cli, &["--model", "groq"], &[]);
    assert_eq!(
        (output.code, output.err.as_str()),
        (
            Some(1),
            "error: groq needs GROQ_API_KEY\nhint: docs/models.md lists the variables, providers and model names\n"
        )
    );
    let file = cli.file("prices.json", r#"{"groq": {"openai/gpt-oss-120b": {"input": 7, "output": 8}}}"#);
    let output = models(&cli, &["--no-ping"], &[("GROQ_API_KEY", KEY), ("THREADKEEP_PRICES", &file)]);
    assert!(output.out.contains("7, 8"), "{output}");
}

#[test]
fn invalid_price_files_are_reported_with_the_reason() {
    let cli = Cli::new();
    for (prices, expected) in [
        ("{\"openai\": 1}", "invalid type: integer `1`, expected a map at line 1 column 12"),
        ("{\n\"openai\": {\"m\": {\"inptu\": 1}}}", "unknown field `inptu`, expected one of `input`"),
        (r#"{"openai": {"m": {"input": 1}}}"#, "missing field `output` at line 1 column 29"),
        (r#"{"openai": {"m": {"input": -1, "output": 1}}}"#, "invalid price for openai/m"),
        (r#"{"opnai": {"m": {"input": 1, "output": 1}}}"#, "opnai"),
        ("", "EOF while parsing"),
    ] {
        let file = cli.file("prices.json", prices);
        let from_option = models(&cli, &["--no-ping", "--prices", &file], &[]);
        cli.file("config.yaml", format!("THREADKEEP_PRICES: {file}\n"));
        let asked = cli.command(&["ask", "Hello?"]).env("OPENAI_API_KEY", "k").output().unwrap().into();
        cli.file("config.yaml", "");
        for output in [from_option, asked] {
            let error = format!("error: cannot read the prices in {file}: ");
            assert!(
                output.code == Some(1) && output.err.starts_with(&error) && output.err.contains(expected),
                "{prices}: {output}"
            );
            assert!(output.err.contains("hint: docs/models.md"), "{output}");
        }
    }
    let output = models(&cli, &["--no-ping", "--prices", "nowhere.json"], &[]);
    assert!(output.code == Some(1) && output.err.contains("the prices in nowhere.json: No such file"), "{output}");
}
