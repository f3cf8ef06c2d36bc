//! Requests made from the OpenAPI document, by a program that knows nothing else of the server.
//!
//! `cargo xtask test` installs the program into the folder `python` of the target folder.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clients::{is_skipped, program};
use crate::server::TOKEN;
use crate::v1::with_model;

/// Requests for each route, beside those of each value at its bounds.
const EXAMPLES: &str = "5";
/// Seconds after which no more requests are made up.
const SECONDS: &str = "60";
/// How long the program may take to end.
const PATIENCE: Duration = Duration::from_secs(300);
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                      response_headers_conformance,unsupported_method,use_after_free";

/// No answer is a failure of the server, and each has a status, a content type and a body that the document names. The
/// seed is told in any case, so that a run can be looked at again: `THREADKEEP_SEED` sets it.
#[tokio::test]
async fn answers_are_those_that_the_document_names() {
    if is_skipped() {
        return;
    }
    let (server, _) = with_model().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "hello").await;
    let minute = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 60;
    let seed = std::env::var("THREADKEEP_SEED").unwrap_or_else(|_| minute.to_string());
    // Past what the harness keeps back of a test that succeeds.
    writeln!(std::io::stderr(), "schemathesis: THREADKEEP_SEED={seed} makes the same requests").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("schemathesis.toml");
    std::fs::write(&config, names(&thread)).unwrap();
    let mut command = tokio::process::Command::new(program("schemathesis"));
    command.arg("--config-file").arg(&config).args(["run", &server.url("/v1/openapi.json"), "--seed", &seed]);
    command.arg("--header").arg(format!("Authorization: Bearer {TOKEN}"));
    command.args(["--phases", "coverage,fuzzing,stateful", "--max-examples", EXAMPLES, "--max-time", SECONDS]);
    // Two workers would read its own source at once, which its Python does not always survive.
    command.args(["--checks", CHECKS, "--workers", "1", "--request-timeout", "20", "--no-shrink", "--no-color"]);
    command.args(["--generation-database", "none", "--continue-on-failure"]);
    // A stream of events has no end of its own, and a WebSocket no answer.
    command.args(["--exclude-path", "/v1/threads/{id}/events", "--exclude-path", "/v1/live"]);
    command.current_dir(folder.path()).env("NO_PROXY", "*").kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "seed {seed}: {told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains(&format!("Seed: {seed}")), "{told}");
    client.get("/ready").await.expect(200);
}

/// What there is, so that not every answer is that there is nothing.
fn names(thread: &str) -> String {
    let conversation = format!("conv_{}", thread.replace('-', ""));
    format!(
        "[[operations]]\ninclude-path-regex = '^/v1/threads/'\nexclude-method = 'DELETE'\n\
         parameters = {{ id = '{thread}', message = '1' }}\n\n\
         [[operations]]\ninclude-path-regex = '^/v1/conversations/'\nexclude-method = 'DELETE'\n\
         parameters = {{ id = '{conversation}' }}\n"
    )
}
