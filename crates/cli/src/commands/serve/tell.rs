//! What `serve` tells at its start: where it listens, and what a client needs.

use std::io::IsTerminal;
use std::net::SocketAddr;

use serde::Serialize;
use threadkeep_server::LocalAccess;

use crate::commands::App;
use crate::local_token::Found;

/// Who may call while there is no key.
pub(super) enum Access {
    /// There is a key, or an issuer of tokens.
    Keys,
    Token(Found),
    ThisMachine,
}

impl Access {
    pub(super) fn to_server(&self) -> LocalAccess {
        match self {
            Self::Keys => LocalAccess::Nobody,
            Self::Token(found) => LocalAccess::Token(found.token.clone()),
            Self::ThisMachine => LocalAccess::ThisMachine,
        }
    }
}

#[derive(Serialize)]
struct Started<'a> {
    listening: &'a str,
    openai_base_url: &'a str,
    /// Only for a terminal: what else reads this may keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    openai_api_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<String>,
}

/// Tells where it listens on standard error, and the lines to paste on standard output.
///
/// The token itself is for a terminal alone: where the output goes elsewhere, a collector of logs may keep it, and the file
/// that holds it is named instead.
pub(super) fn tell(app: &App, scheme: &str, mut address: SocketAddr, access: &Access) {
    app.output.note(format_args!("listening on {scheme}://{address}"));
    if matches!(access, Access::ThisMachine) {
        let warning = "--insecure-no-token: every program on this machine, and everyone whom a proxy on it lets through, may \
                       read, change and erase everything";
        app.output.note(format_args!("{} {warning}", app.output.error_label("warning:")));
        tracing::warn!("{warning}");
    }
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    let (listening, is_terminal) = (format!("{scheme}://{address}"), std::io::stdout().is_terminal());
    let base = format!("{listening}/v1");
    let found = match access {
        Access::Token(found) => Some(found),
        Access::Keys | Access::ThisMachine => None,
    };
    let shown = found.filter(|_| is_terminal).map(|found| found.text.as_str());
    let file = found.and_then(|found| found.file.as_ref()).map(|file| file.display().to_string());
    let told = if app.output.is_json() {
        let started =
            Started { listening: &listening, openai_base_url: &base, openai_api_key: shown, token_file: file };
        app.output.json(&started)
    } else {
        let key = match (access, shown, file) {
            (_, Some(token), _) => format!("export OPENAI_API_KEY={token}"),
            (_, None, Some(file)) => format!("# OPENAI_API_KEY is in {file}"),
            (Access::Token(_), None, None) => "# OPENAI_API_KEY is the token that was given".to_owned(),
            (Access::Keys, ..) => "# OPENAI_API_KEY is a key of `threadkeep keys create`".to_owned(),
            (Access::ThisMachine, ..) => "export OPENAI_API_KEY=any".to_owned(),
        };
        app.output.line(format_args!("export OPENAI_BASE_URL={base}\n{key}"))
    };
    // Whoever closed the output wants none of it, and the server serves.
    drop(told);
}
