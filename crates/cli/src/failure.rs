//! What went wrong, what to do about it, and the exit code that tells a program whose turn it is.

use std::fmt;
use std::io;
use std::process::ExitCode;

use serde::Serialize;
use threadkeep::agent::plugin::{Fault, PluginError};
use threadkeep::context::ContextError;
use threadkeep::core::{ModelError, Reason, without_secrets};
use threadkeep::{Conflict, MemoryError, OpenError, StoreError};
use threadkeep_formats::FormatError;
use threadkeep_server::{KeyError, ServeError, TlsError};

use crate::erasures::Unwritten;
use crate::output::{Output, PipeClosed};

/// Something to put right on the caller's side.
pub(crate) const YOURS: u8 = 1;
/// Wrong usage; what clap exits with, too.
pub(crate) const USAGE: u8 = 2;
/// The other side failed: the store or the disk.
pub(crate) const OTHER_SIDE: u8 = 3;
/// Ended by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// A failure in the command line's own words.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// Something to put right on the caller's side.
    pub(crate) fn yours(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, code: YOURS }
    }

    /// A command line that does not say what is needed.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self { code: USAGE, ..Self::yours(what) }
    }

    /// Something that the store or the disk did not do.
    pub(crate) fn other_side(what: impl Into<String>) -> Self {
        Self { code: OTHER_SIDE, ..Self::yours(what) }
    }

    /// Says what to do.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<PluginError> for Failure {
    fn from(error: PluginError) -> Self {
        let code = match error.fault() {
            Fault::Caller => YOURS,
            Fault::Usage => USAGE,
            Fault::OtherSide => OTHER_SIDE,
        };
        let causes = std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |error| error.source());
        Self { what: join(causes), hint: error.hint().map(str::to_owned), code }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// A failure as programs read it.
#[derive(Serialize)]
pub(crate) struct FailureJson<'a> {
    pub(crate) error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<&'a str>,
    pub(crate) exit_code: u8,
}

/// Tells a failure on standard error and gives the exit code. A reader that went away (`| head`) is none.
pub(crate) fn report(error: &anyhow::Error, output: &Output) -> ExitCode {
    if error.chain().any(|cause| cause.is::<PipeClosed>()) {
        return ExitCode::SUCCESS;
    }
    let verdict = verdict(error);
    let text = without_secrets(&sentence(error));
    if output.is_json() {
        let json = FailureJson { error: &text, hint: verdict.hint.as_deref(), exit_code: verdict.code };
        output.note(serde_json::to_string(&json).unwrap_or(text));
    } else {
        output.note(format_args!("{} {text}", output.error_label("error:")));
        if let Some(hint) = &verdict.hint {
            output.note(format_args!("{} {hint}", output.hint_label("hint:")));
        }
    }
    ExitCode::from(verdict.code)
}

/// The whole chain of causes in one line, as [`join`].
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    join(error.chain())
}

/// Causes in one line. One that only says again what the one above it says is left out.
pub(crate) fn join<'a>(causes: impl Iterator<Item = &'a (dyn std::error::Error + 'static)>) -> String {
    let (mut text, mut above) = (String::new(), String::new());
    for cause in causes.map(ToString::to_string) {
        if text.is_empty() {
            text.clone_from(&cause);
        } else if !text.ends_with(&cause) && !cause.ends_with(&above) {
            text = format!("{text}: {cause}");
        }
        above = cause;
    }
    text
}

struct Verdict {
    code: u8,
    hint: Option<String>,
}

impl Verdict {
    fn new(code: u8, hint: impl Into<String>) -> Self {
        Self { code, hint: Some(hint.into()) }
    }

    fn bare(code: u8) -> Self {
        Self { code, hint: None }
    }
}

/// The first cause that says what can be done decides.
fn verdict(error: &anyhow::Error) -> Verdict {
    for cause in error.chain() {
        if let Some(Failure { hint, code, .. }) = cause.downcast_ref() {
            return Verdict { code: *code, hint: hint.clone() };
        }
        if let Some(MemoryError::Store(error)) = cause.downcast_ref() {
            return of_store(error);
        }
        if let Some(MemoryError::Context(error)) = cause.downcast_ref() {
            return of_context(error);
        }
        if let Some(MemoryError::Contended { .. }) = cause.downcast_ref() {
            return Verdict::new(OTHER_SIDE, "others are changing it: run the same command again");
        }
        if let Some(MemoryError::Model(error)) = cause.downcast_ref() {
            return of_model(error);
        }
        if let Some(MemoryError::Embedder(error)) = cause.downcast_ref() {
            let code = if error.is_retryable() { OTHER_SIDE } else { YOURS };
            return Verdict::new(code, "without THREADKEEP_EMBEDDER messages are found by their words alone");
        }
        if let Some(error) = cause.downcast_ref::<StoreError>() {
            return of_store(error);
        }
        // It is told as what it holds, which therefore is no cause of its own.
        if let Some(OpenError::Store(error)) = cause.downcast_ref() {
            return of_store(error);
        }
        if let Some(OpenError::Url(_) | OpenError::UnknownBackend { .. }) = cause.downcast_ref() {
            return Verdict::new(USAGE, "give --store a file, sqlite:FILE or postgres://USER@HOST/DATABASE");
        }
        if let Some(KeyError::Invalid(_)) = cause.downcast_ref() {
            return Verdict::bare(USAGE);
        }
        if let Some(KeyError::Unknown(_)) = cause.downcast_ref() {
            return Verdict::new(YOURS, "`threadkeep keys list` lists the keys of the tenant that --tenant names");
        }
        if cause.is::<TlsError>() {
            return Verdict::new(
                USAGE,
                "--tls-cert names a chain of certificates, --tls-key its private key, both in PEM",
            );
        }
        if cause.is::<ServeError>() {
            return Verdict::bare(OTHER_SIDE);
        }
        if let Some(error) = cause.downcast_ref::<FormatError>() {
            return of_format(error);
        }
        if cause.is::<io::Error>() {
            return Verdict::bare(OTHER_SIDE);
        }
    }
    Verdict::bare(YOURS)
}

fn of_store(error: &StoreError) -> Verdict {
    match error {
        StoreError::NotFound(_) => Verdict::new(YOURS, "`threadkeep threads` lists the threads that you can name"),
        StoreError::Denied(_) => Verdict::new(YOURS, "shared threads belong to the tenant: add --as-tenant"),
        StoreError::Conflict(Conflict::IdempotencyKey) => Verdict::new(YOURS, "use a new --key for a new message"),
        StoreError::Conflict(_) => Verdict::new(YOURS, "look at the thread again, and repeat if it is still wanted"),
        StoreError::Unavailable { source: Some(source), .. } if source.is::<Unwritten>() => Verdict::new(
            OTHER_SIDE,
            "make its folder writable, name another file with --erasure-ledger, or keep none by --erasure-ledger none",
        ),
        StoreError::Unavailable { reason, .. } => of_reason(*reason),
        StoreError::Invalid { field: "database URL", .. } => Verdict::new(
            USAGE,
            "write postgres://USER:PASSWORD@HOST:PORT/DATABASE; docs/stores.md lists what may follow",
        ),
        StoreError::Invalid { field: "tenant", .. } => {
            Verdict::new(USAGE, "name another tenant with --tenant or THREADKEEP_TENANT")
        }
        StoreError::LimitExceeded { limit, .. } if limit.contains("pgvector") => Verdict::new(
            YOURS,
            "the database's owner installs it with `CREATE EXTENSION vector`, or ask without an embedder",
        ),
        StoreError::Corrupt { .. } => Verdict::new(
            OTHER_SIDE,
            "`threadkeep check` says how far the damage goes; `threadkeep restore FILE` puts a backup back",
        ),
        StoreError::Incompatible(_) => Verdict::new(
            OTHER_SIDE,
            "name a store of Threadkeep with --store; one of a later version needs that version's threadkeep",
        ),
        _ => Verdict::bare(YOURS),
    }
}

fn of_model(error: &ModelError) -> Verdict {
    match error {
        ModelError::Unavailable { .. } | ModelError::TimedOut { .. } => {
            Verdict::new(OTHER_SIDE, "`threadkeep models` says whether it answers; run the same command again later")
        }
        ModelError::Unauthorized { .. } => {
            Verdict::new(YOURS, "check its key: `threadkeep models` says which variable holds it")
        }
        ModelError::ContextTooLong { .. } => {
            Verdict::new(YOURS, "take less into the context, or a model that reads more")
        }
        _ => Verdict::new(
            OTHER_SIDE,
            "name another model: docs/models.md says how, `threadkeep models` shows those found",
        ),
    }
}

fn of_context(error: &ContextError) -> Verdict {
    match error {
        ContextError::BudgetTooSmall { needed, .. } => {
            Verdict::new(YOURS, format!("give --budget {needed} or more; below that not even the question fits"))
        }
        _ => Verdict::bare(YOURS),
    }
}

fn of_reason(reason: Reason) -> Verdict {
    let hint = match reason {
        Reason::Busy => "another program holds the store: wait until it is done, and run the same command again",
        Reason::Full => "free some space on the disk, and run the same command again",
        Reason::ReadOnly => {
            "it may not be written: change the rights of the file or its folder, or name another store with --store"
        }
        Reason::Io => "check that the folder exists, that you may write to it, and that the disk is well",
        Reason::Disconnected | Reason::Timeout => {
            "check that the server runs and that its host and port are right, and run the same command again"
        }
        _ => "check that the store can be reached, and run the same command again",
    };
    Verdict::new(OTHER_SIDE, hint)
}

fn of_format(error: &FormatError) -> Verdict {
    match error {
        FormatError::Open { .. } => Verdict::new(YOURS, "check the name and whether you may read it"),
        FormatError::Read(_) => Verdict::new(OTHER_SIDE, "copy the file to another disk and try that copy"),
        FormatError::Empty => Verdict::new(YOURS, "name a file that holds conversations"),
        FormatError::LaterVersion { .. } => {
            Verdict::new(YOURS, "import it with the version of threadkeep that wrote it")
        }
        _ => Verdict::new(YOURS, "name the format with --format, or convert the file to one of these"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_cause_that_knows_decides() {
        let error = anyhow::Error::from(StoreError::unavailable(Reason::Full)).context("the import stopped");
        assert_eq!(verdict(&error).code, OTHER_SIDE);
        assert_eq!(sentence(&error), "the import stopped: store unavailable: no space is left");
        let error = anyhow::Error::from(MemoryError::from(StoreError::NotFound(threadkeep::core::Kind::Thread)));
        assert_eq!((verdict(&error).code, sentence(&error).as_str()), (YOURS, "thread not found"));
        for (error, code, hint) in [
            (ModelError::TimedOut { model: "m".into(), after: Duration::from_secs(1) }, OTHER_SIDE, "again later"),
            (ModelError::Unauthorized { model: "m".into(), detail: "no".into() }, YOURS, "check its key"),
            (ModelError::ContextTooLong { model: "m".into() }, YOURS, "take less"),
            (ModelError::Refused { model: "m".into(), status: 400, detail: "no".into() }, OTHER_SIDE, "another model"),
        ] {
            let verdict = verdict(&anyhow::Error::from(MemoryError::from(error)));
            assert!(verdict.code == code && verdict.hint.as_deref().unwrap().contains(hint), "{:?}", verdict.hint);
        }
        let error = anyhow::Error::from(Failure::usage("say more").hint("like this"));
        assert_eq!((verdict(&error).code, verdict(&error).hint.as_deref()), (USAGE, Some("like this")));
    }
}
