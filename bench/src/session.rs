//! A process that runs `serve`, for measurements from outside the measured process.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Session {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    /// Starts `command` with `serve` as its last argument, and opens a store in the folder.
    pub(crate) fn start(mut command: Command, folder: &Path, pool: &[String]) -> Result<Self> {
        let texts = folder.join("pool.json");
        std::fs::write(&texts, serde_json::to_vec(pool)?)?;
        let mut child = command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("stdin is not piped")?;
        let output = BufReader::new(child.stdout.take().context("stdout is not piped")?);
        let mut session = Self { child, input, output };
        let store = format!("sqlite:{}", folder.join("engine.db").display());
        session.request(&json!({ "op": "open", "folder": folder, "pool": texts, "store": store }))?;
        Ok(session)
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn request(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.input, "{request}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line).with_context(|| format!("invalid answer to {request}"))?;
        ensure!(answer.get("error").is_none(), "{request} failed: {answer}");
        Ok(answer)
    }

    pub(crate) fn close(mut self) -> Result<()> {
        self.request(&json!({ "op": "close" }))?;
        ensure!(self.child.wait()?.success(), "the process failed");
        Ok(())
    }
}
