//! No command prints the password or the query of a URL.

use super::{Cli, RunOutput};

const SECRET: &str = "s3cret";

/// API keys, and URLs with a secret everywhere a URL can hold one. No server listens at these addresses.
const SETTINGS: [(&str, &str); 14] = [
    ("GROQ_API_KEY", "gsk-s3cret"),
    ("GROQ_BASE_URL", "http://me:s3cret@127.0.0.1:9/v1?key=s3cret"),
    ("OPENAI_API_KEY", "sk-s3cret"),
    ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1?key=s3cret"),
    ("OPENAI_MODEL", "some-model"),
    ("ANTHROPIC_API_KEY", "ant-s3cret"),
    ("ANTHROPIC_BASE_URL", "http://s3cret@127.0.0.1:9/v1"),
    ("OLLAMA_HOST", "me:s3cret@127.0.0.1:9/?key=s3cret"),
    ("MTA_FEEDS", "http://me:s3cret@127.0.0.1:9/feeds?key=s3cret"),
    ("MTA_GTFS_URL", "http://me:s3cret@127.0.0.1:9/gtfs.zip?key=s3cret"),
    ("HTTPS_PROXY", "http://me:s3cret@127.0.0.1:9"),
    ("ALL_PROXY", "http://me:s3cret@127.0.0.1:9"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://me:s3cret@127.0.0.1:9/?key=s3cret"),
    ("THREADKEEP_TOKEN_JWKS", "http://me:s3cret@example.invalid/keys?key=s3cret"),
];

const STORES: [&str; 6] = [
    "postgres://ana:s3cret@127.0.0.1:9/db?sslpassword=s3cret&connect_timeout=1",
    "postgres://ana:s3cret@127.0.0.1:9/db?pool_size=s3cret",
    "postgres://ana:s3cret@127.0.0.1:port/db",
    "mysql://ana:s3cret@127.0.0.1/db",
    "postgres:ana:s3cret@127.0.0.1/db",
    "host=127.0.0.1 user=ana password=s3cret",
];

/// Returns a minimal command line for every command.
fn commands() -> Vec<Vec<&'static str>> {
    let lines = [
        "threads",
        "show x",
        "append x y",
        "search x",
        "browse x",
        "recall x",
        "tools x",
        "context x",
        "export",
        "erase x --yes",
        "stats",
        "check",
        "backup copy.db",
        "backup copy.jsonl",
        "vacuum",
        "keys list",
        "audit",
        "ask hello",
        "chat",
        "docs list",
        "docs search x",
        "approvals list",
        "trace x",
        "config show",
        "config check",
        "models",
        "models --no-ping",
        "models --model groq",
        "supabase doctor",
        "serve --listen 127.0.0.1:0",
        "open --print",
        "mcp",
        "demo",
        "subway fetch",
        "tesis search x",
        "slack manifest https://bot.example",
        "graph general",
        "completions bash",
        "man",
        "import missing.json",
        "restore missing.db",
        "migrate --from a.db --to b.db",
        "ask hello --model groq",
        "ask hello --model openai",
        "ask hello --model ollama",
        "ask hello --model anthropic",
        "ask hello --assistant subway",
    ];
    lines.iter().map(|line| line.split(' ').collect()).collect()
}

fn run(cli: &Cli, arguments: &[&str], with: &[(&str, &str)]) -> RunOutput {
    let mut command = cli.command(arguments);
    command.envs(SETTINGS).envs(with.iter().copied()).env("RUST_LOG", "debug");
    RunOutput::from(command.output().unwrap())
}

fn assert_no_secret(arguments: &[&str], output: &RunOutput) {
    // The output contains results, errors, hints and the log.
    assert!(!output.out.contains(SECRET) && !output.err.contains(SECRET), "{arguments:?}: {output}");
}

#[test]
fn no_command_shows_secrets_of_urls() {
    let cli = Cli::new();
    // A file that does not exist, and a URL with a secret at which no server listens.
    for store in [cli.store().to_str().unwrap(), STORES[0]] {
        for command in commands() {
            for json in [&[][..], &["--json"]] {
                let arguments = [&command[..], json].concat();
                // Incomplete token settings prevent the server from starting.
                let is_server = command[0] == "serve" && store == cli.store().to_str().unwrap();
                let with: &[_] = if is_server {
                    &[
                        ("THREADKEEP_STORE", store),
                        ("THREADKEEP_TOKEN_ISSUER", "issuer"),
                        ("THREADKEEP_TOKEN_AUDIENCE", "a"),
                    ]
                } else {
                    &[("THREADKEEP_STORE", store)]
                };
                assert_no_secret(&arguments, &run(&cli, &arguments, with));
            }
        }
    }
}

#[test]
fn every_command_is_covered() {
    let cli = Cli::new();
    let help = cli.out(&["--help"]);
    let listed = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names =
        listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    let covered: Vec<&str> = commands().iter().map(|command| command[0]).collect();
    let missing: Vec<&str> = names.filter(|name| *name != "help" && !covered.contains(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn store_urls_are_not_echoed() {
    let cli = Cli::new();
    for store in STORES {
        for arguments in [
            &["threads", "--store", store][..],
            &["append", "x", "y", "--create", "--store", store],
            &["backup", "copy.jsonl", "--store", store],
            &["migrate", "--from", store, "--to", "b.db"],
            &["migrate", "--from", "a.db", "--to", store],
            &["supabase", "doctor", store],
            &["config", "show", "--store", store],
            &["config", "show", "--json", "--store", store],
            &["restore", "missing.jsonl", "--store", store],
            &["serve", "--listen", "127.0.0.1:0", "--store", store],
        ] {
            if store.starts_with("host=") && matches!(arguments[0], "append" | "serve") {
                continue;
            }
            assert_no_secret(arguments, &run(&cli, arguments, &[]));
        }
    }
    let token = ["serve", "--token-issuer", "x", "--token-audience", "y", "--token-jwks"];
    let arguments = [&token[..], &["http://me:s3cret@example.invalid/?key=s3cret"]].concat();
    assert_no_secret(&arguments, &run(&cli, &arguments, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]));
}

#[test]
fn parts_of_urls_that_are_not_secret_are_shown() {
    let cli = Cli::new();
    let output = run(&cli, &["models", "--no-ping", "--json"], &[]);
    let json: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    let addresses: Vec<&str> =
        json["models"].as_array().unwrap().iter().filter_map(|model| model["address"].as_str()).collect();
    assert!(addresses.contains(&"http://…@127.0.0.1:9/v1?…"), "{addresses:?}");
    let output = run(&cli, &["ask", "hello", "--model", "groq"], &[]);
    assert!(output.code != Some(0) && output.err.contains("http://…@127.0.0.1:9/v1?…"), "{output}");
}
