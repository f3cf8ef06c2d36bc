//! Keeps conversations in one SQLite file.
