use std::os::unix::fs::MetadataExt;

use threadkeep_core::{Fingerprint, Processes};

/// The processes of the machine, as `/proc` shows them. Where nothing is known of a process it counts as there.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxProcesses;

/// A process as others on its machine see it.
#[derive(Debug, PartialEq, Eq)]
struct Process<'a> {
    /// The machine since it was started, the space that process ids are of, and the user.
    place: &'a str,
    id: u32,
    /// When it began, in the machine's own ticks: ids come again.
    began: u64,
}

impl Processes for LinuxProcesses {
    fn own_name(&self) -> Option<String> {
        let (place, began) = here()?;
        Some(format!("{place}:{}:{began}", std::process::id()))
    }

    fn has_ended(&self, name: &str) -> bool {
        let (Some(process), Some((place, _))) = (read(name), here()) else { return false };
        process.place == place && began(&process.id.to_string()) != Some(process.began)
    }
}

fn read(name: &str) -> Option<Process<'_>> {
    let mut parts = name.split(':');
    let (place, id, began) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Process { place, id, began })
}

/// Where this process runs, and when it began.
fn here() -> Option<(String, u64)> {
    let machine = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let ids = std::fs::read_link("/proc/self/ns/pid").ok()?;
    // What belongs to others may be hidden, and would look as if it were gone.
    let user = std::fs::metadata("/proc/self").ok()?.uid();
    let place = Fingerprint::of(format!("{machine}\n{}\n{user}", ids.display()).as_bytes());
    let digits = place.0.iter().map(|byte| format!("{byte:02x}")).collect();
    Some((digits, began("self")?))
}

/// When a process began; `None` for one that is not there, or is over and only waits for its parent to see it.
fn began(process: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program stands in brackets and may hold anything.
    let (_, facts) = stat.rsplit_once(')')?;
    let mut facts = facts.split_whitespace();
    let state = facts.next()?;
    let began = facts.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(began)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn named(id: u32) -> String {
        let (place, _) = here().expect("this machine tells");
        format!("{place}:{id}:{}:any", began(&id.to_string()).expect("the process is there"))
    }

    #[test]
    fn a_process_is_gone_once_it_has_ended_and_not_before() {
        assert!(!LinuxProcesses.has_ended(&LinuxProcesses.own_name().unwrap()));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let name = named(child.id());
        assert!(!LinuxProcesses.has_ended(&name));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(LinuxProcesses.has_ended(&name));
    }

    #[test]
    fn one_that_took_its_id_is_another_one() {
        let own = named(std::process::id());
        assert!(!LinuxProcesses.has_ended(&own));
        let (place, began) = here().unwrap();
        assert!(LinuxProcesses.has_ended(&format!("{place}:{}:{}:any", std::process::id(), began + 1)));
    }

    #[test]
    fn nothing_is_said_of_other_machines_and_other_names() {
        let (_, began) = here().unwrap();
        for name in [format!("0123456789abcdef:1:{}:any", began + 1), "4711-any".to_owned(), String::new()] {
            assert!(!LinuxProcesses.has_ended(&name), "{name}");
        }
    }
}
