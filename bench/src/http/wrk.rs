//! Running wrk, and its report.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The requests of a load: each connection cycles through the paths.
pub(super) struct Requests<'a> {
    pub(super) method: &'a str,
    pub(super) paths: &'a [String],
    pub(super) body: &'a str,
    pub(super) key: &'a str,
}

/// The report of wrk.
#[derive(Debug, Deserialize)]
pub(super) struct WrkReport {
    pub(super) requests: u64,
    microseconds: u64,
    bytes: u64,
    failed: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl WrkReport {
    pub(super) fn per_second(&self) -> f64 {
        self.requests as f64 * 1e6 / self.microseconds as f64
    }

    /// Compares the mean length of the responses with the length of a response that was checked.
    pub(super) fn check_mean_length(&self, body_bytes: usize) -> Result<()> {
        let mean = self.bytes as f64 / self.requests as f64;
        // The mean includes headers, and responses that were in flight at the end.
        let max = body_bytes as f64 + 600.0 + (body_bytes * super::CONNECTIONS) as f64 / self.requests as f64;
        ensure!(mean >= body_bytes as f64 && mean <= max, "responses have {mean:.0} bytes instead of {body_bytes}");
        Ok(())
    }
}

const DONE: &str = r#"
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('report {"requests":%d,"microseconds":%d,"bytes":%d,"failed":%d,"p50":%.1f,"p99":%.1f}\n',
    summary.requests, summary.duration, summary.bytes, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
"#;

impl Requests<'_> {
    fn script(&self) -> String {
        let Self { method, paths, body, key } = self;
        let body = if body.is_empty() { "nil".to_owned() } else { format!("{body:?}") };
        let paths: String = paths.iter().map(|path| format!("  {path:?},\n")).collect();
        format!(
            "local paths = {{\n{paths}}}\nlocal requests, at = {{}}, 0\n\
             function init()\n\
             local headers = {{ [\"Authorization\"] = \"Bearer {key}\", [\"Content-Type\"] = \"application/json\" }}\n\
             for number, path in ipairs(paths) do\n\
             requests[number] = wrk.format({method:?}, path, headers, {body})\n\
             end\n\
             end\n\
             function request()\n\
             at = at % #requests + 1\n\
             return requests[at]\n\
             end\n"
        )
    }

    /// Makes requests for `seconds`.
    pub(super) fn run(&self, address: SocketAddr, seconds: u64, folder: &Path) -> Result<WrkReport> {
        run(&self.script(), 2, address, seconds, folder)
    }
}

/// Runs a script on `threads` threads of wrk, which share the connections.
pub(super) fn run(script: &str, threads: usize, address: SocketAddr, seconds: u64, folder: &Path) -> Result<WrkReport> {
    let path = folder.join("requests.lua");
    std::fs::write(&path, format!("{script}{DONE}"))?;
    let mut command = Command::new("wrk");
    command.arg(format!("-t{threads}")).arg(format!("-c{}", super::CONNECTIONS)).arg(format!("-d{seconds}s"));
    command.args(["--timeout", "30s", "-s"]).arg(&path).arg(format!("http://{address}/"));
    let output = command.output().context("failed to start wrk; install it with `apt-get install wrk`")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let report = text.lines().find_map(|line| line.strip_prefix("report "));
    let errors = String::from_utf8_lossy(&output.stderr);
    let report: WrkReport = serde_json::from_str(report.with_context(|| format!("wrk failed: {text}{errors}"))?)?;
    ensure!(report.failed == 0, "{} of {} requests failed: {text}", report.failed, report.requests);
    ensure!(report.requests > 0, "no requests were answered: {text}");
    Ok(report)
}
