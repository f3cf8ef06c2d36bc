//! Settings and their sources.

use serde_json::Value;

use super::Cli;

fn setting(shown: &Value, name: &str) -> (String, String) {
    let settings = shown["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["name"] == name).unwrap();
    (found["value"].as_str().unwrap().to_owned(), found["from"].as_str().unwrap().to_owned())
}

#[test]
fn values_are_listed_with_their_source() {
    let cli = Cli::new();
    cli.file("config.yaml", "OLLAMA_HOST: 127.0.0.1\nTHREADKEEP_USER: ana\nTHREADKEEP_TENANT: acme\n");
    let mut command = cli.command(&["config", "show", "--json", "--tenant", "other"]);
    command.env("GROQ_API_KEY", "gsk-s3cret").env("GROQ_BASE_URL", "http://me:s3cret@localhost:1/v1");
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(!out.contains("s3cret"), "{out}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    let value_and_source = |name| setting(&shown, name);
    let pair = |value: &str, from: &str| (value.to_owned(), from.to_owned());
    assert_eq!(value_and_source("OLLAMA_HOST"), pair("127.0.0.1", "configuration file"));
    assert_eq!(value_and_source("THREADKEEP_USER"), pair("ana", "configuration file"));
    assert_eq!(value_and_source("THREADKEEP_TENANT"), pair("other", "option"));
    assert_eq!(value_and_source("GROQ_API_KEY"), pair("(set)", "environment"));
    assert_eq!(value_and_source("GROQ_BASE_URL"), pair("http://…@localhost:1/v1", "environment"));
    assert_eq!(value_and_source("ANTHROPIC_BASE_URL"), pair("https://api.anthropic.com/v1", "built in"));
    assert_eq!(value_and_source("OPENAI_API_KEY"), pair("(not set)", "built in"));
    assert_eq!(value_and_source("THREADKEEP_STORE").1, "environment");
}

#[test]
fn the_file_sets_the_user() {
    let cli = Cli::new();
    cli.file("config.yaml", "THREADKEEP_USER: ana\nTHREADKEEP_NOW: 2026-05-03T09:00:00Z\n");
    cli.out(&["ask", "The tent is blue.", "--thread", "tent"]);
    assert!(cli.out(&["ask", "Which tent is blue?"]).starts_with("You said on 3 May 2026"));
    assert_eq!(cli.json(&["threads", "--user", "me"])["threads"], serde_json::json!([]));
    assert_eq!(cli.json(&["threads"])["threads"].as_array().unwrap().len(), 1);
}

#[test]
fn errors_in_the_file_are_reported() {
    let cli = Cli::new();
    cli.file("config.yaml", "OLAMA_HOST: x\n");
    let output = cli.run(&["threads"]);
    assert_eq!((output.code, output.err.contains("unknown setting `OLAMA_HOST`")), (Some(2), true), "{output}");
    cli.file("config.yaml", "THREADKEEP_NOW: soon\n");
    let output = cli.run(&["threads"]);
    assert_eq!((output.code, output.err.contains("THREADKEEP_NOW")), (Some(2), true), "{output}");
}

#[test]
fn options_override_the_environment_which_overrides_the_file() {
    let cli = Cli::new();
    let file = cli.file("threadkeep.toml", "user = 'from the file'\n[server]\nrate = 7\n");
    let user_of = |arguments: &[&str], variable: Option<&str>| {
        let mut command = cli.command(&[&["config", "show", "--json", "--config", &file], arguments].concat());
        command.env_remove("THREADKEEP_CONFIG").envs(variable.map(|user| ("THREADKEEP_USER", user)));
        let shown: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        assert_eq!(setting(&shown, "THREADKEEP_RATE"), ("7".to_owned(), "configuration file".to_owned()));
        setting(&shown, "THREADKEEP_USER")
    };
    let pair = |value: &str, from: &str| (value.to_owned(), from.to_owned());
    assert_eq!(user_of(&["--user", "typed"], Some("variable")), pair("typed", "option"));
    assert_eq!(user_of(&[], Some("variable")), pair("variable", "environment"));
    assert_eq!(user_of(&[], None), pair("from the file", "configuration file"));
}

#[test]
fn configuration_folder_is_searched() {
    let cli = Cli::new();
    cli.file("threadkeep/threadkeep.toml", "user = 'ana'\n");
    let mut command = cli.command(&["config", "show", "--json"]);
    let out = command.env_remove("THREADKEEP_CONFIG").output().unwrap().stdout;
    let shown: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(setting(&shown, "THREADKEEP_USER").0, "ana");
    assert!(shown["file"].as_str().unwrap().ends_with("threadkeep/threadkeep.toml"));
}

#[test]
fn secrets_can_come_from_separate_files() {
    let cli = Cli::new();
    let key = cli.file("groq.key", "gsk-s3cret\n");
    let file = cli.file("threadkeep.toml", format!("[groq]\napi_key_file = '{key}'\n"));
    let out = cli.out(&["config", "show", "--json", "--config", &file]);
    assert!(!out.contains("s3cret"), "{out}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(setting(&shown, "GROQ_API_KEY"), ("(set)".to_owned(), "configuration file".to_owned()));
    assert!(cli.out(&["models", "--no-ping", "--config", &file]).contains("groq"));
}

#[test]
fn config_check_lists_all_problems_with_suggestions() {
    let cli = Cli::new();
    let file = cli.file(
        "threadkeep.toml",
        "[server]\nlisen = '127.0.0.1:1'\nrate = 'fast'\n[openai]\napi_key = 'sk-s3cret'\n[groq]\napi_key_file = 'nowhere'\n",
    );
    let output = cli.run(&["config", "check", "--config", &file]);
    assert_eq!(output.code, Some(1), "{output}");
    assert_eq!(output.out.lines().count(), 4, "{output}");
    for named in [
        "unknown setting `server.lisen`; did you mean `server.listen`?",
        "server.rate: expected a whole number",
        "openai.api_key: secrets are not allowed in this file",
        "set OPENAI_API_KEY in the environment, or specify its file with openai.api_key_file",
        "GROQ_API_KEY_FILE: the file nowhere cannot be read",
    ] {
        assert!(output.out.contains(named), "{named}: {output}");
    }
    assert!(!output.out.contains("s3cret"), "{output}");
    let refused = cli.run(&["threads", "--config", &file]);
    assert_eq!((refused.code, refused.err.contains("config check")), (Some(2), true), "{refused}");
    let output = cli.run(&["config", "check"]);
    assert_eq!((output.code, output.out.contains("no problems found")), (Some(0), true), "{output}");
    let file = cli.file(
        "unfit.toml",
        "model = 'nope:x'\n[token]\nissuer = 'https://issuer.example'\n[server]\ntls_cert = 'nowhere.pem'\n[telemetry]\nendpoint = 'ftp://there'\n",
    );
    let output = cli.run(&["config", "check", "--config", &file]);
    assert_eq!((output.code, output.out.lines().count()), (Some(1), 4), "{output}");
    for named in ["nope", "https://issuer.example", "a certificate and its key", "ftp://there"] {
        assert!(output.out.contains(named), "{named}: {output}");
    }
    let file = cli.file(
        "doors.toml",
        "[server]\nbrowser_origins = 'https://app.example/page'\nwebhook_networks = '10.0.0.0/99'\n",
    );
    let output = cli.run(&["config", "check", "--config", &file]);
    assert_eq!((output.code, output.out.lines().count()), (Some(1), 2), "{output}");
    for named in ["is not an origin", "10.0.0.0/99 is not a network"] {
        assert!(output.out.contains(named), "{named}: {output}");
    }
    let missing = cli.run(&["config", "check", "--config", "nowhere.toml"]);
    assert_eq!((missing.code, missing.out.contains("cannot be read")), (Some(1), true), "{missing}");
}
