//! Contexts as they come out, for histories as they are and as they should not be.

#[cfg(test)]
mod given;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod recalls;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod transcripts;
