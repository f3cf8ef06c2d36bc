//! Failures of commands: the message, a hint with a remedy, and the exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

use serde::Serialize;
use threadkeep::agent::plugin::{FailureKind, PluginError};
use threadkeep::context::ContextError;
use threadkeep::core::{ModelError, Reason, redact_addresses};
use threadkeep::{Conflict, MemoryError, OpenError, StoreError};
use threadkeep_formats::FormatError;
use threadkeep_server::{KeyError, ServeError, TlsError};

use crate::erasures::LedgerWriteError;
use crate::output::{Output, PipeClosed};

/// The exit code of a failure that the user can correct: invalid input, or an object that does not exist.
pub(crate) const USER_ERROR: u8 = 1;
/// The exit code of incorrect usage, the same as clap's.
pub(crate) const USAGE: u8 = 2;
/// The exit code of a failure of the store, the disk or a remote service.
pub(crate) const SYSTEM_ERROR: u8 = 3;
/// The exit code of a command that Ctrl-C stopped.
pub(crate) const INTERRUPTED: u8 = 130;

/// A failure with its message, hint and exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// Creates a failure that the user can correct.
    pub(crate) fn user_error(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: USER_ERROR }
    }

    /// Creates a failure for incorrect usage of a command or an option.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, ..Self::user_error(message) }
    }

    /// Creates a failure of the store, the disk or a remote service.
    pub(crate) fn system_error(message: impl Into<String>) -> Self {
        Self { code: SYSTEM_ERROR, ..Self::user_error(message) }
    }

    /// Adds a hint with a remedy.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<PluginError> for Failure {
    fn from(error: PluginError) -> Self {
        let code = match error.kind() {
            FailureKind::Setup => USER_ERROR,
            FailureKind::Usage => USAGE,
            FailureKind::External => SYSTEM_ERROR,
        };
        let causes = std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |error| error.source());
        Self { message: join(causes), hint: error.hint().map(str::to_owned), code }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The JSON form of a failure.
#[derive(Serialize)]
pub(crate) struct FailureJson<'a> {
    pub(crate) error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<&'a str>,
    pub(crate) exit_code: u8,
}

/// Prints a failure to standard error and returns its exit code. A closed pipe (`| head`) counts as success.
pub(crate) fn report(error: &anyhow::Error, output: &Output) -> ExitCode {
    if error.chain().any(|cause| cause.is::<PipeClosed>()) {
        return ExitCode::SUCCESS;
    }
    let Diagnosis { code, hint } = diagnose(error);
    let text = redact_addresses(&sentence(error));
    if output.is_json() {
        let json = FailureJson { error: &text, hint: hint.as_deref(), exit_code: code };
        output.note(serde_json::to_string(&json).unwrap_or(text));
    } else {
        output.note(format_args!("{} {text}", output.error_label("error:")));
        if let Some(hint) = &hint {
            output.note(format_args!("{} {hint}", output.hint_label("hint:")));
        }
    }
    ExitCode::from(code)
}

/// Joins the chain of causes in one line, like [`join`].
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    join(error.chain())
}

/// Joins causes in one line. Omits a cause that only repeats the previous one.
pub(crate) fn join<'a>(causes: impl Iterator<Item = &'a (dyn std::error::Error + 'static)>) -> String {
    let (mut text, mut previous) = (String::new(), String::new());
    for cause in causes.map(ToString::to_string) {
        if text.is_empty() {
            text.clone_from(&cause);
        } else if !text.ends_with(&cause) && !cause.ends_with(&previous) {
            text = format!("{text}: {cause}");
        }
        previous = cause;
    }
    text
}

/// The exit code and the hint for a chain of causes.
struct Diagnosis {
    code: u8,
    hint: Option<String>,
}

impl Diagnosis {
    fn new(code: u8, hint: impl Into<String>) -> Self {
        Self { code, hint: Some(hint.into()) }
    }

    fn without_hint(code: u8) -> Self {
        Self { code, hint: None }
    }
}

/// Derives the exit code and the hint from the first cause that determines them.
fn diagnose(error: &anyhow::Error) -> Diagnosis {
    for cause in error.chain() {
        if let Some(Failure { hint, code, .. }) = cause.downcast_ref() {
            return Diagnosis { code: *code, hint: hint.clone() };
        }
        if let Some(MemoryError::Store(error)) = cause.downcast_ref() {
            return diagnose_store(error);
        }
        if let Some(MemoryError::Context(error)) = cause.downcast_ref() {
            return diagnose_context(error);
        }
        if let Some(MemoryError::Contended { .. }) = cause.downcast_ref() {
            return Diagnosis::new(SYSTEM_ERROR, "other programs are changing the data: run the command again");
        }
        if let Some(MemoryError::Model(error)) = cause.downcast_ref() {
            return diagnose_model(error);
        }
        if let Some(MemoryError::Embedder(error)) = cause.downcast_ref() {
            let code = if error.is_retryable() { SYSTEM_ERROR } else { USER_ERROR };
            return Diagnosis::new(code, "unset THREADKEEP_EMBEDDER to search by words only");
        }
        if let Some(error) = cause.downcast_ref::<StoreError>() {
            return diagnose_store(error);
        }
        // `OpenError` is transparent: the inner store error is not a separate cause in the chain.
        if let Some(OpenError::Store(error)) = cause.downcast_ref() {
            return diagnose_store(error);
        }
        if let Some(OpenError::Url(_) | OpenError::UnknownBackend { .. }) = cause.downcast_ref() {
            return Diagnosis::new(
                USAGE,
                "set --store to FILE, sqlite:FILE, postgres://USER@HOST/DATABASE or redis://HOST",
            );
        }
        if let Some(KeyError::Invalid(_)) = cause.downcast_ref() {
            return Diagnosis::without_hint(USAGE);
        }
        if let Some(KeyError::Unknown(_)) = cause.downcast_ref() {
            return Diagnosis::new(
                USER_ERROR,
                "`threadkeep keys list` lists the keys of the tenant; --tenant selects another tenant",
            );
        }
        if cause.is::<TlsError>() {
            return Diagnosis::new(
                USAGE,
                "--tls-cert must be a file with a certificate chain and --tls-key one with its private key, both in PEM",
            );
        }
        if cause.is::<ServeError>() {
            return Diagnosis::without_hint(SYSTEM_ERROR);
        }
        if let Some(error) = cause.downcast_ref::<FormatError>() {
            return diagnose_format(error);
        }
        if cause.is::<io::Error>() {
            return Diagnosis::without_hint(SYSTEM_ERROR);
        }
    }
    Diagnosis::without_hint(USER_ERROR)
}

fn diagnose_store(error: &StoreError) -> Diagnosis {
    match error {
        StoreError::NotFound(_) => {
            Diagnosis::new(USER_ERROR, "`threadkeep threads` lists the threads that you can access")
        }
        StoreError::Denied(_) => Diagnosis::new(USER_ERROR, "this data is shared; to change it, add --as-tenant"),
        StoreError::Conflict(Conflict::IdempotencyKey) => {
            Diagnosis::new(USER_ERROR, "use a new --key for a new message")
        }
        StoreError::Conflict(_) => Diagnosis::new(
            USER_ERROR,
            "the data has changed: check it, then run the command again if your change still makes sense",
        ),
        StoreError::Unavailable { source: Some(source), .. } if source.is::<LedgerWriteError>() => Diagnosis::new(
            SYSTEM_ERROR,
            "make its folder writable, specify another file with --erasure-ledger, or disable it with --erasure-ledger none",
        ),
        StoreError::Unavailable { reason, .. } => diagnose_reason(*reason),
        StoreError::Invalid { field: "database URL", .. } => Diagnosis::new(
            USAGE,
            "use postgres://USER:PASSWORD@HOST:PORT/DATABASE; docs/stores.md lists the parameters",
        ),
        StoreError::Invalid { field: "Redis URL", .. } => Diagnosis::new(
            USAGE,
            "use redis://USER:PASSWORD@HOST:PORT or redis-cluster://HOST:PORT,HOST:PORT; for TLS, rediss:// or rediss-cluster://; docs/stores.md lists the parameters",
        ),
        StoreError::Invalid { field: "tenant", .. } => {
            Diagnosis::new(USAGE, "specify another tenant with --tenant or THREADKEEP_TENANT")
        }
        StoreError::LimitExceeded { limit, .. } if limit.contains("pgvector") => Diagnosis::new(
            USER_ERROR,
            "the database's owner can install it with `CREATE EXTENSION vector`; if it cannot be installed, unset THREADKEEP_EMBEDDER",
        ),
        StoreError::Corrupt { .. } => Diagnosis::new(
            SYSTEM_ERROR,
            "`threadkeep check` reports the extent of the damage; `threadkeep restore FILE` restores a backup",
        ),
        StoreError::Incompatible(_) => Diagnosis::new(
            SYSTEM_ERROR,
            "specify a Threadkeep store with --store; a store written by a later version of threadkeep needs at least that version",
        ),
        _ => Diagnosis::without_hint(USER_ERROR),
    }
}

fn diagnose_model(error: &ModelError) -> Diagnosis {
    match error {
        ModelError::Unavailable { .. } | ModelError::RateLimited { .. } | ModelError::TimedOut { .. } => {
            Diagnosis::new(SYSTEM_ERROR, "`threadkeep models` checks whether it responds; try again later")
        }
        ModelError::Unauthorized { .. } => {
            Diagnosis::new(USER_ERROR, "check the API key; `threadkeep models` shows which variable sets it")
        }
        ModelError::ContextTooLong { .. } => {
            Diagnosis::new(USER_ERROR, "use a smaller context budget, or a model with a larger context window")
        }
        _ => Diagnosis::new(
            SYSTEM_ERROR,
            "choose another model: docs/models.md explains how, and `threadkeep models` lists the configured models",
        ),
    }
}

fn diagnose_context(error: &ContextError) -> Diagnosis {
    match error {
        ContextError::BudgetTooSmall { needed, .. } => Diagnosis::new(
            USER_ERROR,
            format!("use --budget {needed} or more: a smaller budget cannot hold the question"),
        ),
        _ => Diagnosis::without_hint(USER_ERROR),
    }
}

fn diagnose_reason(reason: Reason) -> Diagnosis {
    let hint = match reason {
        Reason::Busy => "another program has locked the store: wait until it finishes, then run the command again",
        Reason::Full => "free some disk space, then run the command again",
        Reason::ReadOnly => "change the permissions of the file or its folder, or specify another store with --store",
        Reason::Io => "check that the folder exists and is writable, and that the disk has no errors",
        Reason::Disconnected | Reason::Timeout => {
            "check that the server is running and that the host and port are correct, then run the command again"
        }
        _ => "check that the store is reachable, then run the command again",
    };
    Diagnosis::new(SYSTEM_ERROR, hint)
}

fn diagnose_format(error: &FormatError) -> Diagnosis {
    match error {
        FormatError::Open { .. } => Diagnosis::new(USER_ERROR, "check the name and the permissions of the file"),
        FormatError::Read(_) => Diagnosis::new(SYSTEM_ERROR, "copy the file to another disk and try the copy"),
        FormatError::Empty => Diagnosis::new(USER_ERROR, "choose a file that contains conversations"),
        FormatError::LaterVersion { .. } => {
            Diagnosis::new(USER_ERROR, "import it with the version of threadkeep that wrote it")
        }
        _ => Diagnosis::new(USER_ERROR, "specify the format with --format, or convert the file to a supported format"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn first_specific_cause_determines_exit_code_and_hint() {
        let error = anyhow::Error::from(StoreError::unavailable(Reason::Full)).context("the import stopped");
        assert_eq!(diagnose(&error).code, SYSTEM_ERROR);
        assert_eq!(sentence(&error), "the import stopped: store unavailable: no space left");
        let error = anyhow::Error::from(MemoryError::from(StoreError::NotFound(threadkeep::core::Kind::Thread)));
        assert_eq!((diagnose(&error).code, sentence(&error).as_str()), (USER_ERROR, "thread not found"));
        for (error, code, hint) in [
            (ModelError::TimedOut { model: "m".into(), after: Duration::from_secs(1) }, SYSTEM_ERROR, "again later"),
            (ModelError::Unauthorized { model: "m".into(), detail: "no".into() }, USER_ERROR, "check the API key"),
            (ModelError::ContextTooLong { model: "m".into() }, USER_ERROR, "smaller context"),
            (
                ModelError::Refused { model: "m".into(), status: 400, detail: "no".into() },
                SYSTEM_ERROR,
                "another model",
            ),
        ] {
            let diagnosis = diagnose(&anyhow::Error::from(MemoryError::from(error)));
            assert!(
                diagnosis.code == code && diagnosis.hint.as_deref().unwrap().contains(hint),
                "{:?}",
                diagnosis.hint
            );
        }
        let error = anyhow::Error::from(Failure::usage("say more").hint("like this"));
        assert_eq!((diagnose(&error).code, diagnose(&error).hint.as_deref()), (USAGE, Some("like this")));
    }
}
