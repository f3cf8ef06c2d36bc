//! Programs that some tests need beyond Rust, and how to come by them.

mod python;

use std::env;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::cargo::Workspace;
use crate::debian;

struct Need {
    /// Under which name a test finds it in `THREADKEEP_LEFT_OUT`.
    program: &'static str,
    debian_package: &'static str,
    /// A command that succeeds where the program can do what the tests need of it.
    probe: &'static [&'static str],
    /// The tests that are left out without it.
    tests: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        program: "strace",
        debian_package: "strace",
        probe: &["strace", "-o", "/dev/null", "true"],
        tests: "tests that watch the system calls of a store",
    },
    Need {
        program: "unshare",
        debian_package: "util-linux",
        probe: &["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        tests: "tests that fill or write-protect a file system of their own",
    },
    Need {
        program: "postgres",
        debian_package: "postgresql",
        // Debian keeps the server's programs beside each other by version, off the path.
        probe: &[
            "sh",
            "-c",
            "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb || test -n \"$THREADKEEP_TEST_POSTGRES_URL\"",
        ],
        tests: "tests over PostgreSQL (or name a server by THREADKEEP_TEST_POSTGRES_URL)",
    },
    Need {
        program: "pgbouncer",
        debian_package: "pgbouncer",
        probe: &["sh", "-c", "command -v pgbouncer || ls /usr/sbin/pgbouncer"],
        tests: "tests through PgBouncer",
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
        // `--json` came with 7.82.
        probe: &["sh", "-c", "curl --help all | grep -q -e --json"],
        tests: "the README's conversation with the server",
    },
    Need {
        program: "nginx",
        debian_package: "nginx-light",
        // Debian keeps it off the path of users.
        probe: &["sh", "-c", "command -v nginx || ls /usr/sbin/nginx"],
        tests: "tests that nobody calls a server without a key through a plain proxy",
    },
    Need {
        program: "wrk",
        debian_package: "wrk",
        // It tells its version and fails.
        probe: &["sh", "-c", "command -v wrk"],
        tests: "nothing: the test that puts a server under load fails without it",
    },
    Need {
        program: "python3",
        debian_package: "python3-pip",
        probe: &["python3", "-m", "pip", "--version"],
        tests: "tests that decode realtime messages a second time, in Python",
    },
];

/// A program that is not there, so that its tests are left out.
#[derive(Debug)]
pub(super) struct Lacking {
    program: &'static str,
    tests: &'static str,
    reason: String,
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): left out, {}", self.tests, self.program, self.reason)
    }
}

/// Installs what is not there. In continuous integration (`CI=true`) everything has to be there afterwards; elsewhere
/// what is still lacking is returned.
pub(super) fn install(workspace: &Workspace) -> Result<Vec<Lacking>> {
    let mut lacking: Vec<_> = NEEDS.iter().filter(|need| !is_fit(need)).filter_map(install_one).collect();
    lacking.extend(python::install(workspace)?);
    for one in &lacking {
        println!("{one}");
    }
    let in_ci = env::var("CI").is_ok_and(|value| value == "true");
    ensure!(lacking.is_empty() || !in_ci, "no test may be left out in continuous integration (CI=true)");
    Ok(lacking)
}

/// The names of what is lacking, as the tests read them from `THREADKEEP_LEFT_OUT`.
pub(super) fn names(lacking: &[Lacking]) -> String {
    lacking.iter().map(|one| one.program).collect::<Vec<_>>().join(",")
}

fn install_one(need: &Need) -> Option<Lacking> {
    let reason = match debian::why_not_installable() {
        Some(reason) => format!("{} is not installed or not permitted here, and {reason}", need.program),
        None if apt_get(need.debian_package) && is_fit(need) => return None,
        None => format!("{} cannot be installed or is not permitted here", need.program),
    };
    Some(Lacking { program: need.program, tests: need.tests, reason })
}

fn apt_get(debian_package: &str) -> bool {
    debian::apt_get(&["install", "-y", "--no-install-recommends", debian_package], Path::new("."))
}

fn is_fit(need: &Need) -> bool {
    let Some((program, arguments)) = need.probe.split_first() else { return debian::is_found(need.program) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
