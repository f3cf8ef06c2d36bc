use crate::Portable;

/// What a program can know of the processes of its machine.
///
/// It lets a turn whose driver was killed be taken over at once, instead of after its lease. A wrong answer does no harm to a
/// conversation: each commit of a run requires the version that the one before it wrote, so of two drivers one loses.
pub trait Processes: Portable {
    /// A name by which other processes of this machine recognise this one, also after its id was used again: at most 200
    /// characters, without `/`. `None` where the machine does not tell.
    fn own_name(&self) -> Option<String>;
    /// Whether the process of a name that begins with [`Processes::own_name`] and `:` is known to have ended. `false` for one of
    /// another machine, and for anything that is no such name.
    fn has_ended(&self, name: &str) -> bool;
}
