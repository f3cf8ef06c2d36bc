//! wrk, and what it says.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// What is asked, over and over: each connection goes round the paths.
pub(super) struct Requests<'a> {
    pub(super) method: &'a str,
    pub(super) paths: &'a [String],
    pub(super) body: &'a str,
    pub(super) key: &'a str,
}

/// What wrk saw.
#[derive(Debug, Deserialize)]
pub(super) struct Seen {
    pub(super) requests: u64,
    microseconds: u64,
    bytes: u64,
    failed: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Seen {
    pub(super) fn per_second(&self) -> f64 {
        self.requests as f64 * 1e6 / self.microseconds as f64
    }

    /// Refuses answers of another length than those that were looked at.
    pub(super) fn check_bytes(&self, answer_bytes: usize) -> Result<()> {
        let mean = self.bytes as f64 / self.requests as f64;
        // Headers come on top, and the last answers may have been on their way.
        let most = answer_bytes as f64 + 600.0 + (answer_bytes * super::CONNECTIONS) as f64 / self.requests as f64;
        ensure!(mean >= answer_bytes as f64 && mean <= most, "answers had {mean:.0} bytes instead of {answer_bytes}");
        Ok(())
    }
}

const DONE: &str = r#"
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('seen {"requests":%d,"microseconds":%d,"bytes":%d,"failed":%d,"p50":%.1f,"p99":%.1f}\n',
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

    /// Asks for some seconds.
    pub(super) fn run(&self, address: SocketAddr, seconds: u64, folder: &Path) -> Result<Seen> {
        run(&self.script(), 2, address, seconds, folder)
    }
}

/// Runs a script on so many threads of wrk, which share the connections.
pub(super) fn run(script: &str, threads: usize, address: SocketAddr, seconds: u64, folder: &Path) -> Result<Seen> {
    let path = folder.join("requests.lua");
    std::fs::write(&path, format!("{script}{DONE}"))?;
    let mut command = Command::new("wrk");
    command.arg(format!("-t{threads}")).arg(format!("-c{}", super::CONNECTIONS)).arg(format!("-d{seconds}s"));
    command.args(["--timeout", "30s", "-s"]).arg(&path).arg(format!("http://{address}/"));
    let output = command.output().context("wrk does not start: `apt-get install wrk` brings it")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let seen = text.lines().find_map(|line| line.strip_prefix("seen "));
    let errors = String::from_utf8_lossy(&output.stderr);
    let seen: Seen = serde_json::from_str(seen.with_context(|| format!("wrk failed: {text}{errors}"))?)?;
    ensure!(seen.failed == 0, "{} requests of {} failed: {text}", seen.failed, seen.requests);
    ensure!(seen.requests > 0, "nothing was answered: {text}");
    Ok(seen)
}
