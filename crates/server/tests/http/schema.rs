//! Requests made from the OpenAPI document, by a program that knows nothing else of the server.
//!
//! `cargo xtask test` installs the program into the folder `python` of the target folder.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clients::{is_left_out, program};
use crate::v1::with_model;

/// Requests for each route.
const EXAMPLES: u32 = 12;
/// How long the whole may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(300);

/// No answer is a failure of the server, and each has a status, a content type and a body that the document names. The
/// seed is told, so that a failure can be looked at again: `THREADKEEP_SEED` sets it.
#[tokio::test]
async fn answers_are_those_that_the_document_names() {
    if is_left_out() {
        return;
    }
    let (server, _) = with_model().await;
    let minute = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 60;
    let seed = std::env::var("THREADKEEP_SEED").unwrap_or_else(|_| minute.to_string());
    let folder = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::new(program("schemathesis"));
    command.args(["run", &server.url("/v1/openapi.json"), "--seed", &seed, "--max-examples", &EXAMPLES.to_string()]);
    command.args(["--phases", "examples,coverage,fuzzing", "--mode", "all", "--continue-on-failure", "--no-color"]);
    command.args(["--checks", CHECKS, "--workers", "2", "--request-timeout", "20", "--max-response-time", "20"]);
    // A stream of events has no end of its own, and a WebSocket no answer.
    command.args(["--exclude-path", "/v1/threads/{id}/events", "--exclude-path", "/v1/live"]);
    command.current_dir(folder.path()).env("NO_PROXY", "*").kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "seed {seed}: {told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains(&seed), "{told}");
    server.client().get("/ready").await.expect(200);
}

const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
