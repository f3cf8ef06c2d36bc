//! Requests that schemathesis generates from the OpenAPI document.
//!
//! `cargo xtask test` installs the program into the folder `python` of the target folder.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clients::{is_skipped, program};
use crate::server::TOKEN;
use crate::v1::start_with_model;

/// The number of random requests for each route, in addition to the requests that test each parameter's limits.
const EXAMPLES_PER_ROUTE: &str = "5";
/// The number of seconds after which no more requests are generated.
const MAX_SECONDS: &str = "180";
/// How long the program may run.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(480);
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                      response_headers_conformance,unsupported_method,use_after_free";

/// No response is a server error, and each has a status, a content type and a body that the OpenAPI document describes. The
/// seed is always printed, so that a run can be repeated by setting `THREADKEEP_SEED`.
#[tokio::test]
async fn responses_match_the_openapi_document() {
    if is_skipped() {
        return;
    }
    let (server, _) = start_with_model().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "hello").await;
    let minute = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 60;
    let seed = std::env::var("THREADKEEP_SEED").unwrap_or_else(|_| minute.to_string());
    // Written directly, as the test harness captures the output of successful tests.
    writeln!(std::io::stderr(), "schemathesis: set THREADKEEP_SEED={seed} to repeat these requests").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("schemathesis.toml");
    std::fs::write(&config, config_with_ids(&thread)).unwrap();
    let mut command = tokio::process::Command::new(program("schemathesis"));
    command.arg("--config-file").arg(&config).args(["run", &server.url("/v1/openapi.json"), "--seed", &seed]);
    command.arg("--header").arg(format!("Authorization: Bearer {TOKEN}"));
    command.args([
        "--phases",
        "coverage,fuzzing,stateful",
        "--max-examples",
        EXAMPLES_PER_ROUTE,
        "--max-time",
        MAX_SECONDS,
    ]);
    // With several workers, the Python interpreter sometimes crashes while reading source files.
    command.args(["--checks", CHECKS, "--workers", "1", "--request-timeout", "20", "--no-shrink", "--no-color"]);
    command.args(["--generation-database", "none", "--continue-on-failure"]);
    // Event streams do not end, and WebSockets have no HTTP response body.
    command.args(["--exclude-path", "/v1/threads/{id}/events", "--exclude-path", "/v1/live"]);
    command.current_dir(folder.path()).env("NO_PROXY", "*").kill_on_drop(true);
    let output = tokio::time::timeout(PROGRAM_TIMEOUT, command.output()).await.unwrap().unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "seed {seed}: {output_text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output_text.contains(&format!("Seed: {seed}")), "{output_text}");
    client.get("/ready").await.expect(200);
}

/// Returns a configuration with ids that exist, so that not every response is 404.
fn config_with_ids(thread: &str) -> String {
    let conversation = format!("conv_{}", thread.replace('-', ""));
    format!(
        "[[operations]]\ninclude-path-regex = '^/v1/threads/'\nexclude-method = 'DELETE'\n\
         parameters = {{ id = '{thread}', message = '1' }}\n\n\
         [[operations]]\ninclude-path-regex = '^/v1/conversations/'\nexclude-method = 'DELETE'\n\
         parameters = {{ id = '{conversation}' }}\n"
    )
}
