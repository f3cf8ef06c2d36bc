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

struct Need {
    /// The name of the program in `THREADKEEP_MISSING_PROGRAMS`, which tests read.
    program: &'static str,
    debian_package: &'static str,
    /// A command that succeeds if the program has the features that the tests need. If empty, the program only has to
    /// be on the `PATH`.
    probe: &'static [&'static str],
    /// The tests that are skipped without the program.
    tests: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        program: "strace",
        debian_package: "strace",
        probe: &["strace", "-o", "/dev/null", "true"],
        tests: "tests that trace the system calls of a store",
    },
    Need {
        program: "unshare",
        debian_package: "util-linux",
        probe: &["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        tests: "tests that fill or write-protect a temporary file system",
    },
    Need {
        program: "postgres",
        debian_package: "postgresql",
        // Debian installs the server's programs by version, outside the `PATH`.
        probe: &[
            "sh",
            "-c",
            "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb || test -n \"$THREADKEEP_TEST_POSTGRES_URL\"",
        ],
        tests: "tests on PostgreSQL (or set THREADKEEP_TEST_POSTGRES_URL to a server)",
    },
    Need {
        program: "pgbouncer",
        debian_package: "pgbouncer",
        probe: &["sh", "-c", "command -v pgbouncer || ls /usr/sbin/pgbouncer"],
        tests: "tests through PgBouncer",
    },
    Need {
        program: "redis",
        debian_package: "redis-server",
        probe: &["sh", "-c", "command -v redis-server && command -v redis-cli"],
        tests: "tests on Redis",
    },
    Need {
        program: "faketime",
        debian_package: "libfaketime",
        probe: &["sh", "-c", "ls /usr/lib/*/faketime/libfaketime.so.1"],
        tests: "tests in which a server's clock jumps",
    },
    Need {
        program: "curl",
        debian_package: "curl",
        // `--json` requires 7.82.
        probe: &["sh", "-c", "curl --help all | grep -q -e --json"],
        tests: "the README's conversation with the server",
    },
    Need {
        program: "nginx",
        debian_package: "nginx-light",
        // Debian installs it outside the `PATH` of users.
        probe: &["sh", "-c", "command -v nginx || ls /usr/sbin/nginx"],
        tests: "tests of a server without a key behind a plain proxy",
    },
    Need {
        program: "wrk",
        debian_package: "wrk",
        // `wrk --version` prints the version but exits with an error.
        probe: &["sh", "-c", "command -v wrk"],
        tests: "no tests, but the load test of the server fails without it",
    },
    Need {
        program: "python3",
        debian_package: "python3-pip",
        probe: &["python3", "-m", "pip", "--version"],
        tests: "tests that decode realtime messages a second time, in Python",
    },
];

/// A program that is missing, so that its tests are skipped.
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

/// Installs missing programs, and returns those that cannot be installed. In continuous integration (`CI=true`), fails
/// if a program cannot be installed.
pub(super) fn install(workspace: &Workspace) -> Result<Vec<MissingProgram>> {
    let mut missing: Vec<_> = NEEDS.iter().filter(|need| !is_usable(need)).filter_map(install_program).collect();
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

fn install_program(need: &Need) -> Option<MissingProgram> {
    let reason = match debian::installation_problem() {
        Some(reason) => format!("{} is not installed or cannot be used on this system, and {reason}", need.program),
        None if apt_get(need.debian_package) && is_usable(need) => return None,
        None => format!("{} cannot be installed or used on this system", need.program),
    };
    Some(MissingProgram { program: need.program, tests: need.tests, reason })
}

fn apt_get(debian_package: &str) -> bool {
    debian::apt_get(&["install", "-y", "--no-install-recommends", debian_package], Path::new("."))
}

fn is_usable(need: &Need) -> bool {
    let Some((program, arguments)) = need.probe.split_first() else { return debian::is_found(need.program) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
