//! Reads a GTFS feed into a [`Timetable`]. Errors name the file, line and column.
//!
//! Every reference is checked. Files that this crate does not use (fares, shapes, pathways) are ignored. A feed with rows in
//! `frequencies.txt` is rejected, because ignoring them would make every answer wrong.

mod error;
mod files;
mod reading;
mod stop_times;
pub(crate) mod table;

use std::path::Path;

pub use error::{FeedError, FieldProblem};

use crate::timetable::Timetable;
use files::Files;

impl Timetable {
    /// Reads a feed from the bytes of its zip archive.
    ///
    /// # Errors
    /// [`FeedError`], with the location of the first error.
    pub fn from_zip(bytes: Vec<u8>) -> Result<Self, FeedError> {
        reading::read(&mut Files::in_archive(bytes)?)
    }

    /// Reads a feed from a folder that contains its files.
    ///
    /// # Errors
    /// [`FeedError`], with the location of the first error.
    pub fn from_folder(folder: &Path) -> Result<Self, FeedError> {
        reading::read(&mut Files::in_folder(folder)?)
    }
}
