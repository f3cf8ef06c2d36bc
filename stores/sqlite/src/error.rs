use rusqlite::ErrorCode;
use threadkeep_core::{Reason, StoreError};

/// An error of this crate before its conversion into a [`StoreError`].
#[derive(Debug)]
pub(crate) enum SqliteError {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

pub(crate) type Result<T, E = SqliteError> = std::result::Result<T, E>;

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for SqliteError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SqliteError> for StoreError {
    fn from(error: SqliteError) -> Self {
        match error {
            SqliteError::Store(error) => error,
            SqliteError::Sqlite(error) => translate(error),
        }
    }
}

impl SqliteError {
    /// Whether another connection holds a lock, so a retry can succeed.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite(error) if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)))
    }

    /// Whether the file's content is damaged or cannot be read from disk.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => matches!(error, StoreError::Corrupt { .. } | StoreError::Incompatible(_)),
            Self::Sqlite(error) => {
                is_misread(error)
                    || matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
                    || error
                        .sqlite_error()
                        .is_some_and(|sqlite| sqlite.extended_code == rusqlite::ffi::SQLITE_IOERR_READ)
            }
        }
    }

    /// Returns the message for a damage report. It never contains stored data.
    pub(crate) fn detail(self) -> String {
        StoreError::from(self).to_string()
    }
}

/// The failure of a group of commits, reported to each of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupFailure {
    pub(crate) reason: Reason,
    pub(crate) maybe_applied: bool,
}

impl GroupFailure {
    /// Creates the failure for an error before the commit: nothing was applied.
    pub(crate) fn before(error: &SqliteError) -> Self {
        Self { reason: reason_of(error), maybe_applied: false }
    }

    /// Creates the failure for an error of the commit itself. After a failed sync, it is unknown whether the log reached the disk.
    pub(crate) fn at_commit(error: &SqliteError) -> Self {
        let reason = reason_of(error);
        Self { reason, maybe_applied: reason == Reason::Io }
    }

    pub(crate) fn into_error(self) -> StoreError {
        StoreError::Unavailable { reason: self.reason, maybe_applied: self.maybe_applied, source: None }
    }
}

fn reason_of(error: &SqliteError) -> Reason {
    match error {
        SqliteError::Store(StoreError::Unavailable { reason, .. }) => *reason,
        SqliteError::Store(_) => Reason::Io,
        SqliteError::Sqlite(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
                Reason::Busy
            }
            Some(ErrorCode::DiskFull) => Reason::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Reason::ReadOnly,
            _ => Reason::Io,
        },
    }
}

/// Whether the values of a row do not have the types that this crate writes.
fn is_misread(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, QueryReturnedNoRows, Utf8Error,
    };
    matches!(
        error,
        InvalidColumnType(..)
            | FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | QueryReturnedNoRows
            | Utf8Error(..)
    )
}

fn translate(error: rusqlite::Error) -> StoreError {
    if is_misread(&error) {
        return StoreError::corrupt("row", error.to_string());
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => StoreError::corrupt("database file", error.to_string()),
        Some(ErrorCode::NotADatabase) => StoreError::Incompatible("the file is not a SQLite database".to_owned()),
        _ => {
            let error = SqliteError::Sqlite(error);
            let reason = reason_of(&error);
            let SqliteError::Sqlite(source) = error else { unreachable!("constructed two lines above") };
            StoreError::Unavailable { reason, maybe_applied: false, source: Some(Box::new(source)) }
        }
    }
}
