use deadpool_postgres::PoolError;
use threadkeep_core::{Reason, StoreError};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// What went wrong between us and PostgreSQL, before it becomes what a caller can act on.
#[derive(Debug)]
pub(crate) enum PostgresError {
    Store(StoreError),
    /// The server's answer, or the loss of it.
    Server(tokio_postgres::Error),
    /// The same, before the statement itself was sent.
    Early(tokio_postgres::Error),
    /// There was no connection to ask on.
    Pool(PoolError),
    /// No answer came in time.
    Silence,
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
            PoolError::Backend(error) => Self::Early(error),
            other => Self::Pool(other),
        }
    }
}

impl From<PostgresError> for StoreError {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::Store(error) => error,
            PostgresError::Silence => Self::unavailable(Reason::Timeout),
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
            PostgresError::Server(error) | PostgresError::Early(error) => translate(error),
        }
    }
}

impl PostgresError {
    /// The failure of a write that had been sent. Whether it was carried out is known only where the server itself says
    /// that it was not; a lost connection, and an end of the session by the server, leave it open.
    pub(crate) fn of_write(self) -> StoreError {
        let is_open = match &self {
            Self::Silence => true,
            Self::Server(error) => error.as_db_error().is_none_or(ends_the_session),
            Self::Store(_) | Self::Pool(_) | Self::Early(_) => false,
        };
        match StoreError::from(self) {
            StoreError::Unavailable { reason, source, .. } if is_open => {
                StoreError::Unavailable { reason, maybe_applied: true, source }
            }
            other => other,
        }
    }

    /// Whether the connection is of no further use.
    pub(crate) fn spoils_the_connection(&self) -> bool {
        match self {
            Self::Silence => true,
            Self::Server(error) | Self::Early(error) => {
                // After a change of the schema, what was prepared before it no longer fits.
                error
                    .as_db_error()
                    .is_none_or(|error| ends_the_session(error) || *error.code() == SqlState::FEATURE_NOT_SUPPORTED)
            }
            Self::Store(_) | Self::Pool(_) => false,
        }
    }

    pub(crate) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Server(error) | Self::Early(error) => error.code(),
            _ => None,
        }
    }
}

fn ends_the_session(error: &DbError) -> bool {
    !matches!(error.parsed_severity(), Some(Severity::Error))
}

fn translate(error: tokio_postgres::Error) -> StoreError {
    let Some(told) = error.as_db_error() else {
        let is_local = !error.is_closed() && std::error::Error::source(&error).is_some_and(|source| !is_io(source));
        let reason = if is_local { Reason::Io } else { Reason::Disconnected };
        return StoreError::Unavailable { reason, maybe_applied: false, source: Some(Box::new(error)) };
    };
    let code = told.code().code();
    let reason = match code {
        "57014" => Reason::Timeout,
        "55P03" | "40001" | "40P01" | "53300" | "0A000" => Reason::Busy,
        "53100" => Reason::Full,
        "25006" => Reason::ReadOnly,
        "XX001" | "XX002" => return StoreError::corrupt("database", told.message()),
        "42P01" | "42883" | "3F000" => {
            return StoreError::Incompatible("the database has no schema of Threadkeep, or another one".to_owned());
        }
        "42501" => {
            let reason = "the role may not use the schema of Threadkeep; make it a member of threadkeep_server";
            return StoreError::Incompatible(reason.to_owned());
        }
        // What the server says of these names the database or the role, never the password.
        _ if code == "3D000" || code.starts_with("28") => return StoreError::invalid("database URL", told.message()),
        _ if code.starts_with("08") || code.starts_with("57P") => Reason::Disconnected,
        _ if code.starts_with("53") => Reason::Busy,
        _ => Reason::Io,
    };
    StoreError::Unavailable { reason, maybe_applied: false, source: Some(Box::new(error)) }
}

fn is_io(source: &(dyn std::error::Error + 'static)) -> bool {
    source.is::<std::io::Error>()
}
