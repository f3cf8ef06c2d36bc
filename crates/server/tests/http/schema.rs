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
const MAX_SECONDS: &str = "120";
/// How long the program may run.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(480);
const CHECKS: [&str; 7] = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "unsupported_method",
    "use_after_free",
];

/// Event streams do not end, and WebSockets have no HTTP response body.
const EXCLUDED_PATHS: [&str; 2] = ["/v1/threads/{id}/events", "/v1/live"];

/// What the program's summary counts.
#[derive(Debug)]
struct Counts {
    tested_operations: usize,
    passed_requests: usize,
}

impl Counts {
    /// Reads lines such as `Tested: 143` and `747 generated, 747 passed`.
    fn read(output: &str) -> Self {
        let number_after = |label: &str| {
            let (_, rest) = output.split_once(label).unwrap_or_else(|| panic!("no {label:?}: {output}"));
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
        };
        Self { tested_operations: number_after("Tested: "), passed_requests: number_after(" generated, ") }
    }
}

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
    std::fs::write(&config, config_text(&thread)).unwrap();
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
    command.args(["--workers", "1", "--request-timeout", "20", "--no-shrink", "--no-color"]);
    command.args(["--generation-database", "none", "--continue-on-failure"]);
    command.args(EXCLUDED_PATHS.iter().flat_map(|path| ["--exclude-path", path]));
    command.current_dir(folder.path()).env("NO_PROXY", "*").kill_on_drop(true);
    let output = tokio::time::timeout(PROGRAM_TIMEOUT, command.output()).await.unwrap().unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "seed {seed}: {output_text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output_text.contains(&format!("Seed: {seed}")), "{output_text}");
    let counts = Counts::read(&output_text);
    writeln!(std::io::stderr(), "schemathesis: {counts:?}").unwrap();
    let document = client.get("/v1/openapi.json").await.expect(200);
    let operations = document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len());
    // Neither does the program test the route from which it read the document.
    assert_eq!(counts.tested_operations, operations.sum::<usize>() - EXCLUDED_PATHS.len() - 1);
    // With fewer requests, the time ran out before most operations had their turn.
    assert!(counts.passed_requests >= 3 * counts.tested_operations, "{counts:?}");
    client.get("/ready").await.expect(200);
}

/// Returns a configuration with the checks, and with ids that exist, so that not every response is 404.
///
/// Compatible routes return an empty history for a thread that does not exist (S0.29), so they must not be taken to return
/// a deleted one. The checks are enabled here, because an option of the command would override this exception.
fn config_text(thread: &str) -> String {
    let conversation = format!("conv_{}", thread.replace('-', ""));
    let checks = CHECKS.map(|check| format!("{check}.enabled = true\n")).concat();
    format!(
        "[checks]\nenabled = false\n{checks}\n\
         [[operations]]\ninclude-path-regex = '^(/\\{{assistant\\}})?/conversations/'\n\
         checks.use_after_free.enabled = false\n\n\
         [[operations]]\ninclude-path-regex = '^/v1/threads/'\nexclude-method = 'DELETE'\n\
         parameters = {{ id = '{thread}', message = '1' }}\n\n\
         [[operations]]\ninclude-path-regex = '^/v1/conversations/'\nexclude-method = 'DELETE'\n\
         parameters = {{ id = '{conversation}' }}\n"
    )
}
