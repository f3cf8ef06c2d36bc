use std::os::unix::fs::MetadataExt;

use threadkeep_core::{Fingerprint, Processes};

/// Reads `/proc`. A process whose state is unknown is considered running.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxProcesses;

/// The identity of a process, as parsed from its name `host:id:started`.
#[derive(Debug, PartialEq, Eq)]
struct Process<'a> {
    /// A hash of the machine's boot id, the namespace of process ids, and the user.
    host: &'a str,
    id: u32,
    /// When the process started, in clock ticks since boot. Distinguishes processes with the same id, because ids are reused.
    started: u64,
}

impl Processes for LinuxProcesses {
    fn own_name(&self) -> Option<String> {
        let (host, started) = own_host()?;
        Some(format!("{host}:{}:{started}", std::process::id()))
    }

    fn has_ended(&self, name: &str) -> bool {
        let (Some(process), Some((host, _))) = (parse(name), own_host()) else { return false };
        process.host == host && start_time(&process.id.to_string()) != Some(process.started)
    }
}

fn parse(name: &str) -> Option<Process<'_>> {
    let mut parts = name.split(':');
    let (host, id, started) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Process { host, id, started })
}

/// The host of this process, and the time at which it started.
fn own_host() -> Option<(String, u64)> {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    // The user is part of the host, because processes of other users may be hidden and would appear to have ended.
    let user = std::fs::metadata("/proc/self").ok()?.uid();
    let host = Fingerprint::of(format!("{boot_id}\n{}\n{user}", namespace.display()).as_bytes());
    let digits = host.0.iter().map(|byte| format!("{byte:02x}")).collect();
    Some((digits, start_time("self")?))
}

/// The time at which a process started; `None` if the process does not exist, or has ended and is a zombie.
fn start_time(process: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name is in parentheses and may contain any characters.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn name_of(id: u32) -> String {
        let (host, _) = own_host().expect("/proc is readable");
        format!("{host}:{id}:{}:any", start_time(&id.to_string()).expect("the process exists"))
    }

    #[test]
    fn a_process_has_ended_only_after_it_was_killed() {
        assert!(!LinuxProcesses.has_ended(&LinuxProcesses.own_name().unwrap()));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let name = name_of(child.id());
        assert!(!LinuxProcesses.has_ended(&name));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(LinuxProcesses.has_ended(&name));
    }

    #[test]
    fn a_process_with_the_same_id_and_another_start_time_is_another_process() {
        let own = name_of(std::process::id());
        assert!(!LinuxProcesses.has_ended(&own));
        let (host, started) = own_host().unwrap();
        assert!(LinuxProcesses.has_ended(&format!("{host}:{}:{}:any", std::process::id(), started + 1)));
    }

    #[test]
    fn processes_of_other_machines_and_invalid_names_have_not_ended() {
        let (_, started) = own_host().unwrap();
        for name in [format!("0123456789abcdef:1:{}:any", started + 1), "4711-any".to_owned(), String::new()] {
            assert!(!LinuxProcesses.has_ended(&name), "{name}");
        }
    }
}
