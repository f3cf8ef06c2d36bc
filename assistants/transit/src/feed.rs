//! Reads a GTFS feed into a [`Timetable`], and says file, line and column of whatever is wrong with it.
//!
//! Every reference is checked. What the rest of this crate does not use (fares, shapes, pathways) is not looked at;
//! `frequencies.txt` would change every answer and is refused.

mod error;
mod files;
mod reading;
mod stop_times;
pub(crate) mod table;

use std::path::Path;

pub use error::{FeedError, Problem};

use crate::timetable::Timetable;
use files::Files;

impl Timetable {
    /// Reads a feed from the bytes of its zip archive.
    ///
    /// # Errors
    /// [`FeedError`], with the place of the first thing that is wrong.
    pub fn from_zip(bytes: Vec<u8>) -> Result<Self, FeedError> {
        reading::read(&mut Files::in_archive(bytes)?)
    }

    /// Reads a feed from a folder that holds its files.
    ///
    /// # Errors
    /// [`FeedError`], with the place of the first thing that is wrong.
    pub fn from_folder(folder: &Path) -> Result<Self, FeedError> {
        reading::read(&mut Files::in_folder(folder)?)
    }
}
