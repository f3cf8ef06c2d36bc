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
    command.env("GROQ_API_KEY", "gsk-s3cret").env("GROQ_BASE_URL", "http://me:s3cret@localhost:1/v1");
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(!out.contains("s3cret"), "{out}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    let of = |name| setting(&shown, name);
    let pair = |value: &str, from: &str| (value.to_owned(), from.to_owned());
    assert_eq!(of("OLLAMA_HOST"), pair("127.0.0.1", "configuration file"));
    assert_eq!(of("THREADKEEP_USER"), pair("ana", "configuration file"));
    assert_eq!(of("THREADKEEP_TENANT"), pair("other", "option"));
    assert_eq!(of("GROQ_API_KEY"), pair("(set)", "environment"));
    assert_eq!(of("GROQ_BASE_URL"), pair("http://…@localhost:1/v1", "environment"));
    assert_eq!(of("ANTHROPIC_BASE_URL"), pair("https://api.anthropic.com/v1", "built in"));
    assert_eq!(of("OPENAI_API_KEY"), pair("(not set)", "built in"));
    assert_eq!(of("THREADKEEP_STORE").1, "environment");
}

#[test]
fn the_file_says_who_speaks_unless_something_else_does() {
    let cli = Cli::new();
    cli.file("config.yaml", "THREADKEEP_USER: ana\nTHREADKEEP_NOW: 2026-05-03T09:00:00Z\n");
    cli.out(&["ask", "The tent is blue.", "--thread", "tent"]);
    assert!(cli.out(&["ask", "Which tent is blue?"]).starts_with("You said on 3 May 2026"));
    assert_eq!(cli.json(&["threads", "--user", "me"])["threads"], serde_json::json!([]));
    assert_eq!(cli.json(&["threads"])["threads"].as_array().unwrap().len(), 1);
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

#[test]
fn an_option_goes_before_the_environment_and_that_before_the_file() {
    let cli = Cli::new();
    let file = cli.file("threadkeep.toml", "user = 'from the file'\n[server]\nrate = 7\n");
    let of = |arguments: &[&str], variable: Option<&str>| {
        let mut command = cli.command(&[&["config", "show", "--json", "--config", &file], arguments].concat());
        command.env_remove("THREADKEEP_CONFIG").envs(variable.map(|user| ("THREADKEEP_USER", user)));
        let shown: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        assert_eq!(setting(&shown, "THREADKEEP_RATE"), ("7".to_owned(), "configuration file".to_owned()));
        setting(&shown, "THREADKEEP_USER")
    };
    let pair = |value: &str, from: &str| (value.to_owned(), from.to_owned());
    assert_eq!(of(&["--user", "typed"], Some("variable")), pair("typed", "option"));
    assert_eq!(of(&[], Some("variable")), pair("variable", "environment"));
    assert_eq!(of(&[], None), pair("from the file", "configuration file"));
}

#[test]
fn a_file_in_the_configuration_folder_is_found() {
    let cli = Cli::new();
    cli.file("threadkeep/threadkeep.toml", "user = 'ana'\n");
    let mut command = cli.command(&["config", "show", "--json"]);
    let out = command.env_remove("THREADKEEP_CONFIG").output().unwrap().stdout;
    let shown: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(setting(&shown, "THREADKEEP_USER").0, "ana");
    assert!(shown["file"].as_str().unwrap().ends_with("threadkeep/threadkeep.toml"));
}

#[test]
fn a_secret_comes_from_a_file_of_its_own() {
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
fn a_check_names_all_that_is_wrong_and_what_was_meant() {
    let cli = Cli::new();
    let file = cli.file(
        "threadkeep.toml",
        "[server]\nlisen = '127.0.0.1:1'\nrate = 'fast'\n[openai]\napi_key = 'sk-s3cret'\n[groq]\napi_key_file = 'nowhere'\n",
    );
    let ran = cli.run(&["config", "check", "--config", &file]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert_eq!(ran.out.lines().count(), 4, "{ran}");
    for named in [
        "there is no setting `server.lisen`; did you mean `server.listen`?",
        "server.rate: text is not a whole number",
        "openai.api_key: it is a secret",
        "set OPENAI_API_KEY in the environment, or name its file with openai.api_key_file",
        "GROQ_API_KEY_FILE: the file nowhere cannot be read",
    ] {
        assert!(ran.out.contains(named), "{named}: {ran}");
    }
    assert!(!ran.out.contains("s3cret"), "{ran}");
    let refused = cli.run(&["threads", "--config", &file]);
    assert_eq!((refused.code, refused.err.contains("config check")), (Some(2), true), "{refused}");
    let ran = cli.run(&["config", "check"]);
    assert_eq!((ran.code, ran.out.contains("all is well")), (Some(0), true), "{ran}");
    let file = cli.file(
        "unfit.toml",
        "model = 'nope:x'\n[token]\nissuer = 'https://issuer.example'\n[server]\ntls_cert = 'nowhere.pem'\n[telemetry]\nendpoint = 'ftp://there'\n",
    );
    let ran = cli.run(&["config", "check", "--config", &file]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(1), 4), "{ran}");
    for named in ["nope", "https://issuer.example", "a certificate and its key", "ftp://there"] {
        assert!(ran.out.contains(named), "{named}: {ran}");
    }
    let missing = cli.run(&["config", "check", "--config", "nowhere.toml"]);
    assert_eq!((missing.code, missing.out.contains("cannot be read")), (Some(1), true), "{missing}");
}
