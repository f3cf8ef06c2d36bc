//! Parses the output of strace: changes to the files of a folder, their syncs, and acknowledgements.
//!
//! A line with `<unfinished ...>` is the start of a call during which another thread made a call, and a line with
//! `resumed` is its end. A write takes effect at its start, because it may reach the disk from then on, and a sync at
//! its end.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::kill::child::Turn;

/// An event of a traced run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Created {
        file: String,
    },
    WriteBegins {
        file: String,
        offset: usize,
        bytes: Vec<u8>,
        call: u64,
    },
    Truncated {
        file: String,
        length: usize,
        call: u64,
    },
    /// The write or truncation with this number has returned.
    Returned {
        call: u64,
    },
    /// A sync has started. `file` is empty for the folder itself.
    SyncBegins {
        file: String,
    },
    SyncEnds {
        file: String,
    },
    Removed {
        file: String,
    },
    Acknowledged {
        turn: Turn,
    },
}

impl Event {
    pub(super) fn acknowledged(&self) -> Option<Turn> {
        match self {
            Self::Acknowledged { turn } => Some(*turn),
            _ => None,
        }
    }
}

/// The descriptor on which writers print acknowledgements.
const STANDARD_OUTPUT: &str = "1";

struct Parser<'a> {
    folder: &'a Path,
    /// The folder's open files, by descriptor.
    open: HashMap<String, String>,
    /// The unfinished call of each thread: its line so far, and its number.
    unfinished: HashMap<String, (String, u64)>,
    calls: u64,
    events: Vec<Event>,
}

/// Parses a whole trace.
pub(super) fn parse(trace: &str, folder: &Path) -> Result<Vec<Event>> {
    let mut parser = Parser { folder, open: HashMap::new(), unfinished: HashMap::new(), calls: 0, events: Vec::new() };
    for line in trace.lines() {
        parser.line(line).with_context(|| format!("invalid line of the trace: {:.200}", line))?;
    }
    ensure!(!parser.events.is_empty(), "the trace contains no events of the store");
    Ok(parser.events)
}

impl Parser<'_> {
    fn line(&mut self, line: &str) -> Result<()> {
        let (thread, rest) = line.trim_start().split_once(' ').context("missing thread id")?;
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            return Ok(());
        }
        if let Some(start) = rest.strip_suffix(" <unfinished ...>") {
            self.calls += 1;
            self.begin(start, self.calls)?;
            self.unfinished.insert(thread.to_owned(), (start.to_owned(), self.calls));
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, end) = resumed.split_once(" resumed>").context("missing \"resumed>\"")?;
            let (start, call) = self.unfinished.remove(thread).context("resumed without an unfinished call")?;
            self.end(&format!("{start}{end}"), call)?;
        } else {
            self.calls += 1;
            self.begin(rest, self.calls)?;
            self.end(rest, self.calls)?;
        }
        Ok(())
    }

    /// Adds the event of a call's start, if any.
    fn begin(&mut self, text: &str, call: u64) -> Result<()> {
        let (name, arguments) = call_of(text)?;
        match name {
            "pwrite64" => {
                if let Some(file) = self.file(&arguments) {
                    let (bytes, offset) = (unescaped(argument(&arguments, 1)?)?, number(argument(&arguments, 3)?)?);
                    self.events.push(Event::WriteBegins { file, offset, bytes, call });
                }
            }
            "write" if arguments.first().is_some_and(|descriptor| *descriptor == STANDARD_OUTPUT) => {
                let bytes = unescaped(argument(&arguments, 1)?)?;
                for line in String::from_utf8_lossy(&bytes).lines() {
                    let turn = line.strip_prefix("ok ").and_then(Turn::parse);
                    self.events.extend(turn.map(|turn| Event::Acknowledged { turn }));
                }
            }
            "write" => ensure!(self.file(&arguments).is_none(), "unexpected write without an offset"),
            "ftruncate" => {
                if let Some(file) = self.file(&arguments) {
                    self.events.push(Event::Truncated { file, length: number(argument(&arguments, 1)?)?, call });
                }
            }
            "fdatasync" | "fsync" => {
                let file = self.file(&arguments);
                self.events.extend(file.map(|file| Event::SyncBegins { file }));
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the event of a call's end, if any.
    fn end(&mut self, text: &str, call: u64) -> Result<()> {
        let (name, arguments) = call_of(text)?;
        let (_, result) = text.rsplit_once(" = ").context("missing result")?;
        let result = result.split(' ').next().unwrap_or_default();
        if result.starts_with('-') {
            ensure!(!matches!(name, "pwrite64" | "fdatasync" | "fsync" | "ftruncate"), "a call of {name} failed");
            return Ok(());
        }
        match name {
            "pwrite64" | "ftruncate" => {
                let is_ours = self.file(&arguments).is_some();
                self.events.extend(is_ours.then_some(Event::Returned { call }));
            }
            "fdatasync" | "fsync" => {
                let file = self.file(&arguments);
                self.events.extend(file.map(|file| Event::SyncEnds { file }));
            }
            "openat" | "open" => {
                let path = unescaped(argument(&arguments, usize::from(name == "openat"))?)?;
                self.opened(&String::from_utf8_lossy(&path), text, result);
            }
            "close" => {
                self.open.remove(argument(&arguments, 0)?);
            }
            "unlink" => {
                let path = unescaped(argument(&arguments, 0)?)?;
                let file = self.name(&String::from_utf8_lossy(&path));
                self.events.extend(file.map(|file| Event::Removed { file }));
            }
            "rename" => anyhow::bail!("rename is not supported"),
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, path: &str, text: &str, descriptor: &str) {
        // Descriptors are reused after a close, also for files outside the folder.
        self.open.remove(descriptor);
        let Some(file) = self.name(path) else { return };
        if text.contains("O_CREAT") {
            self.events.push(Event::Created { file: file.clone() });
        }
        self.open.insert(descriptor.to_owned(), file);
    }

    fn file(&self, arguments: &[&str]) -> Option<String> {
        self.open.get(*arguments.first()?).cloned()
    }

    /// Returns the name inside the folder; empty for the folder itself. Shared memory files are not on the disk.
    fn name(&self, path: &str) -> Option<String> {
        let name = Path::new(path).strip_prefix(self.folder).ok()?.to_str()?;
        (!name.ends_with("-shm")).then(|| name.to_owned())
    }
}

/// Splits a call into its name and arguments. Strings are fully escaped, so commas only separate arguments.
fn call_of(text: &str) -> Result<(&str, Vec<&str>)> {
    let (name, rest) = text.split_once('(').context("not a call")?;
    let arguments = rest.rsplit_once(") ").map_or(rest, |(arguments, _)| arguments).trim_end_matches(')');
    Ok((name, arguments.split(", ").map(str::trim).collect()))
}

fn argument<'a>(arguments: &[&'a str], index: usize) -> Result<&'a str> {
    arguments.get(index).copied().context("missing argument")
}

fn number(text: &str) -> Result<usize> {
    Ok(text.trim_end_matches(')').trim().parse()?)
}

/// Parses a quoted string of `\x..` escapes.
fn unescaped(text: &str) -> Result<Vec<u8>> {
    let inside =
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).context("truncated or missing string")?;
    let pairs = inside.split("\\x").skip(1);
    Ok(pairs.map(|pair| u8::from_str_radix(pair, 16)).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_calls_of_threads_are_distinguished() {
        let trace = r#"7 openat(AT_FDCWD, "\x2f\x73\x2f\x61", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 5
7 openat(AT_FDCWD, "\x2f\x65", O_RDONLY|O_CLOEXEC) = 6
7 pwrite64(6, "\x01", 1, 0) = 1
8 pwrite64(5, "\x01\x02", 2, 4096 <unfinished ...>
7 fdatasync(5 <unfinished ...>
8 <... pwrite64 resumed>) = 2
7 <... fdatasync resumed>) = 0
7 write(1, "\x6f\x6b\x20\x33\x2e\x31\x0a", 7) = 7
7 unlink("\x2f\x73\x2f\x61") = 0
7 unlink("\x2f\x73\x2f\x62") = -1 ENOENT (No such file or directory)
7 +++ exited with 0 +++
"#;
        let file = || "a".to_owned();
        let expected = [
            Event::Created { file: file() },
            Event::WriteBegins { file: file(), offset: 4096, bytes: vec![1, 2], call: 4 },
            Event::SyncBegins { file: file() },
            Event::Returned { call: 4 },
            Event::SyncEnds { file: file() },
            Event::Acknowledged { turn: Turn { writer: 3, number: 1 } },
            Event::Removed { file: file() },
        ];
        assert_eq!(parse(trace, Path::new("/s")).unwrap(), expected);
    }

    #[test]
    fn a_truncated_string_is_an_error() {
        let trace = "7 write(1, \"\\x6f\"..., 7) = 7\n";
        assert!(parse(trace, Path::new("/s")).is_err());
    }
}
