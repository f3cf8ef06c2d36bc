//! What is set, and where it comes from.

use serde_json::Value;

use super::Cli;

fn setting(shown: &Value, name: &str) -> (String, String) {
    let settings = shown["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["name"] == name).unwrap();
    (found["value"].as_str().unwrap().to_owned(), found["from"].as_str().unwrap().to_owned())
}

#[test]
fn each_value_tells_where_it_comes_from() {
    let cli = Cli::new();
    cli.file("config.yaml", "OLLAMA_HOST: 127.0.0.1\nTHREADKEEP_USER: ana\nTHREADKEEP_TENANT: acme\n");
    let mut command = cli.command(&["config", "show", "--json", "--tenant", "other"]);
    command.env("GROQ_API_KEY", "gsk-secret").env("GROQ_BASE_URL", "http://me:secret@localhost:1/v1");
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(!out.contains("secret"), "{out}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    let of = |name| setting(&shown, name);
    let pair = |value: &str, from: &str| (value.to_owned(), from.to_owned());
    assert_eq!(of("OLLAMA_HOST"), pair("127.0.0.1", "configuration file"));
    assert_eq!(of("THREADKEEP_USER"), pair("ana", "configuration file"));
    assert_eq!(of("THREADKEEP_TENANT"), pair("other", "option"));
    assert_eq!(of("GROQ_API_KEY"), pair("(set)", "environment"));
    assert_eq!(of("GROQ_BASE_URL"), pair("http://me:…@localhost:1/v1", "environment"));
    assert_eq!(of("ANTHROPIC_BASE_URL"), pair("https://api.anthropic.com/v1", "built in"));
    assert_eq!(of("OPENAI_API_KEY"), pair("(not set)", "built in"));
    assert_eq!(of("THREADKEEP_STORE").1, "environment");
}

#[test]
fn the_file_says_who_speaks_unless_something_else_does() {
    let cli = Cli::new();
    cli.file("config.yaml", "THREADKEEP_USER: ana\nTHREADKEEP_NOW: 2026-05-03T09:00:00Z\n");
    cli.out(&["ask", "The tent is blue."]);
    assert!(cli.out(&["ask", "Which tent is blue?"]).starts_with("You said on 3 May 2026"));
    assert_eq!(cli.json(&["threads", "--user", "me"])["threads"], serde_json::json!([]));
    assert_eq!(cli.json(&["threads"])["threads"].as_array().unwrap().len(), 2);
}

#[test]
fn a_mistake_in_the_file_is_named() {
    let cli = Cli::new();
    cli.file("config.yaml", "OLAMA_HOST: x\n");
    let ran = cli.run(&["threads"]);
    assert_eq!((ran.code, ran.err.contains("there is no setting `OLAMA_HOST`")), (Some(2), true), "{ran}");
    cli.file("config.yaml", "THREADKEEP_NOW: soon\n");
    let ran = cli.run(&["threads"]);
    assert_eq!((ran.code, ran.err.contains("THREADKEEP_NOW")), (Some(2), true), "{ran}");
}
