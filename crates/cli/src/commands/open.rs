use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::Result;

use super::{App, Status};
use crate::clock::clock;
use crate::failure::Failure;
use crate::local_token;

/// Where a server listens by itself.
const LISTEN: &str = "127.0.0.1:7437";
/// How long a server may take to be reached.
const REACHED: Duration = Duration::from_secs(2);

/// Open the page of `threadkeep serve` in the browser, as its owner
///
/// What the browser is handed is good for two minutes and does not hold the token; the page exchanges it for a cookie that is
/// good for a day, for this server alone. Where there is no browser the address is printed. All of this works as long as no key
/// was ever made (`threadkeep keys create`).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep open                 the server on this machine
  threadkeep open general         talk with this assistant
  threadkeep open --print         only print the address")]
pub(crate) struct Arguments {
    /// The assistant to talk with [default: the only one that is served, else what all can be asked]
    assistant: Option<String>,
    /// Where the server listens [default: 127.0.0.1:7437]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The token that `serve --token` was given; others can read it in the list of processes: rather set THREADKEEP_TOKEN
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Print the address instead of opening it
    #[arg(long)]
    print: bool,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let settings = &app.settings;
    let listen = arguments.listen.or_else(|| settings.get("THREADKEEP_LISTEN")).unwrap_or_else(|| LISTEN.to_owned());
    let address = reachable(&listen)?;
    let scheme = if settings.get("THREADKEEP_TLS_CERT").is_some() { "https" } else { "http" };
    let found = local_token::find(arguments.token.as_deref(), settings)?;
    // Browsers keep in their history what they are handed, and others see it in the list of processes.
    let pass = found.token.pass(clock(app.global.now).now());
    let assistant = arguments.assistant.as_deref().map(|name| format!("&assistant={}", escaped(name)));
    let url = format!("{scheme}://{address}/v1/session#token={pass}{}", assistant.unwrap_or_default());
    if !arguments.print {
        is_there(&address).map_err(|error| {
            let failure = Failure::other_side(format!("no server answers at {address}: {error}"));
            failure.hint("start one with `threadkeep serve`, or say where it is with --listen")
        })?;
        let handed = url.clone();
        if has_screen() && tokio::task::spawn_blocking(move || webbrowser::open(&handed)).await?.is_ok() {
            app.output.note(format_args!("opened {scheme}://{address} in the browser"));
            return Ok(Status::Done);
        }
        app.output.note("there is no browser here: open this address in one within two minutes");
    }
    if app.output.is_json() {
        app.output.json(&serde_json::json!({ "url": url }))?;
    } else {
        app.output.line(url)?;
    }
    Ok(Status::Done)
}

/// The address under which a browser on this machine finds what listens there.
fn reachable(listen: &str) -> Result<String> {
    let refused = || Failure::usage(format!("{listen} is no address and port of a server"));
    let Ok(mut address) = listen.parse::<SocketAddr>() else {
        let (host, port) = listen.rsplit_once(':').ok_or_else(refused)?;
        let is_host =
            !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
        if !is_host || !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return Err(refused().into());
        }
        return Ok(listen.to_owned());
    };
    if address.port() == 0 {
        return Err(refused().hint("give the port that `serve` named at its start").into());
    }
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    Ok(address.to_string())
}

/// Whether a browser could show anything. Some are started without a screen, and end unseen.
fn has_screen() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let names = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME"];
    cfg!(any(windows, target_os = "macos")) || names.iter().any(is_set)
}

/// Whether something listens there.
fn is_there(address: &str) -> std::io::Result<()> {
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, REACHED) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A text as it may stand in the fragment of an address.
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_sent_to_what_it_can_reach() {
        for (listen, address) in [
            ("127.0.0.1:7437", "127.0.0.1:7437"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("localhost:7999", "localhost:7999"),
        ] {
            assert_eq!(reachable(listen).unwrap(), address);
        }
        for wrong in ["", "localhost", "127.0.0.1:0", "localhost:x", "a/b:1", ":1", "localhost:0"] {
            assert!(reachable(wrong).is_err(), "{wrong}");
        }
        assert_eq!(escaped("a b&c=é"), "a%20b%26c%3D%C3%A9");
    }
}
