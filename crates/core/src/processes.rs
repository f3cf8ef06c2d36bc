use crate::Portable;

/// Information about the processes of the machine.
///
/// It allows taking over a turn immediately after its driver was killed, instead of after its lease expired. A wrong answer cannot
/// damage a conversation: each commit of a run requires the version that the previous one wrote, so of two drivers one fails.
pub trait Processes: Portable {
    /// Returns a name that identifies this process on this machine, even after its process id is reused: at most 200 characters,
    /// without `/`. `None` if the machine does not provide one.
    fn own_name(&self) -> Option<String>;
    /// Whether a process is known to have ended. `name` starts with its [`Processes::own_name`] and `:`. Returns `false` for processes
    /// of other machines and for other names.
    fn has_ended(&self, name: &str) -> bool;
}
