//! Programs that some tests need in addition to Rust, and how to install them.

mod kubectl;
mod node;
mod python;

use std::env;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::cargo::Workspace;
use crate::debian;

struct Requirement {
    /// The name of the program in `THREADKEEP_MISSING_PROGRAMS`, which tests read.
    program: &'static str,
    debian_package: &'static str,
    /// A command that succeeds if the program has the features that the tests need. If empty, the program only has to
    /// be on the `PATH`.
    probe: &'static [&'static str],
    /// The tests that are skipped without the program.
    tests: &'static str,
    /// How to run these tests without installing the program, if that is possible.
    alternative: Option<&'static str>,
}

const REQUIREMENTS: &[Requirement] = &[
    Requirement {
        program: "strace",
        debian_package: "strace",
        probe: &["strace", "-o", "/dev/null", "true"],
        tests: "tests that trace the system calls of a store",
        alternative: None,
    },
    Requirement {
        program: "unshare",
        debian_package: "util-linux",
        probe: &["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        tests: "tests that fill or write-protect a temporary file system",
        alternative: None,
    },
    Requirement {
        program: "postgres",
        debian_package: "postgresql",
        // Debian installs the server's programs by version, outside the `PATH`.
        probe: &[
            "sh",
            "-c",
            "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb || test -n \"$THREADKEEP_TEST_POSTGRES_URL\"",
        ],
        tests: "tests on PostgreSQL",
        alternative: Some("set THREADKEEP_TEST_POSTGRES_URL to use a running server"),
    },
    Requirement {
        program: "pgbouncer",
        debian_package: "pgbouncer",
        probe: &["sh", "-c", "command -v pgbouncer || ls /usr/sbin/pgbouncer"],
        tests: "tests through PgBouncer",
        alternative: None,
    },
    Requirement {
        program: "redis",
        debian_package: "redis-server",
        probe: &["sh", "-c", "command -v redis-server && command -v redis-cli"],
        tests: "tests on Redis",
        alternative: None,
    },
    Requirement {
        program: "faketime",
        debian_package: "libfaketime",
        probe: &["sh", "-c", "ls /usr/lib/*/faketime/libfaketime.so.1"],
        tests: "tests in which a server's clock jumps",
        alternative: None,
    },
    Requirement {
        program: "curl",
        debian_package: "curl",
        // `--json` requires 7.82.
        probe: &["sh", "-c", "curl --help all | grep -q -e --json"],
        tests: "the README's conversation with the server",
        alternative: None,
    },
    Requirement {
        program: "nginx",
        debian_package: "nginx-light",
        // Debian installs it outside the `PATH` of users.
        probe: &["sh", "-c", "command -v nginx || ls /usr/sbin/nginx"],
        tests: "tests of a server that requires no API key, behind a proxy that adds no headers about the client",
        alternative: None,
    },
    Requirement {
        program: "wrk",
        debian_package: "wrk",
        // `wrk --version` prints the version but exits with an error.
        probe: &["sh", "-c", "command -v wrk"],
        tests: "the server's load test",
        alternative: None,
    },
    Requirement {
        program: "python3",
        debian_package: "python3-pip",
        probe: &["python3", "-m", "pip", "--version"],
        tests: "tests that check realtime messages with an independent decoder in Python",
        alternative: None,
    },
];

/// A missing program, whose tests are skipped.
#[derive(Debug)]
pub(super) struct MissingProgram {
    program: &'static str,
    tests: &'static str,
    reason: String,
}

impl fmt::Display for MissingProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): skipped: {}", self.tests, self.program, self.reason)
    }
}

/// Installs PostgreSQL if it is missing. If it cannot be installed, returns the reason.
pub(crate) fn postgres_problem() -> Option<String> {
    let mut wanted = REQUIREMENTS.iter().filter(|requirement| requirement.program == "postgres");
    let missing = wanted.find(|requirement| !is_usable(requirement)).and_then(install_program);
    missing.map(|missing| missing.reason)
}

/// Installs missing programs, and returns those that cannot be installed. In continuous integration (`CI=true`), fails
/// if a program cannot be installed.
pub(super) fn install(workspace: &Workspace) -> Result<Vec<MissingProgram>> {
    let mut missing: Vec<_> =
        REQUIREMENTS.iter().filter(|requirement| !is_usable(requirement)).filter_map(install_program).collect();
    missing.extend(python::install(workspace)?);
    missing.extend(node::install(workspace)?);
    missing.extend(kubectl::install(workspace)?);
    for program in &missing {
        println!("{program}");
    }
    let in_ci = env::var("CI").is_ok_and(|value| value == "true");
    ensure!(missing.is_empty() || !in_ci, "continuous integration (CI=true) must not skip tests");
    Ok(missing)
}

/// Returns the names of missing programs in the format of `THREADKEEP_MISSING_PROGRAMS`.
pub(super) fn names(missing: &[MissingProgram]) -> String {
    missing.iter().map(|missing| missing.program).collect::<Vec<_>>().join(",")
}

fn install_program(requirement: &Requirement) -> Option<MissingProgram> {
    let mut reason = match debian::installation_problem() {
        Some(reason) => {
            format!("{} is not installed or cannot be used on this system, and {reason}", requirement.program)
        }
        None if apt_get(requirement.debian_package) && is_usable(requirement) => return None,
        None => format!("{} cannot be installed or used on this system", requirement.program),
    };
    if let Some(alternative) = requirement.alternative {
        reason = format!("{reason}; or {alternative}");
    }
    Some(MissingProgram { program: requirement.program, tests: requirement.tests, reason })
}

fn apt_get(debian_package: &str) -> bool {
    debian::apt_get(&["install", "-y", "--no-install-recommends", debian_package], Path::new("."))
}

fn is_usable(requirement: &Requirement) -> bool {
    let Some((program, arguments)) = requirement.probe.split_first() else {
        return debian::is_on_path(requirement.program);
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
