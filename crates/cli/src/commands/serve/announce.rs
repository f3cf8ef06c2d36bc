//! Prints the address of a started server, and the variables that a client needs.

use std::io::IsTerminal;
use std::net::SocketAddr;

use serde::Serialize;
use threadkeep_server::LocalAccess;

use crate::commands::App;
use crate::local_token::ServerToken;

/// How clients authenticate.
pub(super) enum Access {
    /// With keys or with tokens of an issuer.
    Keys,
    /// With the server's token.
    Token(ServerToken),
    /// Without authentication, from this machine only.
    ThisMachine,
}

impl Access {
    pub(super) fn to_server(&self) -> LocalAccess {
        match self {
            Self::Keys => LocalAccess::Disabled,
            Self::Token(found) => LocalAccess::Token(found.token.clone()),
            Self::ThisMachine => LocalAccess::ThisMachine,
        }
    }
}

#[derive(Serialize)]
struct Started<'a> {
    listening: &'a str,
    openai_base_url: &'a str,
    /// Only on a terminal, because other output may be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    openai_api_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<String>,
}

/// Prints the address to standard error, and lines to paste into a shell to standard output.
///
/// The token is printed only on a terminal. Other output may be stored by a log collector, so it contains the path of the
/// token's file instead.
pub(super) fn announce(app: &App, scheme: &str, mut address: SocketAddr, access: &Access) {
    app.output.note(format_args!("listening on {scheme}://{address}"));
    if matches!(access, Access::ThisMachine) {
        let warning = "--insecure-no-token: every program on this machine, and every client of a proxy on it, can read, \
                       change and erase everything";
        app.output.note(format_args!("{} {warning}", app.output.error_label("warning:")));
        tracing::warn!("{warning}");
    }
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    let (listening, is_terminal) = (format!("{scheme}://{address}"), std::io::stdout().is_terminal());
    let base = format!("{listening}/v1");
    let server_token = match access {
        Access::Token(token) => Some(token),
        Access::Keys | Access::ThisMachine => None,
    };
    let token = server_token.filter(|_| is_terminal).map(|token| token.text.as_str());
    let file = server_token.and_then(|token| token.file.as_ref()).map(|file| file.display().to_string());
    let printed = if app.output.is_json() {
        let started =
            Started { listening: &listening, openai_base_url: &base, openai_api_key: token, token_file: file };
        app.output.json(&started)
    } else {
        let key = match (access, token, file) {
            (_, Some(token), _) => format!("export OPENAI_API_KEY={token}"),
            (_, None, Some(file)) => format!("# OPENAI_API_KEY is in {file}"),
            (Access::Token(_), None, None) => "# OPENAI_API_KEY is the configured token".to_owned(),
            (Access::Keys, ..) => "# OPENAI_API_KEY is a key from `threadkeep keys create`".to_owned(),
            (Access::ThisMachine, ..) => "export OPENAI_API_KEY=any".to_owned(),
        };
        app.output.line(format_args!("export OPENAI_BASE_URL={base}\n{key}"))
    };
    // Errors are ignored, because a closed standard output must not stop the server.
    drop(printed);
}
