use deadpool_postgres::PoolError;
use threadkeep_core::{Reason, StoreError};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// An error of this crate before its conversion into a [`StoreError`].
#[derive(Debug)]
pub(crate) enum PostgresError {
    Store(StoreError),
    /// The server returned an error, or the connection was lost.
    Server(tokio_postgres::Error),
    /// The server returned an error, or the connection was lost, before the statement was sent.
    BeforeSend(tokio_postgres::Error),
    /// No connection was available.
    Pool(PoolError),
    /// The server did not respond in time.
    NoResponse,
}

pub(crate) type Result<T, E = PostgresError> = std::result::Result<T, E>;

impl From<StoreError> for PostgresError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<PoolError> for PostgresError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::BeforeSend(error),
            other => Self::Pool(other),
        }
    }
}

impl From<PostgresError> for StoreError {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::Store(error) => error,
            PostgresError::NoResponse => Self::unavailable(Reason::Timeout),
            PostgresError::Pool(error) => {
                let reason = match error {
                    // All connections are in use.
                    PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => Reason::Busy,
                    PoolError::Timeout(_) => Reason::Timeout,
                    PoolError::Closed => Reason::Closed,
                    _ => Reason::Disconnected,
                };
                Self::Unavailable { reason, maybe_applied: false, source: Some(Box::new(error)) }
            }
            PostgresError::Server(error) | PostgresError::BeforeSend(error) => translate(error),
        }
    }
}

impl PostgresError {
    /// Converts the failure of a write. Only an error returned by the server proves that the write was not applied.
    /// After a lost connection, or if the server ended the session, the write may have been applied.
    pub(crate) fn into_write_error(self) -> StoreError {
        let is_unknown = match &self {
            Self::NoResponse => true,
            Self::Server(error) => error.as_db_error().is_none_or(ends_session),
            Self::Store(_) | Self::Pool(_) | Self::BeforeSend(_) => false,
        };
        match StoreError::from(self) {
            StoreError::Unavailable { reason, source, .. } if is_unknown => {
                StoreError::Unavailable { reason, maybe_applied: true, source }
            }
            other => other,
        }
    }

    /// Whether the connection cannot be used again.
    pub(crate) fn breaks_connection(&self) -> bool {
        match self {
            Self::NoResponse => true,
            Self::Server(error) | Self::BeforeSend(error) => {
                // After a schema change, statements prepared before it fail with this code.
                error
                    .as_db_error()
                    .is_none_or(|error| ends_session(error) || *error.code() == SqlState::FEATURE_NOT_SUPPORTED)
            }
            Self::Store(_) | Self::Pool(_) => false,
        }
    }

    pub(crate) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Server(error) | Self::BeforeSend(error) => error.code(),
            _ => None,
        }
    }
}

fn ends_session(error: &DbError) -> bool {
    !matches!(error.parsed_severity(), Some(Severity::Error))
}

fn translate(error: tokio_postgres::Error) -> StoreError {
    let Some(db_error) = error.as_db_error() else {
        let is_local = !error.is_closed() && std::error::Error::source(&error).is_some_and(|source| !is_io(source));
        let reason = if is_local { Reason::Io } else { Reason::Disconnected };
        return StoreError::Unavailable { reason, maybe_applied: false, source: Some(Box::new(error)) };
    };
    let code = db_error.code().code();
    let reason = match code {
        "57014" => Reason::Timeout,
        "55P03" | "40001" | "40P01" | "53300" | "0A000" => Reason::Busy,
        "53100" => Reason::Full,
        "25006" => Reason::ReadOnly,
        "XX001" | "XX002" => return StoreError::corrupt("database", db_error.message()),
        "42P01" | "42883" | "3F000" => {
            let reason = "the database has no threadkeep schema, or the schema of another version";
            return StoreError::Incompatible(reason.to_owned());
        }
        "42501" => {
            let reason = "the role may not use the threadkeep schema; grant it the role threadkeep_server";
            return StoreError::Incompatible(reason.to_owned());
        }
        // The server's messages for these errors name the database or the role, never the password.
        _ if code == "3D000" || code.starts_with("28") => {
            return StoreError::invalid("database URL", db_error.message());
        }
        _ if code.starts_with("08") || code.starts_with("57P") => Reason::Disconnected,
        _ if code.starts_with("53") => Reason::Busy,
        _ => Reason::Io,
    };
    StoreError::Unavailable { reason, maybe_applied: false, source: Some(Box::new(error)) }
}

fn is_io(source: &(dyn std::error::Error + 'static)) -> bool {
    source.is::<std::io::Error>()
}
