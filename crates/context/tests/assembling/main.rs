//! Assembled contexts for ordinary and malformed histories.

#[cfg(test)]
mod fixtures;
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
