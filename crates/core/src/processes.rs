use crate::Portable;

/// Information about the processes of the machine.
///
/// With it, a turn can be taken over immediately after its driver is killed, instead of after the driver's lease expires. A wrong
/// answer cannot damage a conversation: each commit of a run requires the version that the run's previous commit wrote, so if two
/// drivers execute the same run, one of them fails.
pub trait Processes: Portable {
    /// Returns a name that identifies this process on this machine, even after its process id is reused: at most 200 characters,
    /// without `/`. `None` if the machine does not provide one.
    fn own_name(&self) -> Option<String>;
    /// Whether a process is known to have ended. `name` starts with the [`Processes::own_name`] of that process, followed by `:`.
    /// Returns `false` for processes of other machines and for other names.
    fn has_ended(&self, name: &str) -> bool;
}
